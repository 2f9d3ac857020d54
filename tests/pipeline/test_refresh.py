"""``excise refresh``: what it proves again, what goes into quarantine, and the report of it all."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.config import RefreshSettings, Settings, load
from excise.datasets.queries.refreshes import (
    ReverifiedTask,
    last_proved,
    read_report,
    refresh_ids,
    write_report,
)
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError, StoreError
from excise.pipeline.exit_codes import FAILED
from excise.pipeline.services import map_tasks as map_tasks_module
from excise.pipeline.services import reverify as reverify_module
from excise.pipeline.services.map_tasks import TaskOperation, map_tasks
from excise.pipeline.services.refresh import refresh
from excise.pipeline.services.refresh_report import report_text
from excise.pipeline.services.reverify import choose, reverify
from excise.pipeline.services.verify import unverified, verify_tasks
from excise.types import Task, to_json
from excise.verifiers.certificate import sealed

from ..datasets.made_reports import made_report


@pytest.fixture
def copied(stored: Any, tmp_path: Path) -> Settings:
    """Settings with a copy of the stored set that may be changed, and its cache."""
    shutil.copytree(stored.out, tmp_path / "set", symlinks=True)
    return load([stored.config], environ={}, out=tmp_path / "set", cache=stored.cache, workers=1)


def change_task(root: Path, instance_id: str, change: Callable[[Task], Task], *, seal: bool) -> None:
    """Change the row of a task in a set; with ``seal``, its certificate is made out for the changed task."""
    taskset = TaskSet.open(root)
    (name,) = taskset.entries()
    tables = {table: taskset._snapshot.rows(table, name) for table in ("tasks", "repos", "environments", "verdicts")}
    for row in tables["tasks"]:
        if row["instance_id"] == instance_id:
            task = change(taskset.task(instance_id))
            row |= {"patch": task.patch, "problem_statement": task.problem_statement}
            if seal:
                certificate = sealed(taskset.certificate(instance_id), task)
                row |= {"certificate": to_json(certificate).decode(), "certificate_id": certificate.certificate_id}
    with Store(root).writer() as writer:
        writer.put_rows(name, tables, None)
        writer.publish()


def other_statement(task: Task) -> Task:
    return replace(task, problem_statement="Do something else.")


def test_those_that_were_proved_longest_ago_are_next() -> None:
    ids = [f"t{n}" for n in range(6)]
    proved = {"t0": "2026-01-02", "t1": "2026-01-01", "t2": "2026-01-03"}
    assert choose(ids, 4, proved, 1) == ["t1", "t3", "t4", "t5"]
    assert choose(ids, 5, proved, 1) == ["t0", "t1", "t3", "t4", "t5"]
    assert choose(ids, 9, proved, 1) == ids
    samples = {tuple(choose(ids, 2, {}, seed)) for seed in range(30)}
    assert len(samples) > 5, "equal tasks are sampled, not taken in order"
    assert choose(ids, 2, {}, 3) == choose(ids, 2, {}, 3)


def test_a_task_that_is_not_the_certified_one_is_quarantined(copied: Settings) -> None:
    bad, good = TaskSet.open(copied.out).ids()[:2]
    change_task(copied.out, bad, other_statement, seal=False)
    before = TaskSet.open(copied.out)
    shutil.rmtree(copied.out / "blobs")  # the sources of the other one cannot be read, which says nothing about it
    done = reverify(copied, [bad, good])
    outcomes = {task.instance_id: (task.outcome, task.gate, task.reason) for task in done.tasks}
    assert outcomes[bad] == ("quarantined", "files", "certificate_differs")
    assert outcomes[good][:2] == ("undecided", "sources")
    after = TaskSet.open(copied.out)
    assert after.manifest.number == before.manifest.number + 1
    assert bad in after.ids(), "it stays in the history"
    assert bad not in {task.instance_id for task in after.tasks()}
    (row,) = after.quarantines()
    assert (row.instance_id, row.gate, row.reason, row.label) == (bad, "files", "certificate_differs", "certificate")
    assert "hash of the task differs" in row.detail
    reverify(copied, [bad])
    assert TaskSet.open(copied.out).manifest.number == after.manifest.number, "the same quarantine, found twice, is one"


def test_a_failure_that_is_not_confirmed_condemns_nothing(copied: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = TaskSet.open(copied.out).ids()[0]
    change_task(copied.out, bad, other_statement, seal=False)

    caches: list[Path] = []

    def first_only(settings: Settings, taskset: TaskSet, ids: Any, listener: Any, **options: Any) -> Any:
        caches.append(settings.cache)
        if len(caches) == 1:
            return verify_tasks(settings, taskset, ids, listener, **options)
        for instance_id in ids:
            listener(unverified(taskset.task(instance_id), "environment", "network_required", "no index"))
        return []

    monkeypatch.setattr(reverify_module, "verify_tasks", first_only)
    done = reverify(copied, [bad])
    assert [task.outcome for task in done.tasks] == ["unconfirmed"]
    assert TaskSet.open(copied.out).quarantines() == ()
    assert caches[0] == copied.cache
    assert caches[1] != copied.cache
    assert not caches[1].exists()


@pytest.mark.parametrize(("begin_until", "worked_on"), [(math.inf, 8), (0.0, 0)])
def test_after_the_time_limit_no_task_is_begun(
    copied: Settings, monkeypatch: pytest.MonkeyPatch, begin_until: float, worked_on: int
) -> None:
    monkeypatch.setattr(map_tasks_module, "rebuild", lambda *_: Path("prepared"))
    monkeypatch.setattr(map_tasks_module, "workbench_of", lambda *_: None)

    def work(_settings: Settings, _bench: Any, task: Task) -> Any:
        return unverified(task, "worker", "tried", "")

    taskset = TaskSet.open(copied.out)
    operation: Any = TaskOperation(work=work, failed=unverified, begin_until=begin_until)
    assert len(map_tasks(copied, taskset, taskset.ids(), operation)) == worked_on


@pytest.mark.slow
def test_a_gold_patch_that_no_longer_restores_the_project_is_found_by_its_gate(copied: Settings, prepared: Any) -> None:
    bad = next(t for t in TaskSet.open(copied.out).tasks() if "places.append(place)" in t.patch)

    def broken(task: Task) -> Task:
        return replace(task, patch=task.patch.replace("places.append(place)", "places.append(1234)"))

    change_task(copied.out, bad.instance_id, broken, seal=True)
    (found,) = reverify(copied, [bad.instance_id]).tasks
    assert (found.outcome, found.gate, found.reason) == ("quarantined", "g3_applies", "not_restored"), found
    (row,) = TaskSet.open(copied.out).quarantines()
    assert (row.gate, row.reason) == (found.gate, found.reason)


def test_a_refresh_writes_a_report_and_calls_the_hook(copied: Settings, tmp_path: Path) -> None:
    """All sources are gone: nothing of them needs a sandbox. A hostile name reaches the hook as data only."""
    name = f"dir:/nowhere/$(touch {tmp_path}/pwned);touch {tmp_path}/pwned"
    hook = f"sh -c 'cat > {tmp_path}/got.json; cp \"$EXCISE_REPORT_TEXT\" {tmp_path}/got.txt; exit 3'"
    settings = copied.model_copy(
        update={
            "sources": load(environ={}, sources=[name]).sources,
            "refresh": RefreshSettings(report_hook=hook, reverify=2),
        }
    )
    warnings: list[str] = []
    done = refresh(settings, lambda _: None, warn=warnings.append, copy_to=tmp_path / "copy")
    assert warnings == ["The report hook sh ended with exit status 3."]
    assert not (tmp_path / "pwned").exists()
    (refresh_id,) = refresh_ids(settings.out)
    report = read_report(settings.out, refresh_id)
    assert report == done.report
    assert (report.ending, report.changes.num_went, report.num_tasks) == ("done", 8, 0)
    assert [(source.source, source.stage, source.num_tasks) for source in report.sources] == [(name, "fetch", 0)]
    assert [(row.stage, row.count) for row in report.failures] == [("fetch", 1)]
    sent = json.loads((tmp_path / "got.json").read_bytes())
    assert sent["changes"]["went"] == list(report.changes.went)
    text = (tmp_path / "got.txt").read_text()
    assert text == report_text(report) == (tmp_path / "copy" / "report.txt").read_text()
    assert json.loads((tmp_path / "copy" / "report.json").read_text()) == sent
    assert "0 added, 0 changed, 8 removed" in text
    assert "touch" in text


def test_a_refresh_that_fails_says_so_in_its_report(copied: Settings, tmp_path: Path) -> None:
    settings = copied.model_copy(
        update={
            "sources": load(environ={}, sources=["dir:/nowhere"]).sources,
            "refresh": RefreshSettings(report_hook=f"tee {tmp_path}/got.json"),
        }
    )
    with Store(settings.out).locked(), pytest.raises(StoreError, match="being written"):
        refresh(settings, lambda _: None)
    report = json.loads((tmp_path / "got.json").read_text())
    assert report["ending"] == "failed"
    assert "being written" in report["error"]
    assert TaskSet.open(settings.out).ids(), "the set is as it was"


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("sh -c 'echo no mail >&2; exit 7'", "ended with exit status 7: no mail"),
        ("/nowhere/send --now", "The report hook /nowhere/send cannot be started: No such file"),
        ("sleep 600", "did not end within 1 s"),
    ],
)
def test_a_hook_that_fails_is_a_warning(copied: Settings, hook: str, said: str) -> None:
    hooked = RefreshSettings(report_hook=hook, report_hook_timeout_s=1)
    sources = load(environ={}, sources=["dir:/nowhere"]).sources
    warnings: list[str] = []
    settings = copied.model_copy(update={"sources": sources, "refresh": hooked})
    assert refresh(settings, lambda _: None, warn=warnings.append).report.ending == "done"
    assert len(warnings) == 1
    assert said in warnings[0]


def test_a_hook_with_open_quotes_is_refused_before_the_run() -> None:
    with pytest.raises(ConfigError, match="matching quotes"):
        load(environ={}, refresh={"report_hook": "mail 'x"})


def test_options_of_the_command_line_reach_the_refresh(excise: Any, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        'sources = ["./nowhere"]\nout = "set"\ncache = "c"\nworkers = 1\n[refresh]\nreport_hook = "false"\n'
    )
    options = ["--report-hook", f"cp $EXCISE_REPORT_TEXT {tmp_path}", "--reverify", "3", "--report", "r"]
    done = excise("refresh", "a.toml", *options, cwd=tmp_path, env=dict(os.environ))
    assert done.returncode == FAILED, done.stderr
    assert "The report hook cp ended with exit status 1" in done.stderr, "no shell expands the command"
    assert "unknown_source" in (tmp_path / "r" / "report.txt").read_text()
    assert "Added" not in done.stdout


def test_the_time_of_the_last_proof_is_read_from_the_reports(tmp_path: Path) -> None:
    def store(day: int, *tasks: tuple[str, str]) -> None:
        proved = tuple(ReverifiedTask(instance_id=name, outcome=outcome) for name, outcome in tasks)
        name = f"2026010{day}T000000Z-1"
        write_report(tmp_path, made_report(name, started_at=f"2026-01-0{day}", reverified=proved), "")

    store(1, ("a", "holds"), ("b", "holds"))
    store(2, ("a", "undecided"), ("c", "unconfirmed"))
    (tmp_path / "refreshes" / "20260103T000000Z-1.json").write_text("{")
    assert last_proved(tmp_path) == {"a": "2026-01-02", "b": "2026-01-01"}
    with pytest.raises(StoreError, match="damaged"):
        read_report(tmp_path, "20260103T000000Z-1")


def test_the_text_of_a_report_is_lines_without_control_characters() -> None:
    nasty = "a\x1b[31m\nb\u202e" + "x" * 5000
    failed = (ReverifiedTask(instance_id=nasty, outcome="quarantined", gate="g7_gold", reason=nasty, detail=nasty),)
    text = report_text(made_report("1", reverified=failed, came=tuple(f"t{n}" for n in range(100))))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) < 320
    assert "… and 60 more" in text
    assert "100 added" in text
