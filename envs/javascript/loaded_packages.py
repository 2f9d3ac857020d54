"""The packages that a test runner loads where a test file imports it; its commands and reporters need many more."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

MAX_FILES = 5000
"""Number of files that are followed at most; if there are more, nothing is deleted."""
_NAMED = re.compile(
    r"""(?:\b(?:require(?:\.resolve)?|import)\s*\(\s*|\bfrom\s*|\bimport\s*)(?:'([^'\n]{1,200})'|"([^"\n]{1,200})"|`([^`$\n]{1,200})`)"""
)
"""What a file imports or requires by a name that stands there."""
_COMPUTED = re.compile(r"\brequire\s*\(\s*[\w.$]+\s*[,)]|\b(?:require|import)\s*\(\s*`[^`$]{0,200}\$\{")
"""A module that is required by a name that is made at run time."""
_BARE = re.compile(r"((?:@[\w.-]+/)?[\w.-]+)(?:/(.+))?")
_CONDITIONS = ("require", "node", "default", "import", "module-sync")
"""Conditions of ``exports`` that may hold."""


class _Loaded:
    """What ``require(package)`` or ``import`` of it may load, also later.

    Where a file requires what is named at run time, or a package's entry is not found, all that the package depends on
    may be loaded. This does not hold for the runner itself: its commands and reporters are what is left out.
    """

    def __init__(self, modules: Path, runner: str) -> None:
        self.modules, self.runner = modules, runner
        self.files: set[Path] = set()
        self.packages: set[str] = set()
        """Names of the outermost packages that these files are in, and of others that they name."""
        self.untold: set[Path] = set()
        """Folders of packages whose files do not tell all that they load: their manifests do."""
        queue = list(self._resolved(runner, modules))
        while queue and len(self.files) < MAX_FILES:
            file = queue.pop()
            if file not in self.files:
                self.files.add(file)
                self.packages.add(_name(file.relative_to(modules).parts))
                if file.suffix in {".js", ".cjs", ".mjs"}:
                    queue += self._named_in(file)
        self.is_complete = not queue

    def _named_in(self, file: Path) -> Iterator[Path]:
        text = file.read_text(encoding="utf-8", errors="replace")
        package = _name(file.relative_to(self.modules).parts)
        if package != self.runner and _COMPUTED.search(text):
            yield from self._by_manifest(self.modules / package)
        for match in _NAMED.finditer(text):
            name = next(filter(None, match.groups()))
            yield from self._file(file.parent / name) if name.startswith(".") else self._resolved(name, file.parent)

    def _resolved(self, name: str, folder: Path) -> Iterator[Path]:
        """The files that a name that does not begin with a dot may stand for; none for modules of node."""
        found = _BARE.fullmatch(name)
        if found is None or name.startswith("node:"):
            return
        around = folder
        while around.is_relative_to(self.modules):
            package = (around if around == self.modules else around / "node_modules") / found[1]
            if package.is_dir():
                outer = _name(package.relative_to(self.modules).parts)
                self.packages.add(outer)
                entries = [file for path in _entries(package, found[2] or "") for file in self._file(path)]
                yield from entries
                if not entries and outer != self.runner:
                    yield from self._by_manifest(package)
                return
            around = around.parent

    def _by_manifest(self, package: Path) -> Iterator[Path]:
        """The files of the packages that a package depends on."""
        if package not in self.untold:
            self.untold.add(package)
            own = _manifest(package).get("dependencies")
            for name in own if isinstance(own, dict) else ():
                yield from self._resolved(str(name), package)

    def _file(self, path: Path) -> Iterator[Path]:
        ends = ("", ".js", ".cjs", ".mjs", ".json", "/index.js")
        found = next((each for end in ends if (each := Path(f"{path}{end}")).is_file()), None)
        if found is not None and (found := found.resolve()).is_relative_to(self.modules):
            yield found


def loaded_packages(modules: Path, package: str) -> frozenset[str]:
    """The names of the packages that a runner loads or names."""
    return frozenset(_Loaded(modules.resolve(), package).packages)


def drop_unloaded(modules: Path, runner: str, others: Collection[str]) -> None:
    """Delete what only the commands of a test runner need: packages neither loaded by it nor needed by ``others``."""
    modules = modules.resolve()
    loaded = _Loaded(modules, runner)
    if not loaded.is_complete:
        return
    kept = loaded.packages | _needed(modules, others)
    for folder in list(_packages(modules)):
        if folder.relative_to(modules).as_posix() not in kept:
            shutil.rmtree(folder)
    bundled = modules / runner / "node_modules"
    for folder in list(_packages(bundled)) if bundled.is_dir() else ():
        if not any(file.is_relative_to(folder.resolve()) for file in loaded.files):
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
            manifest = _manifest(modules / package)
            for table in ("dependencies", "peerDependencies", "optionalDependencies"):
                own = manifest.get(table)
                queue += [str(name) for name in own] if isinstance(own, dict) else []
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


def _entries(package: Path, below: str) -> list[Path]:
    """The files that a package, or a name below it, may stand for."""
    manifest = _manifest(package)
    exports = manifest.get("exports")
    if isinstance(exports, dict) and any(str(key).startswith(".") for key in exports):
        exports = exports.get(f"./{below}" if below else ".")
    elif below:
        exports = None
    if (targets := list(_targets(exports))) or exports is not None:
        return [package / target for target in targets if "*" not in target]
    main = manifest.get("main")
    return [package / (below or (main if isinstance(main, str) and main else "index.js"))]


def _targets(exports: object) -> Iterator[str]:
    """The paths of one entry of ``exports``, under all conditions that may hold."""
    queue = [exports]
    while queue:
        each = queue.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, list):
            queue += each
        elif isinstance(each, dict):
            queue += [each[condition] for condition in _CONDITIONS if condition in each]
