"""Statistics of an English text on stdin: length, variety, frequent words, how hard it is to read.

Only the standard library. The last expression is a dict, so that a caller gets the figures as JSON.
"""

import re
import statistics
import sys
from collections import Counter

STOP_WORDS = frozenset(
    """a about all am an and any are as at be been but by can could did do for from had has have he her here him his how
    i if in into is it its like me my no nor not of off on one or out over said see she should so some than that the
    their them then there they this to too up upon very was way were what when where which who will with would you
    your""".split()
)
VOWELS = re.compile(r"[aeiouy]+")


def sentences_of(text: str) -> list[str]:
    """Parts that end in . ! or ? before a space and a capital letter or a quotation mark."""
    flat = " ".join(text.split())
    return [part for part in re.split(r"(?<=[.!?])[)’”\"']*\s+(?=[(‘“\"'A-Z])", flat) if part]


def words_of(text: str) -> list[str]:
    """Words in lower case; an apostrophe or a hyphen within one belongs to it."""
    return re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text.lower())


def syllables_in(word: str) -> int:
    """An estimate: groups of vowels, without a silent e at the end."""
    count = len(VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith(("le", "ee")) and count > 1
    return max(1, count - silent)


def reading_ease(words: list[str], sentences: list[str]) -> float:
    """Flesch's formula: 90 is easy for a child of eleven, 30 is hard for most adults."""
    syllables = sum(map(syllables_in, words))
    return 206.835 - 1.015 * len(words) / len(sentences) - 84.6 * syllables / len(words)


text = sys.stdin.read()
words = words_of(text)
sentences = sentences_of(text)
if not words:
    sys.exit("there is no word in the text")

lengths = [len(words_of(sentence)) for sentence in sentences]
frequent = Counter(word for word in words if word not in STOP_WORDS).most_common(8)
summary = {
    "words": len(words),
    "different_words": len(set(words)),
    "sentences": len(sentences),
    "median_sentence_words": statistics.median(lengths),
    "longest_sentence_words": max(lengths),
    "reading_ease": round(reading_ease(words, sentences), 1),
}

for name, figure in summary.items():
    print(f"{name.replace('_', ' '):<24}{figure:>8}")
print()
widest = max(len(word) for word, _ in frequent)
for word, count in frequent:
    print(f"{word:<{widest}}  {'█' * count} {count}")
summary
