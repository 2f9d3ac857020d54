"""What the pages ask: the tables in memory follow the files, filters, comparison, training runs, attempts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from excise.datasets.queries.attempts import merge_rows, score_run, write_attempt
from excise.datasets.queries.rollouts import write_rollouts
from excise.datasets.rows import RepoRows
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.datasets.viewer.app import message_html, page_html
from excise.datasets.viewer.links import ServerLinks
from excise.datasets.viewer.loaded_set import LoadedSet, snapshots
from excise.datasets.viewer.pages import LISTS, Site
from excise.datasets.viewer.queries import comparison, generation, overview, rejections, scores, tasks, training, tries
from excise.datasets.viewer.queries.filters import page_of
from excise.errors import StoreError
from excise.verifiers.monitor.trajectory import Step, Trajectory, write_events

from ..conftest import make_rows
from ..made_reports import made_attempt
from .hostile import rollout


def publish(folder: Path, **repos: RepoRows) -> None:
    with Store(folder).writer() as writer:
        for name, rows in repos.items():
            writer.put_repo(name, rows)
        writer.publish()


def wait_for_change(index: LoadedSet) -> None:
    version = index.version
    wait_for(index, lambda: index.version != version)


def wait_for(index: LoadedSet, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
        index.refresh()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    publish(tmp_path / "set", toolz=make_rows("toolz"), humanize=make_rows("humanize"))
    return tmp_path / "set"


def test_sums_are_those_of_the_rows(small: Path) -> None:
    index = LoadedSet(small)
    sums = overview.overview(index)
    assert (sums.tasks["tasks"], sums.tasks["projects"]) == (10, 2)
    assert (sums.funnel["tests"], sums.funnel["candidates"], sums.funnel["valid"]) == (100, 12, 10)
    assert sum(row["tasks"] for row in sums.tiers) == 10
    assert [(row["reason"], row["refused"]) for row in sums.reasons] == [("p2p_breaks", 2)]
    assert [row["symbols"] for row in sums.not_proposed] == [10, 6]
    gates = {row["gate"]: row for row in sums.gates}
    assert (gates["g7_gold"]["runs"], gates["g6_p2p_pass"]["failed"]) == (20, 2)
    rows = overview.projects(index, sort="repo")
    assert [(row["repo"], row["tasks"]) for row in rows] == [("humanize", 4), ("toolz", 6)]


def test_a_damaged_snapshot_is_refused_and_a_later_one_is_told(small: Path) -> None:
    index = LoadedSet(small, check_every_s=0)
    publish(small, toolz=make_rows("toolz", ("take",)))
    path = next((small / "current").resolve().glob("tasks/[!_]*.parquet"))
    path.write_bytes(path.read_bytes()[:100])
    wait_for(index, lambda: index.problem is not None)
    assert index.row("SELECT count(*) AS num FROM task_rows") == {"num": 10}
    page = message_html(Site(index=index), "Title", "Text", ServerLinks())
    assert "A newer snapshot cannot be shown." in page
    assert f"{path.name} is damaged" in page
    with pytest.raises(StoreError, match="is damaged"):
        LoadedSet(small)
    manifest = path.parents[1] / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": ', '"schema_version": 99'))
    with pytest.raises(StoreError, match="Upgrade excise"):
        LoadedSet(small)


def test_tasks_are_searched_filtered_sorted_and_paged(small: Path) -> None:
    index = LoadedSet(small)

    def found(**wanted: str) -> list[str]:
        return [str(row["instance_id"]) for row in tasks.task_list(index, wanted).rows]

    assert found() == sorted(TaskSet.open(small).ids())
    assert len(found(q="GROUPBY toolz")) == 1
    assert len(found(repo="humanize", kind="class")) == 1
    assert found(q="' OR 1=1 --") == []
    assert len(found(q="lacks", text="1")) == 10
    assert len(found(q="lacks groupby", text="1", repo="toolz")) == 1
    assert found(tier="9", q="x", text="1") == []
    second = tasks.task_list(index, {"page": "2", "sort": "loc"}, 4)
    assert (second.page.first_row, second.page.last_row, second.page.last) == (5, 8, 3)


@pytest.mark.parametrize("order", list(tasks.SORTS))
def test_pages_deep_in_a_list_are_those_of_the_whole(small: Path, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = LoadedSet(small)
    whole = [row["instance_id"] for row in tasks.task_list(index, {"sort": order}).rows]
    monkeypatch.setattr(tasks, "DEEP", 0)
    pages = [tasks.task_list(index, {"sort": order, "page": str(n)}, 3).rows for n in range(1, 5)]
    assert [row["instance_id"] for rows in pages for row in rows] == whole


def test_a_task_has_its_certificate_and_siblings(small: Path) -> None:
    index = LoadedSet(small)
    instance_id = TaskSet.open(small).ids()[0]
    task = tasks.whole_task(index, instance_id)
    assert task is not None
    assert [gate.gate for gate in task.gates][:2] == ["g3_apply", "g4_collect"]
    assert {gate.gate: len(gate.runs) for gate in task.gates}["g7_gold"] == 2
    assert tasks.whole_task(index, "none") is None


@pytest.mark.parametrize(
    "certificate",
    ["{", "[]", '{"verdicts": 3}', '{"verdicts": [3, {"gate": [], "evidence": "x", "cpu_s": "y"}], "num_runs": "z"}'],
)
def test_a_certificate_that_is_nonsense_is_no_error(small: Path, certificate: str) -> None:
    file = next(path for path in (small / "current" / "tasks").glob("toolz*"))
    table = pq.read_table(file)
    column, size = pa.array([certificate] * table.num_rows), file.stat().st_size
    pq.write_table(table.set_column(table.column_names.index("certificate"), "certificate", column), file)
    manifest = small / "current" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"bytes": {size}', f'"bytes": {file.stat().st_size}'))
    site = Site(index=LoadedSet(small))
    ids = [str(row["instance_id"]) for row in tasks.task_list(site.index, {"repo": "toolz"}).rows]
    assert page_html(site, ["task", ids[0]], {}, ServerLinks())


def test_a_rejection_has_the_verdicts_on_its_candidate(small: Path) -> None:
    index = LoadedSet(small)
    row = rejections.rejection_list(index, {"repo": "toolz"}).rows[0]
    found = rejections.whole_rejection(index, row["file"], row["row"])
    assert found is not None
    assert {gate.gate: gate.outcome for gate in found.gates} == {"g5_f2p_fail": "UNDECIDED", "g6_p2p_pass": "FAILED"}
    assert rejections.whole_rejection(index, "../manifest.json", 0) is None


def test_snapshots_are_compared(small: Path) -> None:
    kept = make_rows("toolz", ("take", "pluck"))
    changed = replace(kept.tasks[0], problem_statement="other")
    publish(small, toolz=replace(kept, tasks=(changed, *kept.tasks[1:])))
    before, after = snapshots(small)[-2:]
    found = comparison.compare(LoadedSet(small), before, after)
    assert found.counts == {"changed": 1, "went": 4}
    assert found.unchanged == 5
    assert [row["repo"] for row in found.repos] == ["toolz"]
    assert [fact["tasks"] for fact in comparison.snapshot_facts(small)] == [6, 10]


def test_the_index_follows_new_snapshots_and_damaged_files(small: Path) -> None:
    index = LoadedSet(small, check_every_s=0)
    broken = small / "rollouts" / "first" / "step-00000009.parquet"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"PAR1 not really")
    publish(small, toolz=make_rows("toolz", ("take",)))
    write_rollouts(small, "first", 1, [rollout(run="first", step=1, rollout_id="r", instance_id="x")])
    wait_for_change(index)
    assert len(tasks.task_list(index, {}).rows) == 5
    assert [row["try_id"] for row in tries.try_list(index, {}).rows] == ["r"]
    write_rollouts(small, "first", 1, [rollout(run="first", step=1, rollout_id="again", instance_id="x")])
    wait_for_change(index)
    assert [row["try_id"] for row in tries.try_list(index, {}).rows] == ["again"]


def test_attempts_of_agents_are_shown_with_what_their_files_hold(small: Path) -> None:
    place = small / "attempts" / "gold" / "a-1.parquet"
    place.parent.mkdir(parents=True)
    row = {"run": "gold", "attempt_id": "a-1", "instance_id": "a", "number": 1, "reward": 1.0, "solved": True,
           "flags": ["leak_used"], "transcript": ""}  # fmt: skip
    pq.write_table(pa.Table.from_pylist([row]), place)
    step = {"event": "step", "number": 1, "command": "git apply", "output": "done", "exit_code": 0}
    place.with_suffix(".jsonl").write_text(json.dumps(step) + "\n")
    index = LoadedSet(small)
    listed = tries.try_list(index, {"flag": "leak_used", "solved": "yes"})
    assert (listed.page.total, listed.solved, listed.flagged) == (1, 1, 1)
    found = tries.whole_try(index, "attempt", "gold", "a-1")
    assert found is not None
    assert [message.text for message in found.messages] == ["git apply", "done"]


def test_a_training_run_has_curves_and_requests(small: Path, tmp_path: Path) -> None:
    rows = [rollout(run="first", step=2, rollout_id=str(n), task_reward=float(n % 2), tier=1.5) for n in range(4)]
    write_rollouts(small, "first", 2, rows)
    index = LoadedSet(small)
    (run,) = training.training_runs(index, [])
    (metrics,) = training.metrics(index, run)
    assert (metrics["step"], metrics["pass@1"], metrics["tier"]) == (2, 0.5, 1.5)
    folder = tmp_path / "runs" / "a"
    (folder / "requests").mkdir(parents=True)
    (folder / "stored-as").write_text("first\n")
    (folder / "metrics.jsonl").write_text('{"step": 1, "mismatch_kl": 0.25}\n{"step": 2, "mis')
    (folder / "requests" / "r2.json").write_text('{"number": 2}')
    (folder / "requests" / "r1.json").write_text('{"number": 1}')
    (folder / "requests" / "r1.code").write_text("0")
    (run,) = training.training_runs(index, [tmp_path / "runs"])
    charts = dict(training.chart_series(training.metrics(index, run)))
    assert charts["KL of sampler and policy"][0].points == ((1.0, 0.25),)
    assert [(r.request_id, r.state) for r in training.requests(run)] == [("r1", "done"), ("r2", "open")]


def attempts_of(folder: Path, run: str, solved: str, **more: Any) -> None:
    """Attempts of a run at two tasks by turns: 1 if it solved its task; tokens grow from one to the next."""
    for number, mark in enumerate(solved):
        write_attempt(folder, made_attempt(run, number, solved=mark == "1", **more))


def test_scores_are_those_of_the_command_line(small: Path) -> None:
    attempts_of(small, "a", "10011011", style="issue")
    attempts_of(small, "b", "1111", cost=None, agent="mini")
    merge_rows(small, "a")  # rows of a run that has ended are in one file
    index = LoadedSet(small)
    best, other = scores.scores(index, {})
    assert (best.name, other.name) == ("b", "a")
    for found in (best, other):
        wanted = score_run(small, found.name)
        assert {k: row["pass_at_k"] for k, row in found.pass_at.items()} == pytest.approx(wanted.pass_at)
        assert {k: row["standard_error"] for k, row in found.pass_at.items()} == pytest.approx(wanted.error)
        assert found.effort["tokens"] == [pytest.approx(point) for point in wanted.effort]
        assert found.run["tokens"] == pytest.approx(wanted.mean_tokens)
    assert other.effort["cost"] == [pytest.approx(point) for point in score_run(small, "a").cost_effort]
    assert "cost" not in best.effort
    assert [one.name for one in scores.scores(index, {"style": "issue"})] == ["a"]
    assert scores.scores(index, {"agent": "nobody"}) == []
    titles = {chart.title: [len(s.points) for s in chart.series] for chart in scores.charts([best, other])}
    assert titles["pass@k by k"] == [2, 3]
    assert titles["Solved within cost"] == [0, 8], "a run without prices keeps its colour"
    assert scores.choices(index)["agent"] == ["model", "mini"]


def test_attempts_of_a_run_that_has_ended_are_shown_once(small: Path) -> None:
    attempts_of(small, "a", "10")
    (one, two) = sorted((small / "attempts" / "a").glob("*.parquet"))
    kept = one.read_bytes()
    trajectory = two.with_suffix(".jsonl")
    write_events(trajectory, [Trajectory(instance_id="t", source="excise", steps=(Step(number=1, tool="run"),))])
    merge_rows(small, "a")
    one.write_bytes(kept)  # as if the process had been killed before it removed the file
    index = LoadedSet(small)
    assert tries.try_list(index, {}).page.total == 2
    assert scores.scores(index, {})[0].run["attempts"] == 2
    found = tries.whole_try(index, "attempt", "a", two.stem)
    assert found is not None
    assert found.messages


def test_long_curves_keep_their_last_point(small: Path) -> None:
    attempts_of(small, "long", "01" * 50)
    (found,) = scores.scores(LoadedSet(small), {})
    assert len(found.effort["tokens"]) <= 41
    assert found.effort["tokens"][-1] == (100 * 100, pytest.approx(0.5))


def test_a_run_is_read_from_its_log_as_it_grows(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "run-20260101T000000Z-999999999.jsonl"
    log.parent.mkdir()
    begun = {"event": "stage begun", "source": "pypi:a", "stage": "fetch", "time": "t"}
    log.write_text(json.dumps({"event": "run begun", "sources": 2}) + "\n" + json.dumps(begun) + "\n" + '{"event": "st')
    (name,) = generation.run_names(tmp_path)
    run = generation.read_run(tmp_path, name)
    assert run is not None
    assert (run.is_running, run.sources["pypi:a"].running) == (False, 1)
    with log.open("a") as file:
        file.write('age refused", "source": "pypi:a", "reason": "no_tests", "seconds": 2}\n')
    run = generation.read_run(tmp_path, name)
    assert run is not None
    assert (run.sources["pypi:a"].running, run.sources["pypi:a"].failed) == (0, "no_tests")
    assert generation.read_run(tmp_path, "../secret") is None


def test_every_list_of_an_empty_folder_is_a_page(tmp_path: Path) -> None:
    site = Site(index=LoadedSet(tmp_path))
    assert all(page(site, {}) for page in LISTS.values())


@pytest.mark.parametrize(
    ("text", "number"), [("", 1), ("2", 2), ("99", 3), ("0", 1), ("-1", 1), ("x", 1), ("²", 1), ("9" * 99, 1)]
)
def test_pages_that_do_not_exist_become_near_ones(text: str, number: int) -> None:
    assert page_of(text, 120).number == number
