"""The command line: exit codes and error messages."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path
from typing import cast

import pytest
import typer

from excise.datasets.storage.store import Store
from excise.errors import ConfigError, ExciseError, StoreError
from excise.pipeline.cli.generate_command import run_exit_code
from excise.pipeline.cli.options import exit_codes_for_errors
from excise.pipeline.exit_codes import FAILED, INTERRUPTED, OK, PARTIAL, USAGE
from excise.pipeline.run.source_state import SourceState
from excise.types import Rejection, SourceSpec, Task


def state_of(name: str, *, tasks: int = 0, failed: bool = False, refused: int = 0) -> SourceState:
    state = SourceState(SourceSpec(spec=name), None, stage="done", tried=tasks + refused)
    state.tasks = {f"{name}__{number}": cast(Task, object()) for number in range(tasks)}
    state.rejections = [
        Rejection(repo=name, stage="gate", subject=str(number), reason="p2p_breaks", detail="x")
        for number in range(refused)
    ]
    if failed:
        state.fail(Rejection(repo=name, stage="fetch", subject=name, reason="source_unavailable", detail="x"))
    return state


GIVING, REFUSED, FAILING = state_of("a", tasks=1), state_of("b", refused=3), state_of("c", failed=True)


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([GIVING], OK),
        ([GIVING, state_of("d", tasks=2, refused=5)], OK),
        ([GIVING, FAILING], PARTIAL),
        ([GIVING, REFUSED], PARTIAL),
        ([REFUSED], FAILED),
        ([FAILING], FAILED),
        ([REFUSED, FAILING], FAILED),
        ([state_of("e", tasks=1, failed=True)], OK),
    ],
)
def test_the_exit_code_counts_sources_with_tasks_as_successful(states: list[SourceState], code: int) -> None:
    assert run_exit_code(states) == code


def raised(error: BaseException) -> int:
    with pytest.raises(typer.Exit) as caught, exit_codes_for_errors():
        raise error
    return caught.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("[/x] is [red]wrong[/red] :x:"), USAGE, "excise: [/x] is [red]wrong[/red] :x:"),
        (StoreError("No task 'x'.", reason="unknown_id"), USAGE, "excise: No task 'x'."),
        (ExciseError("no"), FAILED, "excise: no"),
        (PermissionError(errno.EACCES, "Permission denied", "/x/[/y]"), FAILED, "excise: /x/[/y]: Permission denied. "),
        (OSError(errno.ENOSPC, "No space left on device"), FAILED, "No space left on device. "),
        (OSError(errno.ENOSPC, "Disk full", "/from", None, "/into"), FAILED, "excise: /from to /into: Disk full. "),
        (TimeoutError("nobody answers"), FAILED, "excise: nobody answers. "),
        (KeyboardInterrupt(), INTERRUPTED, "excise: interrupted."),
    ],
)
def test_errors_are_printed_as_sentences(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raised(error) == code
    assert said in capsys.readouterr().err


def test_a_long_message_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    raised(ConfigError("30 3 * * * " + "word " * 100))
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture
def empty_set(tmp_path: Path) -> Path:
    with Store(tmp_path / "set").writer() as writer:
        writer.publish()
    return tmp_path / "set"


def test_an_unwritable_cache_is_reported_in_a_sentence(excise, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path / "app"], check=True)
    (tmp_path / "file").write_text("")
    done = excise("generate", tmp_path / "app", "--dry-run", "--cache", tmp_path / "file" / "cache")
    assert done.returncode == FAILED
    assert "Traceback" not in done.stderr
    assert f"{tmp_path}/app: [Errno" in done.stdout


def test_an_unknown_task_is_a_usage_error(excise, empty_set: Path, tmp_path: Path) -> None:
    done = excise("checkout", "nowhere__0", tmp_path / "x", "--out", empty_set)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr.startswith("excise: No task 'nowhere__0' in this task set.")


@pytest.mark.parametrize("command", ["verify", "recover", "attack"])
def test_an_unusable_sandbox_is_a_usage_error(excise, empty_set: Path, tmp_path: Path, command: str) -> None:
    env = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/nobody"}
    done = excise(command, "a__0", "--out", empty_set, "--set", "sandbox=docker", env=env)
    assert (done.returncode, done.stdout) == (USAGE, ""), done.stderr
    assert done.stderr.startswith("excise: The sandbox docker cannot be used here")


def test_a_damaged_set_is_reported_in_a_sentence(excise, empty_set: Path) -> None:
    path = empty_set.resolve() / "snapshots" / "1" / "tasks" / "_schema.parquet"
    path.write_bytes(b"PAR1")
    done = excise("query", "FROM tasks", "--out", empty_set)
    assert done.returncode == FAILED
    assert "Traceback" not in done.stderr
    assert str(path) in done.stderr


@pytest.mark.slow
def test_a_run_that_makes_no_tasks_fails(excise, tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    config.write_text('sources = ["./nowhere[/x]", "./gone"]\nout = "set"\ncache = "cache"\nworkers = 1\n')
    for command in (("generate", "-c"), ("refresh",)):
        done = excise(*command, config, cwd="/")
        assert done.returncode == FAILED, done.stderr
        assert f"{tmp_path}/nowhere[/x]: refused at fetch: unknown_source" in done.stderr
        assert f"0 tasks in {tmp_path}/set from 0 of 2 sources." in done.stdout


@pytest.mark.slow
def test_a_dry_run_counts_what_can_be_resolved(excise, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a.py").write_text("")
    for sources, code in ((["there"], OK), (["there", "gone"], PARTIAL), (["gone"], FAILED)):
        done = excise("generate", "--dry-run", "--cache", tmp_path / "c", *sources, cwd=tmp_path)
        assert done.returncode == code, done.stderr


def test_paths_and_sources_of_the_command_line_belong_to_the_working_directory(excise, tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "a.toml").write_text('sources = ["./x"]\ncache = "c"\n')
    done = excise("generate", "./y", "-c", "sets/a.toml", "-o", "o", "--print-config", cwd=tmp_path)
    settings = json.loads(done.stdout)
    assert [source["spec"] for source in settings["sources"]] == [f"{tmp_path}/sets/x", "./y"]
    assert (settings["out"], settings["cache"]) == (f"{tmp_path}/o", f"{tmp_path}/sets/c")
    assert excise("generate", "", "--print-config").returncode == USAGE


def test_a_schedule_can_be_taken_away_when_its_file_is_gone(excise, tmp_path: Path) -> None:
    done = excise("schedule", tmp_path / "gone.toml", "--uninstall", env={**os.environ, "HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (OK, f"There is no schedule for {tmp_path / 'gone.toml'}.\n")
    (tmp_path / "a.toml").write_text("limit = 3")
    done = excise("schedule", tmp_path / "a.toml")
    assert done.returncode == USAGE
    assert "no [[sources]]" in done.stderr
