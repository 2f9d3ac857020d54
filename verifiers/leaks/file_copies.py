"""Copies of changed files that hold what a deletion took out of them: for deletions that are too short to be found.

A body of a line is an idiom, and no file that has one gives it away. A file that also has most of what is around it in
the project is a copy from before the deletion: a bundle, an archive, a vendored module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from excise.envs.sandbox.mount_points import REPO
from excise.extractors.languages import scan_rules_of
from excise.verifiers.leaks.fingerprints import EMPTY, Hashes, hashes_of, unique, windows, words_of
from excise.verifiers.leaks.scan import THRESHOLDS, WHOLE_DELETION, Leak, Level, SearchableFiles, is_in

MIN_SHARE = 0.5
"""Share of a file's windows from which on another file may be a copy of it."""
MIN_WINDOWS = 60
"""Number of windows of a file below which it is not told from others."""


def copies_of_files(
    changed: Mapping[str, tuple[bytes, bytes | None]], searched: Iterable[SearchableFiles]
) -> list[Leak]:
    """Files with at least :data:`MIN_SHARE` of the windows of a changed file and, as exactly as
    ``THRESHOLDS.tree_share`` asks, with those that it has no more.

    ``changed`` maps paths in the repository to contents before and after the deletion (``None`` if there is no file).
    """
    files = [(path, *_whole_and_lost(path, before, after)) for path, (before, after) in sorted(changed.items())]
    wanted = [row for row in files if len(row[1]) >= MIN_WINDOWS and len(row[2]) >= THRESHOLDS.min_windows]
    return [leak for each in searched for row in wanted for leak in _copies(each, *row)]


def _whole_and_lost(path: str, before: bytes, after: bytes | None) -> tuple[Hashes, Hashes]:
    """The windows of a file's code, and all those that it has no more.

    Comments are no part of the former: many files begin with the same licence.
    """
    rules = scan_rules_of(path)
    code = re.sub(rules.literals, lambda found: b" " if found[0].startswith(rules.comments) else found[0], before)
    every, left = _windows(before), _windows(after) if after is not None else EMPTY
    return every[is_in(every, _windows(code))], every[~is_in(every, left)]


def _windows(data: bytes) -> Hashes:
    return unique(windows(hashes_of(words_of(data))))


def _copies(files: SearchableFiles, path: str, whole: Hashes, lost: Hashes) -> Iterator[Leak]:
    holding = _counts(files, lost)
    holding = {owner: count for owner, count in holding.items() if count >= THRESHOLDS.tree_share * len(lost)}
    counts = _counts(files, whole) if holding else {}
    for owner, count in holding.items():
        name = files.name_of(owner)
        if counts.get(owner, 0) >= MIN_SHARE * len(whole) and name != f"{REPO}/{path}":
            yield Leak(Level.L4, WHOLE_DELETION, name, count / len(lost), f"copy of {path}")


def _counts(files: SearchableFiles, wanted: Hashes) -> dict[int, int]:
    """Number of a fragment to how many of the fingerprints it has."""
    owners, counts = np.unique(files.lookup(wanted).owners, return_counts=True)
    return dict(zip(owners.tolist(), counts.tolist(), strict=True))
