/** What the sandbox keeps of a run and what its programs must know, in the words of `GET /v1/runtime`. */

import { IMAGE_BYTES_MAX } from '../../sandbox/frames.ts';
import { OUTPUT_KEPT_BYTES_MAX, OUTPUT_WRITTEN_BYTES_MAX } from '../../sandbox/output.ts';
import { ALL_IMAGES_BYTES_MAX, IMAGES_MAX } from '../../sandbox/reported.ts';

export const KEPT = {
  stdout_bytes: OUTPUT_KEPT_BYTES_MAX,
  output_bytes: OUTPUT_WRITTEN_BYTES_MAX,
  images: IMAGES_MAX,
  image_bytes: IMAGE_BYTES_MAX,
  images_bytes: ALL_IMAGES_BYTES_MAX,
  /** THREADS_MAX of sandbox/confine.py. */
  threads: 64,
};

/** Short sentences, each one something that a program written without it would get wrong. */
export const RULES = [
  'Every run starts from a fresh interpreter: nothing of an earlier run is there.',
  'There is no network: sockets, requests, urllib and pip do not work.',
  'There are no files: the current folder is empty and read-only, and temporary files cannot be made. Package data files can be read.',
  'There are no processes and no shell: use threads (at most 64) or numpy instead of subprocess and multiprocessing.',
  'Pass text as stdin (read it with input() or sys.stdin) and data as inputs (a global dict named inputs).',
  'Print what you want to see: stdout and stderr come back as written.',
  'The value of the last expression comes back too, as text, HTML and JSON, and is not printed; a semicolon after it suppresses that.',
  'matplotlib figures come back as images: at plt.show(), at savefig to any name (png, svg, pdf, jpg, webp; nothing is written), and still open at the end.',
  'display(x) prints repr(x), or returns a figure or a Pillow image as an image.',
  'numpy, pandas and matplotlib are imported already, so importing them takes no time; the other packages are imported on demand.',
  'Memory counts on top of the loaded interpreter and of numpy, pandas and matplotlib; importing scikit-learn or seaborn wants 128 MB.',
  'The program is main.py: __name__ is "__main__", line numbers in errors are those of the code that was sent.',
  'The time zone is UTC, the locale C.UTF-8. Top-level await works.',
];
