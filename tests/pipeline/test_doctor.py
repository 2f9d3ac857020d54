"""What ``excise doctor`` says of machines where things are missing or broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.pipeline import doctor


def test_every_check_has_something_to_say() -> None:
    checks = {check.name: check for check in doctor.examine()}
    assert {"python", "git", "cache", "sandbox bubblewrap", "sandbox docker", "gpu", "torch"} <= checks.keys()
    assert all(check.detail for check in checks.values())
    assert all(check.advice for check in checks.values() if check.needed and not check.ok)


@pytest.mark.parametrize("script", ["exec sleep 60", "exit 9"])
def test_a_broken_driver_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(doctor, "LONGEST_S", 0.5)
    gpu = next(check for check in doctor.examine() if check.name == "gpu")
    assert (gpu.ok, gpu.needed) == (False, False)


def test_the_cache_of_the_environment_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXCISE_CACHE", "new/cache")
    cache = next(check for check in doctor.examine() if check.name == "cache")
    assert cache.detail.startswith(f"{tmp_path}/new/cache, ")
