"""Code that a removal would leave although it belongs to what is gone: no test that stays executes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from excise.deleters.deletion_record import REMOVALS, USED_ELSEWHERE
from excise.errors import DeletionRefused
from excise.extractors.features.feature_names import words_of
from excise.types import is_inside, is_whole_file, name_in_file, path_of
from excise.verifiers.candidate import PlannedDeletion

MIN_WORD = 3
"""Number of letters of a word that names of related code share."""


def require_no_orphan(plan: PlannedDeletion) -> None:
    """Raise :class:`DeletionRefused` if a removal leaves code that only hidden tests execute, and that shares a word of
    its name, or of its file's, with what is gone and with nothing else: its other half, as a rule."""
    bench, deletion = plan.bench, plan.deletion
    coverage, codebase = bench.prepared.coverage, bench.codebase
    if coverage is None or deletion.deleter not in REMOVALS:
        return
    gone = {*deletion.removed, *(i for i, _ in deletion.text)}
    hidden = plan.hidden - plan.shortened
    left = [
        symbol
        for symbol in codebase.symbols()
        if not (codebase.is_test(path_of(symbol)) or any(is_inside(symbol, each) for each in gone))
    ]
    executed = {symbol: coverage.executing([symbol]) & bench.trusted for symbol in left if symbol in coverage.by_symbol}
    orphans = {symbol for symbol, tests in executed.items() if tests and tests <= hidden}
    orphans -= {symbol for symbol in orphans if any(is_inside(each, symbol) for each in gone)}
    if not orphans:
        return
    files = {path_of(symbol) for symbol in orphans}
    files -= {path_of(symbol) for symbol in executed if symbol not in orphans}
    others = _words(s for s in left if s not in orphans and path_of(s) not in files)
    own = _words(gone) - others
    for symbol in sorted(orphans):
        if shared := sorted(_words([symbol]) & own):
            raise DeletionRefused(
                f"{symbol} would be left without a test, and is about “{shared[0]}”, too", reason=USED_ELSEWHERE
            )


def _words(symbols: Iterable[str]) -> set[str]:
    """The words in the names of symbols and of their files."""
    found: set[str] = set()
    for symbol in symbols:
        name = "" if is_whole_file(symbol) else name_in_file(symbol)
        found.update(words_of(f"{PurePosixPath(path_of(symbol)).stem} {name}"))
    return {word for word in found if len(word) >= MIN_WORD}
