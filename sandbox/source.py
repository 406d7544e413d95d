"""The caller's source text: compiled as it is, its last expression apart, so that the value can be had."""

import __future__

import ast
import functools
import io
import linecache
import operator
import re
import types

FILE_NAME = "main.py"
FUTURE_FLAGS = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def compiled(source: str) -> tuple[types.CodeType, types.CodeType | None]:
    """The program, and apart from it its last statement where that is an expression whose value is wanted: one
    that is not followed by a semicolon. Raises what the compiler raises."""
    if "\0" in source:
        line = source[: source.index("\0")].count("\n") + 1
        raise SyntaxError("source code cannot contain null bytes", (FILE_NAME, line, None, None))
    tree = compile(source, FILE_NAME, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    last = tree.body[-1] if tree.body else None
    # A lone string is the docstring too; compiled apart, it would no longer be.
    apart = isinstance(last, ast.Expr) and not is_followed_by_semicolon(source, last)
    if apart and not (len(tree.body) == 1 and isinstance(last.value, ast.Constant)):
        tree.body.pop()
    body = compile(tree, FILE_NAME, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    if not apart:
        return body, None
    flags = body.co_flags & FUTURE_FLAGS | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return body, compile(ast.Expression(last.value), FILE_NAME, "eval", flags, True)


def is_followed_by_semicolon(source: str, statement: ast.Expr) -> bool:
    """As in a notebook, `expression;` has no value. After the last expression there can only be closing
    parentheses, comments and white space besides."""
    lines = re.split(r"\r\n|\r|\n", source)[statement.end_lineno - 1 :]
    lines[0] = lines[0].encode()[statement.end_col_offset :].decode()
    return re.match(r"[\s)\\]*;", "\n".join(line.split("#")[0] for line in lines)) is not None


def remember_lines(source: str) -> None:
    """For tracebacks and `inspect.getsource`, which ask `linecache`."""
    lines = io.StringIO(source, newline=None).readlines()
    linecache.cache[FILE_NAME] = (len(source), None, lines, FILE_NAME)
