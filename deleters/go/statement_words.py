"""How problem statements write about Go code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence

from tree_sitter import Node

from excise.deleters.assertions import AssertionGrammar, assertions_of_function
from excise.deleters.go.bodies import PLACEHOLDER
from excise.deleters.go.foreign_uses import is_foreign_use
from excise.deleters.go.table_rows import table_rows
from excise.deleters.statement_words_defaults import StatementWordsDefaults
from excise.extractors.go.analysis.grammar import parse_tree
from excise.extractors.go.analysis.parsed_file import GoModule
from excise.protocols import Assertion, Codebase, Module
from excise.types import Symbol, SymbolKind, path_of

_DECLARATION = re.compile(rb"(?m)^(?:func|type|var|const)\b")
MAX_LINES = 60
"""Maximum number of lines of a type that is shown whole."""

_REPORTED = re.compile(r"\{\s*\w+\.(?:Error|Fatal|Fail)\w*\([^{}]*\)\s*\}$")
"""The body of a condition that only reports a failure."""


def _head_of_check(node: Node, written: str) -> str:
    """The condition under which a test reports a failure, with a mark for what it reports; other statements whole."""
    reported = _REPORTED.search(written)
    if node.type != "if_statement":
        return written
    return f"{written[: reported.start()]}{{ … }}" if reported is not None else ""


_ASSERTIONS = AssertionGrammar(
    parse_tree=parse_tree,
    statements=frozenset({"if_statement", "expression_statement"}),
    checks=re.compile(r"if\s|(?:assert|require|is|c|[gG])\.\w+\("),
    literals=frozenset(
        {"interpreted_string_literal", "raw_string_literal", "rune_literal", "int_literal", "float_literal", "true",
         "false", "nil"}
    ),
    known=frozenset(
        {"t", "nil", "true", "false", "string", "byte", "rune", "int", "len", "assert", "require", "is", "c", "g"}
    ),
    wrapped=lambda written: f"package a\nfunc f() {{ {written.replace('{ … }', '{}')} }}",
    shown=_head_of_check,
)  # fmt: skip


class GoWords(StatementWordsDefaults):
    """The words of Go."""

    fence = "go"
    placeholder = PLACEHOLDER
    imports = r'(?:import\s|\s+(?:[\w.]+\s+)?"[\w./~-]+"\s*$)'
    heads = r"(?:func(?: \([^)]*\))?|type) (\w+)"
    exports = "(?!)"

    def lost_imports(self, before: bytes, after: bytes) -> Sequence[str]:
        """The lines of the file's import declarations, which come before all others."""
        first = _DECLARATION.search(before)
        return super().lost_imports(before[: first.start()] if first else before, after)

    def declaration(self, module: Module, symbol: Symbol) -> str:
        """Of a type, all of it: its fields or methods."""
        if symbol.kind is not SymbolKind.CLASS or symbol.end_line - symbol.start_line > MAX_LINES:
            return ""
        text = module.source[symbol.start : symbol.end].decode("utf-8", "replace")
        return text if text.startswith("type") else "type " + text.replace("\n\t", "\n")

    def table_rows(self, module: Module, test: Symbol, names: Collection[str]) -> str:
        """Those with an error, or with something empty."""
        return table_rows(module.source, test.start, test.end, set(names))

    def assertions(self, codebase: Codebase, test: str, symbol: Symbol) -> Sequence[Assertion]:
        """``if got := f("a"); got != "b" { … }``."""
        module = codebase.modules.get(path_of(test))
        paths = [(each.name, each.path) for each in module.imports] if isinstance(module, GoModule) else []
        imported = {part for name, path in paths for part in (name, *re.split(r"\W", path.rpartition("/")[2])) if part}
        return assertions_of_function(_ASSERTIONS, codebase, test, symbol, imported)

    def is_foreign_use(self, codebase: Codebase, symbol: Symbol, caller: str, line: str) -> bool:
        """Whether a method that is called may be one of any type."""
        return is_foreign_use(codebase, symbol, caller, line)

    def module_of(self, path: str) -> str:
        """The folder of a package."""
        return posixpath.dirname(path) or path

    def missing_file(self, path: str) -> Sequence[str]:
        """What the compiler says of a file that is not there."""
        return [f"// {path} is missing"]

    def failure(self, path: str, name: str, deleter: str) -> Sequence[str]:
        """What the compiler says of a name that is missing, or a call of a function that lacks its code."""
        if deleter == "remove":
            return [f"{path.rpartition('/')[2]}: undefined: {name}"]
        return [f"{name}(...) // panic: not implemented"]
