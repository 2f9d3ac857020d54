"""Connects to the Docker engine at ``DOCKER_HOST`` or its usual socket, or to podman's socket."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from excise.errors import SandboxError
from excise.system.process_identity import is_process_alive, own_process_name

INSTALL = (
    "Install an engine (apt-get install docker.io, or podman) and let this user reach its socket, "
    "or set DOCKER_HOST to it."
)
OWNER = "excise.owner"
"""Label of containers with the process that they belong to."""
TIMEOUT_S = 600.0
"""Seconds for one request to the engine."""


@cache
def _client(pid: int, host: str) -> Any:  # noqa: ARG001  # one client per process: a forked one must not share it
    import docker

    return docker.from_env(timeout=TIMEOUT_S, version="auto")


def connect() -> Any:
    """Return a ``docker.DockerClient``, one per process. Raises :class:`SandboxError` if no engine answers."""
    with engine_errors("No Docker engine answers"):
        return _client(os.getpid(), os.environ.get("DOCKER_HOST") or _podman_socket())


@cache
def is_podman() -> bool:
    """Whether the engine is podman, which differs from Docker in some details."""
    with engine_errors("The engine does not say what it is"):
        return any("Podman" in part["Name"] for part in connect().version().get("Components", ()))


def _podman_socket() -> str:
    """Set ``DOCKER_HOST`` to podman's socket where Docker's is missing; return ``DOCKER_HOST``."""
    if not Path("/var/run/docker.sock").exists():
        for folder in (os.environ.get("XDG_RUNTIME_DIR", ""), "/run"):
            socket = Path(folder, "podman", "podman.sock")
            if folder and socket.exists():
                os.environ["DOCKER_HOST"] = f"unix://{socket}"
    return os.environ.get("DOCKER_HOST", "")


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn errors of the engine into :class:`SandboxError` with the engine's message; ``what`` says what failed."""
    import docker
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        message = str(getattr(error, "explanation", None) or error).strip()
        hint = INSTALL if isinstance(error, OSError) or "version" in message else "Run `excise doctor`."
        raise SandboxError(f"{what}: {message[:500]}. {hint}") from error


def owner() -> str:
    """The unique name of this process: machine, boot, pid and start time."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{platform.node()}/{boot}/{own_process_name()}"


def may_be_alive(name: str) -> bool:
    """Whether the owner of a container may still run; always true for an owner on another machine."""
    (boot, _, process), (own_boot, _, _) = name.rpartition("/"), owner().rpartition("/")
    other_machine = boot.partition("/")[0] != own_boot.partition("/")[0]
    return other_machine or (boot == own_boot and is_process_alive(process))


def remove_orphaned_containers() -> int:
    """Remove containers whose owner has ended; return how many. They remain only if the engine was killed."""
    import docker

    count = 0
    client = connect()
    for container in client.api.containers(all=True, filters={"label": OWNER}):
        if not may_be_alive(container["Labels"][OWNER]):
            with contextlib.suppress(docker.errors.APIError):
                client.api.remove_container(container["Id"], force=True, v=True)
                count += 1
    return count
