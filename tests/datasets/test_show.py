"""The output of `excise show` on a terminal of 80 columns and in a pipe."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from excise.datasets.show import MAX_TESTS, ShowOptions, render
from excise.datasets.taskset import TaskSet
from excise.errors import StoreError
from excise.types import Certificate, Task, from_dict

from .conftest import make_task


def rendered(store_dir: Path, instance_id: str, *, terminal: bool = False, **options: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=terminal, color_system="truecolor" if terminal else None)
    render(TaskSet.open(store_dir), instance_id, console, ShowOptions(**options))
    return out.getvalue()


TASK, CERTIFICATE = make_task("humanize", "naturalsize", rank=3)


def test_piped_output_is_verbatim(store_dir: Path) -> None:
    text = rendered(store_dir, TASK.instance_id)
    assert TASK.patch in text
    assert TASK.test_patch in text
    assert TASK.problem_statement in text
    assert "\x1b" not in text
    assert "FAIL_TO_PASS: 4 tests must pass again" in text
    assert "function, tier 3: 4 lines in 1 file, 1 symbol, complexity 3, 3 references from outside" in text


def test_a_terminal_gets_colour_and_no_line_is_too_long(store_dir: Path) -> None:
    text = rendered(store_dir, TASK.instance_id, terminal=True, claims={"g3_apply": "the deletion applies " * 9})
    assert "\x1b[" in text
    plain = Text.from_ansi(text).plain
    assert max(cell_len(line) for line in plain.splitlines()) <= 80
    assert "+def naturalsize(value):" in plain


def test_characters_that_control_a_terminal_are_named(tmp_path: Path) -> None:
    from excise.datasets.storage.store import Store

    from .conftest import make_rows

    task, certificate = make_task("toolz", "take")
    task, rows = replace(task, problem_statement="\x1b[31m Write it."), make_rows("toolz", ())
    with Store(tmp_path).writer() as writer:
        writer.put_repo("toolz", replace(rows, tasks=(task,), certificates=(certificate,)))
        writer.publish()
    assert "␛[31m Write it." in Text.from_ansi(rendered(tmp_path, task.instance_id, terminal=True)).plain
    assert task.problem_statement in rendered(tmp_path, task.instance_id)


def test_gates_are_one_line_each(store_dir: Path) -> None:
    lines = rendered(store_dir, TASK.instance_id, claims={"g7_gold": "the gold patch restores all"}).splitlines()
    gold = [line for line in lines if "g7_gold" in line]
    assert len(gold) == 1
    assert gold[0].startswith("PASSED    g7_gold: the gold patch restores all [2 runs, 40 tests, 7.0 CPU s")
    assert len([line for line in lines if line.startswith("PASSED ")]) == 7
    assert any(CERTIFICATE.certificate_id in line for line in lines)


def test_the_evidence_of_a_gate_is_printed_below_it(store_dir: Path) -> None:
    lines = rendered(store_dir, TASK.instance_id).splitlines()
    index = next(n for n, line in enumerate(lines) if "g5_f2p_fail" in line)
    assert lines[index + 1 : index + 3] == ["          statuses: 1 FAILED", f"          tree: {'5' * 40}"]


def test_markdown_has_every_gate_with_its_evidence(store_dir: Path) -> None:
    text = rendered(store_dir, TASK.instance_id, as_markdown=True, claims={"g7_gold": "the gold patch restores all"})
    assert text.startswith(f"# {TASK.instance_id}\n")
    assert f"````diff\n{TASK.patch.rstrip()}\n````" in text
    assert (
        "### g7_gold: PASSED\n\nthe gold patch restores all\n\n- run: 2 runs, 40 tests, 7.0 CPU s\n- tree: `555" in text
    )
    assert text.count("### ") == 7


def test_long_lists_are_truncated_and_counted(tmp_path: Path) -> None:
    from excise.datasets.storage.store import Store

    from .conftest import make_rows

    task, certificate = make_task("toolz", "take", rank=MAX_TESTS + 4)
    rows = make_rows("toolz", ())
    with Store(tmp_path).writer() as writer:
        writer.put_repo("toolz", type(rows)(repo=rows.repo, tasks=(task,), certificates=(certificate,)))
        writer.publish()
    assert "  … and 5 more" in rendered(tmp_path, task.instance_id)
    assert task.fail_to_pass[-1] not in rendered(tmp_path, task.instance_id)
    assert task.fail_to_pass[-1] in rendered(tmp_path, task.instance_id, all_tests=True)


def test_json_is_the_records(store_dir: Path) -> None:
    record = json.loads(rendered(store_dir, TASK.instance_id, as_json=True))
    assert from_dict(Task, record["task"]) == TASK
    assert from_dict(Certificate, record["certificate"]) == CERTIFICATE


def test_unknown_id(store_dir: Path) -> None:
    with pytest.raises(StoreError, match="No task"):
        rendered(store_dir, "nothing")
