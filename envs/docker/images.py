"""Images of environments: a base, the distribution's packages, and one layer for each folder that is only read.

An image is named after its content, so it is made once, for all sessions and workers, and two environments share the
layers that they have in common (the mounts come in the order of how much they are shared). A task has no image: its
edits are made when its session starts.
"""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from excise.envs.docker.base import base_image, has_image
from excise.envs.docker.engine import engine_errors
from excise.envs.docker.packages import install_packages
from excise.envs.docker.packing import Part
from excise.envs.host_lock import host_lock
from excise.protocols import Mount

REPOSITORY = "excise-env"
LOWER = "/excise/lower"
"""Where the image has what a writable mount begins with; copied to the mount itself when a session starts."""
_VERSION = 1


def environment_image(client: Any, base: str, mounts: Sequence[Mount], packages: Sequence[str], network: str) -> str:
    """The image for sessions with these mounts; made if the engine lacks it.

    Raises :class:`SandboxError`, and :class:`EnvironmentFailure` (``missing_system_lib``) for packages.
    """
    image = base_image(client, base)
    identity = hashlib.sha256(f"{_VERSION}\0{image}".encode()).hexdigest()
    if packages:
        identity = _next(identity, "packages", *sorted(packages))
        image = _made(client, image, identity, lambda c: install_packages(client, c, packages), network)
    empty = frozenset(mount.target for mount in mounts if not mount.layers)
    for mount in mounts:
        if mount.layers:
            where = LOWER + mount.target if mount.writable else mount.target
            part = Part(mount.layers, mount.target, where, empty)
            identity = _next(identity, where, part.content_hash())
            image = _made(client, image, identity, functools.partial(_put, client, part))
    return image


def _next(identity: str, *parts: str) -> str:
    return hashlib.sha256("\0".join((identity, *parts)).encode("utf-8", "replace")).hexdigest()


def _made(client: Any, image: str, identity: str, change: Callable[[str], None], network: str = "none") -> str:
    """The image of that identity: there already, or ``image`` with a change made in a container of it."""
    tag = f"{REPOSITORY}:{identity[:32]}"
    if has_image(client, tag):
        return tag
    with host_lock(tag), engine_errors("An environment's image cannot be made"):
        if not has_image(client, tag):
            container = client.api.create_container(
                image,
                ["/bin/sleep", "3600"],
                user="0",
                labels={"excise": "build"},
                network_disabled=network == "none",
                host_config=client.api.create_host_config(network_mode=network),
            )["Id"]
            try:
                change(container)
                repository, _, version = tag.partition(":")
                client.api.commit(container, repository, version, changes=["LABEL excise=environment"])
            finally:
                client.api.remove_container(container, force=True, v=True)
    return tag


def _put(client: Any, part: Part, container: str) -> None:
    """Copy a mount's content into a container that does not run."""
    with tempfile.TemporaryFile() as archive:
        part.pack(archive)
        archive.seek(0)
        client.api.put_archive(container, "/", archive)
