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
_EMPTY_WORDS = frozenset(
    (
        "abstract", "add", "all", "and", "any", "apply", "base", "build", "call", "check", "class", "clean", "common",
        "core", "create", "data", "default", "delete", "for", "format", "from", "func", "function", "get", "has",
        "helper", "helpers", "impl", "info", "init", "internal", "item", "items", "load", "main", "make", "misc",
        "mixin", "name", "new", "not", "object", "parse", "process", "read", "remove", "run", "save", "set", "shared",
        "str", "test", "the", "type", "types", "update", "use", "util", "utils", "value", "values", "with", "write",
    )
)  # fmt: skip
"""Words that tell nothing of what code is about."""


def require_no_orphan(plan: PlannedDeletion) -> None:
    """Raise :class:`DeletionRefused` if a removal leaves code that only hidden tests execute, and that shares a word of
    its name, or of its file's, with what is gone and with nothing else: its other half, as a rule."""
    bench, deletion = plan.bench, plan.deletion
    coverage, codebase = bench.prepared.coverage, bench.codebase
    if coverage is None or deletion.deleter not in REMOVALS:
        return
    gone = {*deletion.removed, *(i for i, _ in deletion.text)}
    hidden = plan.hidden  # what stays of a shortened test is about other code
    ids = {number for number, test in enumerate(coverage.tests) if test in hidden or test not in bench.trusted}

    def is_gone(symbol: str) -> bool:
        return any(is_inside(symbol, each) for each in gone)

    def is_orphan(symbol: str, numbers: tuple[int, ...]) -> bool:
        if codebase.is_test(path_of(symbol)) or not all(number in ids for number in numbers):
            return False
        is_around = any(is_inside(each, symbol) for each in gone)
        return not (is_around or is_gone(symbol)) and any(coverage.tests[number] in hidden for number in numbers)

    orphans = {symbol for symbol, numbers in coverage.by_symbol.items() if is_orphan(symbol, numbers)}
    if not orphans:
        return
    files = {path_of(symbol) for symbol in orphans}
    files -= {path_of(s) for s in coverage.by_symbol if s not in orphans and path_of(s) in files and not is_gone(s)}
    left = (s for s in codebase.symbols() if not codebase.is_test(path_of(s)) and path_of(s) not in files)
    others = _words(symbol for symbol in left if symbol not in orphans and not is_gone(symbol))
    own = _words(gone) - others
    for symbol in sorted(orphans):
        if shared := sorted(_words([symbol]) & own):
            raise DeletionRefused(
                f"{symbol} would be left without a test, and is about “{shared[0]}”, too", reason=USED_ELSEWHERE
            )


def _words(symbols: Iterable[str]) -> set[str]:
    """The words in the names of symbols and of their files that may tell what they are about."""
    found: set[str] = set()
    for symbol in symbols:
        names = [] if is_whole_file(symbol) else name_in_file(symbol).split(".")
        told = [name for name in names if not name.startswith("__")]
        found.update(words_of(" ".join([PurePosixPath(path_of(symbol)).stem, *told])))
    return {word for word in found if len(word) >= MIN_WORD} - _EMPTY_WORDS
