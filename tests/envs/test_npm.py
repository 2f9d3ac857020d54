"""How npm is called, and what is done about its failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.envs.javascript import npm as npm_module
from excise.envs.javascript.npm import install_lock
from excise.errors import EnvironmentFailure

LOCK, HASHES = ("a==1.0.0",), {"a==1.0.0": "sha512-x"}


@pytest.mark.parametrize(
    ("problem", "calls"), [("No matching version found for a@1.0.0.", 2), ("network timeout", 1)], ids=["old", "other"]
)
def test_a_version_that_the_cache_does_not_know_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str, calls: int
) -> None:
    asked: list[list[str]] = []

    def npm(command: list[str], *, cwd: Path, cache: Path, timeout_s: float) -> tuple[int, str, str]:
        asked.append(command)
        if "--prefer-offline" in command:
            return 1, "", f"npm error notarget {problem}"
        packages = {"": {}, "node_modules/a": {"version": "1.0.0", "integrity": "sha512-x"}}
        (cwd / "node_modules").mkdir()
        (cwd / "node_modules/.package-lock.json").write_text(json.dumps({"packages": packages}))
        return 0, "", ""

    monkeypatch.setattr(npm_module, "npm", npm)
    if calls == 1:
        with pytest.raises(EnvironmentFailure, match=problem):
            install_lock(LOCK, HASHES, tmp_path, tmp_path / "cache", 10)
    else:
        assert install_lock(LOCK, HASHES, tmp_path, tmp_path / "cache", 10) == tmp_path / "node_modules"
    assert len(asked) == calls
