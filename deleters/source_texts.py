"""The source text of definitions."""

from __future__ import annotations

from excise.protocols import Codebase
from excise.types import Symbol


def source_text(codebase: Codebase, symbol: Symbol) -> str:
    """Source text of a definition, with its decorators, attributes and docstring."""
    return codebase.modules[symbol.path].source[symbol.start : symbol.end].decode("utf-8", "replace")
