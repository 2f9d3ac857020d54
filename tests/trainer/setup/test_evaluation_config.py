"""Tasks that are held out of training, as the settings of an evaluation say."""

from __future__ import annotations

from dataclasses import replace

from excise.trainer.setup.evaluation_config import EvalSettings, HeldOut, eligible_tasks
from excise.types import Task


def test_tasks_are_held_out_by_file(stub: Task) -> None:
    tasks = [
        replace(stub, instance_id=f"{repo}-{n}", repo=repo, removed=(f"{n}.py::f{n}",))
        for repo in ("a", "b")
        for n in range(500)
    ]
    half = HeldOut(share=0.5)
    assert 400 < sum(map(half.includes, tasks)) < 600
    assert all(half.includes(task) is half.includes(replace(task, removed=(f"{task.removed[0]}x",))) for task in tasks)
    assert sum(map(HeldOut(projects=("a",)).includes, tasks)) == 500
    assert not any(map(HeldOut().includes, tasks))
    settings = EvalSettings(mode="function", held_out=HeldOut(share=0.5))
    known = {task.instance_id: task for task in tasks}
    out, rest = (set(eligible_tasks(settings, known, held_out=is_out)) for is_out in (True, False))
    assert out | rest == set(known)
    assert not out & rest
    assert eligible_tasks(settings, known) == tuple(known)
    inside, outside = (
        next(t for t in tasks if t.repo == "a" and half.includes(t) is is_out) for is_out in (True, False)
    )
    both = {"both": replace(inside, removed=(*outside.removed, *inside.removed))}
    assert [eligible_tasks(settings, both, held_out=is_out) for is_out in (True, False)] == [(), ()], (
        "a task that spans both is in neither"
    )
