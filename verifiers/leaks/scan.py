"""From matching fingerprints to leaks: how much of which definition is in one place, and what that place gives away.

Levels: **L4** source text, **L3** byte code or locals, **L2** signature or docstring, **L1** the name alone.
Fingerprints that the rest of the project holds anyway, or that are common in the standard library, count for nothing.
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
from excise.verifiers.leaks.feature_index import Hits, Index
from excise.verifiers.leaks.features import EMPTY, Hashes, unique
from excise.verifiers.leaks.fragments import Kind
from excise.verifiers.leaks.targets import Target

OUTSIDE_SHARE = 0.5
"""If so much of a body stands in one file outside the tree, the task gives itself away."""
TREE_SHARE = 0.85
"""Inside the tree siblings share idioms; only a near-copy counts there."""
CODE_SHARE = 0.6
"""So many of a function's names in a code object of the same name ..."""
SMALL_CODE_SHARE = 0.9
"""... and of one that is small beside what else is deleted: namesakes of a few lines share most of theirs."""
MIN_NAMESAKE = 6
"""A name that every file has (``__init__``, ``<module>``) says nothing: so many others must be there."""
RARE_SHARE = 0.8
"""So many of the names that nothing else holds, in one file."""
MIN_RARE = 5
TELLING = 16
"""A definition with fewer windows is a line or two that anyone would write; it is judged with the others only."""
LARGE = 60
"""One with as many windows is judged by itself, however much else is deleted."""
LONE = 9
"""Code with fewer windows than this is found only whole ..."""
SHORTEST = 6
"""... and with fewer than this, which is ten words, it is not to be told from idioms."""
IDIOM = 4
"""Files of the standard library that make a window an idiom."""
COMMON_CODE = 10
"""Code objects of the standard library that make a name in a name common."""
WHOLE = "the deleted code"
_CHANNELS = ("body", "plain", "code", "member", "rare", "signature", "docstring", "mention")


class Level(IntEnum):
    """What a place gives away."""

    L1 = 1
    L2 = 2
    L3 = 3
    L4 = 4


@dataclass(frozen=True, slots=True)
class Leak:
    """Where something of a deletion came to light again."""

    level: Level
    """What it gives away."""
    symbol: str
    """Definition, or :data:`WHOLE`."""
    file: str
    """Where."""
    share: float
    """How much of its fingerprints is there."""
    what: str
    """``source text``, ``byte code``, ``locals``, ``signature``, ``docstring``, ``name``."""

    def __str__(self) -> str:
        return f"{self.share:.0%} of {self.symbol} stands in {self.file} ({self.what}, L{int(self.level)})"


class Searched(Protocol):
    """What is looked in: :class:`Index` or :class:`Pile`."""

    def lookup(self, wanted: Hashes) -> Hits:
        """Where the wanted features are."""
        ...

    def name_of(self, owner: int) -> str:
        """The file of a piece."""
        ...

    def kind(self, owner: int) -> Kind:
        """The kind of a piece."""
        ...


class Pile:
    """Files that are looked at for one task only."""

    def __init__(self, contents: Iterable[tuple[str, Content]]) -> None:
        self._rows = [(name, kind, found) for name, content in contents for kind, found in content.pieces]

    def lookup(self, wanted: Hashes) -> Hits:
        """Where the wanted features are, file by file."""
        features, owners = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for number, (_, _, found) in enumerate(self._rows):
            hit = np.flatnonzero(is_in(wanted, found))
            if len(hit):
                features.append(hit)
                owners.append(np.full(len(hit), number, dtype=np.int64))
        together, whose = np.concatenate(features), np.concatenate(owners)
        order = np.argsort(together, kind="stable")
        return Hits(together[order], whose[order])

    def name_of(self, owner: int) -> str:
        """The file of a piece."""
        return self._rows[owner][0]

    def kind(self, owner: int) -> Kind:
        """The kind of a piece."""
        return self._rows[owner][1]


def is_in(wanted: Hashes, held: Hashes) -> NDArray[np.bool_]:
    """Which of the wanted are in the (sorted) others."""
    if not len(held):
        return np.zeros(len(wanted), dtype=bool)
    places = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    return np.asarray(held[places] == wanted)


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts in one kind of place."""

    share: Callable[[str], float] = lambda _: OUTSIDE_SHARE
    """File to the share of a body that is a leak there."""
    ordinary: Callable[[str], bool] = lambda _: False
    """Whether a file is one of the project's sources, in which the words of its code are no sign."""


def telling(targets: Sequence[Target], library: Index, legitimate: Hashes, *, keep_bodies: bool) -> list[Target]:
    """Targets with those fingerprints that mean anything.

    ``legitimate`` are the features of the sources that stay. ``keep_bodies``: of bodies only idioms are left out, since
    a copy in the sources that stay is what is looked for.
    """

    def rest(wanted: Hashes, most: int, held: Hashes) -> Hashes:
        kept = wanted[library.frequency(wanted) < most]
        return kept[~is_in(kept, held)]

    return [
        replace(
            target,
            body=rest(target.body, IDIOM, EMPTY if keep_bodies else legitimate),
            plain=rest(target.plain, IDIOM, EMPTY if keep_bodies else legitimate),
            code=rest(target.code, COMMON_CODE, legitimate),
            member=rest(target.member, COMMON_CODE, legitimate),
            rare=rest(target.rare, 1, legitimate),
            signature=rest(target.signature, IDIOM, legitimate),
            docstring=rest(target.docstring, IDIOM, legitimate),
            mention=rest(target.mention, 1, legitimate),
        )
        for target in targets
    ]


def leaks_in(searched: Searched, targets: Sequence[Target], rules: Rules) -> list[Leak]:
    """What of the targets is in the files that are searched: for each file and definition, the worst."""
    judged = [*targets, _whole(targets)] if len(targets) > 1 else list(targets)
    if not judged:
        return []
    wanted = unique(np.concatenate([target.everything() for target in judged]))
    hits = searched.lookup(wanted)
    if not len(hits.features):
        return []
    bounds = np.searchsorted(hits.features, np.arange(len(wanted) + 1))
    enough = max(TELLING, len(judged[-1].body) // 4)
    worst: dict[tuple[str, str], Leak] = {}
    for target in judged:
        check_deadline()
        alone = target is judged[-1] or len(target.body) >= min(enough, LARGE)
        for owner, counts in _counted(target, wanted, hits, bounds).items():
            name = searched.name_of(owner)
            leak = _judge(target, counts, name, searched.kind(owner), rules, alone)
            key = (name, target.symbol)
            if leak is not None and (key not in worst or worst[key].level < leak.level):
                worst[key] = leak
    return sorted(worst.values(), key=lambda leak: (-leak.level, -leak.share, leak.file, leak.symbol))


def _whole(targets: Sequence[Target]) -> Target:
    """The deletion as one; names and signatures are those of its parts."""

    def union(channel: str) -> Hashes:
        return unique(np.concatenate([getattr(target, channel) for target in targets]))

    return Target(
        WHOLE, "", union("body"), union("plain"), union("code"), union("member"), union("rare"), EMPTY, EMPTY, EMPTY
    )


def _counted(target: Target, wanted: Hashes, hits: Hits, bounds: NDArray[np.int64]) -> dict[int, dict[str, int]]:
    """Piece to channel to how many of the target's features are there."""
    found: dict[int, dict[str, int]] = {}
    for channel in _CHANNELS:
        places = np.searchsorted(wanted, getattr(target, channel))
        parts = [hits.owners[bounds[place] : bounds[place + 1]] for place in places]
        if parts:
            owners, counts = np.unique(np.concatenate(parts), return_counts=True)
            for owner, count in zip(owners.tolist(), counts.tolist(), strict=True):
                found.setdefault(owner, {})[channel] = count
    return found


def _judge(target: Target, counts: dict[str, int], name: str, kind: Kind, rules: Rules, alone: bool) -> Leak | None:
    """The worst that the features of one piece say about one target."""

    def share(channel: str) -> float:
        there = len(getattr(target, channel))
        return counts.get(channel, 0) / there if there else 0.0

    def leak(level: Level, channel: str, what: str) -> Leak:
        return Leak(level, target.symbol, name, share(channel), what)

    for channel in ("body", "plain"):
        windows = len(getattr(target, channel))
        if alone and windows >= SHORTEST and share(channel) >= (rules.share(name) if windows >= LONE else 1):
            return leak(Level.L4, channel, "source text")
    needed = {"code": _enough_code(target, alone), "member": _enough_names(len(target.member), alone)}
    for channel, enough in needed.items():
        if kind is Kind.CODE and share(channel) >= enough:
            return leak(Level.L3, channel, "byte code")
    if len(target.rare) >= MIN_RARE and share("rare") >= RARE_SHARE and not rules.ordinary(name):
        return leak(Level.L3, "rare", "locals")
    if len(target.signature) and share("signature") == 1:
        return leak(Level.L2, "signature", "signature")
    if len(target.docstring) >= LONE and share("docstring") >= OUTSIDE_SHARE:
        return leak(Level.L2, "docstring", "docstring")
    return leak(Level.L1, "mention", "name") if counts.get("mention") else None


def _enough_code(target: Target, alone: bool) -> float:
    """The share of a definition's names in one code object that makes this its code; more than 1 if none does."""
    names = len(target.code)
    if target.name.startswith(("__", "<")):
        return SMALL_CODE_SHARE if names >= MIN_NAMESAKE else 2.0
    return _enough_names(names, alone)


def _enough_names(names: int, alone: bool) -> float:
    if names <= 3:
        return 1.0 if names > 1 else 2.0
    return CODE_SHARE if alone else SMALL_CODE_SHARE
