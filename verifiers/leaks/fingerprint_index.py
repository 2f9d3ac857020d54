"""An inverted index: fingerprint to the fragments of files that have it. Built once, searched for all tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from excise.system.folders import publish_folder, temporary_folder_beside
from excise.verifiers.leaks.content_cache import Content
from excise.verifiers.leaks.fingerprints import EMPTY, Hashes
from excise.verifiers.leaks.fragments import FragmentKind

_KINDS = tuple(FragmentKind)


@dataclass(frozen=True, slots=True)
class FingerprintHits:
    """The result of a lookup: one (fingerprint, fragment) pair per match, as two arrays of equal length."""

    fingerprints: NDArray[np.int64]
    """Positions in the array of wanted fingerprints, ascending."""
    owners: NDArray[np.int64]
    """Number of the fragment that matched, for each of ``fingerprints``."""


@dataclass(slots=True)
class FingerprintIndex:
    """An inverted index from fingerprints to fragments. Fragments are numbered in the order of building."""

    hashes: Hashes = field(default_factory=lambda: EMPTY)
    """All fingerprints, ascending; one that several fragments have is repeated."""
    owners: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    """Number of the fragment that each of ``hashes`` belongs to."""
    files: Sequence[str] = ()
    """Paths of the files in the sandbox."""
    file_of: Sequence[int] = ()
    """For each fragment, the position of its file in ``files``."""
    kind_of: Sequence[int] = ()
    """For each fragment, the position of its kind in :class:`FragmentKind`."""
    decoders: Sequence[str] = ()
    """Names of the decoders that found something."""
    num_files: int = 0
    """Number of files."""
    num_bytes: int = 0
    """Size of all files together in bytes."""
    partial: Sequence[str] = ()
    """Paths of files that were not decoded completely; at most fifty."""
    num_partial: int = 0
    """Number of all files that were not decoded completely."""

    @classmethod
    def build(cls, contents: Iterable[tuple[str, int, Content | None]]) -> FingerprintIndex:
        """Build an index from the (path, size in bytes, content) of each file.

        The content is ``None`` for a file that could not be read.
        """
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
            for kind, numbers in content.fragments:
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

    def lookup(self, wanted: Hashes) -> FingerprintHits:
        """Find the fragments that have any of the ``wanted`` fingerprints, which must be sorted."""
        low = np.searchsorted(self.hashes, wanted, side="left")
        high = np.searchsorted(self.hashes, wanted, side="right")
        counts = high - low
        fingerprints = np.repeat(np.arange(len(wanted)), counts)
        places = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        return FingerprintHits(fingerprints, self.owners[places].astype(np.int64))

    def frequency(self, wanted: Hashes) -> NDArray[np.int64]:
        """The number of fragments that have each of the ``wanted`` fingerprints."""
        found = np.searchsorted(self.hashes, wanted, side="right") - np.searchsorted(self.hashes, wanted, side="left")
        return found.astype(np.int64)

    def name_of(self, owner: int) -> str:
        """Path of the file that fragment number ``owner`` comes from."""
        return self.files[self.file_of[owner]]

    def kind(self, owner: int) -> FragmentKind:
        """The kind of fragment number ``owner``."""
        return _KINDS[self.kind_of[owner]]

    # ------------------------------------------------------------------------------------- disk
    def save(self, folder: Path) -> None:
        """Write the index as a folder, in one step. If another worker wrote it meanwhile, that one stays."""
        with temporary_folder_beside(folder) as work:
            np.save(work / "hashes.npy", self.hashes)
            np.save(work / "owners.npy", self.owners)
            names = ("files", "file_of", "kind_of", "decoders", "num_files", "num_bytes", "partial", "num_partial")
            (work / "facts.json").write_text(json.dumps({name: getattr(self, name) for name in names}))
            try:
                publish_folder(work, folder)
            except OSError:
                if not folder.is_dir():
                    raise

    @classmethod
    def load(cls, folder: Path) -> FingerprintIndex:
        """Load an index that :meth:`save` wrote; its arrays are memory-mapped."""
        facts = json.loads((folder / "facts.json").read_text())
        hashes = np.load(folder / "hashes.npy", mmap_mode="r")
        return cls(hashes=hashes, owners=np.load(folder / "owners.npy", mmap_mode="r"), **facts)
