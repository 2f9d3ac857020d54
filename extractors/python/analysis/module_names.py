"""Module names and paths: the file that an import statement refers to.

Handles flat and ``src`` layouts, several projects in one repository, packages without ``__init__.py``, and test folders
that pytest puts on the import path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cached_property
from posixpath import dirname, join, normpath

SOURCE_ROOTS = frozenset({"", "src", "lib", "source", "python", "py"})
"""Folders that are usually on the import path."""


class ModuleNames:
    """Resolves dotted module names to paths of a fixed set of files.

    A package without ``__init__.py`` is represented by its folder with a trailing ``/``.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = frozenset(paths)
        self.packages = frozenset(dirname(p) for p in self.paths if p.endswith("/__init__.py") or p == "__init__.py")
        self.folders = frozenset(_all_parents(self.paths))
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            self._index(path)
        for folder in sorted(self.folders - self.packages):
            if folder:
                self._index(folder + "/")

    def _index(self, path: str) -> None:
        parts = _components(path)
        for first in range(len(parts)):
            root = "/".join(parts[:first])
            if root not in self.packages:
                self._by_name.setdefault(".".join(parts[first:]), []).append(path)

    def name_of(self, path: str) -> str:
        """The dotted name under which a file is imported, inferred from the packages that it lies in."""
        parts = _components(path)
        first = len(parts) - 1
        while first > 0 and "/".join(parts[:first]) in self.packages:
            first -= 1
        if first == len(parts) - 1 and path.startswith("src/"):
            first = 1
        return ".".join(parts[first:])

    @cached_property
    def tops(self) -> frozenset[str]:
        """The first parts of the dotted names of all files: the packages and single modules of the project."""
        return frozenset(self.name_of(path).partition(".")[0] for path in self.paths)

    def absolute(self, dotted: str, importer: str) -> str | None:
        """Path of the module that ``import dotted`` in ``importer`` loads; ``None`` if it is not in the repository."""
        candidates = self._by_name.get(dotted)
        if not candidates:
            return None
        ranked = sorted((self._rank(c, dotted, importer), c) for c in candidates)
        rank, best = ranked[0]
        if rank[0] < 3:
            return best
        unique = len(ranked) == 1 or ranked[1][0][0] > rank[0]
        return best if unique and "." in dotted and not best.endswith("/") else None

    def _rank(self, path: str, dotted: str, importer: str) -> tuple[int, int, int]:
        """Sort key of a candidate: doubt that its import root is on the path (0 to 4), namespace package, depth."""
        depth = len(_components(path)) - dotted.count(".") - 1
        root = "/".join(_components(path)[:depth])
        namespace = int(path.endswith("/"))
        if namespace and dotted.partition(".")[0] in sys.stdlib_module_names:
            return (4, namespace, depth)
        near = root == dirname(importer)
        if root in SOURCE_ROOTS:
            doubt = 1 if near and root else 0
        elif near:
            doubt = 1
        elif importer.startswith(root + "/") and dotted.partition(".")[0] not in sys.stdlib_module_names:
            doubt = 2
        else:
            doubt = 3
        return (doubt, namespace, depth)

    def relative(self, level: int, dotted: str, importer: str) -> str | None:
        """Path of the module that ``from ..dotted import`` in ``importer`` loads; ``level`` is the number of dots."""
        folder = dirname(importer)
        for _ in range(level - 1):
            if not folder:
                return None
            folder = dirname(folder)
        return self.child(folder, dotted) if dotted else self._package(folder)

    def child(self, folder: str, dotted: str) -> str | None:
        """Path of the module ``dotted`` below a folder."""
        base = normpath(join(folder, *dotted.split(".")))
        for path in (f"{base}/__init__.py", f"{base}.py"):
            if path in self.paths:
                return path
        return f"{base}/" if base in self.folders else None

    def submodule(self, package: str, name: str) -> str | None:
        """Path of the submodule ``name`` of a package given by its path."""
        if package.endswith("/"):
            return self.child(package[:-1], name)
        if package.endswith("__init__.py"):
            return self.child(dirname(package), name)
        return None

    def _package(self, folder: str) -> str | None:
        path = f"{folder}/__init__.py" if folder else "__init__.py"
        if path in self.paths:
            return path
        return f"{folder}/" if folder in self.folders and folder else None


def _components(path: str) -> list[str]:
    plain = path.removesuffix("/").removesuffix(".py").removesuffix("/__init__")
    return plain.split("/")


def _all_parents(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        folder = dirname(path)
        while folder not in found:
            found.add(folder)
            folder = dirname(folder)
    return found
