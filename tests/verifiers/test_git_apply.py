"""Applying patches with git: independent of the host's configuration, and a hang is an infrastructure failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.errors import PatchError, SandboxError
from excise.verifiers import git_apply
from excise.verifiers.git_apply import apply_to_files

HOSTILE = """
[core]
    autocrlf = true
    eol = crlf
    whitespace = trailing-space,cr-at-eol,tab-in-indent
    hooksPath = /nowhere
    attributesFile = {folder}/attributes
[apply]
    whitespace = fix
    ignoreWhitespace = change
[filter "upper"]
    smudge = tr a-z A-Z
    clean = tr a-z A-Z
"""
FILES = {"spaces.py": b"def f():\n\treturn 1  \n", "crlf.txt": b"one\r\ntwo\r\nthree\r\n"}
PATCH = (
    "diff --git a/spaces.py b/spaces.py\n--- a/spaces.py\n+++ b/spaces.py\n"
    "@@ -1,2 +1,2 @@\n def f():\n-\treturn 1  \n+\treturn 2\t \n"
    "diff --git a/crlf.txt b/crlf.txt\n--- a/crlf.txt\n+++ b/crlf.txt\n"
    "@@ -1,3 +1,2 @@\n one\r\n-two\r\n three\r\n"
)
CHANGED = {"spaces.py": b"def f():\n\treturn 2\t \n", "crlf.txt": b"one\r\nthree\r\n"}
LOOSE = PATCH.replace("-\treturn 1  \n", "-    return 1\n")
"""A patch that applies only if white space is ignored."""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git configuration that changes line ends and white space, in every place where git looks for one."""
    (tmp_path / "attributes").write_text("* text eol=crlf filter=upper\n")
    (tmp_path / ".gitconfig").write_text(HOSTILE.format(folder=tmp_path))
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "config").write_text(HOSTILE.format(folder=tmp_path))
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(tmp_path / ".gitconfig"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for number, (key, value) in enumerate((("apply.ignoreWhitespace", "change"), ("core.autocrlf", "true"))):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")


def test_the_bytes_are_those_of_the_patch() -> None:
    assert apply_to_files(FILES, PATCH) == CHANGED
    assert apply_to_files(CHANGED, PATCH, reverse=True) == FILES


@pytest.mark.usefixtures("hostile")
def test_a_hostile_configuration_changes_nothing() -> None:
    assert apply_to_files(FILES, PATCH) == CHANGED
    assert apply_to_files(CHANGED, PATCH, reverse=True) == FILES
    with pytest.raises(PatchError, match="git apply refuses the patch") as caught:
        apply_to_files(FILES, LOOSE)
    assert caught.value.reason == "patch_does_not_apply"


def test_a_hanging_git_is_an_infrastructure_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nsleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(git_apply, "TIMEOUT_S", 0.5)
    with pytest.raises(SandboxError, match="did not end within"):
        apply_to_files(FILES, PATCH)
