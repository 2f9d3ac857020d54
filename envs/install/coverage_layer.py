"""The layer with coverage.py, which excise's programs import in sandboxes; separate from the project's environment.

Only wheels are installed, so that no code of a distribution runs during the installation.
"""

from __future__ import annotations

from pathlib import Path

from uv import find_uv_bin

from excise.envs.interpreters import choose
from excise.envs.sandbox.mount_points import open_to_all
from excise.errors import EnvironmentFailure
from excise.system.commands import run_command
from excise.system.folders import make_folder_once

REQUIREMENTS = ("coverage>=7.2,<8",)
"""The program ``excise_map.py`` reads the collector's data, which is not a public interface."""


def coverage_layer(python: str, cache: Path) -> Path:
    """Return the layer for an interpreter version (``3.12.1``); it is made once per minor version.

    Raises :class:`EnvironmentFailure` (``infra``) if the index cannot be reached.
    """
    minor = ".".join(python.split(".")[:2])
    return make_folder_once(cache / "tools" / minor, lambda folder: _install(minor, folder))


def _install(minor: str, folder: Path) -> None:
    command = [find_uv_bin(), "pip", "install", "--quiet", "--no-config", "--only-binary", ":all:"]
    command += ["--compile-bytecode", "--python", str(choose(f"=={minor}.*").executable), "--target", str(folder)]
    done = run_command([*command, *REQUIREMENTS], timeout_s=600)
    if done.returncode != 0:
        raise EnvironmentFailure(
            f"coverage cannot be installed for Python {minor}: {done.stderr.decode(errors='replace')[-500:]}",
            reason="infra",
        )
    open_to_all(folder)
