"""The Docker engine: found as the ``docker`` command finds it (``DOCKER_HOST``, contexts aside), or podman's socket."""

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
"""Label of containers: the process that they belong to."""
TIMEOUT_S = 600.0


@cache
def _client(pid: int, host: str) -> Any:  # noqa: ARG001  # one client per process: a forked one must not share it
    import docker

    return docker.from_env(timeout=TIMEOUT_S, version="auto")


def connect() -> Any:
    """A ``docker.DockerClient``. Raises :class:`SandboxError` if no engine answers."""
    with engine_errors("No Docker engine answers"):
        return _client(os.getpid(), os.environ.get("DOCKER_HOST") or _podman_socket())


@cache
def is_podman() -> bool:
    """Whether the engine is podman, which differs from Docker's in details."""
    with engine_errors("The engine does not say what it is"):
        return any("Podman" in part["Name"] for part in connect().version().get("Components", ()))


def _podman_socket() -> str:
    """podman's socket, where there is no engine of Docker's; also puts it where the SDK looks."""
    if not Path("/var/run/docker.sock").exists():
        for place in (os.environ.get("XDG_RUNTIME_DIR", ""), "/run"):
            socket = Path(place, "podman", "podman.sock")
            if place and socket.exists():
                os.environ["DOCKER_HOST"] = f"unix://{socket}"
    return os.environ.get("DOCKER_HOST", "")


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """What the engine refuses is an infrastructure failure, told in its words."""
    import docker
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        said = str(getattr(error, "explanation", None) or error).strip()
        hint = INSTALL if isinstance(error, OSError) or "version" in said else "Run `excise doctor`."
        raise SandboxError(f"{what}: {said[:500]}. {hint}") from error


def owner() -> str:
    """This process, so that no other one is ever taken for it: machine, boot, pid and start."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{platform.node()}/{boot}/{own_process_name()}"


def alive(name: str) -> bool:
    """Whether the owner of a container may still be there; always, if it is not of this machine."""
    (place, _, process), (here, _, _) = name.rpartition("/"), owner().rpartition("/")
    other_machine = place.partition("/")[0] != here.partition("/")[0]
    return other_machine or (place == here and is_process_alive(process))


def sweep() -> int:
    """Remove containers whose process is gone, which end by themselves unless the engine was killed; how many."""
    import docker

    count = 0
    client = connect()
    for container in client.api.containers(all=True, filters={"label": OWNER}):
        if not alive(container["Labels"][OWNER]):
            with contextlib.suppress(docker.errors.APIError):
                client.api.remove_container(container["Id"], force=True, v=True)
                count += 1
    return count
