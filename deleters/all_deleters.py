"""Registry of deleters: name to class. To add one, write its file and add a line here."""

from __future__ import annotations

from excise.deleters.part_deleters import Expression, Line
from excise.deleters.proposed import Proposed
from excise.deleters.remove import Remove
from excise.deleters.stub import Stub
from excise.errors import ConfigError
from excise.protocols import Deleter

DELETERS: dict[str, type[Deleter]] = {
    Line.name: Line,
    Expression.name: Expression,
    Stub.name: Stub,
    Proposed.name: Proposed,
    Remove.name: Remove,
}
"""Name to class; those that make the easiest tasks come first."""


def get(name: str) -> Deleter:
    """The deleter called ``name``. Raises :class:`ConfigError` if there is none."""
    if name not in DELETERS:
        raise ConfigError(f"no deleter is called {name!r}; there are: {', '.join(sorted(DELETERS))}")
    return DELETERS[name]()
