"""The versions that a project's own lock file names, of npm, pnpm or yarn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

_MAX_BYTES = 32 << 20
_VERSION = re.compile(r"\d+\.\d+\.\d+[\w.+-]*")
_YARN_KEYS = re.compile(r"^(?! )(?!#)(.+):\s*$")
_YARN_VERSION = re.compile(r'^  version:? "?([^"\s]+)"?\s*$')
_YARN_NAME = re.compile(r'^"?((?:@[\w.~-]+/)?[\w.~-]+)@(?:npm:)?([^"]*)"?$')


def locked_versions(root: Path, wanted: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Exact versions of the packages ``wanted`` (name to range) by the project's lock file, and its name.

    Packages of which it says nothing, or no version of a registry, are left out. An unreadable file says nothing.
    """
    for name, read in _READERS.items():
        file = root / name
        if file.is_file() and not file.is_symlink() and file.stat().st_size <= _MAX_BYTES:
            try:
                found = dict(read(file.read_text(encoding="utf-8"), wanted))
            except (ValueError, TypeError, AttributeError, KeyError, RecursionError, yaml.YAMLError):
                continue
            return {each: version for each, version in found.items() if _VERSION.fullmatch(version)}, name
    return {}, ""


def _npm(text: str, wanted: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """``package-lock.json``: since npm 7 by folders, before that a tree of dependencies."""
    content = json.loads(text)
    folders, tree = content.get("packages", {}), content.get("dependencies", {})
    for name in wanted:
        entry = folders.get(f"node_modules/{name}") or tree.get(name) or {}
        if entry.get("name", name) == name and not entry.get("link"):
            yield name, str(entry.get("version", ""))


def _pnpm(text: str, wanted: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """``pnpm-lock.yaml``: the main folder's importer; the version is followed by those of its peers."""
    content = _yaml(text)
    importer = content.get("importers", {}).get(".", content)
    for table in ("devDependencies", "optionalDependencies", "dependencies"):
        for name, entry in (importer.get(table) or {}).items():
            if name in wanted:
                version = entry.get("version", "") if isinstance(entry, dict) else entry
                yield str(name), re.split(r"[(_]", str(version))[0]


def _yarn(text: str, wanted: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """``yarn.lock``, whose blocks begin with all ranges that one version meets."""
    names: list[str] = []
    for line in text.splitlines():
        if keys := _YARN_KEYS.match(line):
            found = [_YARN_NAME.match(each.strip().strip('"')) for each in re.split(r",\s*", keys[1])]
            names = [each[1] for each in found if each and wanted.get(each[1]) == each[2]]
        elif version := _YARN_VERSION.match(line):
            yield from ((name, version[1]) for name in names)


def _yaml(text: str) -> Any:
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


_READERS: Mapping[str, Callable[[str, Mapping[str, str]], Iterable[tuple[str, str]]]] = {
    "package-lock.json": _npm,
    "npm-shrinkwrap.json": _npm,
    "pnpm-lock.yaml": _pnpm,
    "yarn.lock": _yarn,
}
"""Names of lock files to their readers; the first that is there counts."""
