"""The sandbox backends that excise knows. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable

from excise.envs.bubblewrap.sandbox import BubblewrapSandbox
from excise.envs.docker.sandbox import DockerSandbox
from excise.errors import ConfigError
from excise.protocols import Sandbox, SandboxOptions

_SANDBOXES: dict[str, Callable[[SandboxOptions], Sandbox]] = {
    "bubblewrap": BubblewrapSandbox,
    "docker": DockerSandbox,
}


def get_sandbox(name: str, options: SandboxOptions | None = None) -> Sandbox:
    """The backend of that name. Raises :class:`ConfigError` for an unknown one."""
    if name not in _SANDBOXES:
        raise ConfigError(f"Unknown sandbox {name!r}; known: {', '.join(sorted(_SANDBOXES))}")
    return _SANDBOXES[name](options or SandboxOptions())


def all_sandboxes(options: SandboxOptions | None = None) -> list[Sandbox]:
    """One of each backend."""
    return [make(options or SandboxOptions()) for make in _SANDBOXES.values()]
