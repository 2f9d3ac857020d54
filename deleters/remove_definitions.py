"""The deleter ``remove`` of compiled languages: takes whole definitions out, with what only they need.

Functions that code which stays needs become stubs; then the deletion is called ``remove_and_stub``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic

from excise.deleters.compiled_edits import BuildError, C, CompiledEdits, chosen_symbols
from excise.deleters.compiled_mentions import without_mentions
from excise.deleters.deletion_record import USED_ELSEWHERE, Changed, EditedFiles, build_deletion
from excise.deleters.edits.blank_lines import evened
from excise.deleters.edits.removed_lines import removals
from excise.deleters.edits.removed_parts import texts_of_parts
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.deleters.removal_plan import RemovalPlan
from excise.deleters.source_texts import source_text
from excise.deleters.test_mentions import mentions_of
from excise.deleters.unused_fields import FieldsLeft, GonePart, Sources, fields_left
from excise.errors import DeletionRefused
from excise.extractors.compiled_codebase import CompiledCodebase, Definition, DefinitionKind
from excise.protocols import Codebase
from excise.types import Deletion, Feature, joined


class RemoveDeleter(Generic[C]):
    """The deleter ``remove``."""

    name = "remove"
    version = 1

    def __init__(
        self,
        edits: CompiledEdits[C],
        kept: frozenset[str] = frozenset(),
        hidden: frozenset[str] = frozenset(),
        *,
        keeps_fields: bool = False,
    ) -> None:
        """``kept`` are definitions that have to stay, ``hidden`` such of tests that have to go: as a compiler says.

        With ``keeps_fields``, types lose no fields.
        """
        self._edits, self._kept, self._hidden, self._keeps_fields = edits, kept, hidden, keeps_fields

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`."""
        own = self._edits.own(codebase)
        plan = RemovalPlan(own, chosen_symbols(own, feature, only), self._kept)
        mentions = mentions_of(own, plan.gone, self._hidden)
        tests, hidden = self._edits.hide(own, hide or feature.tests, mentions)
        plan.drop_unused(self._names_in_tests(own, tests))
        symbols = own.symbols()
        tested = self._names_in_tests(own, {})
        keys = {each.key for each in plan.gone}
        inside = {each.key for each in plan.gone if each.holder and joined(each.path, each.holder) in keys}
        named = [each for each in plan.gone if each.names and each.kind is not DefinitionKind.PART]
        gone = [each for each in named if each.key in symbols or each.key not in inside]
        inner = {d.key for d in gone if (d.is_private and d.key not in symbols) or d.key in plan.dead}
        told = [d.key for d in gone if d.key not in inner or d.names & tested[own.scope_of(d.path)]]
        parts = self._parts(own, plan.stubs)
        plan.stubs = [each for each in plan.stubs if parts[each.key]]
        stubs = [each.key for each in plan.stubs]
        edited = self._changed(own, plan)
        fields = self._fields_left(own, plan, {**edited, **tests})
        if stubs_wanted := fields.stubs & plan.wanted - self._kept:
            kept = self._kept | stubs_wanted
            return RemoveDeleter(self._edits, kept, self._hidden).delete(codebase, feature, only=only, hide=hide)
        sources, loose = without_mentions(
            self._edits, own, plan.gone, self._edits.edited_again(own, edited, fields.edits)
        )
        files = EditedFiles(
            changed=evened({**sources, **tests}, own.modules),
            removed=[*told, *stubs],
            hidden=hidden,
            text=[*_texts(own, gone), *(part for found in parts.values() for part in found)],
            stubs_of=[key for key in (*told, *stubs) if key in symbols],
            uses=fields.texts,
            uses_left=loose,
        )
        return build_deletion(
            own,
            feature,
            files,
            name="remove_and_stub" if stubs else self.name,
            version=self.version,
            stand_ins=lambda each: self._edits.stand_ins(own, each),
        )

    def corrected(self, codebase: Codebase, deletion: Deletion, messages: Iterable[str]) -> RemoveDeleter[C]:
        """A deleter that leaves what a compiler misses in the tree without a deletion that this one made.

        Raises :class:`DeletionRefused` if its messages do not tell.
        """
        own = self._edits.own(codebase)
        removed = set(deletion.removed)
        gone = [d for d in own.definitions() if d.key in removed - self._kept], list(_blocks(own, removed))
        shipped = _Shipped(own, self._edits, deletion)
        kept, hidden = set(self._kept), set(self._hidden)
        for error in (error for message in messages for error in self._edits.build_errors(message)):
            if own.is_test(error.path):
                hidden |= shipped.keys_at(error)
            else:
                missed = _missed(error, gone, shipped)
                kept |= missed | _asked_for(own, error, [each for each in gone[0] if each.key in missed], gone[0])
        is_same = kept == self._kept and hidden == self._hidden
        if is_same and (self._keeps_fields or not deletion.uses):
            raise DeletionRefused("what is left does not compile", reason=USED_ELSEWHERE)
        keeps_fields = self._keeps_fields or is_same
        return RemoveDeleter(self._edits, frozenset(kept), frozenset(hidden), keeps_fields=keeps_fields)

    # ------------------------------------------------------------------------------------ edits
    def _changed(self, codebase: C, plan: RemovalPlan) -> Changed:
        """The source files before and after. Raises :class:`DeletionRefused`."""
        spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for each in _outermost(plan.gone):
            spans[each.path].append((each.start, each.end))
        for path, assignment in plan.lost_assignments():
            spans[path].append((assignment.start, assignment.end))
        edits = {path: removals(codebase.modules[path].source, found) for path, found in spans.items()}
        symbols = codebase.symbols()
        bodies = self._edits.bodies(codebase, [symbols[each.key] for each in plan.stubs], "raise")
        for more in (bodies, self._edits.mentions(codebase, plan.gone)):
            for path, found in more.items():
                edits[path] = [*edits.get(path, ()), *found]
        return self._edits.edited(codebase, edits)

    def _fields_left(self, codebase: C, plan: RemovalPlan, changed: Changed) -> FieldsLeft:
        """What becomes of the fields of types that stay; ``changed`` are all files that are edited."""
        grammar = self._edits.fields
        if grammar is None or self._keeps_fields:
            return FieldsLeft()
        scope_of = (lambda path: path) if grammar.is_private_to_file else codebase.scope_of
        sources = Sources.of(codebase, changed, scope_of)
        parts = ((each.kind, GonePart(each.key, each.path, each.start, each.end)) for each in plan.gone)
        gone = [part for kind, part in parts if kind is DefinitionKind.FUNCTION]
        return fields_left(grammar, sources, gone, [GonePart(d.key, d.path, d.start, d.end) for d in plan.stubs])

    def _names_in_tests(self, codebase: C, changed: Changed) -> dict[str, frozenset[str]]:
        """Parts of the project to the names in tests, of which some are changed."""
        found: dict[str, set[str]] = {codebase.scope_of(path): set() for path in codebase.modules}
        for path, module in codebase.modules.items():
            if codebase.is_test(path):
                after = changed[path][1] if path in changed else module.source
                left = module if after == module.source else self._edits.parse_file(path, after or b"")
                found[codebase.scope_of(path)].update(name for each in left.definitions for name in each.uses)
        return {scope: frozenset(names) for scope, names in found.items()}

    def _parts(self, codebase: C, stubs: Sequence[Definition]) -> dict[str, list[tuple[str, str]]]:
        """Functions to (id of the part, text) of what goes of their bodies; one of which nothing goes is no stub."""
        symbols = [codebase.symbols()[each.key] for each in stubs]
        bodies = self._edits.bodies(codebase, symbols, "raise")
        found: dict[str, list[tuple[str, str]]] = {}
        for symbol in symbols:
            edit = next(e for e in bodies[symbol.path] if symbol.start <= e.start and e.end <= symbol.end)
            source = codebase.modules[symbol.path].source
            after = source[symbol.start : edit.start] + edit.replacement + source[edit.end : symbol.end]
            before = source_text(codebase, symbol)
            found[symbol.symbol_id] = texts_of_parts(symbol.symbol_id, before, after.decode("utf-8", "replace"))
        return found


def _outermost(definitions: Sequence[Definition]) -> list[Definition]:
    """Those of the definitions that are not inside others of them."""
    keys = {each.key for each in definitions}
    return [each for each in definitions if not each.holder or joined(each.path, each.holder) not in keys]


def _blocks(codebase: CompiledCodebase[Any], removed: Collection[str]) -> Iterator[Definition]:
    """The functions of blocks that are gone with them, under the name of the block."""
    for module in codebase.modules.values():
        for block in (each for each in module.definitions if each.kind is DefinitionKind.PART):
            inside = [d for d in module.definitions if d.holder == block.qualname and d.key in codebase.symbols()]
            if inside and all(each.key in removed for each in inside):
                yield from (replace(each, names=block.names) for each in inside)


def _texts(codebase: Codebase, gone: Sequence[Definition]) -> Iterator[tuple[str, str]]:
    """(id, source text) of what goes."""
    symbols = codebase.symbols()
    for each in _outermost(gone):
        if each.key in symbols:
            yield each.key, source_text(codebase, symbols[each.key])
        else:
            source = codebase.modules[each.path].source
            yield each.key, source[each.code : each.end].decode("utf-8", "replace").rstrip()


# ------------------------------------------------------------------------------------------- what a compiler says
def _asked_for(
    codebase: CompiledCodebase[Any], error: BuildError, missed: Sequence[Definition], gone: Sequence[Definition]
) -> set[str]:
    """Keys of the functions beside missed ones that the types have which a message names.

    Of an interface that a type no longer meets, compilers tell one method.
    """
    words = set(re.findall(r"\w+", error.text.partition("\n")[0]))
    types = (d for d in codebase.definitions() if d.kind is DefinitionKind.TYPE and d.names & words)
    names = {name for each in types for name in each.uses}
    places = {(each.path, each.holder, each.about) for each in missed}
    return {d.key for d in gone if (d.path, d.holder, d.about) in places and d.names & names}


class _Shipped(Generic[C]):
    """The files of a tree without a deletion, as a compiler saw them."""

    def __init__(self, codebase: C, edits: CompiledEdits[C], deletion: Deletion) -> None:
        self._codebase, self._edits = codebase, edits
        patches = deletion.source_patch, deletion.hide_patch
        self._changed: dict[str, bytes | None] = {}
        for patch in filter(None, patches):
            sources = {path: codebase.modules[path].source for path in touched(patch) if path in codebase.modules}
            others = {path: codebase.others.read(path) for path in touched(patch) if path in codebase.others.paths}
            self._changed |= apply_patch({**others, **sources}, patch)

    def line(self, error: BuildError) -> str:
        """The line that an error is in."""
        lines = self._source(error.path).split(b"\n")
        return lines[error.line - 1].decode("utf-8", "replace") if 0 < error.line <= len(lines) else ""

    def at(self, error: BuildError) -> list[Definition]:
        """The definition that an error is in, the innermost one; none for one outside of all."""
        source = self._source(error.path)
        start = len(b"".join(source.splitlines(keepends=True)[: error.line - 1]))
        found = [d for d in self._edits.parse_file(error.path, source).definitions if d.start <= start < d.end]
        return found[-1:]

    def keys_at(self, error: BuildError) -> set[str]:
        """The key of that definition."""
        return {each.key for each in self.at(error)}

    def _source(self, path: str) -> bytes:
        module = self._codebase.modules.get(path)
        return self._changed.get(path, module.source if module is not None else b"") or b""


def _missed(error: BuildError, gone: Iterable[Sequence[Definition]], shipped: _Shipped[C]) -> set[str]:
    """Keys of the definitions that an error is about, of the first group that is gone of which one is: the first place
    that names some tells."""
    texts = (error.text.partition("\n")[0], error.text, shipped.line(error))
    names = (name for each in shipped.at(error) for name in each.names)
    places = [*(set(re.findall(r"\w+", text)) for text in texts), set(names)]
    for group, words in ((group, words) for group in gone for words in places):
        if found := {each.key for each in group if each.names & words}:
            return found
    return set()
