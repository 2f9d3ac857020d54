"""The part of a test that shows what a call gives: its first statements up to a check that tells something."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping

from excise.extractors.python.analysis.ast_walk import is_literal, last_name, walk
from excise.extractors.python.needs.test_uses import Function

MAX_LINES = 24
"""Number of lines of an excerpt."""
MAX_CHARS = 1200
"""Number of characters of an excerpt."""
_ASSERTION = re.compile(
    r"_?(?:assert[A-Z_]\w*|raises|warns|(?:eq|ne|ok|check|expect|verify|ensure|compare)(?:_\w*|[A-Z]\w*)?)"
)
"""Names of functions that check something: of unittest and pytest, nose's ``eq_``, and a project's own."""
_PLAIN = frozenset({"None", "True", "False", "[]", "()", "{}", "''", "set()", "0"})
"""Expected values that tell little."""


def excerpt(source: str, name: str, *, whole: bool) -> str:
    """The beginning of the test function ``source`` through its first check that tells what comes of ``name``.

    Unless ``whole``, at least as many checks must follow as are shown. Empty if there is no such part, if it is too
    long, and if it needs fixtures or what another method has made.
    """
    try:
        (function,) = ast.parse(textwrap.dedent(source)).body
    except (SyntaxError, ValueError, RecursionError):
        return ""
    if not isinstance(function, Function) or function.decorator_list or not _takes_nothing(function.args):
        return ""
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    number = sum(len(list(checks(each))) for each in statements)
    seen, is_named = 0, False
    values: dict[str, ast.expr] = {}
    for last, statement in enumerate(statements):
        found = list(checks(statement))
        seen += len(found)
        is_named = is_named or _names(statement, name)
        if not whole and 2 * seen > number:
            return ""
        if is_named and any(_tells(check, values) for check in found):
            text = _text(textwrap.dedent(source), statements[: last + 1])
            lines = [function.lineno, *(each.lineno for each in statements[last + 1 : last + 2])]
            is_short = text.count("\n") < MAX_LINES and len(text) <= MAX_CHARS and "```" not in text
            is_apart = {statements[0].lineno, statement.end_lineno}.isdisjoint(lines)
            return text if is_short and is_apart and not any(map(_needs_its_object, statements[: last + 1])) else ""
        if isinstance(statement, ast.Assign):
            values |= {each.id: statement.value for each in statement.targets if isinstance(each, ast.Name)}
    return ""


def _takes_nothing(given: ast.arguments) -> bool:
    """Whether a function has no parameters but ``self``."""
    more = [*given.posonlyargs, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return not more and [each.arg for each in given.args] in ([], ["self"])


def _text(source: str, statements: list[ast.stmt]) -> str:
    """The lines of statements without their indentation; those within a literal keep theirs if one has less of it."""
    first = statements[0].lineno
    lines = source.replace("\r\n", "\n").split("\n")[first - 1 : statements[-1].end_lineno]
    text = textwrap.dedent("\n".join(lines))
    if not text[:1].isspace():
        return text
    literals = (n for each in statements for n in walk(each) if isinstance(n, ast.Constant | ast.JoinedStr))
    inside = {line - first for n in literals for line in range(n.lineno + 1, (n.end_lineno or 0) + 1)}
    indent = text[: len(text) - len(text.lstrip())]
    return "\n".join(
        line if number in inside else line.removeprefix(indent) for number, line in enumerate(text.split("\n"))
    )


def checks(statement: ast.stmt) -> Iterator[ast.Assert | ast.Call]:
    """The checks in a statement: ``assert``, methods such as ``assertEqual``, and exceptions that are expected."""
    for node in walk(statement):
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and _ASSERTION.fullmatch(last_name(node.func))):
            yield node


def _tells(check: ast.Assert | ast.Call, values: Mapping[str, ast.expr]) -> bool:
    """Whether a check compares something with a value that nobody would guess; ``values`` are those of variables."""
    if isinstance(check, ast.Assert):
        compared = check.test if isinstance(check.test, ast.Compare) else None
        operands = [compared.left, *compared.comparators] if compared is not None else []
    else:
        operands = check.args[:2]
    written = [values.get(each.id, each) if isinstance(each, ast.Name) else each for each in operands]
    is_text = any(isinstance(each, ast.JoinedStr) for each in written)
    return len(operands) > 1 and (is_text or any(is_literal(e) and ast.unparse(e) not in _PLAIN for e in written))


def _names(statement: ast.stmt, name: str) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)
        for node in walk(statement)
    )


def _needs_its_object(statement: ast.stmt) -> bool:
    """Whether a statement uses ``self`` for more than its checks."""
    nodes = list(walk(statement))
    checking = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Attribute) and _ASSERTION.fullmatch(node.attr) is not None
    }
    return any(isinstance(node, ast.Name) and node.id == "self" and id(node) not in checking for node in nodes)
