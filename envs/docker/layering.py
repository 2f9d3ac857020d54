"""Puts one more layer on an image, as an archive that the engine loads.

Committing a container says the same, but makes many engines compare every file of the image with its parent: minutes,
on a base of several gigabytes. An engine that wants to see the lower layers too (podman, or Docker with containerd's
store) refuses such an archive, and is asked to commit.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from typing import Any

from excise.envs.docker.layer_archives import Part

_LABELS = {"excise": "environment"}


def add_layer(client: Any, image: str, tag: str, part: Part) -> None:
    """Make the image ``tag`` of ``image`` and what the part brings."""
    import docker

    with tempfile.TemporaryFile() as layer:
        part.pack(layer)
        try:
            _load(client, image, tag, layer)
        except docker.errors.APIError:
            _commit(client, image, tag, layer)


def _load(client: Any, image: str, tag: str, layer: io.BufferedRandom) -> None:
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
            _add(archive, "config.json", json.dumps(config).encode())
            _add(archive, "manifest.json", json.dumps(manifest).encode())
            info = tarfile.TarInfo(names[-1])
            info.size = layer.seek(0, io.SEEK_END)
            layer.seek(0)
            archive.addfile(info, layer)
        whole.seek(0)
        client.images.load(whole)
    client.api.inspect_image(tag)


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def _commit(client: Any, image: str, tag: str, layer: io.BufferedRandom) -> None:
    container = client.api.create_container(image, ["/bin/true"], user="0", labels={"excise": "build"})["Id"]
    try:
        layer.seek(0)
        client.api.put_archive(container, "/", layer)
        commit(client, container, tag)
    finally:
        client.api.remove_container(container, force=True, v=True)


def commit(client: Any, container: str, tag: str) -> None:
    """Keep what a stopped container has become as an image."""
    repository, _, version = tag.partition(":")
    client.api.commit(container, repository, version, changes=["LABEL excise=environment"])
