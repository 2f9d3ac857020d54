"""Registry of deleters: name to class. To add one, write its file and add a line here."""

from __future__ import annotations

from excise.deleters.part_deleters import Expression, Line
from excise.deleters.remove import Remove
from excise.deleters.stub import Stub
from excise.errors import ConfigError
from excise.protocols import Deleter

_DELETERS: dict[str, type[Deleter]] = {
    Expression.name: Expression,
    Line.name: Line,
    Stub.name: Stub,
    Remove.name: Remove,
}


def get(name: str) -> Deleter:
    """The deleter called ``name``. Raises :class:`ConfigError` if there is none."""
    if name not in _DELETERS:
        raise ConfigError(f"no deleter is called {name!r}; there are: {', '.join(sorted(_DELETERS))}")
    return _DELETERS[name]()


def all_deleters() -> tuple[Deleter, ...]:
    """All deleters, those that make the easiest tasks first."""
    return tuple(get(name) for name in _DELETERS)
