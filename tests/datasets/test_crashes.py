"""Writers are killed at random moments: nothing is lost, and no reader sees a part of a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from .crashes import KINDS, Trials


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_writer_shows_all_or_nothing(tmp_path: Path, kind: str) -> None:
    trials = Trials(tmp_path / "set", tmp_path, seed=sum(kind.encode()))
    trials.run("refresh")
    for _ in range(2):
        trials.run(kind)
    assert sum(trials.outcomes.values()) == 3
