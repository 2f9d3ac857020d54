"""The queries of the cookbook run on a task set."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

COOKBOOK = (Path(__file__).parents[2] / "docs" / "cookbook.md").read_text(encoding="utf-8")
QUESTIONS = dict(re.findall(r"^## (.+?)\n.*?```sql\n(.*?)```", COOKBOOK, flags=re.DOTALL | re.MULTILINE))
NONE_EXPECTED = {"Which tasks are near-duplicates?", "Which tasks are quarantined, and what for?"}


@pytest.fixture
def answers(store_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a query of the cookbook in a folder with the files of the current snapshot."""
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for entry in (store_dir / "current").iterdir():
        (snapshot / entry.name).symlink_to(entry)
    monkeypatch.chdir(snapshot)
    with duckdb.connect() as connection:
        connection.execute(Path("views.sql").read_text(encoding="utf-8"))
        yield lambda question: connection.execute(QUESTIONS[question]).fetchall()


def test_there_are_at_least_ten_questions_each_with_one_block() -> None:
    assert len(QUESTIONS) >= 10
    assert len(QUESTIONS) == COOKBOOK.count("```sql") == len(re.findall(r"^## ", COOKBOOK, flags=re.MULTILINE))


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_has_an_answer(answers, question: str) -> None:
    rows = answers(question)
    assert bool(rows) != (question in NONE_EXPECTED)


def test_changes(answers) -> None:
    changes = [row[0] for row in answers("What changed since the last refresh?")]
    assert changes == ["came"] * 5 + ["went"]


def test_cost(answers) -> None:
    rows = {row[0]: row[1:] for row in answers("What does a certified task cost?")}
    assert rows["humanize"][:2] == (4, 25.0)
    assert rows["vanished"] == (0, None, None)


def test_refusals_come_with_the_verdicts_of_gates(answers) -> None:
    rows = answers("Why was this candidate refused?")
    assert [(row[0], row[3], row[5], row[8]) for row in rows] == [
        (repo, "p2p_breaks", gate, outcome)
        for repo in ("humanize", "toolz")
        for gate, outcome in (("g5_f2p_fail", "UNDECIDED"), ("g6_p2p_pass", "FAILED"))
    ]


def test_flaky(answers) -> None:
    rows = answers("Which projects are flaky?")
    assert [(row[0], row[1]) for row in rows] == [("toolz", 1), ("humanize", 0)]


def test_the_split_is_written_and_is_a_real_subset(answers) -> None:
    answers("How do I write a split for training and one for evaluation?")
    split = duckdb.sql("SELECT DISTINCT repo FROM 'train.parquet'").fetchall()
    assert 1 <= len(split) <= 2


def test_near_duplicates_are_found(answers, tmp_path: Path) -> None:
    patch = "+def pluck(ind, seqs):\n+    get = getter(ind)\n+    return map(get, seqs)\n+    # {}\n"
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE tasks (instance_id VARCHAR, patch VARCHAR)")
        body = "".join(f"+    line_{i} = {i}\n" for i in range(20))
        rows = [("a", patch.format("one") + body), ("b", patch.format("two") + body), ("c", patch.format("three"))]
        connection.executemany("INSERT INTO tasks VALUES (?, ?)", rows)
        found = connection.execute(QUESTIONS["Which tasks are near-duplicates?"]).fetchall()
    assert [row[:2] for row in found] == [("a", "b")]
    assert 0.8 < found[0][2] < 1
