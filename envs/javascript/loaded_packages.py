"""The packages that a test runner loads where a test file imports it; its commands and reporters need many more."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

MAX_FILES = 5000
"""Maximum number of files that are followed."""
_REQUIRED = re.compile(r"""\brequire(?:\.resolve)?\(\s*['"]([^'"\n]+)['"]""")
_BARE = re.compile(r"((?:@[\w.-]+/)?[\w.-]+)(?:/(.+))?")
_CONDITIONS = ("require", "node", "default")
"""Conditions of ``exports`` in the order in which they are looked for."""


def loaded_files(modules: Path, package: str) -> frozenset[Path]:
    """The files below ``node_modules`` that ``require(package)`` may load, also later."""
    found: set[Path] = set()
    queue = [file for file in [_resolved(package, modules, modules)] if file is not None]
    while queue and len(found) < MAX_FILES:
        file = queue.pop()
        if file in found:
            continue
        found.add(file)
        if file.suffix in {".js", ".cjs"}:
            for name in _REQUIRED.findall(file.read_text(encoding="utf-8", errors="replace")):
                if (target := _resolved(name, file.parent, modules)) is not None:
                    queue.append(target)
    return frozenset(found)


def loaded_packages(modules: Path, package: str) -> frozenset[str]:
    """The names of the packages that these files are in."""
    return frozenset(_name(file.relative_to(modules).parts) for file in loaded_files(modules, package))


def drop_unloaded(modules: Path, runner: str, others: Collection[str]) -> None:
    """Delete what only the commands of a test runner need: packages neither loaded by it nor needed by ``others``."""
    files = loaded_files(modules, runner)
    kept = {_name(file.relative_to(modules).parts) for file in files} | _needed(modules, others)
    for folder in list(_packages(modules)):
        if folder.relative_to(modules).as_posix() not in kept:
            shutil.rmtree(folder)
    bundled = modules / runner / "node_modules"
    for folder in list(_packages(bundled)) if bundled.is_dir() else ():
        if not any(file.is_relative_to(folder.resolve()) for file in files):
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


def _resolved(name: str, folder: Path, modules: Path) -> Path | None:
    """The file that ``require(name)`` loads from a folder; ``None`` for modules of node, and if there is none."""
    if name.startswith("."):
        return _file(folder / name, modules)
    found = _BARE.fullmatch(name)
    if found is None or name.startswith("node:"):
        return None
    around = folder
    while around.is_relative_to(modules):
        base = around if around == modules else around / "node_modules"
        if (base / found[1]).is_dir():
            return _entry(base / found[1], found[2] or "", modules)
        around = around.parent
    return None


def _entry(package: Path, below: str, modules: Path) -> Path | None:
    """The file that a package stands for, or a name below it."""
    manifest = _manifest(package)
    exports = manifest.get("exports")
    if isinstance(exports, dict) and any(str(key).startswith(".") for key in exports):
        exports = exports.get(f"./{below}" if below else ".")
    elif below:
        exports = None
    while isinstance(exports, dict):
        exports = next((exports[each] for each in _CONDITIONS if each in exports), None)
    if isinstance(exports, str):
        return _file(package / exports, modules)
    main = manifest.get("main")
    return _file(package / (below or (main if isinstance(main, str) and main else "index.js")), modules)


def _file(path: Path, modules: Path) -> Path | None:
    ends = ("", ".js", ".cjs", ".json", "/index.js")
    found = next((each for end in ends if (each := Path(f"{path}{end}")).is_file()), None)
    if found is None:
        return None
    found = found.resolve()
    return found if found.is_relative_to(modules.resolve()) else None
