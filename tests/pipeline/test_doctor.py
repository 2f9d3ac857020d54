"""``excise doctor`` on machines where programs are missing or broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.pipeline.services import doctor


def test_every_check_has_a_message() -> None:
    checks = {check.name: check for check in doctor.check_machine()}
    assert {
        "python",
        "git",
        "cache",
        "sandbox bubblewrap",
        "sandbox docker",
        "gpu",
        "torch",
        "engines",
    } <= checks.keys()
    assert all(check.detail for check in checks.values())
    assert all(check.advice for check in checks.values() if check.needed and not check.ok)


@pytest.mark.parametrize("script", ["exec sleep 60", "exit 9"])
def test_a_broken_driver_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(doctor, "TOOL_TIMEOUT_S", 0.5)
    gpu = next(check for check in doctor.check_machine() if check.name == "gpu")
    assert (gpu.ok, gpu.needed) == (False, False)


def test_the_cache_of_the_environment_variable_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXCISE_CACHE", "new/cache")
    cache = next(check for check in doctor.check_machine() if check.name == "cache")
    assert cache.detail.startswith(f"{tmp_path}/new/cache, ")


def test_the_usable_engines_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"torch": "2.13.0+cpu", "transformers": "5.19.0"}
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name, ""))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EXCISE_VLLM_VENV", raising=False)

    def engines() -> tuple[str, str]:
        check = next(check for check in doctor.check_machine() if check.name == "engines")
        return check.detail, check.advice

    assert engines() == ("transformers", "For vLLM without a GPU: scripts/vllm.sh. See docs/training.md.")
    (tmp_path / ".venv-vllm/bin").mkdir(parents=True)
    for name in ("bin/python", ".excise-vllm"):
        (tmp_path / ".venv-vllm" / name).touch()
    assert engines() == ("transformers, vllm-server (python = .venv-vllm/bin/python)", "")
    versions["vllm"] = "0.30.0"
    assert engines() == ("transformers, vllm, vllm-server", "")
    versions.clear()
    (tmp_path / ".venv-vllm/.excise-vllm").unlink()
    assert engines()[0].startswith("none")
    assert "excise[train-cpu]" in engines()[1]


def test_a_torch_without_gpu_support_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'A GPU, 80 GiB'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(doctor, "_version", lambda name: "2.13.0+cpu" if name == "torch" else "")
    torch = next(check for check in doctor.check_machine() if check.name == "torch")
    assert (torch.ok, torch.needed, torch.detail) == (False, False, "2.13.0+cpu, which uses no GPU")
