"""The journal of a run."""

from __future__ import annotations

from pathlib import Path

from excise.trainer.loop.run_journal import Begun, Finished, Journal, Settled, Stepped

from ..tiny_policy import random_group


def test_a_journal_returns_the_events_that_were_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    group = random_group("a", 1, [1.0, 0.0])
    first = [Begun(number=0, instance_id="t"), Finished(number=0, group=group)]
    second = [Settled(number=0), Stepped(step=1, numbers=(0,)), Finished(number=1, group=None)]
    assert journal.start_file() == 1
    for event in first:
        journal.write(event)
    assert journal.start_file() == 2
    for event in second:
        journal.write(event)
    with (tmp_path / "000002.jsonl").open("ab") as file:
        file.write(b'{"settled": {"num')
    assert journal.since(1) == [*first, *second]
    assert journal.since(2) == second
    assert Journal(tmp_path).start_file() == 3
    journal.drop_before(3)
    assert journal.since(0) == []
