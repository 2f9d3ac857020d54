"""The leak scan on real functions planted in real artefacts: all are found, without false findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.verifiers.leaks.content_cache import ContentCache
from excise.verifiers.leaks.fingerprint_index import FingerprintIndex

from .planting.measure import QUICK, SHORT, Tally, measure
from .planting.subjects import subjects

NUM_SUBJECTS = 2

pytestmark = pytest.mark.slow  # all kinds of planted files are scanned once, for both tests


@pytest.fixture(scope="module")
def library() -> FingerprintIndex:
    """An index of a part of the standard library."""
    folder = Path(ast_file()).parent
    contents = ContentCache()
    return FingerprintIndex.build((str(p), 0, contents.of_file(p)) for p in sorted(folder.glob("*.py"))[:120])


def ast_file() -> str:
    import ast

    return ast.__file__


@pytest.fixture(scope="module")
def tallies(library: FingerprintIndex, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tally]:
    return measure(subjects(NUM_SUBJECTS), QUICK, tmp_path_factory.mktemp("planting"), library)


def test_planted_functions_are_found(tallies: dict[str, Tally]) -> None:
    assert len(tallies) >= 40
    assert {name: tally.missed for name, tally in tallies.items() if tally.missed and name != SHORT} == {}
    assert all(tally.planted >= NUM_SUBJECTS - 1 for name, tally in tallies.items() if name != SHORT)


def test_modules_without_the_function_give_no_finding(tallies: dict[str, Tally]) -> None:
    assert {name: tally.false for name, tally in tallies.items() if tally.false} == {}
