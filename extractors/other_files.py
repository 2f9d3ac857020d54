"""The files of a repository that are no source files of its language: they are read when something asks for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

MAX_BYTES = 1 << 20
"""Size of a file above which it is not looked at."""
_WORD = re.compile(r"[^\W\d]\w*")
FILE_NAME = re.compile(rb"[\w\-][\w.\-]*\.\w+")
"""A name of a file, as it stands in texts, without its folders."""


class OtherFiles:
    """Files by path. Links, unreadable and large files count as such that have no content."""

    def __init__(
        self, paths: Iterable[str] = (), root: Path | None = None, texts: Mapping[str, bytes] | None = None
    ) -> None:
        """``texts`` are files in memory, beside those on disk: ``paths`` below ``root``."""
        self._root = root
        self._texts = dict(texts or {})
        self.paths = frozenset({*paths, *self._texts})

    def read(self, path: str) -> bytes:
        """The content of a file; empty if it has none."""
        if path in self._texts:
            return self._texts[path]
        if self._root is None or path not in self.paths:
            return b""
        file = self._root / path
        data = read_regular(file) if _size(file) <= MAX_BYTES else None
        return data or b""

    @cached_property
    def by_name(self) -> Mapping[bytes, tuple[str, ...]]:
        """The last part of paths to the paths."""
        found: dict[bytes, list[str]] = {}
        for path in sorted(self.paths):
            found.setdefault(path.rpartition("/")[2].encode(errors="surrogateescape"), []).append(path)
        return {name: tuple(paths) for name, paths in found.items()}

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of all files that are text; not of stub files, which only declare what the code has."""
        paths = (path for path in self.paths if not path.endswith(".pyi"))
        texts = (data for path in paths if b"\0" not in (data := self.read(path)))
        return frozenset(word for data in texts for word in _WORD.findall(data.decode("utf-8", "replace")))

    @cached_property
    def naming(self) -> Mapping[bytes, frozenset[str]]:
        """Names of files (:data:`FILE_NAME`) to the paths of the other files in which they stand."""
        found: dict[bytes, set[str]] = {}
        for path in self.paths:
            for name in set(FILE_NAME.findall(self.read(path))):
                found.setdefault(name, set()).add(path)
        return {name: frozenset(paths) for name, paths in found.items() if name in self.by_name}


def read_regular(path: Path) -> bytes | None:
    """Bytes of a regular file; ``None`` for links, whose target is read under its own path, and unreadable files."""
    try:
        return None if path.is_symlink() or not path.is_file() else path.read_bytes()
    except OSError:
        return None


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
