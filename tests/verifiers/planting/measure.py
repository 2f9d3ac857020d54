"""Measurement of the leak scan: functions are planted in artefacts; missed ones and false findings are counted."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from excise.verifiers.leaks.content_cache import ContentCache
from excise.verifiers.leaks.fingerprint_index import FingerprintIndex
from excise.verifiers.leaks.fingerprints import unique
from excise.verifiers.leaks.fragments import FragmentKind
from excise.verifiers.leaks.scan import THRESHOLDS, Leak, Level, PlaceRules, keep_distinctive, leaks_in

from .archives import ARCHIVES
from .compiled import COMPILED
from .histories import HISTORIES
from .subjects import Subject
from .texts import TEXTS
from .tools import EDITORS, FULL, SIGNATURES, STUBS

Plant = Callable[[bytes, Path], None]
QUICK: dict[Level, tuple[Plant, ...]] = {
    Level.L4: (*TEXTS, *ARCHIVES, *HISTORIES, *EDITORS),
    Level.L3: COMPILED,
    Level.L2: SIGNATURES,
}
WHOLE: dict[Level, tuple[Plant, ...]] = {
    Level.L4: (*QUICK[Level.L4], *FULL),
    Level.L3: QUICK[Level.L3],
    Level.L2: (*SIGNATURES, *STUBS),
}
SHORT = "too short to tell"
"""Key of the functions that have too little distinctive code to be searched for."""


class NothingMade(Exception):
    """Raised when the tool that makes an artefact wrote no file."""


@dataclass
class Tally:
    """Counts of one kind of artefact: planted, not made by the tool, missed, found without the function."""

    planted: int = 0
    unmade: int = 0
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)


def measure(
    subjects: Sequence[Subject], kinds: dict[Level, tuple[Plant, ...]], work: Path, library: FingerprintIndex
) -> dict[str, Tally]:
    """Plant every subject in every kind of artefact and scan it, with the function and without it."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    tallies[SHORT] = Tally()
    contents = ContentCache()
    for number, subject in enumerate(subjects):
        found = contents.of(subject.shipped).fragments
        legitimate = unique(
            np.concatenate([subject.siblings(), *(numbers for kind, numbers in found if kind is FragmentKind.TEXT)])
        )
        targets = keep_distinctive(subject.targets, library, legitimate, keep_bodies=False)
        if any(len(target.body) < THRESHOLDS.min_windows for target in targets):
            tallies[SHORT].missed.append(subject.symbol.symbol_id)
            continue
        for level, plants in kinds.items():
            if level is Level.L2 and not any(len(target.signature) for target in targets):
                continue  # the name is all that is known of it
            for plant in plants:
                tally = tallies[plant.__name__]
                name = f"{number}-{plant.__name__}"
                try:
                    worst = _worst(plant, subject.module, work / name, targets, contents)
                except NothingMade:  # the tool does not support this module
                    tally.unmade += 1
                    continue
                tally.planted += 1
                if worst is None or worst.level < level:
                    tally.missed.append(f"{subject.symbol.symbol_id} ({subject.symbol.loc} lines): {worst}")
                try:
                    worst = _worst(plant, subject.shipped, work / f"{name}-without", targets, contents)
                except NothingMade:
                    continue
                if worst is not None and worst.level >= min(level, Level.L3):
                    tally.false.append(f"{subject.symbol.symbol_id}: {worst}")
    return tallies


def _worst(plant: Plant, source: bytes, folder: Path, targets, contents: ContentCache) -> Leak | None:  # type: ignore[no-untyped-def]
    folder.mkdir(parents=True)
    plant(source, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files:
        raise NothingMade(plant.__name__)
    leaks = leaks_in(FingerprintIndex.build((str(p), 0, contents.of_file(p)) for p in files), targets, PlaceRules())
    for made in folder.parent.glob(f"{folder.name}*"):
        shutil.rmtree(made) if made.is_dir() else made.unlink()
    return leaks[0] if leaks else None
