"""From matching features to leaks: how much of which deleted definition is in one place, and what that gives away.

Levels: **L4** source text, **L3** byte code or local names, **L2** signature or docstring, **L1** the name alone.
Features that the rest of the project has anyway, or that are common in the standard library, do not count.
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
from excise.verifiers.leaks.feature_index import FeatureHits, FeatureIndex
from excise.verifiers.leaks.features import EMPTY, Hashes, unique
from excise.verifiers.leaks.fragments import FragmentKind
from excise.verifiers.leaks.targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakThresholds:
    """What counts as a leak. A window is five consecutive words; a share is the part of a definition's features found.

    The numbers depend on each other: ``tests/verifiers/planting`` measures what they find and what they find wrongly.
    """

    outside_share: float = 0.5
    """Share of a body's windows in one file outside the tree that is source text (L4). Half of a body is enough to
    write the rest."""
    tree_share: float = 0.85
    """The same inside the tree. It is higher because sibling code shares idioms: only a near-copy counts there."""
    code_share: float = 0.6
    """Share of a function's names in one code object of the same name that is its byte code (L3). Interpreters differ
    in which names they store, so not all are ever found."""
    small_code_share: float = 0.9
    """The same for a definition that is small beside the whole deletion: unrelated functions of one name and a few
    lines (``discard``, ``get``) share most of their names."""
    min_common_name: int = 6
    """Names that a code object needs to be identified if its own name is in every file (``__init__``, ``<module>``)."""
    rare_share: float = 0.8
    """Share of the names that nothing else holds, in one file, that are the definition's local names (L3)."""
    min_rare: int = 5
    """Such names that a definition needs for this to mean anything."""
    min_windows_alone: int = 16
    """Windows from which on a definition may be judged by itself. Fewer are one or two lines that anyone would write:
    they count only as a part of the whole deletion."""
    large_windows: int = 60
    """Windows from which on a definition is judged by itself, however much else is deleted; below, it must also have a
    quarter of the deletion's windows."""
    partial_windows: int = 9
    """Windows from which on the shares above apply. A shorter text is found only whole: a share of it is too little."""
    min_windows: int = 6
    """Windows (ten words) below which a text cannot be told from idioms, and is not looked for."""
    idiom_files: int = 4
    """Files of the standard library that make a window an idiom, which does not count."""
    common_code_objects: int = 10
    """Code objects of the standard library that make a name within a function of that name too common to count."""


THRESHOLDS = LeakThresholds()
WHOLE_DELETION = "the deleted code"
_CHANNELS = ("body", "plain", "code", "member", "rare", "signature", "docstring", "mention")


class Level(IntEnum):
    """What a place gives away."""

    L1 = 1
    L2 = 2
    L3 = 3
    L4 = 4


@dataclass(frozen=True, slots=True)
class Leak:
    """One file that holds something of a deletion."""

    level: Level
    """What it gives away."""
    symbol: str
    """Definition, or :data:`WHOLE_DELETION`."""
    file: str
    """Path in the sandbox."""
    share: float
    """Share of its features that is there, 0 to 1."""
    what: str
    """``source text``, ``byte code``, ``locals``, ``signature``, ``docstring``, ``name``."""

    def __str__(self) -> str:
        return f"{self.share:.0%} of {self.symbol} stands in {self.file} ({self.what}, L{int(self.level)})"


class SearchableFiles(Protocol):
    """Files that can be searched for features: a :class:`FeatureIndex` or :class:`ScannedFiles`."""

    def lookup(self, wanted: Hashes) -> FeatureHits:
        """Where the wanted features are."""
        ...

    def name_of(self, owner: int) -> str:
        """The file of a fragment."""
        ...

    def kind(self, owner: int) -> FragmentKind:
        """The kind of a fragment."""
        ...


class ScannedFiles:
    """Files that are searched for one task only, without an index."""

    def __init__(self, contents: Iterable[tuple[str, Content]]) -> None:
        self._rows = [(name, kind, found) for name, content in contents for kind, found in content.fragments]

    def lookup(self, wanted: Hashes) -> FeatureHits:
        """Where the wanted features are, file by file."""
        features, owners = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for number, (_, _, found) in enumerate(self._rows):
            hit = np.flatnonzero(is_in(wanted, found))
            if len(hit):
                features.append(hit)
                owners.append(np.full(len(hit), number, dtype=np.int64))
        together, whose = np.concatenate(features), np.concatenate(owners)
        order = np.argsort(together, kind="stable")
        return FeatureHits(together[order], whose[order])

    def name_of(self, owner: int) -> str:
        """The file of a fragment."""
        return self._rows[owner][0]

    def kind(self, owner: int) -> FragmentKind:
        """The kind of a fragment."""
        return self._rows[owner][1]


def is_in(wanted: Hashes, held: Hashes) -> NDArray[np.bool_]:
    """A mask of the ``wanted`` features that are among those ``held``, which are sorted."""
    if not len(held):
        return np.zeros(len(wanted), dtype=bool)
    places = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    return np.asarray(held[places] == wanted)


@dataclass(frozen=True, slots=True)
class PlaceRules:
    """What counts as a leak in one kind of place."""

    share: Callable[[str], float] = lambda _: THRESHOLDS.outside_share
    """File name to the share of a body that is a leak in it."""
    is_project_source: Callable[[str], bool] = lambda _: False
    """Whether a file is one of the project's sources, where single names of the deleted code prove nothing."""


def keep_distinctive(
    targets: Sequence[Target], library: FeatureIndex, legitimate: Hashes, *, keep_bodies: bool
) -> list[Target]:
    """Targets with only those features that identify them: neither idioms nor ``legitimate`` ones.

    ``legitimate`` are the features of the sources that stay. With ``keep_bodies``, those of bodies are kept, and only
    idioms are dropped: a copy of a body in the sources that stay is what is searched for.
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
    """The leaks of the targets in the searched files: for each file and definition, the worst one."""
    judged = [*targets, _whole_deletion(targets)] if len(targets) > 1 else list(targets)
    if not judged:
        return []
    wanted = unique(np.concatenate([target.everything() for target in judged]))
    hits = searched.lookup(wanted)
    if not len(hits.features):
        return []
    bounds = np.searchsorted(hits.features, np.arange(len(wanted) + 1))
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
    return sorted(worst.values(), key=lambda leak: (-leak.level, -leak.share, leak.file, leak.symbol))


def _whole_deletion(targets: Sequence[Target]) -> Target:
    """The whole deletion as one target. It has no name and signature of its own: those belong to its parts."""

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
    target: Target, wanted: Hashes, hits: FeatureHits, bounds: NDArray[np.int64]
) -> dict[int, dict[str, int]]:
    """Fragment number to channel to the number of the target's features in that fragment."""
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
    """The worst leak that the features found in one fragment show for one target; ``None`` if they show none.

    ``counts`` are the features found, by channel; ``place`` is the fragment's file and kind; ``alone`` allows a leak
    of this target by itself.
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
    }
    for channel, required in required_shares.items():
        if kind is FragmentKind.CODE and share(channel) >= required:
            return leak(Level.L3, channel, "byte code")
    has_rare = len(target.rare) >= limits.min_rare and share("rare") >= limits.rare_share
    if has_rare and not rules.is_project_source(name):
        return leak(Level.L3, "rare", "locals")
    if len(target.signature) and share("signature") == 1:
        return leak(Level.L2, "signature", "signature")
    if len(target.docstring) >= limits.partial_windows and share("docstring") >= limits.outside_share:
        return leak(Level.L2, "docstring", "docstring")
    return leak(Level.L1, "mention", "name") if counts.get("mention") else None


def _required_code_share(target: Target, *, alone: bool) -> float:
    """The share of a definition's names that a code object must have to be its code; more than 1 if none can be."""
    names = len(target.code)
    if target.name.startswith(("__", "<")):
        return THRESHOLDS.small_code_share if names >= THRESHOLDS.min_common_name else 2.0
    return _required_name_share(names, alone=alone)


def _required_name_share(names: int, *, alone: bool) -> float:
    """The same for any name; a definition with up to three names must be found whole, and one alone never counts."""
    if names <= 3:
        return 1.0 if names > 1 else 2.0
    return THRESHOLDS.code_share if alone else THRESHOLDS.small_code_share
