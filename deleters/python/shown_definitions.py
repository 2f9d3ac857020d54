"""Documents whose examples define what a stub would leave without a body: solvers could copy it from there."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator

from excise.deleters.documents.document_text import ChunkKind, chunks_of, utf8_text
from excise.deleters.python.references.dependent_removal import without_numbers
from excise.deleters.statement.project_docs import is_document
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.ast_walk import walk
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.test_uses import Function, function_of
from excise.types import Symbol

MIN_SHOWN = 2
"""Number of statements from which on the body of a function in an example may be the removed one; one of a class with
the same name is, however short."""

_PROMPT = re.compile(r"^(\s*)(?:>>>|\.\.\.)(?: |$)")


def require_no_shown_definition(codebase: PythonCodebase, functions: Iterable[Symbol]) -> None:
    """Raise :class:`DeletionRefused` if an example in a document defines one of the functions, or its class with it,
    and uses half of what that uses: others may have its name."""
    names = {tuple(without_numbers(each.qualname).split(".")[-2:]): each for each in functions}
    used = {name: _words(function_of(codebase.modules[each.path].source, each)) for name, each in names.items()}
    wanted = [f"{kind} {name[0]}".encode() for name in names for kind in ("def", "class")]
    for path in sorted(filter(is_document, codebase.others.paths - codebase.suite.collected)):
        data = codebase.others.read(path)
        if not any(each in data for each in wanted):
            continue
        for name, function in _defined_in(utf8_text(data) or ""):
            if name in names and 2 * len(used[name] & _words(function)) >= len(used[name]):
                raise DeletionRefused(f"{path} shows how to write {'.'.join(name)}", reason="shown_in_documents")


def _words(function: Function | None) -> set[str]:
    """The names and attributes that a function uses, without those that it gives values to itself."""
    found = list(walk(function)) if function is not None else []
    own = {n.id for n in found if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {node.arg for node in found if isinstance(node, ast.arg)}
    words = (getattr(node, "id", "") or getattr(node, "attr", "") for node in found)
    return set(filter(None, words)) - own


def _defined_in(text: str) -> Iterator[tuple[tuple[str, ...], Function]]:
    """The functions that examples of a document define with a body, and the methods of classes, with these."""
    lines = text.split("\n")
    for chunk in chunks_of(lines):
        own = (
            [_PROMPT.sub(r"\1", line) for line in lines[chunk.code : chunk.stop]]
            if chunk.kind is ChunkKind.CODE
            else []
        )
        code = textwrap.dedent("\n".join(own))
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        for node in tree.body:
            if isinstance(node, Function) and _num_statements(node) >= MIN_SHOWN:
                yield (node.name,), node
            elif isinstance(node, ast.ClassDef):
                inner = (each for each in node.body if isinstance(each, Function) and _num_statements(each))
                yield from (((node.name, each.name), each) for each in inner)


def _num_statements(function: Function) -> int:
    """The number of statements that do something."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return sum(not (isinstance(each, ast.Pass | ast.Raise) or _is_ellipsis(each)) for each in body)


def _is_ellipsis(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and value.value is ...
