"""Commands end in time, and git does not depend on how the host is set up."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from excise.system.commands import CommandTimeout, run_command
from excise.system.git import GitError, GitOptions, run_git

PATCH = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


def test_a_command_gets_its_input_and_gives_its_output(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdin.read().upper()); sys.stderr.write('e'); sys.exit(3)"
    done = run_command([sys.executable, "-c", code], timeout_s=60, stdin=b"text")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"TEXT\n", b"e")
    with (tmp_path / "out").open("wb") as file:
        run_command(["echo", "x"], timeout_s=60, stdout=file, env={"PATH": "/usr/bin:/bin"})
    assert (tmp_path / "out").read_text() == "x\n"


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    marker = tmp_path / "pid"
    with pytest.raises(CommandTimeout, match="did not end within 1 s"):
        run_command(["sh", "-c", f"sleep 300 & echo $! > {marker}; wait"], timeout_s=1)
    assert time.monotonic() - began < 100
    pid = marker.read_text().strip()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and is_running(pid):
        time.sleep(0.05)
    assert not is_running(pid)


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def hostile_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host whose git configuration would change what is applied, committed and reported."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-commit").chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(
        f"[core]\n\tautocrlf = true\n\thooksPath = {hooks}\n"
        "[apply]\n\twhitespace = error-all\n[diff]\n\tnoprefix = true\n"
    )
    for name, value in {
        "GIT_CONFIG_GLOBAL": str(config), "GIT_CONFIG_SYSTEM": str(config), "GIT_DIR": str(tmp_path / "nowhere"),
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.autocrlf", "GIT_CONFIG_VALUE_0": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    root = tmp_path / "tree"
    root.mkdir()
    return root


def test_the_host_configuration_does_not_reach_git(hostile_git: Path) -> None:
    (hostile_git / "f").write_bytes(b"a\n")
    run_git(["apply", "-"], cwd=hostile_git, stdin=PATCH)
    assert (hostile_git / "f").read_bytes() == b"b\n"
    run_git(["init", "--quiet"], cwd=hostile_git)
    run_git(["add", "f"], cwd=hostile_git)
    author = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    run_git(["commit", "--quiet", "--message=x"], cwd=hostile_git, options=GitOptions(variables=author))
    (hostile_git / "f").write_bytes(b"c\n")
    assert b"a/f b/f" in run_git(["diff"], cwd=hostile_git).stdout


def test_the_fixture_is_hostile(hostile_git: Path) -> None:
    (hostile_git / "f").write_bytes(b"a\n")
    applied = subprocess.run(["git", "apply", "-"], cwd=hostile_git, input=PATCH, capture_output=True, check=False)
    assert applied.returncode != 0 or (hostile_git / "f").read_bytes() != b"b\n"


def test_a_git_failure_says_what_git_said(tmp_path: Path) -> None:
    with pytest.raises(GitError, match=r"git apply failed: error: f: No such file") as caught:
        run_git(["apply", "-"], cwd=tmp_path, stdin=PATCH)
    assert caught.value.reason == "git_failed"
    assert (
        run_git(
            ["diff", "--no-index", "/dev/null", __file__], cwd=tmp_path, options=GitOptions(accepted=(0, 1))
        ).returncode
        == 1
    )


def test_a_git_that_hangs_or_is_missing_is_an_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\nsleep 300\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(GitError, match="did not end within 1 s") as caught:
        run_git(["status"], cwd=tmp_path, options=GitOptions(timeout_s=1))
    assert caught.value.reason == "git_timeout"
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(GitError, match="not installed") as caught:
        run_git(["status"], cwd=tmp_path)
    assert caught.value.reason == "git_missing"


def test_a_full_disk_is_no_verdict_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\necho 'fatal: sha1 file write error. Out of diskspace' >&2\nexit 128\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(GitError, match="Out of diskspace") as caught:
        run_git(["add", "."], cwd=tmp_path)
    assert caught.value.reason == "disk_full"
