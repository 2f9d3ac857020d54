"""The queue of groups: retries, what is journaled, and which groups may overtake others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from excise.trainer.interfaces import GroupProgress
from excise.trainer.loop.group_queue import GroupQueue, GroupRules
from excise.trainer.loop.queue_state import Batch, QueueState, ScheduleSettings
from excise.trainer.loop.run_journal import Finished, Journal, Made
from excise.trainer.rollout_types import Ending, Group, Rollout
from excise.types import from_json, to_json

from ..tiny_run import RandomTasks

SETTINGS = ScheduleSettings(batch=2, group_size=4, staleness=0, retries=2, retry_delay_s=0.0, batch_deadline_s=20.0)
EndingOf = Callable[[str, int], Awaitable[Ending]]
"""Function from the id of an attempt and the number of its earlier tries to its ending."""


class AttemptMaker:
    """A rollout maker whose attempts end as a function says; those with odd numbers have reward 1."""

    def __init__(self, ending_of: EndingOf) -> None:
        self.ending_of = ending_of
        self.tries: dict[str, int] = {}
        self.places = asyncio.Semaphore(100)

    async def group(self, instance_id: str, size: int, *, group_id: str, seed: int, progress: GroupProgress) -> Group:
        async def one(number: int) -> Rollout:
            name = f"{group_id}-{number}"
            if name in progress.finished_attempts:
                return progress.finished_attempts[name]
            async with self.places:
                progress.on_start()
                tried = self.tries[name] = self.tries.get(name, 0) + 1
                ending = await self.ending_of(name, tried - 1)
            made = Rollout(
                rollout_id=name, group_id=group_id, instance_id=instance_id, segments=(), ending=ending,
                task_reward=float(number % 2), detail="" if ending is Ending.FINISHED else "no sandbox",
            )  # fmt: skip
            progress.on_attempt(made)
            return made

        rollouts = await asyncio.gather(*map(one, range(size)))
        return Group(group_id=group_id, instance_id=instance_id, rollouts=tuple(rollouts))


def queue(folder: Path, maker: Any, settings: ScheduleSettings = SETTINGS, **rest: Any) -> tuple[GroupQueue, Journal]:
    journal = Journal(folder)
    journal.start_file()
    return GroupQueue(maker, RandomTasks(["t2", "t3"]), journal, settings, **rest), journal


def finished(journal: Journal) -> list[int]:
    return [event.number for event in journal.since(0) if isinstance(event, Finished)]


async def finish_at_once(_name: str, _tried: int) -> Ending:
    return Ending.FINISHED


def test_only_lost_attempts_are_retried(tmp_path: Path) -> None:
    async def ending_of(name: str, tried: int) -> Ending:
        return Ending.INFRA if name in ("g000000-1", "g000000-2") and tried < 2 else Ending.FINISHED

    async def go() -> tuple[Batch, dict[str, int]]:
        maker = AttemptMaker(ending_of)
        made, _ = queue(tmp_path, maker)
        batch = await made.next_batch()
        assert made.counts.failed == 2
        await made.close()
        return batch, maker.tries

    batch, tries = asyncio.run(go())
    assert {name: tries[name] for name in sorted(tries) if name.startswith("g000000")} == {
        "g000000-0": 1, "g000000-1": 3, "g000000-2": 3, "g000000-3": 1
    }  # fmt: skip
    assert [rollout.ending for rollout in batch.groups[0].rollouts] == [Ending.FINISHED] * 4


@pytest.mark.parametrize(("lost", "kept"), [(2, True), (3, False)])
def test_a_group_is_kept_if_at_most_half_of_its_attempts_are_lost(tmp_path: Path, lost: int, kept: bool) -> None:
    """With more attempts lost, the rest would be a biased sample: failures need no grader, successes do."""

    async def ending_of(name: str, _tried: int) -> Ending:
        return Ending.INFRA if name.startswith("g000000") and int(name[-1]) < lost else Ending.FINISHED

    async def go() -> tuple[Batch, int]:
        made, _ = queue(tmp_path, AttemptMaker(ending_of))
        batch = await made.next_batch()
        given_up = made.counts.lost
        await made.close()
        return batch, given_up

    batch, given_up = asyncio.run(go())
    assert (0 in batch.numbers, given_up) == (kept, 0 if kept else 1)


def test_attempts_finished_before_a_kill_are_not_repeated(tmp_path: Path) -> None:
    """Resumed from the journal alone, and from a checkpoint."""

    async def hangs(name: str, _tried: int) -> Ending:
        if name.endswith("-3"):
            await asyncio.sleep(3600)
        return Ending.FINISHED

    async def killed() -> QueueState:
        made, journal = queue(tmp_path, AttemptMaker(hangs))
        waiting = asyncio.ensure_future(made.next_batch())
        while sum(isinstance(event, Made) for event in journal.since(0)) < 6:
            await asyncio.sleep(0.01)
        waiting.cancel()
        return from_json(QueueState, to_json(made.state()))

    async def resumed(state: QueueState | None) -> dict[str, int]:
        maker = AttemptMaker(finish_at_once)
        made, _ = queue(tmp_path / "other", maker)
        if state is None:
            assert list(made.replay(Journal(tmp_path).since(0))) == []
        else:
            made.restore(state)
        made.start_waiting()
        batch = await made.next_batch()
        assert [len(group.rollouts) for group in batch.groups] == [4, 4]
        return maker.tries

    state = asyncio.run(killed())
    assert sorted(map(len, state.made.values())) == [3, 3]
    for known in (None, state):
        assert asyncio.run(resumed(known)) == {"g000000-3": 1, "g000001-3": 1}


def test_a_groups_deadline_begins_with_its_first_attempt(tmp_path: Path) -> None:
    """One place for eight attempts of 0.1 s: the last group ends after 0.8 s, and its deadline of 0.6 s is kept."""

    async def slowly(_name: str, _tried: int) -> Ending:
        await asyncio.sleep(0.1)
        return Ending.FINISHED

    async def go() -> int:
        maker = AttemptMaker(slowly)
        maker.places = asyncio.Semaphore(1)
        made, _ = queue(tmp_path, maker, ScheduleSettings(batch=2, group_size=4, staleness=0, group_deadline_s=0.6))
        batch = await made.next_batch()
        assert len(batch.groups) == 2
        return made.counts.failed

    assert asyncio.run(go()) == 0


def test_groups_without_signal_are_replaced_without_waiting_for_older_ones(tmp_path: Path) -> None:
    """The first group hangs; later groups without signal are replaced at once."""

    async def ending_of(name: str, _tried: int) -> Ending:
        if name.startswith("g000000"):
            await asyncio.sleep(3600)
        return Ending.FINISHED

    def teaches(group: Group) -> bool:
        return group.group_id in ("g000001", "g000007")

    async def go(staleness: int) -> tuple[int, int]:
        settings = ScheduleSettings(
            batch=4, group_size=4, staleness=staleness, window=0.3, batch_deadline_s=1.0, group_deadline_s=60.0
        )
        made, _ = queue(
            tmp_path / str(staleness), AttemptMaker(ending_of), settings, rules=GroupRules(fills_batch=teaches)
        )
        batch = await made.next_batch()
        replaced = made.counts.replaced
        await made.close()
        return len(batch.groups), replaced

    taught, replaced = asyncio.run(go(1))
    assert taught == 2
    assert replaced > 10
    assert asyncio.run(go(0)) == (0, 0), "without staleness, groups are taken in order"


def test_groups_that_finish_before_the_queue_closes_are_journaled(tmp_path: Path) -> None:
    async def go() -> tuple[list[int], list[int]]:
        made, journal = queue(tmp_path, AttemptMaker(finish_at_once))
        made.start_more()
        await asyncio.sleep(0.1)
        before = finished(journal)
        await made.close()
        return before, finished(journal)

    assert asyncio.run(go()) == ([], [0, 1])
