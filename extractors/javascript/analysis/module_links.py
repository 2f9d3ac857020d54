"""Which file a ``require`` or ``import`` means, and which definition a chain of names."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from excise.extractors.javascript.analysis.name_uses import REQUIRE
from excise.extractors.javascript.analysis.parsed_file import DEFAULT, WHOLE, Export, Import, JavaScriptModule

_MAX_STEPS = 20
"""Maximum number of exports and imports that are followed for one name."""


_ENDS = ("", ".js", ".cjs", ".mjs", ".ts", ".tsx", ".mts", ".cts", ".jsx", "/index.js", "/index.cjs", "/index.mjs",
         "/index.ts", "/index.tsx", "/index.mts", "/index.cts", "/index.jsx")  # fmt: skip
"""What a path of a module may lack."""
_TYPED_ENDS = (".ts", ".tsx", ".mts", ".cts", ".d.ts")
"""What may stand for the suffix of JavaScript that an import in TypeScript names."""
_SUFFIX = re.compile(r"\.[cm]?jsx?$")
_MAINS = ("src/index.ts", "source/index.ts", "index.ts", "lib/index.ts", "src/index.js", "src/main.ts")
"""Main files in sources, where the manifest names a compiled one."""


class Entity(NamedTuple):
    """A name of a module; no names for what the module exports as a whole."""

    path: str
    names: tuple[str, ...]


class ModuleLinks:
    """Resolves modules and names of a repository; packages that are installed are not followed."""

    def __init__(self, modules: Mapping[str, JavaScriptModule], manifest: bytes | None) -> None:
        self._modules = modules
        self._manifest = _read_manifest(manifest)

    def file_of(self, path: str, module: str) -> str | None:
        """The file that ``require(module)`` in the file ``path`` loads; ``None`` for packages and missing files."""
        if module.startswith((".", "/")):
            base = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        else:
            found = self._self_reference(module)
            if found is None:
                return None
            base = found
        if base in {".", ""}:
            base = self._main
        plain = _SUFFIX.sub("", base)
        names = [f"{base}{end}" for end in _ENDS] + [f"{plain}{end}" for end in _TYPED_ENDS if plain != base]
        return next((each for each in names if each in self._modules), None)

    @cached_property
    def _main(self) -> str:
        main = self._manifest.get("main")
        named = posixpath.normpath(main) if isinstance(main, str) else "index.js"
        known = any(f"{named}{end}" in self._modules for end in _ENDS)
        return named if known else next((each for each in _MAINS if each in self._modules), named)

    def _self_reference(self, module: str) -> str | None:
        name = self._manifest.get("name")
        if not isinstance(name, str) or not (module == name or module.startswith(f"{name}/")):
            return None
        return module[len(name) + 1 :] or self._main

    def is_external(self, path: str, name: str) -> bool:
        """Whether a name of a file is bound to an installed package or to a module of node."""
        if name.startswith(REQUIRE):
            return self.file_of(path, name[len(REQUIRE) :]) is None
        found = self._imports(path).get(name)
        return found is not None and self.file_of(path, found.module) is None

    def entities(self, path: str, chain: tuple[str, ...]) -> list[Entity]:
        """The definitions that a chain of names in a file refers to: ``a.b`` to ``a`` and to its member ``b``."""
        found = dict.fromkeys(self._follow(path, chain, _MAX_STEPS))
        return [entity for entity in found if entity.names]

    def _follow(self, path: str, chain: tuple[str, ...], steps: int) -> Iterator[Entity]:
        if not chain or steps == 0:
            return
        first, rest = chain[0], chain[1:]
        if first.startswith(REQUIRE):
            yield from self._of_import(path, first[len(REQUIRE) :], WHOLE, rest, steps)
            return
        if first in {"exports", "module"}:
            names = rest[1:] if first == "module" else rest
            yield from self.exported(path, names, steps - 1)
            return
        found = self._imports(path).get(first)
        if found is not None:
            yield from self._of_import(path, found.module, found.name, rest, steps)
            return
        yield Entity(path, (first,))
        names = tuple(name for name in rest if name != "prototype")
        if names:
            yield Entity(path, (first, names[0]))
            exports = self._exports(path)
            if any(each.local == (first,) for each in exports.get(WHOLE, ())):  # ``module.exports = box``: its elements
                yield from self._behind(path, exports.get(names[0], []), names[1:], steps - 1)

    def _of_import(self, path: str, module: str, name: str, rest: tuple[str, ...], steps: int) -> Iterator[Entity]:
        target = self.file_of(path, module)
        if target is not None:
            names = rest if name == WHOLE else (name, *rest)
            yield from self.exported(target, names, steps - 1)

    def exported(self, path: str, names: tuple[str, ...], steps: int = _MAX_STEPS) -> Iterator[Entity]:
        """The definitions behind what a file exports under a name, and under further names of it."""
        if steps == 0:
            return
        exports = self._exports(path)
        whole = exports.get(WHOLE, [])
        named = exports.get(names[0], []) if names else []
        if names and names[0] == DEFAULT and not named:
            named, names = whole, names[1:] or ()
            yield from self._behind(path, named, names, steps)
            return
        if named:
            yield from self._behind(path, named, names[1:], steps)
        else:
            yield from self._behind(path, whole or ([] if names else exports.get(DEFAULT, [])), names, steps)

    def behind(self, path: str, export: Export) -> list[Entity]:
        """The definitions behind one export of a file."""
        return [entity for entity in dict.fromkeys(self._behind(path, [export], (), _MAX_STEPS)) if entity.names]

    def _behind(self, path: str, exports: list[Export], rest: tuple[str, ...], steps: int) -> Iterator[Entity]:
        for export in exports:
            if export.module:
                target = self.file_of(path, export.module)
                if target is not None:
                    yield from self.exported(target, (*export.local, *rest), steps - 1)
            elif export.local:
                yield from self._follow(path, (*export.local, *rest), steps - 1)

    def _exports(self, path: str) -> Mapping[str, list[Export]]:
        if path not in self._export_tables:
            table: dict[str, list[Export]] = {}
            for export in self._modules[path].exports:
                table.setdefault(export.name, []).append(export)
            self._export_tables[path] = table
        return self._export_tables[path]

    def _imports(self, path: str) -> Mapping[str, Import]:
        if path not in self._import_tables:
            self._import_tables[path] = {each.bound: each for each in self._modules[path].imports if each.bound}
        return self._import_tables[path]

    @cached_property
    def _export_tables(self) -> dict[str, Mapping[str, list[Export]]]:
        return {}

    @cached_property
    def _import_tables(self) -> dict[str, Mapping[str, Import]]:
        return {}


def _read_manifest(data: bytes | None) -> Mapping[str, object]:
    try:
        found = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
