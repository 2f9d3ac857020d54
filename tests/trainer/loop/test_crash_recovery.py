"""Runs that are killed and resumed: they keep every finished group, and end with the same weights."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from excise.errors import TrainingError
from excise.trainer.engines.transformers_engine import TransformersEngine, TransformersOptions
from excise.trainer.loop.checkpoints import Checkpoints
from excise.trainer.loop.controller import RunEnd
from excise.trainer.loop.learner import LearnerSettings
from excise.trainer.loop.queue_state import ScheduleSettings
from excise.trainer.loop.run_journal import Finished, Journal, Stepped
from excise.trainer.reporting.engine_metrics import MeteredEngine
from excise.trainer.reporting.metrics import read_metrics

from ..tiny_policy import tiny_model
from ..tiny_run import ANSWER, QUICK, TinyRun, TokenTasks, same

SCRIPT = Path(__file__).parent / "killable_runs.py"


@pytest.fixture
def runs() -> Iterator[Callable[..., list[str]]]:
    """A function that makes a run in another process, kills it after a line of output, and returns all lines."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    watchdog = threading.Timer(240, process.kill)
    watchdog.start()

    def make(*arguments: object, kill_after: str = "", wait_s: float = 0.0) -> list[str]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(" ".join(map(str, arguments)) + "\n")
        process.stdin.flush()
        said: list[str] = []
        for line in process.stdout:
            said.append(line.strip())
            if said[-1] == kill_after:
                time.sleep(wait_s)
                os.kill(int(said[0].split()[1]), signal.SIGKILL)
            if said[-1].startswith("ended"):
                break
        return said

    yield make
    watchdog.cancel()
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=10)


@pytest.mark.slow
def test_a_run_killed_at_any_moment_resumes_to_the_same_weights(tmp_path: Path, runs: Callable[..., list[str]]) -> None:
    """Killed while training, sampling and writing, the run ends with the weights of an uninterrupted one."""
    alone = runs(tmp_path / "alone", 8)
    assert alone[-1] == "ended 0"
    for number, (after, wait_s) in enumerate([("step 2", 0.0), ("step 3", 0.15), ("step 5", 0.05), ("step 7", 0.1)]):
        said = runs(tmp_path / "killed", 8, *(["--resume"] if number else []), kill_after=after, wait_s=wait_s)
        assert said[-1] == "ended -9"
    finished = runs(tmp_path / "killed", 8, "--resume")
    assert finished[-2].startswith("done ")
    assert finished[-2:] == alone[-2:]
    rows = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("alone", "killed")]
    assert [row["step"] for row in rows[1]] == list(range(1, 9))
    assert [row["reward"] for row in rows[0]] == [row["reward"] for row in rows[1]]


def test_a_resume_repeats_steps_from_the_journal_without_sampling(tmp_path: Path) -> None:
    settings = replace(QUICK, steps=4, checkpoint_every=100, schedule=replace(QUICK.schedule, retry_delay_s=0.0))
    whole = TinyRun(tmp_path / "whole", settings)
    whole.run()
    first = TinyRun(tmp_path / "parts", settings)
    first.maker.group = _fails_from(first.maker.group, 12)  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="Group after group"):
        first.run()
    assert Checkpoints(tmp_path / "parts" / "checkpoints").steps() == []
    events = Journal(tmp_path / "parts" / "journal").since(0)
    assert any(isinstance(event, Stepped) for event in events)
    second = TinyRun(tmp_path / "parts", settings)
    assert second.run(resume=True) is RunEnd.STEPS
    assert same(second.weights(), whole.weights())
    kept = {e.number for e in events if isinstance(e, Finished)}
    assert {int(name[1:]) for name in second.maker.calls}.isdisjoint(kept)
    assert len(second.maker.calls) == len(whole.maker.calls) - len(kept)
    assert all(e.group is not None for e in events if isinstance(e, Finished))


def _fails_from(group: Any, number: int) -> Any:
    """A rollout maker that fails for good once it is asked for the group with this number."""
    down: list[bool] = []

    async def broken(*arguments: Any, group_id: str, **rest: Any) -> Any:
        if int(group_id[1:]) >= number:
            down.append(True)
        made = await group(*arguments, group_id=group_id, **rest)
        if down:
            raise RuntimeError("out of order")
        return made

    return broken


def test_a_new_run_in_the_folder_of_another_is_refused(tmp_path: Path) -> None:
    TinyRun(tmp_path / "run", replace(QUICK, steps=1)).run()
    with pytest.raises(TrainingError, match="--resume"):
        TinyRun(tmp_path / "run").run()


def test_a_resumed_run_with_staleness_loses_no_group(tmp_path: Path) -> None:
    """Groups sampled ahead are in the checkpoint or in the journal, and are trained on after the resume."""
    schedule = ScheduleSettings(batch=3, group_size=4, staleness=2, batch_deadline_s=60, group_deadline_s=30)
    settings = replace(QUICK, steps=3, checkpoint_every=2, schedule=schedule)
    first = TinyRun(tmp_path / "run", settings)
    first.run()
    state = Checkpoints(tmp_path / "run" / "checkpoints").read(3)
    begun = {int(name[1:]) for name in first.maker.calls}
    second = TinyRun(tmp_path / "run", replace(settings, steps=6), learner=LearnerSettings(reference_length=ANSWER))
    assert second.run(resume=True) is RunEnd.STEPS
    again = {int(name[1:]) for name in second.maker.calls} & begun
    assert again == state.queue.begun.keys() - state.queue.finished.keys()
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert max(row["staleness_max"] for row in rows) >= 1
    assert sum(row.get("groups", 0) for row in rows) >= 18


def test_a_journal_without_its_checkpoint_is_refused(tmp_path: Path) -> None:
    TinyRun(tmp_path / "run", replace(QUICK, steps=2)).run()
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(TrainingError, match="not the checkpoint that it goes on from"):
        TinyRun(tmp_path / "run", replace(QUICK, steps=3)).run(resume=True)


def test_groups_are_journaled_while_the_engine_loads_weights(tmp_path: Path) -> None:
    """The load of step 1 ends only after another group has been journaled."""
    schedule = replace(QUICK.schedule, staleness=1, batch=2)
    run = TinyRun(tmp_path / "run", replace(QUICK, steps=2, schedule=schedule))
    really, slow = run.engine.load, TokenTasks.group

    def written() -> int:
        return sum(isinstance(event, Finished) for event in Journal(tmp_path / "run" / "journal").since(0))

    async def load(weights: Any, version: int) -> None:
        before = written()
        for _ in range(500):
            if version != 1 or written() > before:
                break
            await asyncio.sleep(0.01)
        else:
            raise AssertionError("nothing was journaled")
        await really(weights, version)

    async def group(self: TokenTasks, *arguments: Any, **rest: Any) -> Any:
        await asyncio.sleep(0.05 * int(rest["group_id"][1:]))
        return await slow(self, *arguments, **rest)

    run.engine.load = load  # type: ignore[method-assign]
    run.maker.group = functools.partial(group, run.maker)  # type: ignore[method-assign]
    assert run.run() is RunEnd.STEPS
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert rows[1]["load_s"] > 0


@pytest.mark.slow
def test_an_engine_with_one_answer_at_a_time_is_reproducible_bit_for_bit(tmp_path: Path) -> None:
    """With ``max_batch = 1`` and ``remembered = 0`` the order of requests does not change the rounding."""

    def run(name: str, pace_s: float, steps: int, *, resume: bool = False) -> TinyRun:
        changes = {"initializer_range": 0.05, "hidden_size": 32, "intermediate_size": 64}
        made = TinyRun(tmp_path / name, replace(QUICK, steps=steps), seed=5 if resume else 0)
        engine = TransformersEngine(
            tiny_model(99, torch.float32, **changes), TransformersOptions(max_batch=1, remembered=0)
        )
        metered = MeteredEngine(engine)
        made.maker.engine, made.components = metered, replace(made.components, engine=metered)
        really = made.maker.group

        async def group(instance_id: str, *arguments: Any, **rest: Any) -> Any:
            await asyncio.sleep(pace_s * (int(rest["group_id"][1:]) % 3))
            return await really(instance_id, *arguments, **rest)

        made.maker.group = group  # type: ignore[method-assign]
        assert made.run(resume=resume) is RunEnd.STEPS
        asyncio.run(engine.close())
        return made

    whole = run("whole", 0.0, 4).weights()
    assert same(run("other", 0.03, 4).weights(), whole)
    run("parts", 0.0, 2)
    assert same(run("parts", 0.02, 4, resume=True).weights(), whole)
