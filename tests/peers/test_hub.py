"""``excise push`` and ``excise pull`` with a hub on this machine, by huggingface_hub."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.taskset import TaskSet

from .hub_stand_in import Hub, running

pytestmark = pytest.mark.slow


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
def command(hub: Hub, excise: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Runs excise with the hub."""
    with running(hub) as address:
        settings = {**os.environ, "HF_ENDPOINT": address, "HF_TOKEN": hub.token, "HF_HOME": str(tmp_path / "hf")}
        settings |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

        def run(*arguments: str | Path, **changed: str) -> Any:
            return excise(*arguments, env={**settings, **changed})

        yield run


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tables_of(folder: Path) -> dict[str, bytes]:
    """The files of a set that hashes vouch for."""
    made = ("views.sql", "_schema.parquet")  # written anew, by this version of excise
    return {name: data for name, data in files_of(folder).items() if name[0] != "." and not name.endswith(made)}


def test_what_is_pulled_is_what_was_pushed(hub: Hub, command: Callable[..., Any], stored: Any, tmp_path: Path) -> None:
    done = command("push", "me/shapes", "--out", stored.out, "--private")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("/datasets/me/shapes")
    assert hub.private == {"me/shapes": True}
    files = hub.files("me/shapes")
    assert {"README.md", "tasks/train-00000-of-00001.parquet"} <= files.keys()
    done = command("pull", "me/shapes", "--out", tmp_path / "set")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("8 tasks in ")
    original, pulled = TaskSet.open(stored.out), TaskSet.open(tmp_path / "set")
    assert pulled.task_rows() == original.task_rows()
    assert tables_of(tmp_path / "set") == tables_of(stored.out)
    assert "CREATE" in (tmp_path / "set/current/views.sql").read_text()


def test_pushing_again_replaces_what_is_gone(hub: Hub, command: Callable[..., Any], stored: Any) -> None:
    hub.commits["me/shapes"] = [{"tasks/train-00001-of-00002.parquet": b"old", "set/old.txt": b"old"}]
    assert command("push", "me/shapes", "--out", stored.out).returncode == 0
    assert not {"tasks/train-00001-of-00002.parquet", "set/old.txt"} & hub.files("me/shapes").keys()


def test_damaged_and_missing_sets_are_refused(
    hub: Hub, command: Callable[..., Any], stored: Any, tmp_path: Path
) -> None:
    done = command("pull", "me/other", "--out", tmp_path / "set")
    assert (done.returncode, "Cannot pull me/other" in done.stderr) == (1, True)
    hub.commits["me/other"] = [{"README.md": b"# nothing"}]
    assert "holds no task set" in command("pull", "me/other", "--out", tmp_path / "set").stderr
    command("push", "me/shapes", "--out", stored.out)
    files = hub.files("me/shapes")
    files["set/snapshots/1/views.sql"] = b"COPY x TO '/tmp/evil'"
    files["set/snapshots/1/tasks/other.parquet"] = files["set/extra.sh"] = b"evil"
    assert command("pull", "me/shapes", "--out", tmp_path / "other").returncode == 0
    assert tables_of(tmp_path / "other") == tables_of(stored.out)
    assert "evil" not in (tmp_path / "other/current/views.sql").read_text()
    damaged = next(name for name in files if name.startswith("set/snapshots") and "/tasks/srv" in name)
    files[damaged] += b"x"
    done = command("pull", "me/shapes", "--out", tmp_path / "set")
    assert (done.returncode, "missing or damaged" in done.stderr) == (1, True)
    assert list(tmp_path.glob("set*")) == []
    assert list(tmp_path.glob(".excise-pull*")) == []


def test_a_hub_that_does_not_answer(command: Callable[..., Any], stored: Any) -> None:
    done = command("push", "me/shapes", "--out", stored.out, HF_ENDPOINT="http://127.0.0.1:9")
    assert (done.returncode, "Cannot push to me/shapes" in done.stderr) == (1, True), done.stderr
    assert "Traceback" not in done.stderr


def test_without_permission(command: Callable[..., Any], stored: Any) -> None:
    done = command("push", "me/shapes", "--out", stored.out, HF_TOKEN="hf_wrong")
    assert done.returncode == 1
    assert "HF_TOKEN" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_exists_is_left_alone(command: Callable[..., Any], stored: Any) -> None:
    done = command("pull", "me/shapes", "--out", stored.out)
    assert (done.returncode, "name a new folder" in done.stderr) == (2, True)
