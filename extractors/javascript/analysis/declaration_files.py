"""Which modules a ``.d.ts`` file describes, and which of these still export a name after a removal."""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from excise.extractors.javascript.analysis.codebase import DECLARATIONS, MANIFEST, JavaScriptCodebase
from excise.extractors.javascript.analysis.parsed_file import DEFAULT, WHOLE, Export
from excise.types import Symbol, is_inside, joined

_STEM = re.compile(r"(.+?)(?:\.(?:browser|node|native|server|client|react-native|deno|bun))?\.[cm]?[jt]sx?")
"""The name of a module; files of one stem are the same module for several platforms."""
_TYPES = ("types", "typings")
_ENTRIES = ("main", "module", "browser", "jsnext:main")
"""Members of a manifest with the files that its types describe."""


def described_modules(codebase: JavaScriptCodebase) -> Mapping[str, frozenset[str]]:
    """Path of each declaration file to the modules that it describes: those of its stem in its folder, and those that
    the manifest names beside it. Empty for files of which neither is known."""
    by_stem: dict[str, set[str]] = defaultdict(set)
    for path in codebase.modules:
        folder, name = posixpath.split(path)
        if (stem := _STEM.fullmatch(name)) is not None and not codebase.is_test(path):
            by_stem[posixpath.join(folder, stem[1])].add(path)
    named: dict[str, set[str]] = defaultdict(set)
    for types, entry in _named_by_manifest(codebase.others.get(MANIFEST, b"")):
        if (module := codebase.links.file_of(MANIFEST, _relative(entry))) is not None:
            named[posixpath.normpath(types)].add(module)
    return {
        path: frozenset(by_stem.get(re.sub(r"\.d\.[cm]?ts$", "", path), set()) | named.get(path, set()))
        for path in codebase.others
        if path.endswith(DECLARATIONS)
    }


def _relative(path: str) -> str:
    return path if path.startswith((".", "/")) else f"./{path}"


def _named_by_manifest(data: bytes) -> Iterator[tuple[str, str]]:
    """(declaration file, module) pairs of a manifest."""
    try:
        manifest = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        return
    if not isinstance(manifest, dict):
        return
    for types in (manifest.get(key) for key in _TYPES):
        if isinstance(types, str):
            yield types, "."
            yield from ((types, entry) for key in _ENTRIES if isinstance(entry := manifest.get(key), str))
    yield from _conditions(manifest.get("exports"))


def _conditions(exports: object) -> Iterator[tuple[str, str]]:
    """(declaration file, module) pairs of conditional exports: what one object has beside its ``types``."""
    if isinstance(exports, list):
        for each in exports:
            yield from _conditions(each)
    if not isinstance(exports, dict):
        return
    types = exports.get("types")
    for key, value in exports.items():
        if key != "types":
            yield from _conditions(value)
            if isinstance(types, str):
                yield from ((types, entry) for entry in _texts(value))


def _texts(value: object) -> Iterator[str]:
    """The texts in an object, but for its types."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each) if key != "types" else ()


class LeftExports:
    """What modules still export after a removal of definitions."""

    def __init__(self, codebase: JavaScriptCodebase, removed: Collection[Symbol]) -> None:
        self._codebase = codebase
        self._removed = [symbol.symbol_id for symbol in removed]
        self._modules = described_modules(codebase)
        self._code = frozenset(
            path for path in codebase.modules if not codebase.is_test(path) and not codebase.is_vendored(path)
        )

    def described_by(self, path: str, *names: str) -> bool:
        """Whether a module that a declaration file describes, or any if that is not known, still exports a name, or
        the member of a class (two names)."""
        return any(self._exports(module, names, frozenset()) for module in sorted(self._modules[path] or self._code))

    def _exports(self, path: str, names: tuple[str, ...], seen: frozenset[str]) -> bool:
        if path in seen:
            return False
        codebase = self._codebase
        for export in codebase.modules[path].exports:
            targets = codebase.exported_symbols(path, export)
            if targets and all(map(self._is_gone, targets)):
                continue
            if len(names) == 1 and _has_name(export, names[0], targets):
                return True
            target = codebase.links.file_of(path, export.module) if export.module and not export.local else None
            if export.name == WHOLE and target is not None and self._exports(target, names, seen | {path}):
                return True
        found = (each for each in codebase.links.exported(path, names) if each.names[-1:] == names[-1:])
        ids = (joined(each.path, ".".join(each.names)) for each in found)
        return any(each in codebase.symbols() and not self._is_gone(each) for each in ids)

    def _is_gone(self, symbol_id: str) -> bool:
        return any(symbol_id == each or is_inside(symbol_id, each) for each in self._removed)


def _has_name(export: Export, name: str, targets: Collection[str]) -> bool:
    """Whether an export has a name, or exports as a whole what has it."""
    if export.name in {WHOLE, DEFAULT}:
        own = {target.rpartition("::")[2].rpartition(".")[2].partition("#")[0] for target in targets}
        return export.local[-1:] == (name,) or name in own
    return export.name == name
