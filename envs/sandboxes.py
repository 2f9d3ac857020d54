"""The sandbox backends by name. To add one, write its module and add one entry to ``_BACKENDS``."""

from __future__ import annotations

from collections.abc import Callable

from excise.config import DockerSettings
from excise.envs.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from excise.envs.docker.docker_sandbox import DockerSandbox
from excise.errors import ConfigError
from excise.protocols import Sandbox

_BACKENDS: dict[str, Callable[[bool, DockerSettings], Sandbox]] = {
    "bubblewrap": lambda lenient, _docker: BubblewrapSandbox(lenient=lenient),
    "docker": lambda lenient, docker: DockerSandbox(docker, lenient=lenient),
}


def get_sandbox(name: str, *, lenient: bool = False, docker: DockerSettings | None = None) -> Sandbox:
    """Return the backend with this name.

    ``lenient``: run even where this machine cannot enforce a limit. ``docker``: settings of the Docker backend.
    Raises :class:`ConfigError` for an unknown name.
    """
    if name not in _BACKENDS:
        raise ConfigError(f"Unknown sandbox {name!r}; known: {', '.join(sorted(_BACKENDS))}")
    return _BACKENDS[name](lenient, docker or DockerSettings())


def all_sandboxes() -> list[Sandbox]:
    """Return one instance of each backend, with default settings."""
    return [get_sandbox(name) for name in _BACKENDS]
