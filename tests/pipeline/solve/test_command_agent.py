"""External commands: what they get, what of their folder is graded, limits, and hostile output."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

from excise.config import ModelSettings, Settings
from excise.errors import ConfigError
from excise.pipeline.solve import folder_changes
from excise.pipeline.solve.command_agent import CommandAgent
from excise.pipeline.solve.folder_changes import TooManyChanges, folder_diff
from excise.system.process_identity import own_process_name

from ...agents.scripted_server import ScriptedServer, calls, fails
from .solving import Bench, git_apply


def script(folder: Path, body: str, *words: str) -> str:
    """The command line of a Python program, which gets the words as arguments."""
    path = folder / "agent.py"
    path.write_text("import json, os, pathlib, subprocess, sys, time\n" + textwrap.dedent(body))
    return shlex.join([sys.executable, str(path), *words])


def attempted(bench: Bench, command: str, settings: Settings | None = None) -> dict[str, Any]:
    result = bench.solve(command, settings=settings)
    assert result.lost == ()
    return bench.row()


def test_what_a_command_makes_of_its_folder_is_graded(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "gold.diff").write_text(bench.task.patch)
    command = script(
        tmp_path,
        """
        work, statement, file, diff = sys.argv[1:]
        assert pathlib.Path(file).read_text() == statement
        subprocess.run(["git", "apply", "--whitespace=nowarn", diff], cwd=work, check=True)
        (pathlib.Path(work) / "__pycache__").mkdir()
        (pathlib.Path(work) / "__pycache__/x.cpython-311.pyc").write_bytes(b"0")
        print("asked for", statement.split()[1:4])
        """,
        "{workdir}", "{statement}", "{statement_file}", str(tmp_path / "gold.diff"),
    )  # fmt: skip
    row = attempted(bench, command)
    assert (row["solved"], row["ending"], row["steps"], row["prompt_tokens"]) == (True, "finished", None, None)
    assert "asked for" in row["transcript"]
    assert row["diff"].count("diff --git") == bench.task.patch.count("diff --git")
    assert (row["agent"], row["agent_detail"]) == ("command", command)


def test_a_command_works_in_the_sandbox(bench: Bench, tmp_path: Path) -> None:
    command = script(
        tmp_path,
        """
        def run(*words):
            return subprocess.run([sys.argv[1], *words], capture_output=True, text=True)
        assert run("pwd").stdout == "/testbed\\n"
        assert run("exit 3").returncode == 3
        assert run("ls", "/nothing here").stderr.count("nothing here") == 1
        assert run(sys.argv[2]).returncode == 0
        """,
        "{run}", git_apply(bench.task.patch),
    )  # fmt: skip
    row = attempted(bench, command)
    assert (row["solved"], row["ending"], row["detail"]) == (True, "finished", "")
    trajectory = next((bench.out / "attempts").glob("*/*.jsonl")).read_text()
    assert "nothing here" in trajectory


def test_a_command_that_fails_is_graded_all_the_same(bench: Bench, tmp_path: Path) -> None:
    row = attempted(bench, script(tmp_path, "sys.exit('no idea')", "{workdir}"))
    assert (row["ending"], row["solved"], row["reasons"]) == ("failed", False, ["empty_diff"])
    assert "exit code 1: no idea" in row["detail"]


def test_the_time_limit_ends_a_command_and_all_it_started(bench: Bench, tmp_path: Path) -> None:
    command = script(
        tmp_path,
        """
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        pathlib.Path(sys.argv[2]).write_text(str(child.pid))
        (pathlib.Path(sys.argv[1]) / "new.py").write_text("x = 1\\n")
        time.sleep(300)
        """,
        "{workdir}", str(tmp_path / "pid"),
    )  # fmt: skip
    limited = bench.settings.model_copy(update={"out": bench.out, "model": ModelSettings(max_wall_s=2.0)})
    row = attempted(bench, command, limited)
    assert (row["ending"], "+x = 1" in row["diff"]) == ("time_limit", True)
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text()}")


ASK = """
import urllib.error, urllib.request
def ask():
    body = json.dumps({"model": "other", "messages": [{"role": "user", "content": "hi"}]}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    try:
        return json.load(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request))
    except urllib.error.HTTPError as error:
        return error.code
"""


def test_the_models_budget_holds_for_commands(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "secret-key")
    body = ASK + "\nassert 'secret-key' not in os.environ.values()\nprint([ask() for _ in range(4)][-1])\n"
    with ScriptedServer([calls(("x", {}))] * 9) as server:
        settings = bench.with_model(server.url, api_key_env="THE_KEY", solve_steps=2, completion_price=5.0)
        row = attempted(bench, script(tmp_path, body, "{workdir}"), settings)
        assert [request["model"] for request in server.requests] == ["scripted"] * 2
        assert {headers["authorization"] for headers in server.headers} == {"Bearer secret-key"}
    assert (row["ending"], row["steps"], row["completion_tokens"]) == ("step_limit", 2, 40)
    assert (row["transcript"], row["cost"], row["model"]) == ("403\n", pytest.approx(40 * 5 / 1e6), "scripted")


def test_a_command_that_asks_on_and_on_is_ended(bench: Bench, tmp_path: Path) -> None:
    with ScriptedServer([calls(("x", {}))] * 9) as server:
        settings = bench.with_model(server.url, max_tokens=100)
        row = attempted(bench, script(tmp_path, ASK + "\nwhile True:\n    ask()\n", "{workdir}"), settings)
    assert (row["ending"], row["steps"]) == ("token_limit", 1)


def test_a_command_whose_model_does_not_answer_is_no_attempt(bench: Bench, tmp_path: Path) -> None:
    with ScriptedServer([fails(500)]) as server:
        command = script(tmp_path, ASK + "\nsys.exit(ask())\n", "{workdir}")
        (lost,) = bench.solve(command, settings=bench.with_model(server.url)).lost
    assert (lost.reason, bench.rows()) == ("model_unavailable", [])
    assert "status 500" in lost.detail


HOSTILE = {
    "everything is deleted": "import shutil; shutil.rmtree(work)",
    "only the content is deleted": "subprocess.run(['sh', '-c', 'rm -rf * .[a-z]*'], cwd=work)",
    "links lead outside": "text = work / 'src/shapes/text.py'; text.unlink(); text.symlink_to('/etc/passwd');"
    "(work / 'all').symlink_to('/')",
    "the folder is a link": "import shutil; shutil.rmtree(work); work.symlink_to('/etc')",
    "nothing can be read": "subprocess.run(['chmod', '-R', '000', work])",
    "a pipe and a socket": "os.mkfifo(work / 'pipe'); import socket; socket.socket(socket.AF_UNIX).bind('sock')",
    "names that are no text": "(pathlib.Path(os.fsdecode(bytes(work) + b'/\\xff\\n \"x.py'))).write_text('x')",
    "another history": "subprocess.run(['sh', '-c', 'rm -rf .git; git init -q .; git config user.name x'])",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_folders(bench: Bench, tmp_path: Path, what: str) -> None:
    body = f"work = pathlib.Path(sys.argv[1])\n{HOSTILE[what]}\n"
    row = attempted(bench, script(tmp_path, body, "{workdir}"))
    assert (row["solved"], row["reward"], row["ending"]) == (False, 0.0, "finished"), row["detail"]
    assert "root:" not in row["diff"]


@pytest.mark.parametrize(
    "body",
    [
        "(work / 'big.py').write_bytes(b'x = 1\\n' * (10 << 20))",
        "[(work / f'f{n}.py').write_text('x') for n in range(51)]",
    ],
    ids=["a huge file", "many files"],
)
def test_changes_that_are_too_large_are_refused(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr(folder_changes, "MAX_CHANGED_FILES", 50)
    row = attempted(bench, script(tmp_path, f"work = pathlib.Path(sys.argv[1])\n{body}\n", "{workdir}"))
    assert (row["solved"], row["reasons"], row["diff"]) == (False, ["diff_too_large"], "")


def test_a_folders_diff_applies_byte_for_byte(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        (folder / "sub").mkdir(parents=True)
        (folder / "same.py").write_text("x\n")
        (folder / "gone.py").write_text("y\n")
        (folder / "sub/mode.sh").write_text("z\n")
        (folder / ".git").mkdir()
    (after / "gone.py").unlink()
    (after / "sub/mode.sh").chmod(0o755)
    (after / "new.py").write_bytes(b"caf\xe9\r\n")
    (after / ".git/config").write_text("[core]\n")
    diff = folder_diff(before, after, "python")
    assert diff.count("diff --git") == 3
    assert "new mode 100755" in diff
    assert b"+caf\xe9\r\n" in diff.encode("utf-8", "surrogateescape")
    assert folder_diff(before, before, "python") == ""
    (after / "big").write_bytes(b"0" * (33 << 20))
    with pytest.raises(TooManyChanges):
        folder_diff(before, after, "python")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("true", r"name \{workdir\}"),
        ("", r"name \{workdir\}"),
        ("true {workdir} {run}", "not both"),
        ("no-such-program-anywhere {workdir}", "no program"),
        ("sh -c 'unfinished {workdir}", "no command"),
        ("true {workdir} {base_url}", "wants a model"),
    ],
)
def test_commands_that_cannot_be_used(command: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CommandAgent(Settings(), command)


def test_nothing_is_left_behind(bench: Bench, tmp_path: Path) -> None:
    attempted(bench, script(tmp_path, "subprocess.run(['chmod', '-R', '000', sys.argv[1]])", "{workdir}"))
    ours = f"-{own_process_name()}-"
    kept = [path.name for path in Path(tempfile.gettempdir()).glob("excise-solve-*") if ours in path.name]
    assert kept == []
