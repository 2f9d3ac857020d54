"""The deleter ``remove``: deletes definitions, what exports them, and imports and constants that only they used.

A definition that code which stays refers to is not deleted: such a name would be missing only when the code runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from excise.deleters.deletion_record import USED_ELSEWHERE, Changed, EditedFiles, build_deletion
from excise.deleters.edits.blank_lines import evened
from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.javascript.byte_spans import Range, removals
from excise.deleters.javascript.hidden_tests import hide_tests
from excise.deleters.javascript.mentions import qualified_name, without_mentions
from excise.deleters.javascript.selection import require_javascript, symbols_to_delete
from excise.deleters.javascript.stand_ins import require_parses, stand_ins
from excise.deleters.javascript.type_declarations import TypeNames, names_in_types, without_declarations
from excise.deleters.javascript.type_tests import type_tests_without
from excise.deleters.javascript.unused_code import without_unused
from excise.deleters.javascript.uses_left import calls_left, names_of
from excise.deleters.source_texts import source_text
from excise.deleters.unused_fields import GonePart, Sources, fields_left
from excise.errors import DeletionRefused
from excise.extractors.field_uses import FieldGrammar
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.fields import fields, uses
from excise.extractors.javascript.analysis.parsed_file import DEFAULT, WHOLE, Export
from excise.protocols import Codebase
from excise.types import Deletion, Feature, Symbol, joined

_FIELDS = FieldGrammar(fields=fields, uses=uses, keeps_one=False)


class Remove:
    """Deletes functions, methods and classes; all other bytes of the files stay the same."""

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
        javascript = require_javascript(codebase)
        removal = _Removal(javascript, symbols_to_delete(javascript, feature, only))
        hiding, hidden = hide_tests(javascript, hide or frozenset(feature.tests))
        sources = removal.run(hiding)
        type_tests = type_tests_without(javascript, removal.names_in_types(sources))
        files = EditedFiles(
            changed={**evened({**sources, **type_tests}, javascript.modules), **hiding},
            removed=removal.gone,
            hidden=hidden,
            text=[(s.symbol_id, source_text(javascript, s)) for s in removal.texts()],
            stubs_of=removal.gone,
            registrations=removal.registrations,
            uses=removal.fields_gone,
            uses_left=removal.loose,
        )
        return build_deletion(
            javascript,
            feature,
            files,
            name=self.name,
            version=self.version,
            stand_ins=lambda ids: stand_ins(javascript, list(ids)),
        )


class _Removal:
    """One removal of definitions and of what exports them."""

    def __init__(self, codebase: JavaScriptCodebase, wanted: list[Symbol]) -> None:
        self.codebase = codebase
        symbols = codebase.symbols()
        ids = (i for s in wanted for each in codebase.group(s.symbol_id) for i in (each, *codebase.members(each)))
        self.gone = tuple(dict.fromkeys(ids))
        self.outer = [symbols[i] for i in self.gone if not self._is_in_another(symbols[i])]
        self.registrations: list[tuple[str, str]] = []
        self.fields_gone: list[tuple[str, str]] = []
        """(path, text) of the fields that go."""
        self.loose: tuple[tuple[str, str], ...] = ()
        """(path, text) of documents that would make no sense; after :meth:`run`."""

    def _is_in_another(self, symbol: Symbol) -> bool:
        """Whether the bytes of a symbol are in those of another that goes."""
        others = (self.codebase.symbols()[i] for i in self.gone)
        return any(
            o.path == symbol.path and o.symbol_id != symbol.symbol_id and o.start <= symbol.start <= symbol.end <= o.end
            for o in others
        )

    def texts(self) -> list[Symbol]:
        """The symbols whose source texts are deleted, each once."""
        return self.outer

    def run(self, tests: Changed) -> Changed:
        """The changed sources; ``tests`` are the tests that change. Raises :class:`DeletionRefused`."""
        self._require_unused()
        statements: dict[str, set[Range]] = {}
        elements: dict[str, set[Range]] = {}
        for symbol in self.outer:
            module = self.codebase.modules[symbol.path]
            spans = elements if symbol.qualname in module.elements else statements
            spans.setdefault(symbol.path, set()).add(module.statements[symbol.qualname])
            for signature in module.overloads.get(symbol.qualname, ()):
                statements.setdefault(symbol.path, set()).add(signature)
        for path, export in self._exports():
            spans = elements if export.is_element else statements
            spans.setdefault(path, set()).add((export.start, export.end))
            self._note(path, export)
        for path, start, end, is_element in self._imports():
            spans = elements if is_element else statements
            spans.setdefault(path, set()).add((start, end))
        changed: dict[str, tuple[bytes, bytes | None]] = {}
        for path in sorted({*statements, *elements}):
            before = self.codebase.modules[path].source
            edits = removals(before, statements.get(path, set()), elements.get(path, set()))
            after = apply_edits(before, edits)
            require_parses(path, after)
            changed[path] = (before, without_unused(before, after))
        changed = self._without_fields(changed, tests)
        types = without_declarations(self.codebase, self.names_in_types(changed), self.outer)
        self.registrations += [(path, text) for path, each in types.items() for text in each.texts]
        symbols = self.codebase.symbols()
        found = without_mentions(
            self.codebase,
            [symbols[i] for i in self.gone],
            {**changed, **{path: (each.before, each.after) for path, each in types.items()}},
        )
        self.loose = found.loose
        return found.changed

    def _without_fields(self, changed: Changed, tests: Changed) -> dict[str, tuple[bytes, bytes | None]]:
        """The changed sources, without the fields of objects that nothing reads any more.

        Raises :class:`DeletionRefused` if one that is set or read has lost its sense.
        """
        sources = Sources.of(self.codebase, {**changed, **tests}, scope_of=lambda _: "")
        gone = [GonePart(s.symbol_id, s.path, s.start, s.end) for s in self.outer]
        left = fields_left(_FIELDS, sources, gone, [])
        if left.stubs:
            raise DeletionRefused(f"{min(left.stubs)}: a field has no sense without it", reason=USED_ELSEWHERE)
        self.fields_gone += left.texts
        found = dict(changed)
        for path, edits in left.edits.items():
            edited = apply_edits(sources.after[path], edits)
            require_parses(path, edited)
            before = sources.before[path]
            found[path] = (before, without_unused(before, edited))
        return found

    def names_in_types(self, changed: Changed) -> TypeNames:
        """The names of what goes, as declarations of types have them; ``changed`` are the files that change."""
        return names_in_types(self.codebase, self.outer, changed)

    def _note(self, path: str, export: Export) -> None:
        """Note a statement or an element that named a definition of another place, to be shown to solvers."""
        text = self.codebase.modules[path].source[export.start : export.end].decode("utf-8", "replace")
        inside = any(s.path == path and s.start <= export.start and export.end <= s.end for s in self.outer)
        if not inside:
            self.registrations.append((path, text.strip()))

    def _exports(self) -> Iterator[tuple[str, Export]]:
        """The exports and re-exports, outside tests, of what is removed."""
        gone = set(self.gone)
        for path, module in self.codebase.modules.items():
            if self.codebase.is_test(path):
                continue
            for export in module.exports:
                targets = self.codebase.exported_symbols(path, export)
                if targets and targets <= gone:
                    yield path, export

    def _imports(self) -> Iterator[tuple[str, int, int, bool]]:
        """(path, first byte, end, whether it is an element) of imports of what is removed, in modules that stay.

        Nothing uses them any more. A module that imports what its source does not export cannot be loaded.
        """
        gone = set(self.gone)
        for path, module in self.codebase.modules.items():
            if self.codebase.is_test(path) or not module.is_esm:
                continue
            per_statement = Counter(each.stmt_start for each in module.imports)
            for each in module.imports:
                if not each.bound or each.name == WHOLE:
                    continue
                found = self.codebase.symbols_of(self.codebase.links.entities(path, (each.bound,)))
                if found and found <= gone and each.name == DEFAULT and per_statement[each.stmt_start] == 1:
                    yield path, each.stmt_start, each.stmt_end, False
                elif found and found <= gone and each.name != DEFAULT:
                    yield path, each.start, each.end, True

    def _require_unused(self) -> None:
        """Raise :class:`DeletionRefused` if code that stays, outside tests, refers to a removed definition."""
        gone = set(self.gone)
        for path, module in self.codebase.modules.items():
            if self.codebase.is_test(path):
                continue
            for reference in module.references:
                owner = joined(path, reference.owner) if reference.owner else path
                if owner in gone or self._is_in_removed(path, reference.start):
                    continue
                if self.codebase.targets(path, reference) & gone:
                    text = module.source[reference.start : reference.end].decode("utf-8", "replace")
                    raise DeletionRefused(f"{owner}, which stays, refers to {text}", reason=USED_ELSEWHERE)
        for symbol in self.outer:
            if len(several := names_of(self.codebase.modules[symbol.path].source, symbol)) > 1:
                raise DeletionRefused(f"{symbol.symbol_id} has several names: {several}", reason=USED_ELSEWHERE)
        names = {qualified_name(symbol)[-1] for symbol in self.outer}
        names |= {export.name for _, export in self._exports()} - {DEFAULT, WHOLE}
        paths = {symbol.path for symbol in self.outer}
        for path, text in calls_left(self.codebase, names, self._is_in_removed, paths):
            raise DeletionRefused(f"{path} has {text}, which may mean what is removed", reason=USED_ELSEWHERE)

    def _is_in_removed(self, path: str, offset: int) -> bool:
        return any(s.path == path and s.start <= offset < s.end for s in self.outer)
