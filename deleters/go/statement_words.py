"""How problem statements write about Go code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence

from excise.deleters.go.bodies import PLACEHOLDER
from excise.deleters.go.foreign_uses import is_foreign_use
from excise.deleters.go.table_rows import table_rows
from excise.deleters.statement_words_defaults import StatementWordsDefaults
from excise.protocols import Codebase, Module
from excise.types import Symbol, SymbolKind

_DECLARATION = re.compile(rb"(?m)^(?:func|type|var|const)\b")
MAX_LINES = 60
"""Maximum number of lines of a type that is shown whole."""


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
