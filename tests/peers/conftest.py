"""Other tools' own packages, installed by ``scripts/peers.sh``, and exports for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.exports.registry import export
from excise.pipeline.services.export_materials import SetMaterials
from excise.system.locks import waiting_lock

ROOT = Path(__file__).resolve().parents[2]


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def run_peer(peers: Path, stored: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a program of one of the environments, with an empty home folder and excise as ``$EXCISE``."""
    home = tmp_path_factory.mktemp("home")

    def run(environment: str, *command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        folder = peers / environment / "bin"
        program, *rest = map(str, command)
        line = [str(folder / program), *rest]
        settings = {
            **os.environ,
            "PYENV_ROOT": os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv")),
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(home),
            "PYTHONPATH": f"{cwd}:{ROOT / 'src'}",
            "EXCISE": f"{sys.executable} -m excise.pipeline.cli",
            "EXCISE_CACHE": str(stored.cache),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_OFFLINE": "1",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            **variables,
        }
        return subprocess.run(
            line, cwd=cwd, env=settings, capture_output=True, text=True, check=False, timeout=600,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return run


@pytest.fixture(scope="session")
def exported(stored: Any, shared: Path) -> Callable[[str], Path]:
    """The folder with the stored set in a format; written once."""

    def write(name: str) -> Path:
        folder = shared / f"exported-{name}"
        with waiting_lock(shared / f"exported-{name}.lock"):
            if not folder.exists():
                with SetMaterials(stored.taskset) as materials:
                    export(stored.taskset, name, folder, materials)
        return folder

    return write
