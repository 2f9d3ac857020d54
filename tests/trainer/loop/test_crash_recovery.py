"""A run that is killed goes on where it was, with every finished group, to the same weights."""

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
from torch.distributed.checkpoint.api import CheckpointException

from excise.errors import TrainingError
from excise.trainer.engines.transformers_engine import TransformersEngine, TransformersOptions
from excise.trainer.loop.checkpoints import Checkpoints, export, random_states, set_random_states
from excise.trainer.loop.controller import RunEnd
from excise.trainer.loop.learner import LearnerSettings
from excise.trainer.loop.queue_state import ScheduleSettings
from excise.trainer.loop.run_journal import Begun, Finished, Journal, Settled, Stepped
from excise.trainer.objective.teachers import EmaTeacher, frozen_copy
from excise.trainer.reporting.engine_metrics import MeteredEngine
from excise.trainer.reporting.metrics import read_metrics

from ..tiny_policy import random_group, tiny_model
from ..tiny_run import ANSWER, QUICK, TinyRun, TokenTasks, same

SCRIPT = Path(__file__).parent / "killable_runs.py"


@pytest.fixture
def runs() -> Iterator[Callable[..., list[str]]]:
    """Makes a run in another process, killed some seconds after it said a line; everything it said."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
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


def test_a_kill_at_any_moment_changes_nothing(tmp_path: Path, runs: Callable[..., list[str]]) -> None:
    """Killed while training, sampling, writing: the resumed run ends with the weights of one that was left alone."""
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


def test_the_journal_makes_steps_again_without_sampling(tmp_path: Path) -> None:
    settings = replace(QUICK, steps=4, checkpoint_every=100, schedule=replace(QUICK.schedule, retry_delay_s=0.0))
    whole = TinyRun(tmp_path / "whole", settings)
    whole.run()
    first = TinyRun(tmp_path / "parts", settings)
    first.maker.group = _breaks_at(first.maker.group, 12)  # type: ignore[method-assign]
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


def _breaks_at(group: Any, number: int) -> Any:
    """From the moment that this group is asked for, nothing works any more."""
    down: list[bool] = []

    async def broken(*arguments: Any, group_id: str, **rest: Any) -> Any:
        if int(group_id[1:]) >= number:
            down.append(True)
        made = await group(*arguments, group_id=group_id, **rest)
        if down:
            raise RuntimeError("out of order")
        return made

    return broken


def test_everything_is_in_a_checkpoint(tmp_path: Path) -> None:
    """Weights (shared ones too), optimizer, schedule, teacher, random states; only whole ones count; old ones go."""
    lessons = {"teacher": lambda policy: EmaTeacher(frozen_copy(policy), 0.5), "model": {"tie_word_embeddings": True}}
    run = TinyRun(tmp_path / "run", replace(QUICK, steps=6, checkpoint_every=1), **lessons)
    run.run()
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    assert checkpoints.steps() == [5, 6]
    half = checkpoints.path(7)
    half.mkdir()
    (half / "state.json").write_text("{}")
    assert checkpoints.steps() == [5, 6]
    states = random_states()
    other = TinyRun(tmp_path / "other", seed=3, **lessons)
    state = checkpoints.load(6, other.learner)
    assert (state.step, state.queue.begun) == (6, {})
    assert same(other.weights(), run.weights())
    assert random_states() == states
    for ours, theirs in zip(run.learner.optimizer.state.values(), other.learner.optimizer.state.values(), strict=True):
        assert ours.keys() == theirs.keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert run.learner.scheduler is not None
    assert other.learner.scheduler is not None
    assert run.learner.scheduler.state_dict() == other.learner.scheduler.state_dict()
    assert run.learner.optimizer.param_groups[0]["lr"] == other.learner.optimizer.param_groups[0]["lr"]
    averages = [r.learner.teacher.weights() for r in (run, other) if r.learner.teacher]
    assert averages[0] is not None
    assert averages[1] is not None
    assert same(averages[0].state_dict(), averages[1].state_dict())
    assert not same(averages[0].state_dict(), run.weights())


def test_random_states_come_back() -> None:
    states = random_states()
    first = [torch.rand(3), torch.rand(1)]
    set_random_states(states)
    assert all(torch.equal(a, b) for a, b in zip(first, [torch.rand(3), torch.rand(1)], strict=True))


def test_a_newer_or_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    TinyRun(tmp_path / "run", replace(QUICK, steps=1)).run()
    path = tmp_path / "run" / "checkpoints" / "step-00000001" / "state.json"
    path.write_text(path.read_text().replace('"format":1', '"format":99'))
    with pytest.raises(TrainingError, match="Upgrade"):
        TinyRun(tmp_path / "run").run(resume=True)
    path.write_text("{")
    with pytest.raises(TrainingError, match=r"Remove .*step-00000001 to go on"):
        TinyRun(tmp_path / "run").run(resume=True)


def test_a_folder_with_a_run_is_not_begun_anew(tmp_path: Path) -> None:
    TinyRun(tmp_path / "run", replace(QUICK, steps=1)).run()
    with pytest.raises(TrainingError, match="--resume"):
        TinyRun(tmp_path / "run").run()


def test_an_export_is_a_hugging_face_folder(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    run = TinyRun(tmp_path / "run", model={"tie_word_embeddings": True})
    for _ in range(2):
        export(run.learner, None, tmp_path / "policy")
    assert {path.name for path in (tmp_path / "policy").iterdir()} >= {"model.safetensors", "config.json"}
    read = AutoModelForCausalLM.from_pretrained(tmp_path / "policy")
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(read(input_ids=ids).logits, run.learner.model(input_ids=ids).logits)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".policy")] == []


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
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


def test_a_run_with_staleness_loses_nothing_either(tmp_path: Path) -> None:
    """Groups that were sampled ahead are in the checkpoint or in the journal, and are trained on after the resume."""
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


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".*"))


@pytest.mark.parametrize("moment", ["writing", "before the old one goes", "between the names", "removing"])
def test_a_kill_while_a_checkpoint_takes_its_name_loses_none(tmp_path: Path, moment: str) -> None:
    TinyRun(tmp_path / "run", replace(QUICK, steps=2)).run()
    folder = tmp_path / "run" / "checkpoints"
    (target,) = folder.glob("step-*")
    if moment == "writing":
        shutil.copytree(target, folder / ".step-00000004.tmp")
        (folder / ".step-00000004.tmp" / "COMPLETE").unlink()
    elif moment == "before the old one goes":
        shutil.copytree(target, folder / f".{target.name}.tmp")
    elif moment == "between the names":
        shutil.copytree(target, folder / f".{target.name}.old")
        target.rename(folder / f".{target.name}.tmp")
    else:
        target.rename(folder / f".{target.name}.old")
    more = TinyRun(tmp_path / "run", replace(QUICK, steps=3), seed=5)
    assert more.run(resume=True) is RunEnd.STEPS
    assert hidden(folder) == []
    whole = TinyRun(tmp_path / "whole", replace(QUICK, steps=3))
    whole.run()
    assert same(more.weights(), whole.weights())


def test_a_kill_while_an_old_checkpoint_is_removed_brings_no_half_of_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = shutil.rmtree

    def half(path: Path, **options: Any) -> None:
        if Path(path).suffix == ".old" and Path(path).exists():
            really(Path(path) / "model")
            (Path(path) / "state.json").unlink()
            raise RuntimeError("killed")
        really(path, **options)

    settings = replace(QUICK, steps=4, checkpoint_every=1, keep=1)
    with monkeypatch.context() as patched:
        patched.setattr("excise.trainer.loop.checkpoints.shutil.rmtree", half)
        with pytest.raises(RuntimeError, match="killed"):
            TinyRun(tmp_path / "run", settings).run()
    folder = tmp_path / "run" / "checkpoints"
    assert hidden(folder) == [".step-00000001.old"]
    checkpoints = Checkpoints(folder)
    checkpoints.recover()
    assert (checkpoints.steps(), hidden(folder)) == ([2], [])
    assert TinyRun(tmp_path / "run", settings, seed=5).run(resume=True) is RunEnd.STEPS


def test_a_journal_without_its_checkpoint_is_no_new_run(tmp_path: Path) -> None:
    TinyRun(tmp_path / "run", replace(QUICK, steps=2)).run()
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(TrainingError, match="not the checkpoint that it goes on from"):
        TinyRun(tmp_path / "run", replace(QUICK, steps=3)).run(resume=True)


def test_a_full_disk_and_a_damaged_checkpoint_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = TinyRun(tmp_path / "run", replace(QUICK, steps=2))
    run.run()
    before = run.checkpoint_steps()

    def full(*_: Any, **__: Any) -> None:
        raise CheckpointException("x", {0: (OSError(28, "No space left on device"), None)})  # type: ignore[dict-item]

    with monkeypatch.context() as patched:
        patched.setattr("excise.trainer.loop.checkpoints.save_tensors", full)
        with pytest.raises(OSError, match="No space left on device"):
            TinyRun(tmp_path / "run", replace(QUICK, steps=4)).run(resume=True)
    assert run.checkpoint_steps() == before
    for part in (tmp_path / "run" / "checkpoints" / f"step-{before[-1]:08d}" / "model").glob("*.distcp"):
        part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(TrainingError, match=r"cannot be read .*Remove .*step-00000002 to go on"):
        TinyRun(tmp_path / "run", replace(QUICK, steps=4)).run(resume=True)


def test_groups_are_written_down_while_weights_are_handed_over(tmp_path: Path) -> None:
    """The engine takes the weights of step 1 only once another group has been written down."""
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
            raise AssertionError("nothing was written down")
        await really(weights, version)

    async def group(self: TokenTasks, *arguments: Any, **rest: Any) -> Any:
        await asyncio.sleep(0.05 * int(rest["group_id"][1:]))
        return await slow(self, *arguments, **rest)

    run.engine.load = load  # type: ignore[method-assign]
    run.maker.group = functools.partial(group, run.maker)  # type: ignore[method-assign]
    assert run.run() is RunEnd.STEPS
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert rows[1]["load_s"] > 0


def test_an_engine_that_writes_one_answer_at_a_time_repeats_bit_for_bit(tmp_path: Path) -> None:
    """However requests arrive: with ``max_batch = 1`` and ``remembered = 0`` no answer is rounded with another."""

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
