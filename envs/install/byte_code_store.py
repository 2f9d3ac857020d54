"""Byte code that is compiled once for all environments: of third-party packages and of the standard library.

It is stored by interpreter, path and content of its source, and shared by hard links. Only byte code of a session in
which nothing but the compiler ran is stored: a package could otherwise put code into the environments of other
projects. What is worth compiling is what was imported in an earlier environment; only names are taken from there.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from excise.envs.interpreters import Interpreter
from excise.envs.sandbox.mount_points import ENV, OUTPUTS, library_of
from excise.system.files import link_or_copy, replace_lines
from excise.system.folders import sync_tree

COMPILE = """
import py_compile, sys
for path in sys.stdin.read().split("\\0"):
    try:
        py_compile.compile(path, doraise=True)
    except Exception:
        pass
"""
"""Program that compiles the files that are named on stdin, separated by zeros."""
EARLIEST, SPAN = 1_000_000_000, 500_000_000
"""Times that are given to source files: seconds since 1970, and the length of their range."""
MAX_IMPORTED = 20_000
"""Maximum number of names of imported modules that are remembered."""


class ByteCodeStore:
    """The byte code for one interpreter, in a folder of the cache."""

    def __init__(self, folder: Path, interpreter: Interpreter) -> None:
        self.folder = folder / interpreter.version
        self.suffix = ".cpython-{}{}.pyc".format(*interpreter.minor)
        self.library = library_of(interpreter)
        self.compiler = (str(interpreter.executable), "-I", "-S", "-X", f"pycache_prefix={OUTPUTS}", "-c", COMPILE)
        """Command that compiles; it runs no code of any package."""

    def sources(self, env: Path) -> dict[str, str]:
        """Path in the sandbox to key, of an environment's modules and the known ones of the standard library.

        The times of the former are set to ones that depend on their content alone, since byte code is valid for one
        time of its source only.
        """
        found: dict[str, str] = {}
        for path in _files(env, ".py"):
            target, digest = f"{ENV}/{path.relative_to(env).as_posix()}", hashlib.sha256(path.read_bytes())
            seconds = EARLIEST + int.from_bytes(digest.digest()[:4], "big") % SPAN
            os.utime(path, (seconds, seconds))
            found[target] = _key(target, digest.hexdigest())
        for target in self._imported():
            if target.startswith(f"{self.library}/"):
                with suppress(OSError):
                    known = os.stat(target)
                    found[target] = _key(target, f"{known.st_mtime_ns} {known.st_size}")
        return found

    def link_known(self, sources: Mapping[str, str], layer: Path) -> list[str]:
        """Link what is stored into a layer; return the sources that were imported before, but are not stored."""
        imported, wanted = self._imported(), []
        for source, key in sources.items():
            known = self._path(key)
            if known.is_file():
                target = self._compiled(layer, source)
                target.parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(known, target)
            elif source in imported:
                wanted.append(source)
        return wanted

    def has_all_packages(self, sources: Mapping[str, str], layer: Path) -> bool:
        """Whether a layer has byte code of all that can be imported from an environment by a name without dots."""
        names = re.compile(rf"{ENV}/lib/[^/]+/site-packages/\w+(/__init__)?\.py")
        return all(_is_file(self._compiled(layer, source)) for source in sources if names.fullmatch(source))

    def keep(self, sources: Mapping[str, str], layer: Path) -> None:
        """Store the byte code in the layer of a session in which only :attr:`compiler` ran."""
        sync_tree(layer)
        for source, key in sources.items():
            path, known = self._compiled(layer, source), self._path(key)
            if _is_file(path):
                known.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):
                    link_or_copy(path, known)

    def note_imported(self, layer: Path) -> None:
        """Remember the modules that have byte code in the layer of a session in which packages were imported."""
        before = self._imported()
        names = (path.relative_to(layer).as_posix() for path in _files(layer, self.suffix))
        now = before | {f"/{name.removesuffix(self.suffix)}.py" for name in names if "\n" not in name}
        if before < now and len(now) <= MAX_IMPORTED:
            replace_lines(self.folder / "imported", sorted(now))

    def _imported(self) -> frozenset[str]:
        try:
            return frozenset((self.folder / "imported").read_text().splitlines())
        except (OSError, UnicodeDecodeError):
            return frozenset()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.pyc"

    def _compiled(self, layer: Path, source: str) -> Path:
        """The place of a source's byte code in a layer of :data:`OUTPUTS`."""
        return layer / f"{source.removesuffix('.py').lstrip('/')}{self.suffix}"


def _key(path: str, state: str) -> str:
    return hashlib.sha256(f"{path}\n{state}".encode()).hexdigest()


def _files(folder: Path, suffix: str) -> Iterator[Path]:
    """The regular files below a folder whose names end with a suffix; links are not followed."""
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(suffix) and _is_file(path := Path(parent, name)):
                yield path


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
