"""Statements are stored with their tasks and chosen when agents, training or exports ask; older sets have them, too."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.config import Settings
from excise.datasets.comparison.merge import merge
from excise.datasets.exports.registry import export
from excise.datasets.queries.catalogue import query
from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.deleters.statement.styles import deterministic, judged
from excise.pipeline.run.source_state import SourceState
from excise.pipeline.services.arena import ArenaOptions, TaskArena
from excise.pipeline.services.export_materials import SetMaterials
from excise.pipeline.services.statements import StatementChoice, Statements
from excise.pipeline.stages.fetch_stage import FetchedSources
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.types import Rejection, SourceSpec, StatementStyle, Task, TaskStatement
from excise.verifiers.prove import Proof

ISSUE, TERSE, SPECIFICATION = StatementStyle.ISSUE, StatementStyle.TERSE, StatementStyle.SPECIFICATION


def by_model(task: Task, style: StatementStyle = ISSUE) -> TaskStatement:
    return judged(task, style, "some/model", f"A model's words about {task.instance_id}.\n")


def publish(root: Path, known: TaskSet, ids: list[str], *, written_for: list[str]) -> TaskSet:
    """Publish tasks as a run does; a model has written an issue about some of them."""
    state = SourceState(SourceSpec(spec="shapes"), None)
    for number, instance_id in enumerate(ids):
        task = known.task(instance_id)
        state.sources = FetchedSources(repo=known.repo(task.repo), layer="")
        refused = Rejection(repo=task.repo, stage="statement", subject=instance_id, reason="gives_code", detail="x")
        written = (by_model(task),) if instance_id in written_for else ()
        proof = Proof(
            task=task, certificate=known.certificate(instance_id), statements=written,
            refused_statements=() if written else (refused,),
        )  # fmt: skip
        state.num_shards_running += 1
        state.record_proofs(number, [proof])
    with Store(root).writer() as writer:
        environment, baseline = known.environment(known.task(ids[0]).env_id)
        writer.put_repo("shapes", replace(state.rows(), environment=environment, baseline=baseline))
        writer.publish()
    return TaskSet.open(root)


@pytest.fixture
def known(stored: Any) -> TaskSet:
    """A set of schema version 7, without statements."""
    taskset: TaskSet = stored.taskset
    assert taskset.statements() == ()
    return taskset


@pytest.fixture
def published(known: TaskSet, tmp_path: Path) -> TaskSet:
    first, second = known.ids()[:2]
    return publish(tmp_path / "set", known, [first, second], written_for=[first])


def test_every_task_is_published_with_all_its_statements(published: TaskSet) -> None:
    first, second = published.ids()
    found = {(s.instance_id, s.style, s.author): s for s in published.statements()}
    assert len(found) == 9
    for instance_id in (first, second):
        task = published.task(instance_id)
        for style in StatementStyle:
            assert found[instance_id, style, "deterministic"] == deterministic(task, style)
        assert found[instance_id, SPECIFICATION, "deterministic"].text == task.problem_statement
    assert found[first, ISSUE, "some/model"] == by_model(published.task(first))
    assert [s.instance_id for s in published.statements(second, style=TERSE)] == [second]
    (refused,) = published.rejections()
    assert (refused.stage, refused.subject) == ("statement", second)
    sql = "SELECT style, bool_and(complete) AS c, count(*) AS n FROM statements GROUP BY ALL ORDER BY ALL"
    rows = json.loads(query(published.root, sql, "json"))
    assert [(row["style"], row["n"]) for row in rows] == [
        ("ambiguous", 2), ("issue", 3), ("specification", 2), ("terse", 2),
    ]  # fmt: skip


def test_what_a_model_wrote_is_kept_by_a_later_run_without_a_model(published: TaskSet, known: TaskSet) -> None:
    first, second = published.ids()
    again = publish(published.root, known, [first, second], written_for=[])
    assert again.statements() == published.statements()
    (name,) = again.entries()
    tables = {table: again._snapshot.rows(table, name) for table in ("tasks", "statements")}
    for row in tables["statements"]:
        row["text"] = row["text"].replace("# Bring back", "# Write")
    with Store(published.root).writer() as writer:
        writer.put_rows(name, tables, None)
        writer.publish()
    changed = publish(published.root, known, [first, second], written_for=[])
    assert {s.author for s in changed.statements()} == {"deterministic"}, "it was about another specification"


def test_the_chosen_statement_is_stored_derived_or_of_a_model(published: TaskSet, known: TaskSet) -> None:
    first, second = map(published.task, published.ids())
    plain = Statements(published, StatementChoice(style=ISSUE))
    assert (plain.of(first), plain.of(second)) == (deterministic(first, ISSUE), deterministic(second, ISSUE))
    model = Statements(published, StatementChoice(style=ISSUE, model_written=True))
    assert model.of(first).author == "some/model"
    assert model.of(second) == deterministic(second, ISSUE), "nothing was written about it"
    assert model.restated(first).problem_statement == model.of(first).text
    older = Statements(known, StatementChoice(style=TERSE, model_written=True))
    assert older.of(first) == deterministic(first, TERSE)
    default = Statements(known, StatementChoice())
    assert default.restated(first) is first
    assert default.of(first).text == first.problem_statement
    assert StatementChoice(style=ISSUE, model_written=True).label == "issue-by-model"


def test_an_arena_gives_the_chosen_statements(stored: Any, known: TaskSet) -> None:
    arena = TaskArena(known, stored.settings, ArenaOptions(statements=StatementChoice(style=TERSE)))
    try:
        told = {name: task.problem_statement for name, task in arena.tasks().items()}
    finally:
        arena.close()
    assert told == {task.instance_id: deterministic(task, TERSE).text for task in known.tasks()}


def test_training_uses_complete_statements_unless_told_otherwise() -> None:
    default = RolloutSettings()
    assert StatementChoice(style=default.style, model_written=default.model_written).is_default
    assert RolloutSettings(style="ambiguous").style is StatementStyle.AMBIGUOUS  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["jsonl", "huggingface"])
def test_exports_have_the_chosen_statements(published: TaskSet, tmp_path: Path, name: str) -> None:
    first, _ = published.ids()
    statements = Statements(published, StatementChoice(style=ISSUE, model_written=True))
    with SetMaterials(published) as materials:
        export(published, name, tmp_path / "out", materials, restated=statements.restated)
    if name == "jsonl":
        rows = [json.loads(line) for line in (tmp_path / "out" / "tasks.jsonl").read_text().splitlines()]
    else:
        from pyarrow import parquet

        rows = parquet.read_table(tmp_path / "out" / "tasks").to_pylist()
        stored_rows = parquet.read_table(tmp_path / "out" / "statements").to_pylist()
        assert len(stored_rows) == 9
    told = {row["instance_id"]: row["problem_statement"] for row in rows}
    assert told == {task.instance_id: statements.of(task).text for task in published.tasks()}
    assert told[first] == by_model(published.task(first)).text


def test_the_command_exports_a_style(excise: Any, known: TaskSet, tmp_path: Path) -> None:
    done = excise("export", "jsonl", tmp_path / "out", "--out", known.root, "--style", "ambiguous")
    assert done.returncode == 0, done.stderr
    row = json.loads((tmp_path / "out" / "tasks.jsonl").read_text().splitlines()[0])
    assert row["problem_statement"] == deterministic(known.task(row["instance_id"]), StatementStyle.AMBIGUOUS).text


def test_a_merge_takes_the_statements_along(known: TaskSet, tmp_path: Path) -> None:
    one, two, three = known.ids()[:3]
    a = publish(tmp_path / "a", known, [one, two], written_for=[one])
    b = publish(tmp_path / "b", known, [two, three], written_for=[two])
    for taskset in (a, b):
        shutil.copytree(known.root / "blobs", taskset.root / "blobs")
    snapshots = [Snapshot.current(taskset.root) for taskset in (a, b)]
    merge([found for found in snapshots if found], tmp_path / "all")
    joined = TaskSet.open(tmp_path / "all")
    found = [(s.instance_id, s.style, s.author) for s in joined.statements()]
    assert len(found) == len(set(found)) == 3 * 4 + 2
    assert {name for name, style, author in found if author == "some/model"} == {one, two}


def test_a_refresh_of_an_older_set_keeps_it_readable(known: TaskSet, tmp_path: Path) -> None:
    shutil.copytree(known.root, tmp_path / "set", symlinks=True)
    with Store(tmp_path / "set").writer() as writer:
        writer.put_repo("other", replace(SourceState(SourceSpec(spec="other"), None).rows()))
        writer.publish()
    after = TaskSet.open(tmp_path / "set")
    assert after.manifest.schema_version == 8
    assert after.statements() == ()
    assert Statements(after, StatementChoice(style=TERSE)).of(after.tasks()[0]).text.startswith("Please")
    assert Settings().model.write_statements == ()
