"""Names of layers that are the same on all machines: ``layer:SHA256``, the hash of the packed layer.

Inside a worker, records hold paths of its own cache. What leaves a machine holds names; the layers are stored with
:mod:`.artifacts` before that. What arrives holds paths again; layers that this machine lacks are fetched, once for all
of its workers, checked, and unpacked to ``envs/copy-SHA256/layer``.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from excise.errors import StoreError
from excise.pipeline.cluster.artifacts import Artifacts
from excise.pipeline.cluster.packed_layers import pack_layer, unpack_layer
from excise.pipeline.stages.fetch_stage import FetchedSources
from excise.pipeline.stages.run_files import KeptLayer
from excise.system.files import replace_file
from excise.system.folders import make_folder_once
from excise.system.locks import Lease, lease, unleased
from excise.types import content_id
from excise.verifiers.workbench import Layers, Prepared

logger = logging.getLogger(__name__)
T = TypeVar("T")

PREFIX = "layer:"
COPY = "copy-"
_COPY_NAME = re.compile(rf"{COPY}([0-9a-f]{{64}})")
_LAYERS = ("sources", "built", "env", "outputs", "tools")
"""Fields of :class:`Layers`."""
MAX_LEASES = 24
"""Copies of the latest jobs that this process keeps from being evicted: those of some repositories of five layers each,
since processes that it has started may still use them."""

_leases: dict[Path, Lease | None] = {}
"""Copies that this process uses, the least recently used first."""


class LayerNames:
    """Translates records between this machine's paths and names."""

    def __init__(self, cache: Path, artifacts: Artifacts) -> None:
        self.cache, self.artifacts = cache, artifacts
        self._notes = cache / "artifacts" / "known"
        self._stored: set[str] = set()

    def leave(self, answer: T) -> T:
        """A record with names in place of paths; its layers are stored. Other values are returned as they are.

        Raises :class:`StoreError` and ``OSError``.
        """
        return self._translated(answer, self.name)

    def arrive(self, answer: T) -> T | None:
        """A record with paths in place of names; ``None`` if a layer is nowhere. Raises like :meth:`leave`."""
        try:
            return self._translated(answer, self.path)
        except StoreError as error:
            if error.reason != "unknown_artifact":
                raise
            logger.warning("layer lost", extra={"detail": str(error)})
            return None

    @staticmethod
    def _translated(answer: T, translate: Callable[[str], str]) -> T:
        if isinstance(answer, FetchedSources):
            return cast(T, replace(answer, layer=translate(answer.layer)))
        if isinstance(answer, KeptLayer):
            return cast(T, replace(answer, path=translate(answer.path)))
        if isinstance(answer, Prepared):
            new = Layers(**{field: translate(getattr(answer.layers, field)) for field in _LAYERS})
            return cast(T, replace(answer, layers=new))
        return answer

    # ------------------------------------------------------------------------------------------------ to names
    def name(self, path: str) -> str:
        """The name of a layer; it is stored unless it is."""
        if path.startswith(PREFIX):
            return path
        folder = Path(path)
        digest = self._known_digest(folder)
        if digest is None or not self._is_stored(digest):
            digest = self._store(folder)
        return f"{PREFIX}{digest}"

    def _known_digest(self, folder: Path) -> str | None:
        """The hash of a layer that was packed before, and has not been replaced since."""
        if folder.name == "layer" and (match := _COPY_NAME.fullmatch(folder.parent.name)):
            return match[1]
        with suppress(OSError, ValueError, KeyError):
            note = json.loads(self._note(folder).read_bytes())
            if note["stamp"] == _stamp(folder):
                return str(note["digest"])
        return None

    def _note(self, folder: Path) -> Path:
        return self._notes / f"{content_id('layer', str(folder))}.json"

    def _is_stored(self, digest: str) -> bool:
        if digest not in self._stored and self.artifacts.has(digest):
            self._stored.add(digest)
        return digest in self._stored

    def _store(self, folder: Path) -> str:
        stamp = _stamp(folder)
        self._notes.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._notes.parent) as work:
            archive = Path(work, "layer")
            digest = pack_layer(folder, archive)
            if not self._is_stored(digest):
                self.artifacts.put(digest, archive)
                self._stored.add(digest)
        replace_file(self._note(folder), json.dumps({"digest": digest, "stamp": stamp}).encode())
        replace_file(self._notes / f"{digest}.json", json.dumps({"path": str(folder), "stamp": stamp}).encode())
        return digest

    # ------------------------------------------------------------------------------------------------ to paths
    def path(self, name: str) -> str:
        """The folder of a layer in this machine's cache; it is fetched if the machine lacks it."""
        if not name.startswith(PREFIX):
            return name
        digest = name.removeprefix(PREFIX)
        with suppress(OSError, ValueError, KeyError):  # this machine has made it
            note = json.loads((self._notes / f"{digest}.json").read_bytes())
            if note["stamp"] == _stamp(Path(note["path"])):
                return str(note["path"])
        folder = self.cache / "envs" / f"{COPY}{digest}"
        layer = folder / "layer"
        _keep(folder)

        def fetch(work: Path) -> None:
            (work / "layer").mkdir()
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetched-") as space:
                archive = Path(space, "layer")
                self.artifacts.get(digest, archive)
                logger.info("layer fetched", extra={"digest": digest, "bytes": archive.stat().st_size})
                unpack_layer(archive, work / "layer")

        make_folder_once(folder, fetch, is_complete=lambda _: layer.is_dir())
        os.utime(folder.with_name(f"{folder.name}.lease"))
        return str(layer)


def _stamp(folder: Path) -> list[int]:
    """Changes when a layer, which is renamed into place as a whole, is replaced."""
    found = folder.stat()
    return [found.st_ino, found.st_mtime_ns]


def _keep(folder: Path) -> None:
    """Keep a copy from being evicted while this process may use it."""
    held = _leases.pop(folder, None)
    file = folder.with_name(f"{folder.name}.lease")
    while held is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        try:
            held = lease(file)
            break
        except FileNotFoundError:  # it is being evicted
            time.sleep(0.1)
    _leases[folder] = held
    while len(_leases) > MAX_LEASES:
        del _leases[next(iter(_leases))]


def free_bytes(cache: Path) -> int:
    """Free bytes on the disk of the cache, or of the temporary files if that has less."""
    cache.mkdir(parents=True, exist_ok=True)
    return min(shutil.disk_usage(cache).free, shutil.disk_usage(tempfile.gettempdir()).free)


def evict_copies(cache: Path, wanted: int) -> int:
    """Remove copies of layers that no process of this machine uses, the least recently used first, until ``wanted``
    bytes are free; return how many were removed. They can be fetched again."""
    count = 0
    for file in sorted(cache.glob(f"envs/{COPY}*.lease"), key=_changed):
        if free_bytes(cache) >= wanted:
            break
        with unleased(file) as is_free:
            if is_free:
                shutil.rmtree(file.with_suffix(""), ignore_errors=True)
                file.unlink(missing_ok=True)
                count += 1
    return count


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
