"""Copies of hidden tests that do what these do, and then fail for certain; a solution that passes one is a forgery."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from excise.protocols import Canaries
from excise.types import Status, joined, name_in_file, path_of
from excise.verifiers.workbench import Workbench

MAX_COPIES = 3
"""Maximum number of tests of which a grade has a copy."""
MAX_FILES = 3
"""Maximum number of test files that are tried when a kit is made, until the copies of one can be used."""


class FailingCopies(NamedTuple):
    """A file of copies."""

    path: str
    """Where it stands."""
    canaries: Canaries
    """Its content, and its tests."""

    @property
    def ids(self) -> list[str]:
        """The ids of its tests."""
        return [joined(self.path, test) for test in self.canaries.tests]


def usable_files(bench: Workbench, tests: Sequence[str]) -> tuple[str, ...]:
    """The test file of which copies of the ``tests`` fail on the original code, as they should; empty if none is found.

    Copies of others may not compile, or end in another way.
    """
    rng = random.Random(0)
    counts: dict[str, int] = defaultdict(int)
    for test in tests:
        counts[path_of(test)] += 1
    for path in sorted(counts, key=lambda path: (-counts[path], path))[:MAX_FILES]:
        copies = copies_of(bench, [test for test in tests if path_of(test) == path], {path}, rng)
        if copies is None:
            continue
        edits = {copies.path: copies.canaries.text.encode()}
        statuses = bench.run(edits, ids=copies.ids, explained=False).statuses()
        if all(statuses.get(test) in {Status.FAILED, Status.ERROR} for test in copies.ids):
            return (path,)
    return ()


def drawn_copies(
    bench: Workbench, tests: Sequence[str], usable: Collection[str], rng: random.Random
) -> FailingCopies | None:
    """Copies of up to :data:`MAX_COPIES` of the tests, drawn from one of the files ``usable``; ``None`` if there are
    none."""
    copies = copies_of(bench, rng.sample(list(tests), len(tests)), usable, rng)
    if copies is None:
        return None
    return copies._replace(canaries=replace(copies.canaries, tests=copies.canaries.tests[:MAX_COPIES]))


def copies_of(
    bench: Workbench, tests: Sequence[str], usable: Collection[str], rng: random.Random
) -> FailingCopies | None:
    """Copies of those of the tests that can be copied and are in the same file as the first of them."""
    paths = [path for path in dict.fromkeys(map(path_of, tests)) if path in usable]
    sources = bench.read(sorted(paths))
    for path in paths:
        names = [name_in_file(test) for test in tests if path_of(test) == path]
        seed, source = rng.randbytes(8).hex(), sources.get(path, b"")
        found = bench.language.grading.failing_copies(path, source, names, seed)
        if found is not None:
            return FailingCopies(path_beside(path, found[0]), found[1])
    return None


def path_beside(path: str, name: str) -> str:
    """The path of a file ``name`` in the folder of another file."""
    folder = PurePosixPath(path).parent
    return name if str(folder) == "." else f"{folder}/{name}"
