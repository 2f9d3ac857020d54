"""How statements write about languages in which every name that code offers is a definition."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from excise.protocols import Codebase, Module
from excise.types import Symbol


class StatementWordsDefaults:
    """A part of :class:`excise.protocols.StatementWords`."""

    def assignments(self, module: Module, holder: Symbol) -> Mapping[str, str]:  # noqa: ARG002
        """No names: they are symbols."""
        return {}

    def data(self, module: Module, symbol: Symbol) -> Sequence[str]:  # noqa: ARG002
        """None: literals in code are not looked for."""
        return ()

    def is_other(self, codebase: Codebase, path: str, name: str, own: Collection[str]) -> bool:  # noqa: ARG002
        """Not known: where names lead to is not followed."""
        return False
