"""Images of exports on a machine that pulls none: a base like python:slim from this machine's own packages."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from excise.envs.docker.base_image import base_image
from excise.envs.docker.docker_engine import connect
from excise.envs.interpreters import interpreter_of
from excise.envs.sandbox.mount_points import library_of, system_request
from excise.envs.sandbox.system_root import system_root


def slim_base(work: Path, version: str) -> str:
    """An image like python:slim: this machine's Debian system, with its interpreter below ``/usr/local``."""
    interpreter = interpreter_of(version)
    base = base_image(connect(), "host", system_root(system_request(interpreter)))
    library = library_of(interpreter)
    left_out = [f"--exclude=lib/{library.name}/{name}" for name in ("test", "site-packages", "config-*")]
    shared = [f"lib/{path.name}" for path in (interpreter.prefix / "lib").glob("libpython3*.so*")]
    parts = ["bin/python3", f"bin/{library.name}", f"lib/{library.name}", *shared]
    archive = ["tar", "-cf", str(work / "python.tar"), "--exclude=__pycache__", *left_out]
    subprocess.run([*archive, "-C", str(interpreter.prefix), *parts], check=True)
    variables = "LD_LIBRARY_PATH=/usr/local/lib PATH=/usr/local/bin:/usr/bin:/bin"
    (work / "Dockerfile").write_text(f"FROM {base}\nADD python.tar /usr/local/\nENV {variables}\n")
    subprocess.run(["docker", "build", "--quiet", "--tag", "excise-test-slim", str(work)], check=True)
    return "excise-test-slim"


def build_images(folder: Path, work: Path, version: str) -> None:
    """Build the images of an export, by its own script. The engine keeps what it has built already."""
    options = [f"BASE={slim_base(work, version)}", "SYSTEM_PACKAGES="]
    certificates = os.environ.get("SSL_CERT_FILE", "")
    options += [f"SSL_CERT_FILE={certificates}", f"PIP_CERT={certificates}"] if certificates else []
    index = os.environ.get("UV_DEFAULT_INDEX", "")
    options += [f"UV_DEFAULT_INDEX={index}"] if index else []
    built = subprocess.run(
        ["sh", str(folder / "images/build.sh"), "--network", "host", *(f"--build-arg={o}" for o in options)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
