"""An inverted index of many files: which fragments have a feature. Built once, searched for all tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from excise.system.folders import publish_folder, temporary_folder_beside
from excise.verifiers.leaks.content_cache import Content
from excise.verifiers.leaks.features import EMPTY, Hashes
from excise.verifiers.leaks.fragments import FragmentKind

_KINDS = tuple(FragmentKind)


@dataclass(frozen=True, slots=True)
class FeatureHits:
    """The matches of a search: wanted features and the fragments that have them."""

    features: NDArray[np.int64]
    """Positions among the wanted features, ascending."""
    owners: NDArray[np.int64]
    """The number of the fragment, for each of ``features``."""


@dataclass(slots=True)
class FeatureIndex:
    """Features, sorted, with the fragments that have them."""

    hashes: Hashes = field(default_factory=lambda: EMPTY)
    """All features, sorted; one that several fragments have is repeated."""
    owners: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    """The fragment of each of ``hashes``."""
    files: Sequence[str] = ()
    """Names of the files."""
    file_of: Sequence[int] = ()
    """The file of each fragment, as its place in ``files``."""
    kind_of: Sequence[int] = ()
    """The kind of each fragment, as its place in :class:`FragmentKind`."""
    decoders: Sequence[str] = ()
    """Names of the decoders that found something."""
    num_files: int = 0
    """Files read."""
    num_bytes: int = 0
    """Their bytes."""
    partial: Sequence[str] = ()
    """Files that were not read completely: the first fifty."""
    num_partial: int = 0
    """Number of such files."""

    @classmethod
    def build(cls, contents: Iterable[tuple[str, int, Content | None]]) -> FeatureIndex:
        """Build it from (name, size in bytes, features) of each file; ``None`` for a file that could not be read."""
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

    def lookup(self, wanted: Hashes) -> FeatureHits:
        """Where the wanted features (sorted) are."""
        low = np.searchsorted(self.hashes, wanted, side="left")
        high = np.searchsorted(self.hashes, wanted, side="right")
        counts = high - low
        features = np.repeat(np.arange(len(wanted)), counts)
        places = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        return FeatureHits(features, self.owners[places].astype(np.int64))

    def frequency(self, wanted: Hashes) -> NDArray[np.int64]:
        """How many fragments have each of the wanted features."""
        found = np.searchsorted(self.hashes, wanted, side="right") - np.searchsorted(self.hashes, wanted, side="left")
        return found.astype(np.int64)

    def name_of(self, owner: int) -> str:
        """Path of the file that fragment number ``owner`` comes from."""
        return self.files[self.file_of[owner]]

    def kind(self, owner: int) -> FragmentKind:
        """The kind of a fragment."""
        return _KINDS[self.kind_of[owner]]

    # ------------------------------------------------------------------------------------- disk
    def save(self, folder: Path) -> None:
        """Write the index as a folder, in one step; where several workers do, the first one's stays."""
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
    def load(cls, folder: Path) -> FeatureIndex:
        """The index that :meth:`save` wrote; its arrays are memory-mapped."""
        facts = json.loads((folder / "facts.json").read_text())
        hashes = np.load(folder / "hashes.npy", mmap_mode="r")
        return cls(hashes=hashes, owners=np.load(folder / "owners.npy", mmap_mode="r"), **facts)
