"""Images of environments: a base, the distribution's packages, and one layer for each folder that is only read.

An image is named after its content, so it is made once, for all sessions and workers, and two environments share the
layers that they have in common (the mounts come in the order of how much they are shared). A task has no image: its
edits are made when its session starts.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from excise.envs.docker.base_image import HOST, base_image, has_image
from excise.envs.docker.container import process_limits
from excise.envs.docker.docker_engine import OWNER, engine_errors, owner
from excise.envs.docker.layer_archives import Part
from excise.envs.docker.layering import add_layer, commit
from excise.envs.docker.packages import install_packages
from excise.protocols import Mount
from excise.system.locks import host_lock

REPOSITORY = "excise-env"
LOWER = "/excise/lower"
"""Where the image has what a writable mount begins with; copied to the mount itself when a session starts."""
_VERSION = 2


def environment_image(client: Any, base: str, mounts: Sequence[Mount], packages: Sequence[str], network: str) -> str:
    """The image for sessions with these mounts; made if the engine lacks it.

    Raises :class:`SandboxError`, and :class:`EnvironmentFailure` (``missing_system_lib``) for packages.
    """
    image = base_image(client, base)
    identity = hashlib.sha256(f"{_VERSION}\0{image}".encode()).hexdigest()
    if packages:
        identity = _next(identity, "packages", *sorted(packages))
        image = _made(
            client, identity, functools.partial(_with_packages, client, image, packages, network, base == HOST)
        )
    empty = frozenset(mount.target for mount in mounts if not mount.layers)
    for mount in mounts:
        if mount.layers and not mount.live:
            where = LOWER + mount.target if mount.writable else mount.target
            part = Part(mount.layers, mount.target, where, empty)
            identity = _next(identity, where, part.content_hash())
            image = _made(client, identity, functools.partial(add_layer, client, image, part=part))
    return image


def _next(identity: str, *parts: str) -> str:
    return hashlib.sha256("\0".join((identity, *parts)).encode("utf-8", "replace")).hexdigest()


def _made(client: Any, identity: str, make: Callable[..., None]) -> str:
    """The image of that identity: there already, or made now."""
    tag = f"{REPOSITORY}:{identity[:32]}"
    if has_image(client, tag):
        return tag
    with host_lock(tag), engine_errors("An environment's image cannot be made"):
        if not has_image(client, tag):
            make(tag=tag)
    return tag


def _with_packages(client: Any, image: str, packages: Sequence[str], network: str, of_host: bool, *, tag: str) -> None:
    """Install packages in a container of the image, and keep what it has become."""
    container = client.api.create_container(
        image,
        ["/bin/sleep", "3600"],
        user="0",
        labels={OWNER: owner(), "excise": "build"},
        host_config=client.api.create_host_config(network_mode=network, ulimits=process_limits()),
    )["Id"]
    try:
        install_packages(client, container, packages, of_host=of_host)
        commit(client, container, tag)
    finally:
        client.api.remove_container(container, force=True, v=True)
