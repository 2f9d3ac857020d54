"""The deleter ``remove``: deletes definitions, and all code that could not be imported without them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from excise.deleters.deletion_record import Changed, EditedFiles
from excise.deleters.documents.lost_calls import LostCall, lost_call
from excise.deleters.edits.byte_edits import Edit
from excise.deleters.edits.removed_parts import removed_parts, texts_of_parts
from excise.deleters.python.deletion_builder import (
    build_python_deletion,
    changed_files,
    emptied_text,
    empty_body_edits,
    ids_with_members,
    require_python,
    symbols_to_delete,
)
from excise.deleters.python.documented_examples import DocumentedExamples
from excise.deleters.python.edits.commented_code import without_commented_parts
from excise.deleters.python.edits.file_plan import FilePlan, Span
from excise.deleters.python.lost_state import constant_variables
from excise.deleters.python.probed_tests import NOTHING_KNOWN, PartsOfTests, ShorteningTests
from excise.deleters.python.references.data_files import remove_unused_files
from excise.deleters.python.references.dependent_paths import (
    LaterUse,
    accessor_uses,
    later_uses,
    likely_uses,
    possible_uses,
    remove_from_unions,
    remove_paths,
)
from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.documents import documents_without, gone_code
from excise.deleters.python.references.emptied_files import remove_emptied_files
from excise.deleters.python.references.entry_points import (
    SETUP,
    LostNames,
    emptied_groups,
    entry_lines,
    remove_from_setup,
    without_entry_points,
)
from excise.deleters.python.references.find_gone_commands import gone_commands
from excise.deleters.python.references.find_gone_names import gone_cases
from excise.deleters.python.references.hide_tests import TestHider
from excise.deleters.python.references.leftovers import Leftover, leftovers
from excise.deleters.python.references.loose_documents import loose_documents
from excise.deleters.python.references.mentions import remove_mentions
from excise.deleters.python.references.name_uses import LostBinding
from excise.deleters.python.references.named_entries import remove_named_entries
from excise.deleters.python.references.named_paths import without_paths
from excise.deleters.python.references.new_findings import UNDEFINED_NAME, UNUSED_IMPORT, new_findings
from excise.deleters.python.references.parsed_options import orphaned_options
from excise.deleters.python.references.registrations import registrations
from excise.deleters.python.references.remaining_words import source_left
from excise.deleters.python.references.stub_files import stub_files_without
from excise.deleters.python.references.unused_code import drop_unused_constants, drop_unused_imports
from excise.deleters.python.references.unused_members import drop_unused_members
from excise.deleters.source_texts import source_text
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase, is_generated_manifest
from excise.extractors.python.analysis.parsed_file import Reference
from excise.extractors.python.analysis.parser import parse_module
from excise.protocols import Codebase
from excise.types import Deletion, Feature, Symbol, SymbolKind, is_inside


class Remove(DocumentedExamples, ShorteningTests):
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
        hidden = hide or frozenset(feature.tests)
        removal = Removal(require_python(codebase), feature, only, hidden, parts=self.parts)
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
        *,
        parts: PartsOfTests = NOTHING_KNOWN,
    ) -> None:
        self.parts_of_tests = parts
        self.codebase = codebase
        self.feature = feature
        self.hide = hide
        self.emptied = emptied
        known, chosen = codebase.symbols(), [s for s in feature.symbols if only is None or s in only]
        changed = {symbol: text for symbol, text in feature.changed if symbol in chosen}
        self.parts = {i: without_commented_parts(source_text(codebase, known[i]), t) for i, t in changed.items()}
        whole = frozenset(chosen) - self.parts.keys() - {symbol.symbol_id for symbol in emptied}
        has_parts = bool(self.parts or emptied)
        self.wanted = symbols_to_delete(codebase, feature, whole) if whole or not has_parts else []
        self.leftovers: list[Leftover] = []
        """What else no developer would leave; after :meth:`run`."""
        self.remover = DependentRemover(codebase, on_test=lambda symbol: self.hider.record_removed(symbol, hide))
        self.hider = TestHider(codebase, self.remover)

    def run(self) -> EditedFiles:
        """Plan all edits. Raises :class:`DeletionRefused`."""
        self._check_packages()
        self.hider.hide(self.hide, self._parts_of_test)
        for symbol in self.wanted:
            self.remover.remove_symbol(symbol)
        self.remover.run()
        self._empty_bodies()
        for symbol_id, text in self.parts.items():
            symbol = self.codebase.symbols()[symbol_id]
            self.remover.plan(symbol.path).replacements.append(Edit(symbol.start, symbol.end, text.encode()))
        self.hider.hide(self.hider.naming_lost())
        self.remover.run()
        remove_named_entries(self.remover)
        uses = remove_paths(self.remover)
        remove_from_unions(self.remover)
        self.hider.clean_up()
        uses += self._drop_unused()
        remove_emptied_files(self.remover)
        remove_unused_files(self.remover, of_tests=False)
        gone = [*self.wanted, *(s for s in self.remover.removed.symbols if not self.codebase.is_test(s.path))]
        helpers = self.remover.removed.helpers
        lost = self._lost_names([*gone, *helpers])
        if (setup := self.codebase.modules.get(SETUP)) is not None and not setup.has_error:
            remove_from_setup(self.remover.plan(SETUP), lost)
        aliases = [a for a in self.remover.removed.aliases if not self.codebase.is_test(a[0].partition("::")[0])]
        manifests = {p: data for p, data in self.codebase.manifests.items() if not self.codebase.is_test(p)}
        shortened = {p: (manifests[p], after) for p, after in without_entry_points(manifests, lost).items()}
        commands = gone_commands(self.remover, gone, shortened, lost)
        names = gone_code(self.remover, [*gone, *helpers], [i for i, _ in aliases], commands)
        remove_mentions(self.remover, names)
        names_of_parts = replace(names, calls=tuple(self._lost_calls()), cases=self._lost_cases())
        documents = documents_without(self.remover, gone, names_of_parts)
        stub_files, needing = stub_files_without(self.remover)
        empty = {p for p, (_, after) in shortened.items() if is_generated_manifest(p) and not after.strip()}
        manifests_left = {p: (before, None if p in empty else after) for p, (before, after) in shortened.items()}
        changed = {**changed_files(self.remover), **documents, **stub_files, **manifests_left}
        around = [each for each in helpers if any(is_inside(s.symbol_id, each.symbol_id) for s in gone)]
        removed = ids_with_members(self.codebase, [*gone, *around], self.feature.symbols)
        written = {path: pair for path, pair in shortened.items() if not is_generated_manifest(path)}
        entry_points = [(path, line) for path, pair in written.items() for line in entry_lines(*pair)]
        deleted = [path for path, (_, after) in changed.items() if after is None and not self.codebase.is_test(path)]
        changed |= without_paths(self.codebase, changed, deleted)
        parts = [i for i in self.parts if i not in removed]
        emptied = [s.symbol_id for s in self.emptied]
        possible = list(possible_uses(self.remover))
        self.leftovers = list(_without_sense(self.codebase, {p: changed[p] for p, _ in uses if p in changed}))
        texts = self._texts([*gone, *helpers])
        options = orphaned_options(self.remover, [text for _, text in texts], [text for _, text in uses])
        self.leftovers += (Leftover(path, f"nothing would obey {option} any more", "") for path, option in options)
        self.leftovers += [
            Leftover(path, f"it would look for entry points of {group}, of which none is left", "")
            for pair in written.values()
            for group in sorted(emptied_groups(*pair))
            for path in _paths_naming(self.remover, group)
        ]
        loose = loose_documents(self.remover, gone, self.wanted, names, {**documents, **shortened})
        self.leftovers += [*leftovers(self.remover, self.wanted), *loose]
        return EditedFiles(
            changed=changed,
            removed=[*removed, *parts, *emptied, *(a for a, _ in aliases)],
            hidden=[*self.hider.hidden, *self._hidden_doctests(gone)],
            shortened=self.hider.shortened_tests(),
            text=[*texts, *self._part_texts(parts), *self._bodies(), *aliases],
            stubs_of=[*(s.symbol_id for s in gone), *parts, *emptied],
            registrations=[
                *registrations(
                    plan for path, plan in sorted(self.remover.plans.items()) if not self.codebase.is_test(path)
                ),
                *entry_points,
                *self._files(),
            ],
            uses=uses,
            uses_left=[
                *self._uses_left_text(),
                *((each.path, each.text) for each in self.leftovers),
                *((path, "declarations that stay need what would be gone") for path in needing),
                *_findings(self.codebase, changed),
            ],
            uses_likely=[(f"{u.path}::{u.ref.owner}", u.lost.name) for u in possible],
            uses_distinctive=[
                (f"{u.path}::{u.ref.owner}", u.lost.name)
                for u in possible
                if self.remover.uses.is_distinctive(u.lost.name)
            ],
        )

    def _parts_of_test(self, test: Symbol) -> Sequence[Span]:
        """The statements of a test that use what is to go, if the others can stay."""
        uses = [ref for ref in self._uses_in_tests.get(test.path, ()) if test.start <= ref.start < test.end]
        names = {symbol.name.partition("#")[0] for symbol in self.wanted}
        return self.parts_of_tests.of(self.codebase, test, uses, names)

    @cached_property
    def _uses_in_tests(self) -> dict[str, list[Reference]]:
        """Path of a test file to the uses of what is to go in its functions."""
        found: dict[str, list[Reference]] = defaultdict(list)
        modules = {s.path for s in self.wanted if s.kind is SymbolKind.MODULE}
        inside = (s for path in sorted(modules) for s in self.codebase.modules[path].symbols if "." not in s.qualname)
        for symbol in (*self.wanted, *inside):
            lost, uses = LostBinding(symbol.path, without_numbers(symbol.qualname)), self.remover.uses
            for path, ref in (*uses.later_references_to(lost), *uses.possible_references_to(lost)):
                if self.codebase.is_test(path):
                    found[path].append(ref)
        return found

    def _lost_calls(self) -> Iterator[LostCall]:
        """The calls that nothing answers any more of functions that lost a path, if nothing else goes."""
        symbols = self.codebase.symbols()
        for symbol_id, after in self.parts.items() if not self.wanted else ():
            symbol = symbols[symbol_id]
            before, left = self._indented(symbol), self._indented(symbol, after)
            owner = symbol.qualname.rpartition(".")[0].rpartition(".")[2]
            place = (owner if symbol.name == "__init__" else symbol.name, symbol.kind is SymbolKind.METHOD)
            gone = removed_parts(before, left)
            found = lost_call(before, left, gone[0], place) if gone else None
            alike = [each for each in symbols.values() if each.name == symbol.name and each is not symbol]
            if found is not None and not any(found.parameter in each.signature for each in alike):
                yield found

    def _lost_cases(self) -> frozenset[str]:
        """The texts with which only lost paths of functions compared something, if nothing else goes."""
        known, parts = self.codebase.symbols(), self.parts.items() if not self.wanted else ()
        found = (
            gone_cases(self.remover, self._indented(known[i]), self._indented(known[i], text)) for i, text in parts
        )
        return frozenset().union(*found)

    def _indented(self, symbol: Symbol, text: str | None = None) -> str:
        """A function, or another text for it, with the indentation of its first line."""
        source = self.codebase.modules[symbol.path].source
        indent = source[source.rfind(b"\n", 0, symbol.start) + 1 : symbol.start].decode(errors="replace")
        return f"{indent}{source_text(self.codebase, symbol) if text is None else text}"

    def _files(self) -> Iterator[tuple[str, str]]:
        """(path, text) of the files of the sources, no Python, that are gone."""
        for path, data in sorted(self.remover.other_files.items()):
            if not self.codebase.is_test(path) and not path.endswith(".pyi"):
                yield path, data.decode()

    def _uses_left_text(self) -> Iterator[tuple[str, str]]:
        for _, path, ref in self.uses_left():
            yield path, f"{ref.owner or 'the module'} uses {ref.chain}, which would be gone"

    def uses_left(self) -> Iterator[LaterUse]:
        """The uses of what is gone in functions of sources that stay; after :meth:`run`."""
        for use in (*later_uses(self.remover), *likely_uses(self.remover), *accessor_uses(self.remover)):
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

    def _drop_unused(self) -> list[tuple[str, str]]:
        """Remove imports, constants, private definitions and attributes that only removed code used, and so on.

        Returns (path, text) of statements in functions that stay.
        """
        found: list[tuple[str, str]] = []
        before = -1
        while before != (before := sum(len(p.clauses) + len(p.statements) for p in self.remover.plans.values())):
            found += drop_unused_members(self.remover)
            for path, plan in sorted(self.remover.plans.items()):
                if not self.codebase.is_test(path):
                    drop_unused_imports(plan, self.remover.uses, self.remover.plans)
                    unused = drop_unused_constants(plan, self.remover.uses, self.remover.plans)
                    self.remover.removed.aliases += unused.constants
                    found += unused.statements
        return found

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

    def _lost_names(self, gone: list[Symbol]) -> LostNames:
        name_of = self.codebase.names.name_of
        modules = {name_of(s.path) for s in gone if s.kind is SymbolKind.MODULE}
        modules |= {name_of(path) for path, plan in self.remover.plans.items() if plan.deleted}
        names = {(name_of(s.path), s.name) for s in gone if s.qualname and "." not in s.qualname}
        names |= {(name_of(each.path), each.qualname) for each in self.remover.lost if "." not in each.qualname}
        return LostNames(modules, names)

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


def _without_sense(codebase: PythonCodebase, changed: Changed) -> Iterator[Leftover]:
    """Functions that stay, and of which a path is gone, with variables that have no other value any more."""
    for path, (before, after) in sorted(changed.items()):
        module = codebase.modules.get(path)
        if module is None or after is None or codebase.is_test(path):
            continue
        left = {s.qualname: after[s.start : s.end] for s in parse_module(path, after).symbols if s.is_callable}
        for symbol in (each for each in module.symbols if each.is_callable):
            text, now = before[symbol.start : symbol.end], left.get(symbol.qualname, b"")
            if not now or now == text or b"raise NotImplementedError" in now:
                continue
            for name in constant_variables(text.decode(errors="replace"), now.decode(errors="replace")):
                yield Leftover(path, f"{symbol.qualname} would give {name} no other value any more", "")


def _paths_naming(remover: DependentRemover, text: str) -> Iterator[str]:
    """Paths of the sources that have a text in quotes after what is planned."""
    quoted = re.compile(rb"[\"']" + re.escape(text.encode()) + rb"[\"']")
    for path in sorted(remover.codebase.modules):
        if not remover.codebase.is_test(path) and quoted.search(source_left(remover.codebase, remover.plans, path)):
            yield path


def _is_replaced(plan: FilePlan, ref: Reference) -> bool:
    """Whether a use is in a span for which something without it is written."""
    name = ref.chain.rpartition(".")[2].encode()
    spans = ((edit.start, edit.end) for edit in plan.replacements if name not in edit.replacement)
    return any(start <= ref.start and ref.end <= end for start, end in spans)


def _findings(codebase: PythonCodebase, changed: Changed) -> Iterator[tuple[str, str]]:
    """(path, text) of what a linter says about changed files, did not say before, and would not say of a stub.

    Of tests that stay, only names that nothing binds count.
    """
    for path, (before, after) in sorted(changed.items()):
        if after is None or path not in codebase.modules:
            continue
        is_test = codebase.is_test(path)
        for each in new_findings(before, after):
            if each.kind == UNDEFINED_NAME if is_test else each.scope or each.kind != UNUSED_IMPORT:
                yield path, f"{each.scope or 'the module'} would be left with an {each.kind} {each.name}"
