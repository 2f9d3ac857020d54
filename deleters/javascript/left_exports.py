"""Which names of what declaration files describe modules still export after a removal."""

from __future__ import annotations

from collections.abc import Collection

from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.parsed_file import DEFAULT, WHOLE, Export
from excise.types import Symbol, is_inside, joined


class LeftExports:
    """What modules still export after a removal of definitions."""

    def __init__(self, codebase: JavaScriptCodebase, removed: Collection[Symbol]) -> None:
        self._codebase = codebase
        self._removed = [symbol.symbol_id for symbol in removed]
        self._code = frozenset(
            path for path in codebase.modules if not codebase.is_test(path) and not codebase.is_vendored(path)
        )

    def still_exports(self, path: str, *names: str) -> bool:
        """Whether a module that a declaration file describes, or any if that is not known, still exports a name, or
        the member of a class (two names)."""
        modules = self._codebase.described_modules[path] or self._code
        return any(self._exports(module, names, frozenset()) for module in sorted(modules))

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
        return any(is_inside(symbol_id, each) for each in self._removed)


def _has_name(export: Export, name: str, targets: Collection[str]) -> bool:
    """Whether an export has a name, or exports as a whole what has it."""
    if export.name in {WHOLE, DEFAULT}:
        own = {target.rpartition("::")[2].rpartition(".")[2].partition("#")[0] for target in targets}
        return export.local[-1:] == (name,) or name in own
    return export.name == name
