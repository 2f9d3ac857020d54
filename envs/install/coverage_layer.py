"""Packages that our own programs import inside a sandbox: coverage. Wheels only, so nothing is run to install them."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path

from uv import find_uv_bin

from excise.envs.interpreters import choose
from excise.envs.sandbox.mount_points import open_to_all
from excise.errors import EnvironmentFailure

TOOLS = ("coverage>=7.2",)


def tool_layer(python: str, cache: Path) -> Path:
    """The layer for an interpreter version, made once per minor version.

    Raises :class:`EnvironmentFailure` (``infra``) if the index cannot be reached.
    """
    minor = ".".join(python.split(".")[:2])
    layer = cache / "tools" / minor
    if layer.is_dir():
        return layer
    interpreter = choose(f"=={minor}.*")
    scratch = cache / "tools" / f".new-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    scratch.mkdir(parents=True)
    command = [
        find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        "--no-config",
        "--only-binary",
        ":all:",
        "--compile-bytecode",
    ]
    command += ["--python", str(interpreter.executable), "--target", str(scratch), *TOOLS]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=600)
    try:
        if done.returncode != 0:
            raise EnvironmentFailure(
                f"coverage cannot be installed for Python {minor}: {done.stderr.decode(errors='replace')[-500:]}",
                reason="infra",
            )
        open_to_all(scratch)
        try:
            scratch.rename(layer)
        except OSError:
            if not layer.is_dir():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return layer
