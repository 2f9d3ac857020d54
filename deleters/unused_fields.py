"""Private fields of types that stay, which a removal leaves without what read them or what gave them their values.

A field that nothing reads any more goes, with the statements that set it; public ones stay, since other code and
libraries may read them. Where it cannot go, and where code that stays reads what nothing sets any more, the function
that did so should stay as a stub.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import Edit
from excise.deleters.edits.removed_lines import removals
from excise.extractors.field_uses import Field, FieldGrammar, FieldUse, UseKind
from excise.protocols import Codebase

_NAME = re.compile(rb"(?<![\w.\"'])[a-z_]\w*")
_LITERALS = frozenset({b"false", b"make", b"map", b"new", b"nil", b"null", b"self", b"this", b"true", b"undefined"})


class GonePart(NamedTuple):
    """The bytes of a function that goes."""

    key: str
    """Id of the function."""
    path: str
    """Its file."""
    start: int
    """First byte."""
    end: int
    """One past the last byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files of a project around a removal."""

    before: Mapping[str, bytes]
    """Path to content of source files and tests."""
    after: Mapping[str, bytes]
    """Path to content of those that stay."""
    is_test: Callable[[str], bool]
    """Whether a file belongs to the tests."""
    scope_of: Callable[[str], str]
    """The part of the project in which private names of a file are known."""

    @classmethod
    def of(cls, codebase: Codebase, changed: Changed, scope_of: Callable[[str], str]) -> Sources:
        """Those of a codebase; ``changed`` are all files that a removal changes, tests included."""
        before = {path: module.source for path, module in codebase.modules.items()}
        after = {path: changed[path][1] if path in changed else source for path, source in before.items()}
        left = {path: data for path, data in after.items() if data is not None and not codebase.is_vendored(path)}
        return cls(before=before, after=left, is_test=codebase.is_test, scope_of=scope_of)


@dataclass(slots=True)
class FieldsLeft:
    """What becomes of the fields that lost a use."""

    edits: dict[str, list[Edit]] = field(default_factory=dict)
    """Edits of the files after the removal."""
    texts: list[tuple[str, str]] = field(default_factory=list)
    """(path, text) of the declarations that go."""
    stubs: set[str] = field(default_factory=set)
    """Keys of functions that should stay as stubs."""


def fields_left(
    grammar: FieldGrammar, sources: Sources, gone: Iterable[GonePart], stubs: Iterable[GonePart]
) -> FieldsLeft:
    """What becomes of fields when functions go and others become ``stubs``: what these use is not changed."""
    lost: dict[str, list[tuple[GonePart, FieldUse]]] = defaultdict(list)
    for part, use in _uses_in(grammar, sources, gone):
        lost[use.name].append((part, use))
    of_stubs = [use for _, use in _uses_in(grammar, sources, stubs)]
    names = lost.keys() - {use.name for use in of_stubs if not use.holder} - {""}
    used = {(use.holder, use.name) for use in of_stubs}
    found, spans = FieldsLeft(), defaultdict[str, list[tuple[int, int]]](list)
    by_type: dict[tuple[str, str], list[_LostField]] = defaultdict(list)
    for each in _lost_fields(grammar, sources, names, lost):
        if (each.field.holder, each.field.name) in used:
            continue
        by_type[each.path, each.field.holder].append(each)
    for (path, holder), fields in by_type.items():
        source = sources.after[path]
        dead = _without_shared_names([each for each in fields if each.can_go()], sources)
        if grammar.keeps_one and len(dead) == sum(each.holder == holder for each in grammar.fields(source)):
            dead = []
        for each in dead:
            spans[path].append((each.field.start, each.field.end))
            text = source[each.field.start : each.field.end].decode("utf-8", "replace").strip()
            found.texts.append((path, f"in {holder}: {text}" if text else f"{holder}.{each.field.name}"))
            for where, span in each.spans():
                spans[where].append(span)
        for each in fields:
            found.stubs |= each.needed() if each not in dead else set()
    found.edits = {path: removals(sources.after[path], chosen) for path, chosen in spans.items()}
    return found


def _uses_in(grammar: FieldGrammar, sources: Sources, parts: Iterable[GonePart]) -> Iterator[tuple[GonePart, FieldUse]]:
    for part in parts:
        for use in grammar.uses(sources.before[part.path]):
            if part.start <= use.start < part.end:
                yield part, use


# ------------------------------------------------------------------------------------------- one field
class _LostField(NamedTuple):
    """A field that lost uses."""

    path: str
    """The file that declares it."""
    field: Field
    lost: list[tuple[GonePart, FieldUse]]
    """Its uses in functions that go."""
    left: list[tuple[str, FieldUse]]
    """(path, use) of those in code that stays; a test's count as such that read it."""

    @property
    def is_read(self) -> bool:
        return any(use.kind is UseKind.READ for _, use in self.left)

    def spans(self) -> list[tuple[str, tuple[int, int]]]:
        """(path, bytes) of the statements that set it."""
        return [(where, use.span) for where, use in self.left if use.span is not None]

    def can_go(self) -> bool:
        """Whether nothing reads it any more, and nothing else is lost with what sets it."""
        if self.is_read or not self.field.can_go or any(use.name == "" for _, use in self.left):
            return False
        spans = self.spans()
        is_alone = all(any(w == where and s <= use.start < e for w, (s, e) in spans) for where, use in self.left)
        return is_alone and self.field.is_private

    def needed(self) -> set[str]:
        """Keys of the functions without which a private field has lost its sense."""
        if not self.field.is_private:
            return set()
        is_set = self.field.is_set or any(use.kind is UseKind.SET for _, use in self.left)
        missed = UseKind.READ if not self.is_read else UseKind.SET if not is_set else None
        return {part.key for part, use in self.lost if use.kind is missed}


def _without_shared_names(fields: list[_LostField], sources: Sources) -> list[_LostField]:
    """Those of the fields whose statements have no name in common with those of another one: together, these might be
    all that uses a variable."""
    words = [{word for path, span in each.spans() for word in _words(sources.after[path], span)} for each in fields]
    counts = Counter(word for own in words for word in own)
    return [each for each, own in zip(fields, words, strict=True) if all(counts[word] == 1 for word in own)]


def _words(source: bytes, span: tuple[int, int]) -> Iterator[bytes]:
    """The names in the value of a statement or an element."""
    text = source[slice(*span)]
    value = text.partition(b"=" if b"=" in text else b":")[2]
    yield from (word for word in _NAME.findall(value) if word not in _LITERALS)


def _lost_fields(
    grammar: FieldGrammar,
    sources: Sources,
    names: Collection[str],
    lost: Mapping[str, list[tuple[GonePart, FieldUse]]],
) -> Iterator[_LostField]:
    """The fields of sources that stay, of these names, that lost a use."""
    words = [name.encode() for name in names]
    paths = [path for path, source in sources.after.items() if any(word in source for word in words)]
    declared = [(path, each) for path in paths for each in grammar.fields(sources.after[path]) if each.name in names]
    for path, each in declared:
        if sources.is_test(path) or not each.holder:
            continue
        near = [(p, other) for p, other in declared if other.name == each.name and _can_meet(sources, path, each, p)]
        is_only = all(other.holder == each.holder for _, other in near)
        own = [(part, use) for part, use in lost[each.name] if _is_of(use, each, is_only=is_only)]
        own = [(part, use) for part, use in own if _can_meet(sources, path, each, part.path)]
        if own and sum(other.holder == each.holder for _, other in near) == 1:
            declaring = {other.holder for _, other in near}
            yield _LostField(path, each, own, list(_left(grammar, sources, path, each, declaring)))


def _can_meet(sources: Sources, path: str, declared: Field, other: str) -> bool:
    """Whether code of another file can name a field."""
    return not declared.is_private or sources.scope_of(path) == sources.scope_of(other)


def _is_of(use: FieldUse, declared: Field, *, is_only: bool) -> bool:
    return use.holder == declared.holder or (is_only and not use.holder)


def _left(
    grammar: FieldGrammar, sources: Sources, path: str, declared: Field, declaring: Collection[str]
) -> Iterator[tuple[str, FieldUse]]:
    """(path, use) of what may use a field in code that stays, or makes values of its type without names of fields.

    A use by a type that is not one of those ``declaring`` such a field may be one of a field that the type embeds.
    """
    word, holder = declared.name.encode(), declared.holder.encode()
    for where, source in sources.after.items():
        if (word in source or holder in source) and _can_meet(sources, path, declared, where):
            for use in grammar.uses(source):
                is_other = use.holder in declaring and use.holder not in {"", declared.holder}
                if use.name == declared.name and not is_other:
                    yield where, use._replace(kind=UseKind.READ) if sources.is_test(where) else use
                elif use.name == "" and use.holder == declared.holder:
                    yield where, use
