"""The sandbox backends that excise knows. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable

from excise.envs.bubblewrap.sandbox import BubblewrapSandbox
from excise.errors import ConfigError
from excise.protocols import Sandbox

_SANDBOXES: dict[str, Callable[[], Sandbox]] = {"bubblewrap": BubblewrapSandbox}


def get_sandbox(name: str) -> Sandbox:
    """The backend of that name. Raises :class:`ConfigError` for an unknown one."""
    if name not in _SANDBOXES:
        raise ConfigError(f"Unknown sandbox {name!r}; known: {', '.join(sorted(_SANDBOXES))}")
    return _SANDBOXES[name]()


def all_sandboxes() -> list[Sandbox]:
    """One of each backend."""
    return [make() for make in _SANDBOXES.values()]
