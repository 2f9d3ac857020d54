"""The packages that a test runner loads where a test file imports it; its commands and reporters need many more."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

MAX_FILES = 5000
"""Number of files that are followed at most; if there are more, nothing is deleted."""
_COMMENT = r"\s*(?:/\*[^*]{0,200}\*/\s*)?"
_STRING = r"""(?:'([^'\n]{1,200})'|"([^"\n]{1,200})"|`([^`$\n]{1,200})`)"""
_NAMED = re.compile(rf"(?:\b(?:require(?:\.resolve)?|import)\s*\({_COMMENT}|\bfrom\s*|\bimport\s*){_STRING}")
"""What a file imports or requires by a name that stands there."""
_CALL = re.compile(r"\b(?:require(?:\.resolve)?|import)\s*\(")
_LITERAL = re.compile(rf"{_COMMENT}{_STRING}\s*[,)]|\s*[).]")
"""The argument of a call whose name stands there, or none, as in comments; all others are made at run time."""
_BARE = re.compile(r"((?:@[\w.-]+/)?[\w.-]+)(?:/(.+))?")
_CONDITIONS = ("require", "node", "default", "import", "module-sync")
"""Conditions of ``exports`` and ``imports`` that may hold."""
_CODE = frozenset({".js", ".cjs", ".mjs"})
_OWN = ("dependencies", "optionalDependencies")
"""Tables of a manifest with what a package needs itself; its peers are for others to choose."""


class _Loaded:
    """What ``require(package)`` or ``import`` of it may load, also later.

    Where a file requires what is named at run time, or a package's entry is not found, all files of the package, and
    all that it depends on, may be loaded. This does not hold for the runner itself: its commands and reporters are what
    is left out.
    """

    def __init__(self, modules: Path, runner: str) -> None:
        self.modules, self.runner = modules, modules / runner
        self.packages: set[Path] = set()
        """Folders of the packages that are loaded or named."""
        self.whole: set[Path] = set()
        """Those of them of which all files are followed."""
        files: set[Path] = set()
        queue = list(self._resolved(runner, modules))
        is_found = bool(queue)
        while queue and len(files) < MAX_FILES:
            file = queue.pop()
            if file not in files:
                files.add(file)
                self.packages.add(self._package_of(file))
                if file.suffix in _CODE:
                    queue += self._named_in(file)
        self.is_complete = is_found and not queue

    def _named_in(self, file: Path) -> Iterator[Path]:
        text = file.read_text(encoding="utf-8", errors="replace")
        package = self._package_of(file)
        if any(_LITERAL.match(text, call.end()) is None for call in _CALL.finditer(text)):
            yield from self._all_of(package)
        for match in _NAMED.finditer(text):
            name = next(filter(None, match.groups()))
            if name.startswith("."):
                yield from self._file(file.parent / name)
            elif name.startswith("#"):
                yield from self._own_import(name, package)
            else:
                yield from self._resolved(name, file.parent)

    def _own_import(self, name: str, package: Path) -> Iterator[Path]:
        """The files that a name of the table ``imports`` of a package's own manifest stands for."""
        table = _manifest(package).get("imports")
        for target in _targets(table if isinstance(table, dict) else {}, name):
            yield from self._file(package / target) if target.startswith(".") else self._resolved(target, package)

    def _resolved(self, name: str, folder: Path) -> Iterator[Path]:
        """The files that the name of a package, or one below it, may stand for; none for modules of node."""
        found = _BARE.fullmatch(name)
        package = None if found is None else self._folder(found[1], folder)
        if found is None or package is None:
            return
        self.packages.add(package)
        entries = [file for path in _entries(package, found[2] or "") for file in self._file(path)]
        yield from entries
        if not entries:
            yield from self._all_of(package)

    def _folder(self, name: str, around: Path) -> Path | None:
        """The folder of a package as code in the folder ``around`` finds it."""
        while around.is_relative_to(self.modules):
            package = (around if around == self.modules else around / "node_modules") / name
            if os.path.isdir(package):
                return package
            around = around.parent
        return None

    def _all_of(self, package: Path) -> Iterator[Path]:
        """All files of a package with code, and the entries of the packages that it depends on by its manifest."""
        if package not in self.whole and package != self.runner:
            self.whole.add(package)
            for folder, folders, names in os.walk(package):
                folders[:] = [name for name in folders if name != "node_modules"]
                paths = (Path(folder, name) for name in names)
                yield from (path for path in paths if path.suffix in _CODE and path.is_file() and not path.is_symlink())
            for name in _dependencies(package, _OWN):
                yield from self._resolved(name, package)

    def _package_of(self, file: Path) -> Path:
        """The folder of the innermost package that a file is in."""
        parts = file.relative_to(self.modules).parts
        start = len(parts) - parts[::-1].index("node_modules") if "node_modules" in parts else 0
        return self.modules.joinpath(*parts[:start], _name(parts[start:]))

    def _file(self, path: Path) -> Iterator[Path]:
        """The file that a path stands for; none if there is none, or if it lies outside ``node_modules``."""
        main = _manifest(path).get("main")
        bases = [str(path), *([f"{path}/{main}"] if isinstance(main, str) else [])]
        ends = ("", ".js", ".cjs", ".mjs", ".json", "/index.js", "/index.mjs")
        found = next((each for base in bases for end in ends if os.path.isfile(each := base + end)), None)
        if found is not None and (file := Path(found).resolve()).is_relative_to(self.modules):
            yield file


def loaded_packages(modules: Path, package: str) -> frozenset[str]:
    """The names of the packages that a runner loads or names; of all packages, if this cannot be told."""
    modules = modules.resolve()
    loaded = _Loaded(modules, package)
    folders = loaded.packages if loaded.is_complete else _packages(modules)
    return frozenset(_name(folder.relative_to(modules).parts) for folder in folders)


def drop_unloaded(modules: Path, runner: str, others: Collection[str]) -> None:
    """Delete what only the commands of a test runner need: packages neither loaded by it nor needed by ``others``."""
    modules = modules.resolve()
    loaded = _Loaded(modules, runner)
    if not loaded.is_complete:
        return
    kept = {_name(folder.relative_to(modules).parts) for folder in loaded.packages} | _needed(modules, others)
    for folder in list(_packages(modules)):
        if folder.relative_to(modules).as_posix() not in kept:
            shutil.rmtree(folder)
    bundled = modules / runner / "node_modules"
    for folder in list(_packages(bundled)) if bundled.is_dir() else ():
        if not any(each.is_relative_to(folder) for each in loaded.packages):
            shutil.rmtree(folder)


def _packages(modules: Path) -> Iterator[Path]:
    for folder in sorted(modules.iterdir()):
        if folder.name.startswith("@") and not folder.is_symlink():
            yield from (each for each in sorted(folder.iterdir()) if each.is_dir() and not each.is_symlink())
        elif folder.is_dir() and not folder.is_symlink() and not folder.name.startswith("."):
            yield folder


def _needed(modules: Path, packages: Collection[str]) -> set[str]:
    """The packages, and what they need by their manifests."""
    queue, found = list(packages), set[str]()
    while queue:
        package = queue.pop()
        if package not in found:
            found.add(package)
            queue += _dependencies(modules / package, (*_OWN, "peerDependencies"))
    return found


def _name(parts: tuple[str, ...]) -> str:
    """The name of the outermost package of a path below ``node_modules``."""
    return "/".join(parts[: 2 if parts[0].startswith("@") else 1])


def _manifest(package: Path) -> dict[str, Any]:
    try:
        found = json.loads((package / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _dependencies(package: Path, tables: Collection[str]) -> list[str]:
    """The names of packages in tables of a package's manifest."""
    manifest = _manifest(package)
    found = (manifest.get(table) for table in tables)
    return [name for table in found if isinstance(table, dict) for name in table]


def _entries(package: Path, below: str) -> list[Path]:
    """The files that a package, or a name below it, may stand for."""
    exports = _manifest(package).get("exports")
    if not isinstance(exports, dict) or not any(key.startswith(".") for key in exports):
        exports = {".": exports}
    targets = _targets(exports, f"./{below}" if below else ".")
    return [package / target for target in targets] or [package / below]


def _targets(table: Mapping[str, object], name: str) -> list[str]:
    """What a name stands for by ``exports`` or ``imports``, which may have patterns, in any condition that may hold."""
    star = ""
    if name not in table:
        for key in sorted((key for key in table if "*" in key), key=len, reverse=True):
            before, _, after = key.partition("*")
            if len(name) >= len(before + after) and name.startswith(before) and name.endswith(after):
                name, star = key, name[len(before) : len(name) - len(after)]
                break
    queue, found = [table.get(name)], []
    while queue:
        each = queue.pop()
        if isinstance(each, str):
            found.append(each.replace("*", star))
        elif isinstance(each, list):
            queue += each
        elif isinstance(each, dict):
            queue += [each[condition] for condition in _CONDITIONS if condition in each]
    return found
