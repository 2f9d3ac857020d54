"""How statements write about languages in which every name that code offers is a definition."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from excise.protocols import Assertion, Codebase, Module
from excise.types import Symbol


class StatementWordsDefaults:
    """A part of :class:`excise.protocols.StatementWords`."""

    def unnamed(self, module: Module) -> str:  # noqa: ARG002
        """None: every function has a name."""
        return ""

    def condition(self, module: Module, symbol: Symbol) -> str:  # noqa: ARG002
        """None is known."""
        return ""

    def assignments(self, module: Module, holder: Symbol) -> Mapping[str, str]:  # noqa: ARG002
        """No names: they are symbols."""
        return {}

    def data(self, module: Module, symbol: Symbol) -> Sequence[str]:  # noqa: ARG002
        """None: literals in code are not looked for."""
        return ()

    imports: str
    separator = "."
    values = "(?!)"

    def lost_imports(self, before: bytes, after: bytes) -> Sequence[str]:
        """The lines that begin an import."""
        left = set(after.splitlines())
        lines = (line.decode(errors="replace") for line in before.splitlines() if line not in left)
        return [line.strip() for line in lines if re.match(self.imports, line)]

    def excerpt(self, test: str, name: str, *, whole: bool) -> str:  # noqa: ARG002
        """None: tests are not taken apart."""
        return ""

    def table_rows(self, module: Module, test: Symbol, names: Collection[str]) -> str:  # noqa: ARG002
        """None: what tests do is shown by calls, or not looked for."""
        return ""

    def assertions(self, codebase: Codebase, test: str, symbol: Symbol) -> Sequence[Assertion]:  # noqa: ARG002
        """None: they are not looked for."""
        return ()

    def is_other(self, codebase: Codebase, path: str, name: str, own: Collection[str]) -> bool:  # noqa: ARG002
        """Not known: where names lead to is not followed."""
        return False

    def is_foreign_use(self, codebase: Codebase, symbol: Symbol, caller: str, line: str) -> bool:  # noqa: ARG002
        """Not known: of what type a variable is is not looked for."""
        return False
