"""Find leaks: how many fingerprints of each deleted definition one file has, and what it therefore gives away.

Levels: **L4** source text, **L3** byte code or local names, **L2** signature or docstring, **L1** the name alone.
Fingerprints that the remaining sources of the project have, or that are common in the standard library, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from excise.system.deadline import check_deadline
from excise.verifiers.leaks.content_cache import Content
from excise.verifiers.leaks.fingerprint_index import FingerprintHits, FingerprintIndex
from excise.verifiers.leaks.fingerprints import EMPTY, Hashes, unique
from excise.verifiers.leaks.fragments import FragmentKind
from excise.verifiers.leaks.targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakThresholds:
    """What counts as a leak. A window is five consecutive words; a share is the fraction of a definition's fingerprints
    that one file has.

    The numbers depend on each other: ``tests/verifiers/planting`` measures true and false positives with them.
    """

    outside_share: float = 0.5
    """Share of a body's windows from which on a file outside the tree counts as its source text (L4). Half of a body is
    enough to write the rest."""
    tree_share: float = 0.85
    """``outside_share`` for the project's own source files and its git history. It is higher because related code
    shares idioms: only a near-copy counts."""
    code_share: float = 0.6
    """Share of a function's names from which on a code object of the same name counts as its byte code (L3). Python
    versions differ in which names they store, so rarely all are found."""
    small_code_share: float = 0.9
    """``code_share`` for a definition that is small beside the whole deletion: unrelated functions of one name and a
    few lines (``discard``, ``get``) share most of their names."""
    min_common_name: int = 6
    """Names that a definition must use to be identified if its own name is common (``__init__``, ``<module>``)."""
    rare_share: float = 0.8
    """Share of a definition's rare names (in neither the remaining sources nor the standard library) from which on a
    file counts as holding its local names (L3)."""
    min_rare: int = 5
    """Rare names that a definition must have for ``rare_share`` to apply."""
    min_windows_alone: int = 16
    """Windows that a definition must have to be judged by itself. Fewer are one or two lines that anyone would write:
    they count only as a part of the whole deletion."""
    large_windows: int = 60
    """Windows from which on a definition is judged by itself however large the deletion is; a smaller one must also
    have a quarter of the deletion's windows."""
    partial_windows: int = 9
    """Windows from which on the shares above apply. A shorter text counts only if all of its windows are found."""
    min_windows: int = 6
    """Windows (six are ten words) below which a text cannot be distinguished from idioms and is not searched for."""
    idiom_files: int = 4
    """Number of texts of the standard library from which on a window that is in them counts as an idiom and is
    ignored."""
    common_code_objects: int = 4
    """Number of modules of the standard library from which on a pair of a definition's name and a name in it is ignored
    as too common."""


THRESHOLDS = LeakThresholds()
WHOLE_DELETION = "the deleted code"
_CHANNELS = ("body", "plain", "code", "member", "rare", "signature", "docstring", "mention", "compiled")


class Level(IntEnum):
    """What a file gives away of deleted code; see the head of this module."""

    L1 = 1
    L2 = 2
    L3 = 3
    L4 = 4


@dataclass(frozen=True, slots=True)
class Leak:
    """One file that gives away a part of a deletion."""

    level: Level
    """How much it gives away."""
    symbol: str
    """Id of the deleted definition, or :data:`WHOLE_DELETION`."""
    file: str
    """Path in the sandbox."""
    share: float
    """Share of the definition's fingerprints that the file has, 0 to 1."""
    what: str
    """What was found: ``source text``, ``copy of`` a file, ``calls with names changed``, ``byte code``,
    ``machine code``, ``locals``, ``signature``, ``docstring`` or ``name``."""

    def __str__(self) -> str:
        return f"{self.share:.0%} of {self.symbol} stands in {self.file} ({self.what}, L{int(self.level)})"


class SearchableFiles(Protocol):
    """Files that can be searched for fingerprints: a :class:`FingerprintIndex` or :class:`ScannedFiles`."""

    def lookup(self, wanted: Hashes) -> FingerprintHits:
        """Find the fragments that have any of the ``wanted`` fingerprints, which must be sorted."""
        ...

    def name_of(self, owner: int) -> str:
        """Path of the file that fragment number ``owner`` comes from."""
        ...

    def kind(self, owner: int) -> FragmentKind:
        """The kind of fragment number ``owner``."""
        ...


class ScannedFiles:
    """Files that are searched for one task only: each is searched in turn, no index is built."""

    def __init__(self, contents: Iterable[tuple[str, Content]]) -> None:
        self._rows = [(name, kind, found) for name, content in contents for kind, found in content.fragments]

    def lookup(self, wanted: Hashes) -> FingerprintHits:
        """Find the fragments that have any of the ``wanted`` fingerprints, which must be sorted."""
        fingerprints, owners = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for number, (_, _, found) in enumerate(self._rows):
            hit = np.flatnonzero(is_in(wanted, found))
            if len(hit):
                fingerprints.append(hit)
                owners.append(np.full(len(hit), number, dtype=np.int64))
        positions, fragments = np.concatenate(fingerprints), np.concatenate(owners)
        order = np.argsort(positions, kind="stable")
        return FingerprintHits(positions[order], fragments[order])

    def name_of(self, owner: int) -> str:
        """Path of the file that fragment number ``owner`` comes from."""
        return self._rows[owner][0]

    def kind(self, owner: int) -> FragmentKind:
        """The kind of fragment number ``owner``."""
        return self._rows[owner][1]


def is_in(wanted: Hashes, held: Hashes) -> NDArray[np.bool_]:
    """A mask of the ``wanted`` fingerprints: true where ``held``, which must be sorted, contains the fingerprint."""
    if not len(held):
        return np.zeros(len(wanted), dtype=bool)
    places = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    return np.asarray(held[places] == wanted)


@dataclass(frozen=True, slots=True)
class PlaceRules:
    """Rules for leaks that depend on the file they are in; the defaults are for files outside the tree."""

    share: Callable[[str], float] = lambda _: THRESHOLDS.outside_share
    """File name to the share of a body's windows from which on that file counts as a leak of source text."""
    is_project_source: Callable[[str], bool] = lambda _: False
    """Whether a file is one of the project's sources, where single names of the deleted code prove nothing."""


def keep_distinctive(
    targets: Sequence[Target], library: FingerprintIndex, legitimate: Hashes, *, keep_bodies: bool
) -> list[Target]:
    """The targets without fingerprints that are idioms or ``legitimate`` (those of the sources that stay).

    With ``keep_bodies``, a body's windows are dropped only if they are idioms: that is for searching the sources that
    stay for copies of a body.
    """

    def distinctive(wanted: Hashes, max_frequency: int, held: Hashes) -> Hashes:
        kept = wanted[library.frequency(wanted) < max_frequency]
        return kept[~is_in(kept, held)]

    return [
        replace(
            target,
            body=distinctive(target.body, THRESHOLDS.idiom_files, EMPTY if keep_bodies else legitimate),
            plain=distinctive(target.plain, THRESHOLDS.idiom_files, EMPTY if keep_bodies else legitimate),
            code=distinctive(target.code, THRESHOLDS.common_code_objects, legitimate),
            member=distinctive(target.member, THRESHOLDS.common_code_objects, legitimate),
            rare=distinctive(target.rare, 1, legitimate),
            signature=distinctive(target.signature, THRESHOLDS.idiom_files, legitimate),
            docstring=distinctive(target.docstring, THRESHOLDS.idiom_files, legitimate),
            mention=distinctive(target.mention, 1, legitimate),
        )
        for target in targets
    ]


def leaks_in(searched: SearchableFiles, targets: Sequence[Target], rules: PlaceRules) -> list[Leak]:
    """The leaks of the targets in the searched files: for each file and definition, the one of the highest level.

    What minifiers keep of the definitions is a deletion of its own.
    """
    forms = [[target for target in targets if target.is_minified is minified] for minified in (False, True)]
    found = [leak for form in forms for leak in _leaks_of_form(searched, form, rules)]
    return sorted(found, key=lambda leak: (-leak.level, -leak.share, leak.file, leak.symbol))


def _leaks_of_form(searched: SearchableFiles, targets: Sequence[Target], rules: PlaceRules) -> list[Leak]:
    judged = [*targets, _whole_deletion(targets)] if len(targets) > 1 else list(targets)
    if not judged:
        return []
    wanted = unique(np.concatenate([target.all_fingerprints() for target in judged]))
    hits = searched.lookup(wanted)
    if not len(hits.fingerprints):
        return []
    bounds = np.searchsorted(hits.fingerprints, np.arange(len(wanted) + 1))
    min_windows = max(THRESHOLDS.min_windows_alone, len(judged[-1].body) // 4)
    worst: dict[tuple[str, str], Leak] = {}
    for target in judged:
        check_deadline()
        alone = target is judged[-1] or len(target.body) >= min(min_windows, THRESHOLDS.large_windows)
        for owner, counts in _matches_by_fragment(target, wanted, hits, bounds).items():
            name = searched.name_of(owner)
            leak = _worst_leak(target, counts, (name, searched.kind(owner)), rules, alone=alone)
            key = (name, target.symbol)
            if leak is not None and (key not in worst or worst[key].level < leak.level):
                worst[key] = leak
    return list(worst.values())


def _whole_deletion(targets: Sequence[Target]) -> Target:
    """The whole deletion as one target: the union of its definitions, without name, signature and docstring."""

    def union(channel: str) -> Hashes:
        return unique(np.concatenate([getattr(target, channel) for target in targets]))

    return Target(
        WHOLE_DELETION,
        "",
        union("body"),
        union("plain"),
        union("code"),
        union("member"),
        union("rare"),
        EMPTY,
        EMPTY,
        EMPTY,
    )


def _matches_by_fragment(
    target: Target, wanted: Hashes, hits: FingerprintHits, bounds: NDArray[np.int64]
) -> dict[int, dict[str, int]]:
    """Fragment number to channel to the number of the target's fingerprints in that fragment."""
    found: dict[int, dict[str, int]] = {}
    for channel in _CHANNELS:
        places = np.searchsorted(wanted, getattr(target, channel))
        parts = [hits.owners[bounds[place] : bounds[place + 1]] for place in places]
        if parts:
            owners, counts = np.unique(np.concatenate(parts), return_counts=True)
            for owner, count in zip(owners.tolist(), counts.tolist(), strict=True):
                found.setdefault(owner, {})[channel] = count
    return found


def _worst_leak(
    target: Target, counts: dict[str, int], place: tuple[str, FragmentKind], rules: PlaceRules, *, alone: bool
) -> Leak | None:
    """The leak of the highest level that one fragment is for one target, or ``None``.

    ``counts`` is the number of fingerprints found by channel; ``place`` is the fragment's file and kind; ``alone`` says
    whether the target is large enough to be judged by itself.
    """
    limits, (name, kind) = THRESHOLDS, place

    def share(channel: str) -> float:
        total = len(getattr(target, channel))
        return counts.get(channel, 0) / total if total else 0.0

    def leak(level: Level, channel: str, what: str) -> Leak:
        return Leak(level, target.symbol, name, share(channel), what)

    for channel in ("body", "plain"):
        windows = len(getattr(target, channel))
        required = rules.share(name) if windows >= limits.partial_windows else 1
        if alone and windows >= limits.min_windows and share(channel) >= required:
            return leak(Level.L4, channel, "source text")
    required_shares = {
        "code": _required_code_share(target, alone=alone),
        "member": _required_name_share(len(target.member), alone=alone),
        "compiled": 1.0 if len(target.compiled) else 2.0,
    }
    for channel, required in required_shares.items():
        if kind is FragmentKind.CODE and share(channel) >= required:
            return leak(Level.L3, channel, "machine code" if channel == "compiled" else "byte code")
    has_rare = len(target.rare) >= limits.min_rare and share("rare") >= limits.rare_share
    if has_rare and not rules.is_project_source(name):
        return leak(Level.L3, "rare", "locals")
    if len(target.signature) and share("signature") == 1:
        return leak(Level.L2, "signature", "signature")
    if len(target.docstring) >= limits.partial_windows and share("docstring") >= limits.outside_share:
        return leak(Level.L2, "docstring", "docstring")
    return leak(Level.L1, "mention", "name") if counts.get("mention") else None


def _required_code_share(target: Target, *, alone: bool) -> float:
    """The share of a definition's names that a code object must have to count as its byte code.

    2, which no share reaches, for a definition that uses too few names to be identified.
    """
    names = len(target.code)
    if target.name.startswith(("__", "<")):
        return THRESHOLDS.small_code_share if names >= THRESHOLDS.min_common_name else 2.0
    return _required_name_share(names, alone=alone)


def _required_name_share(names: int, *, alone: bool) -> float:
    """:func:`_required_code_share` where the definition's own name is not common.

    Of a definition that uses two or three names, all must be found; one that uses a single name never counts.
    """
    if names <= 3:
        return 1.0 if names > 1 else 2.0
    return THRESHOLDS.code_share if alone else THRESHOLDS.small_code_share
