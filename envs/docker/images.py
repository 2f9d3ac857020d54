"""Images of environments: a base, system packages, and one layer for each folder that a session mounts.

An image is named after its content, so it is made once for all sessions and workers, and environments share the layers
that they have in common (mounts are added in the order of how widely they are shared). A task has no image: its edits
are made when its session starts.

A layer is added as an archive that the engine loads. Committing a container has the same result, but many engines then
compare every file of the image with its parent, which takes minutes on a base of several gigabytes. Engines that
require the lower layers too (podman, or Docker with containerd's store) reject such an archive; there, a container is
committed.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from excise.envs.docker.base_image import HOST, base_image, has_image
from excise.envs.docker.container import process_limits
from excise.envs.docker.docker_engine import OWNER, engine_errors, owner
from excise.envs.docker.layer_archives import MountContent
from excise.envs.sandbox.system_root import SystemRoot, debian_packages, system_root
from excise.errors import EnvironmentFailure
from excise.protocols import Mount, SystemRequest
from excise.system.locks import host_lock

REPOSITORY = "excise-env"
LOWER = "/excise/lower"
"""Folder of the image with the initial content of writable mounts, which is copied when a session starts."""
_VERSION = 3
_LABELS = {"excise": "environment"}


def environment_image(client: Any, base: str, mounts: Sequence[Mount], system: SystemRequest, network: str) -> str:
    """Return the image for sessions with these mounts; it is made if the engine lacks it.

    Raises :class:`SandboxError`, and :class:`EnvironmentFailure` (``missing_system_lib``) for packages.
    """
    packages = packages_to_install(base, system)
    root = _root(base, replace(system, packages=(*system.packages, "apt")) if packages else system)
    image = base_image(client, base, root)
    identity = hashlib.sha256(f"{_VERSION}\0{image}".encode()).hexdigest()
    if packages:
        identity = _next_identity(identity, "packages", *sorted(packages))
        add = functools.partial(_add_packages, client, image, packages, network, _apt_state(base, root))
        image = _make_once(client, identity, add)
    for mount in mounts:
        if mount.layers and not mount.live:
            path = LOWER + mount.target if mount.writable else mount.target
            covered = frozenset(m.target for m in mounts if m.target.startswith(f"{mount.target}/"))
            content = MountContent(mount.layers, mount.target, path, covered)
            identity = _next_identity(identity, path, content.content_hash())
            image = _make_once(client, identity, functools.partial(_add_layer, client, image, content=content))
    return image


def packages_to_install(base: str, system: SystemRequest) -> tuple[str, ...]:
    """The packages that must be installed in the image, because the base image lacks them."""
    root = _root(base, system)
    missing = tuple(name for name in system.packages if root is None or name not in root.packages)
    return (*missing, "build-essential") if missing and system.building else missing


def _root(base: str, system: SystemRequest) -> SystemRoot | None:
    return system_root(replace(system, building=False)) if base == HOST else None


def _next_identity(identity: str, *parts: str) -> str:
    return hashlib.sha256("\0".join((identity, *parts)).encode("utf-8", "replace")).hexdigest()


def _make_once(client: Any, identity: str, make: Callable[..., None]) -> str:
    """The name of the image with this identity, made by ``make(tag=…)`` unless it exists."""
    tag = f"{REPOSITORY}:{identity[:32]}"
    if has_image(client, tag):
        return tag
    with host_lock(tag), engine_errors("An environment's image cannot be made"):
        if not has_image(client, tag):
            make(tag=tag)
    return tag


# ---------------------------------------------------------------------------------------------- layers
def _add_layer(client: Any, image: str, *, tag: str, content: MountContent) -> None:
    """Make the image ``tag`` from ``image`` and the content of a mount."""
    import docker

    with tempfile.TemporaryFile() as layer:
        content.pack(layer)
        try:
            _load_layer(client, image, tag, layer)
        except docker.errors.APIError:
            _commit_layer(client, image, tag, layer)


def _load_layer(client: Any, image: str, tag: str, layer: io.BufferedRandom) -> None:
    parent = client.api.inspect_image(image)
    layer.seek(0)
    digest = f"sha256:{hashlib.file_digest(layer, 'sha256').hexdigest()}"
    layers = [*parent["RootFS"]["Layers"], digest]
    config = {
        "architecture": parent["Architecture"],
        "os": parent["Os"],
        "config": {**(parent.get("Config") or {}), "Labels": _LABELS},
        "rootfs": {"type": "layers", "diff_ids": layers},
        "history": [{"created_by": "excise"} for _ in layers],
        "created": "1970-01-01T00:00:00Z",
    }
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": "config.json", "RepoTags": [tag], "Layers": names}]
    with tempfile.TemporaryFile() as whole:
        with tarfile.open(fileobj=whole, mode="w|") as archive:
            _add_file(archive, "config.json", json.dumps(config).encode())
            _add_file(archive, "manifest.json", json.dumps(manifest).encode())
            info = tarfile.TarInfo(names[-1])
            info.size = layer.seek(0, io.SEEK_END)
            layer.seek(0)
            archive.addfile(info, layer)
        whole.seek(0)
        client.images.load(whole)
    client.api.inspect_image(tag)


def _add_file(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def _commit_layer(client: Any, image: str, tag: str, layer: io.BufferedRandom) -> None:
    container = client.api.create_container(image, ["/bin/true"], user="0", labels={"excise": "build"})["Id"]
    try:
        layer.seek(0)
        client.api.put_archive(container, "/", layer)
        _commit(client, container, tag)
    finally:
        client.api.remove_container(container, force=True, v=True)


def _commit(client: Any, container: str, tag: str) -> None:
    """Save the state of a stopped container as an image."""
    repository, _, version = tag.partition(":")
    client.api.commit(container, repository, version, changes=["LABEL excise=environment"])


# ------------------------------------------------------------------------------------- system packages
_APT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_APT_STATE = ("/etc/apt", "/var/lib/dpkg", "/var/lib/apt", "/etc/debconf.conf", "/etc/ca-certificates.conf")
"""State of apt on the host, copied into an image of the host's system and removed again after the installation."""
_APT_SCRIPT = """
set -e
export DEBIAN_FRONTEND=noninteractive
install="apt-get install -y --no-install-recommends -o Dir::Cache::archives=/tmp"
test -f /etc/debian_version || test -d /var/lib/dpkg || { echo "no dpkg in this image" >&2; exit 1; }
mkdir -p /var/lib/dpkg/updates /var/lib/apt/lists/partial /var/cache/apt/archives/partial /var/log/apt /etc/apt
mkdir -p /excise/ours
for name in passwd group; do cp /etc/$name /excise/ours/; cp /excise/host/$name /etc/; done 2>/dev/null || true
$install "$@" || { apt-get update && $install "$@"; }
ldconfig
cp /excise/ours/* /etc/
if [ -d /excise/host ]; then rm -rf /etc/apt /var/lib/apt /var/lib/dpkg /etc/debconf.conf; fi
rm -rf /excise/ours /excise/host /tmp/*.deb /tmp/partial /var/lib/apt/lists /var/log/apt
"""


def _add_packages(
    client: Any, image: str, packages: Sequence[str], network: str, apt_state: bytes, *, tag: str
) -> None:
    """Make the image ``tag`` from ``image`` and system packages, installed in a container.

    ``apt_state`` is an archive of apt's state, for images that lack it.
    """
    container = client.api.create_container(
        image,
        ["/bin/sleep", "3600"],
        user="0",
        labels={OWNER: owner(), "excise": "build"},
        host_config=client.api.create_host_config(network_mode=network, ulimits=process_limits()),
    )["Id"]
    try:
        _install_packages(client, container, packages, apt_state)
        _commit(client, container, tag)
    finally:
        client.api.remove_container(container, force=True, v=True)


def _install_packages(client: Any, container: str, packages: Sequence[str], apt_state: bytes) -> None:
    """Install packages in a container that is not started yet, and leave it stopped."""
    if apt_state:
        client.api.put_archive(container, "/", apt_state)
    client.api.start(container)
    line = ["/bin/sh", "-c", _APT_SCRIPT, "sh", *sorted(packages)]
    job = client.api.exec_create(container, line, user="0", environment={"PATH": _APT_PATH, "LC_ALL": "C.UTF-8"})["Id"]
    output = client.api.exec_start(job)
    if client.api.exec_inspect(job)["ExitCode"] != 0:
        raise EnvironmentFailure(
            f"The system packages {', '.join(sorted(packages))} cannot be installed in the sandbox's image: "
            f"{output[-800:].decode(errors='replace').strip()}",
            reason="missing_system_lib",
        )
    client.api.stop(container, timeout=0)


def _apt_state(base: str, root: SystemRoot | None) -> bytes:
    """An archive of apt's state on the host, and of the host's users and groups; empty for images with their own.

    Only the packages in ``root`` count as installed.
    """
    if base != HOST:
        return b""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name in ("passwd", "group"):  # packages refer to users of the host; the sandbox's own are restored later
            archive.add(f"/etc/{name}", f"excise/host/{name}")
        for name in _APT_STATE:
            if os.access(name, os.R_OK):
                archive.add(name, name.lstrip("/"), filter=_skip_unreadable)
        if root is not None:
            stanzas = [debian_packages().installed[name].stanza for name in root.packages]
            text = "\n\n".join((*stanzas, "")).encode(errors="replace")
            _add_file(archive, "var/lib/dpkg/status", text)
    return sink.getvalue()


def _skip_unreadable(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return info if info.isdir() or os.access(Path("/", info.name), os.R_OK) else None
