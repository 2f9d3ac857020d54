"""An inverted index of many files: which piece of which file has a feature. Made once, looked up by all tasks."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from excise.verifiers.leaks.content_cache import Content
from excise.verifiers.leaks.features import EMPTY, Hashes
from excise.verifiers.leaks.fragments import Kind

_KINDS = tuple(Kind)


@dataclass(frozen=True, slots=True)
class Hits:
    """Which of the wanted features are in which piece."""

    features: NDArray[np.int64]
    """Places among the wanted features."""
    owners: NDArray[np.int64]
    """Numbers of the pieces, one for each of ``features``."""


@dataclass(slots=True)
class Index:
    """Features, sorted, with the pieces that have them."""

    hashes: Hashes = field(default_factory=lambda: EMPTY)
    """Features; one that several pieces have stands there as often."""
    owners: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    """The piece of each of ``hashes``."""
    files: Sequence[str] = ()
    """Names of the files."""
    file_of: Sequence[int] = ()
    """The file of each piece, as its place in ``files``."""
    kind_of: Sequence[int] = ()
    """The kind of each piece, as its place in :class:`Kind`."""
    decoders: Sequence[str] = ()
    """Decoders that had something to do."""
    num_files: int = 0
    """Files read."""
    num_bytes: int = 0
    """Their bytes."""
    partial: Sequence[str] = ()
    """The first files of which not all was read."""
    num_partial: int = 0
    """How many there are."""

    @classmethod
    def build(cls, contents: Iterable[tuple[str, int, Content | None]]) -> Index:
        """From (name, bytes, features) of each file; ``None`` for what could not be read."""
        files: list[str] = []
        file_of, kind_of = [], []
        arrays: list[Hashes] = []
        partial: list[str] = []
        used: set[str] = set()
        size = 0
        for name, num_bytes, content in contents:
            files.append(name)
            size += num_bytes
            if content is None or content.partial:
                partial.append(name)
            if content is None:
                continue
            used.update(content.decoders)
            for kind, numbers in content.pieces:
                file_of.append(len(files) - 1)
                kind_of.append(_KINDS.index(kind))
                arrays.append(numbers)
        hashes = np.concatenate(arrays) if arrays else EMPTY
        lengths = [len(numbers) for numbers in arrays]
        owners = np.repeat(np.arange(len(arrays), dtype=np.uint32), lengths)
        order = np.argsort(hashes, kind="stable")
        return cls(
            hashes=hashes[order],
            owners=owners[order],
            files=files,
            file_of=file_of,
            kind_of=kind_of,
            decoders=sorted(used),
            num_files=len(files),
            num_bytes=size,
            partial=partial[:50],
            num_partial=len(partial),
        )

    def lookup(self, wanted: Hashes) -> Hits:
        """Where the wanted features (sorted) are."""
        low = np.searchsorted(self.hashes, wanted, side="left")
        high = np.searchsorted(self.hashes, wanted, side="right")
        counts = high - low
        features = np.repeat(np.arange(len(wanted)), counts)
        places = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        return Hits(features, self.owners[places].astype(np.int64))

    def frequency(self, wanted: Hashes) -> NDArray[np.int64]:
        """How many pieces have each of the wanted features."""
        found = np.searchsorted(self.hashes, wanted, side="right") - np.searchsorted(self.hashes, wanted, side="left")
        return found.astype(np.int64)

    def name_of(self, owner: int) -> str:
        """The file of a piece."""
        return self.files[self.file_of[owner]]

    def kind(self, owner: int) -> Kind:
        """The kind of a piece."""
        return _KINDS[self.kind_of[owner]]

    # ------------------------------------------------------------------------------------- disk
    def save(self, folder: Path) -> None:
        """Write as a folder, atomically; the first of several workers wins."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
        scratch.mkdir()
        np.save(scratch / "hashes.npy", self.hashes)
        np.save(scratch / "owners.npy", self.owners)
        names = ("files", "file_of", "kind_of", "decoders", "num_files", "num_bytes", "partial", "num_partial")
        (scratch / "facts.json").write_text(json.dumps({name: getattr(self, name) for name in names}))
        try:
            scratch.rename(folder)
        except OSError:
            for name in os.listdir(scratch):
                (scratch / name).unlink()
            scratch.rmdir()
            if not folder.is_dir():
                raise

    @classmethod
    def load(cls, folder: Path) -> Index:
        """What :meth:`save` wrote; the arrays stay on disk until they are looked at."""
        facts = json.loads((folder / "facts.json").read_text())
        hashes = np.load(folder / "hashes.npy", mmap_mode="r")
        return cls(hashes=hashes, owners=np.load(folder / "owners.npy", mmap_mode="r"), **facts)
