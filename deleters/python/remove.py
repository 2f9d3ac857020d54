"""The deleter ``remove``: deletes definitions, and all code that could not be imported without them."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from excise.deleters.deletion_record import EditedFiles
from excise.deleters.edits.byte_edits import Edit
from excise.deleters.edits.removed_parts import texts_of_parts
from excise.deleters.python.deletion_builder import (
    build_python_deletion,
    changed_files,
    emptied_text,
    empty_body_edits,
    ids_with_members,
    require_python,
    source_text,
    symbols_to_delete,
)
from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.dependent_paths import (
    LaterUse,
    later_uses,
    remove_from_unions,
    remove_paths,
)
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.hide_tests import TestHider
from excise.deleters.python.references.registrations import registrations
from excise.deleters.python.references.unused_code import drop_unused_constants, drop_unused_imports
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.parsed_file import Reference
from excise.protocols import Codebase
from excise.types import Deletion, Feature, Symbol, SymbolKind

_ENTRY_POINT = re.compile(
    r"""^[ \t]*["']?[\w.\- ]+["']?[ \t]*=[ \t]*(["']?)(?P<module>[\w.]+)[ \t]*:[ \t]*(?P<name>[\w.]+)"""
    r"""[ \t]*(\[[^\]]*\])?\1[ \t]*,?[ \t]*(\#.*)?$"""
)
"""An entry point in a manifest: ``name = module:object``."""


class Remove:
    """Deletes functions, methods, classes and modules; all other bytes of the files stay the same."""

    name = "remove"
    version = 1

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`."""
        removal = Removal(require_python(codebase), feature, only, hide or frozenset(feature.tests))
        return build_python_deletion(removal.codebase, feature, removal.run(), name=self.name, version=self.version)


class Removal:
    """One removal of whole definitions, and of parts of functions that stay.

    These parts are ``Feature.changed``, and the bodies of the functions ``emptied``.
    """

    def __init__(
        self,
        codebase: PythonCodebase,
        feature: Feature,
        only: frozenset[str] | None,
        hide: frozenset[str],
        emptied: Sequence[Symbol] = (),
    ) -> None:
        self.codebase = codebase
        self.feature = feature
        self.hide = hide
        self.emptied = emptied
        chosen = [s for s in feature.symbols if only is None or s in only]
        self.parts = {symbol: text for symbol, text in feature.changed if symbol in chosen}
        whole = frozenset(chosen) - self.parts.keys() - {symbol.symbol_id for symbol in emptied}
        has_parts = bool(self.parts or emptied)
        self.wanted = symbols_to_delete(codebase, feature, whole) if whole or not has_parts else []
        self.remover = DependentRemover(codebase, on_test=lambda symbol: self.hider.record_removed(symbol, hide))
        self.hider = TestHider(codebase, self.remover)

    def run(self) -> EditedFiles:
        """Plan all edits. Raises :class:`DeletionRefused`."""
        self._check_packages()
        self.hider.hide(self.hide)
        for symbol in self.wanted:
            self.remover.remove_symbol(symbol)
        self.remover.run()
        self._empty_bodies()
        for symbol_id, text in self.parts.items():
            symbol = self.codebase.symbols()[symbol_id]
            self.remover.plan(symbol.path).replacements.append(Edit(symbol.start, symbol.end, text.encode()))
        self.hider.hide(self.hider.naming_lost())
        self.remover.run()
        uses = remove_paths(self.remover)
        remove_from_unions(self.remover)
        self.hider.clean_up()
        self._drop_unused()
        changed = changed_files(self.remover.plans.values())
        gone = [*self.wanted, *(s for s in self.remover.removed.symbols if not self.codebase.is_test(s.path))]
        aliases = [a for a in self.remover.removed.aliases if not self.codebase.is_test(a[0].partition("::")[0])]
        removed = ids_with_members(self.codebase, gone, self.feature.symbols)
        entry_points: list[tuple[str, str]] = []
        for path, after in _without_entry_points(self.codebase.manifests, *self._lost_names(gone)).items():
            before = self.codebase.manifests[path]
            changed[path] = (before, after)
            left = Counter(before.splitlines()) - Counter(after.splitlines())
            entry_points += [(path, line.strip().decode(errors="replace")) for line in left]
        parts = [i for i in self.parts if i not in removed]
        emptied = [s.symbol_id for s in self.emptied]
        return EditedFiles(
            changed=changed,
            removed=[*removed, *parts, *emptied, *(a for a, _ in aliases)],
            hidden=[*self.hider.hidden, *self._hidden_doctests(gone)],
            text=[*self._texts(gone), *self._part_texts(parts), *self._bodies(), *aliases],
            stubs_of=[*(s.symbol_id for s in gone), *parts, *emptied],
            registrations=[
                *registrations(
                    plan for path, plan in sorted(self.remover.plans.items()) if not self.codebase.is_test(path)
                ),
                *entry_points,
            ],
            uses=uses,
            uses_left=[(path, f"{ref.owner or 'the module'} uses {ref.chain}") for _, path, ref in self.uses_left()],
        )

    def uses_left(self) -> Iterator[LaterUse]:
        """The uses of what is gone in functions of sources that stay; after :meth:`run`."""
        for use in later_uses(self.remover):
            plan, ref = self.remover.plans.get(use.path), use.ref
            if plan is None or not (plan.is_removed(ref.start, ref.end) or _is_replaced(plan, ref)):
                yield use

    def _empty_bodies(self) -> None:
        for path, edits in empty_body_edits(self.codebase, self.emptied, "raise", keep_docstring=True).items():
            for edit in edits:
                self.remover.plan(path).empty_body(edit)

    def _bodies(self) -> Iterator[tuple[str, str]]:
        """(id of the part, text) of each function that is emptied."""
        for symbol in self.emptied:
            yield from texts_of_parts(
                symbol.symbol_id, source_text(self.codebase, symbol), emptied_text(self.codebase, symbol)
            )

    def _drop_unused(self) -> None:
        """Remove imports and constants that only removed code used, and what only these used, until there are no
        more."""
        plans = {path: plan for path, plan in sorted(self.remover.plans.items()) if not self.codebase.is_test(path)}
        before = -1
        while before != (before := sum(len(plan.clauses) + len(plan.statements) for plan in plans.values())):
            for plan in plans.values():
                drop_unused_imports(plan, self.remover.uses, self.remover.plans)
                self.remover.removed.aliases += drop_unused_constants(plan, self.remover.uses, self.remover.plans)

    def _check_packages(self) -> None:
        """Refuse to delete the ``__init__`` of a package some of whose modules stay."""
        whole = {s.path for s in self.wanted if s.kind is SymbolKind.MODULE}
        for path in sorted(whole):
            if path.endswith("__init__.py"):
                folder = path.removesuffix("__init__.py")
                left = next((p for p in self.codebase.modules if p.startswith(folder) and p not in whole), None)
                if left is not None:
                    raise DeletionRefused(f"{path}: {left} stays and needs its package", reason="package_in_use")

    def _texts(self, gone: list[Symbol]) -> list[tuple[str, str]]:
        ids = [i for s in gone for i in self.codebase.group(s.symbol_id)]
        return [(i, source_text(self.codebase, self.codebase.symbols()[i])) for i in dict.fromkeys(ids)]

    def _part_texts(self, parts: list[str]) -> list[tuple[str, str]]:
        return [
            text
            for symbol_id in parts
            for text in texts_of_parts(
                symbol_id, source_text(self.codebase, self.codebase.symbols()[symbol_id]), self.parts[symbol_id]
            )
        ]

    def _lost_names(self, gone: list[Symbol]) -> tuple[set[str], set[tuple[str, str]]]:
        name_of = self.codebase.names.name_of
        modules = {name_of(s.path) for s in gone if s.kind is SymbolKind.MODULE}
        return modules, {(name_of(s.path), s.name) for s in gone if s.qualname and "." not in s.qualname}

    def _hidden_doctests(self, gone: list[Symbol]) -> list[str]:
        """The hidden doctests in docstrings of removed symbols."""
        found: list[str] = []
        for test_id in self.hide:
            path, _, dotted = test_id.partition("::")
            if path not in self.codebase.modules or self.codebase.is_test(path) or not dotted:
                continue
            module = self.codebase.names.name_of(path)
            inside = dotted.removeprefix(module).lstrip(".")
            for symbol in gone:
                same = inside == symbol.qualname or inside.startswith(symbol.qualname + ".") or not symbol.qualname
                if symbol.path == path and same:
                    found.append(test_id)
        return found


def _is_replaced(plan: FilePlan, ref: Reference) -> bool:
    """Whether a use is in a span for which something without it is written."""
    name = ref.chain.rpartition(".")[2].encode()
    spans = ((edit.start, edit.end) for edit in plan.replacements if name not in edit.replacement)
    return any(start <= ref.start and ref.end <= end for start, end in spans)


def _without_entry_points(
    manifests: Mapping[str, bytes], modules: Iterable[str], names: Iterable[tuple[str, str]]
) -> dict[str, bytes]:
    """Path to new content of the manifests from which entry points of removed modules or (module, name) are deleted.

    A manifest that would become invalid is not changed.
    """
    gone_modules, gone_names = set(modules), set(names)
    changed: dict[str, bytes] = {}
    for path, data in manifests.items():
        lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        kept = [line for line in lines if not _names_removed(line, gone_modules, gone_names)]
        if len(kept) != len(lines):
            after = "".join(kept)
            if _is_valid(path, after):
                changed[path] = after.encode("utf-8", "surrogateescape")
    return changed


def _names_removed(line: str, modules: set[str], names: set[tuple[str, str]]) -> bool:
    match = _ENTRY_POINT.match(line.rstrip("\r\n"))
    if not match:
        return False
    return match["module"] in modules or (match["module"], match["name"].partition(".")[0]) in names


def _is_valid(path: str, text: str) -> bool:
    try:
        if path.endswith(".toml"):
            tomllib.loads(text.replace("\r\n", "\n"))
        else:
            configparser.ConfigParser(interpolation=None, strict=False).read_string(text)
    except (tomllib.TOMLDecodeError, configparser.Error):
        return False
    return True
