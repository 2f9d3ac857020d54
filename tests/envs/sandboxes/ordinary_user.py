"""Runs the probes of sandboxes as an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from excise.envs.interpreters import find_interpreters

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534
DROPPED = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
PROGRAMS = ("sandbox_probes.py", "escape_probes.py", "fork_probes.py")


def ordinary_command(base: Path) -> list[str]:
    """A command line that runs ``sandbox_probes.py`` as a user without rights, from a copy that this user can read."""
    if os.geteuid() != 0:
        return [sys.executable, str(Path(__file__).with_name("sandbox_probes.py"))]
    shutil.rmtree(base, ignore_errors=True)
    shutil.copytree(ROOT / "envs", base / "excise" / "envs", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("types", "protocols", "system"):
        shutil.copytree(ROOT / "src" / "excise" / name, base / "excise" / name)
    for name in ("__init__", "errors"):
        shutil.copy(ROOT / "src" / "excise" / f"{name}.py", base / "excise")
    for name in PROGRAMS:
        shutil.copy(Path(__file__).with_name(name), base)
    shutil.copy(ROOT / "extractors/python/inside/excise_fork_server.py", base)
    subprocess.run(["chmod", "-R", "a+rX", str(base)], check=True)
    environment = ["env", f"PYTHONPATH={base}", "PYTHONDONTWRITEBYTECODE=1"]
    return ["setpriv", *DROPPED, *environment, readable_python(base), str(base / "sandbox_probes.py")]


def readable_python(base: Path) -> str:
    """An interpreter of 3.11 or later that every user can run; a copy of ours if there is none."""
    for interpreter in find_interpreters():
        command = ["setpriv", *DROPPED, str(interpreter.executable), "-c", "import json"]
        if interpreter.minor >= (3, 11) and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return str(interpreter.executable)
    shutil.copytree(sys.base_prefix, base / "python", symlinks=True)
    subprocess.run(["chmod", "-R", "a+rX", str(base)], check=True)
    return str(base / "python" / "bin" / Path(sys.executable).resolve().name)
