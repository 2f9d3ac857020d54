"""Code in comments of a function that says what a removed part of the function did."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterator

MIN_WORDS = 2
"""Number of names and literals that only the removed part had, from which on commented code with them goes."""
MIN_SHARE = 0.8
"""Share of the names and literals of commented code that the removed part must have."""
MIN_TOLD = 0.5
"""Share of what only the removed part had that commented code must have."""
MAX_PROSE = 4
"""Number of lines of prose above commented code."""
_COMMENT = re.compile(r"[ \t]*#")
Lines = tuple[int, int]
"""First line, and the one after the last, both from 0."""


def without_commented_parts(before: str, after: str) -> str:
    """The text ``after`` of a function without commented-out statements and cases of what the text ``before`` had more.

    They go alone: other commented code stays. If it would be no code any more, all stay.
    """
    was, now = _words_of(before), _words_of(after)
    if was is None or now is None:
        return after
    gone, alone = set(was - now), was.keys() - now.keys()
    lines = re.findall(r"[^\n]*\n|[^\n]+", after)
    for first, last in reversed(_comment_blocks(after, lines)):
        for start in range(first, min(first + MAX_PROSE, last)):
            if (tree := _parsed(lines[start:last])) is not None:
                lines[start:last] = _without(lines[start:last], tree, gone, alone)
                break
    return "".join(lines)


def _without(comments: list[str], tree: ast.Module, gone: set[str], alone: set[str]) -> list[str]:
    """Lines of comments that are code, without the statements of the removed part; all if the rest is no code."""
    try:
        spans = list(_copies(tree.body, gone, alone))
    except RecursionError:
        return comments
    left = [line for number, line in enumerate(comments) if not any(a <= number < b for a, b in spans)]
    return left if not left or _parsed(left) is not None else comments


def _parsed(comments: list[str]) -> ast.Module | None:
    code = "".join(re.sub(r"^[ \t]*#", "", line).rstrip("\r\n") + "\n" for line in comments)
    return _tree(textwrap.dedent(code))


def _tree(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _copies(body: list[ast.stmt], gone: set[str], alone: set[str]) -> Iterator[Lines]:
    """The lines of the statements, arms and cases with the names and literals of the removed part; of a statement with
    several arms or cases only these."""
    for statement in body:
        is_name = isinstance(statement, ast.AnnAssign) and statement.value is None
        is_name |= isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call | ast.Await | ast.Yield)
        has_others = isinstance(statement, ast.Match) or bool(getattr(statement, "orelse", None))
        if not is_name and not has_others and _is_copy([statement], gone, alone):
            yield statement.lineno - 1, statement.end_lineno or statement.lineno
            continue
        if isinstance(statement, ast.If) and has_others and _is_copy([statement.test, *statement.body], gone, alone):
            yield statement.lineno - 1, statement.body[-1].end_lineno or statement.lineno
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, [])
            yield from _copies(inner, gone, alone) if isinstance(inner, list) else ()
        if isinstance(statement, ast.Match):
            first = statement.subject.end_lineno or 0
            for case in statement.cases:
                last = case.body[-1].end_lineno or 0
                if _is_copy([case], gone, alone):
                    yield first, last
                else:
                    yield from _copies(case.body, gone, alone)
                first = last


def _is_copy(nodes: list[ast.AST], gone: set[str], alone: set[str]) -> bool:
    words = {word for node in nodes for word in _words(node)}
    told = words & alone
    return len(told) >= MIN_WORDS and len(words & gone) >= MIN_SHARE * len(words) and len(told) >= MIN_TOLD * len(alone)


def _words_of(function: str) -> Counter[str] | None:
    """The names and literals of a function's text, which begins without its indentation."""
    tree = _tree(function)
    if tree is None:  # decorators, of which only the first one is not indented
        indent = re.search(r"^[ \t]+(?=@|(?:async )?def )", function, re.MULTILINE)
        tree = _tree(f"if 1:\n{indent[0]}{function}\n") if indent is not None else None
    return _words(tree) if tree is not None else None


def _words(node: ast.AST) -> Counter[str]:
    """The names and literals below a node."""
    found: Counter[str] = Counter()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=str() as word) | ast.arg(arg=word):
                found[word] += 1
            case ast.Constant(value=value):
                found[repr(value)] += 1
    return found


def _comment_blocks(code: str, lines: list[str]) -> list[Lines]:
    """The runs of lines that are comments and nothing else, those in texts excluded."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    found = (token.start[0] - 1 for token in tokens if token.type == tokenize.COMMENT)
    rows = [number for number in found if number < len(lines) and _COMMENT.match(lines[number])]
    blocks: list[Lines] = []
    for row in rows:
        if blocks and blocks[-1][1] == row:
            blocks[-1] = blocks[-1][0], row + 1
        else:
            blocks.append((row, row + 1))
    return blocks
