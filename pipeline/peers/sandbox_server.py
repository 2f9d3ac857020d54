"""A sandbox of an exported environment, served to another tool's process: ``excise sandbox``.

One JSON object per line. The first line of stdout is ``{"ready": true}``; each request ``{"argv", "cwd", "env",
"timeout_s", "stdin"}`` is answered by ``{"worker", "rc", "stdout", "stderr"}``. Bytes are base64. The sandbox ends with
stdin. A failure of the sandbox is ``{"error"}``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from excise.config import Settings
from excise.envs.interpreters import interpreter_of
from excise.envs.sandbox.mount_points import OUTPUTS, base_env, project_mounts, system_request
from excise.envs.task_image import PROJECT, read_record
from excise.envs.toolchains import toolchain_of
from excise.errors import ConfigError, SandboxError
from excise.extractors.languages import get_language
from excise.pipeline.stages.environment_stage import rebuilt_environment, sandbox_of
from excise.protocols import Mount, Policy, Session
from excise.verifiers.workbench import Prepared

FOLDERS = ("/logs", "/tests", "/solution", "/installed-agent")
"""Folders that other tools write, besides the checkout, the home folder and the temporary folder."""
OUTPUT_BYTES = 256 << 20
"""Most bytes of a command's output: a folder that is copied out is one."""


def prepared_image(settings: Settings, folder: Path) -> Prepared:
    """The environment in the folder of an exported image, built from its lock unless the cache has it.

    Raises :class:`ConfigError` for a folder without an image, :class:`StoreError` for a damaged one, and
    :class:`EnvironmentFailure`.
    """
    try:
        record = read_record(folder)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} holds no environment of an export ({error}).") from error
    return rebuilt_environment(settings, record.repo, record.environment, folder / PROJECT)


@contextmanager
def opened(settings: Settings, folder: Path, memory_mb: int | None) -> Iterator[Session]:
    """The sandbox of an exported environment: its checkout has only the files that the installation made."""
    with open_prepared(settings, prepared_image(settings, folder), memory_mb) as session:
        yield session


def open_prepared(settings: Settings, prepared: Prepared, memory_mb: int | None = None) -> Session:
    """The same for a built environment. Raises :class:`SandboxError`."""
    recipe, layers, verdict = prepared.environment.recipe, prepared.layers, settings.verdict
    interpreter = interpreter_of(recipe.python)
    mounts = project_mounts(interpreter, [Path(layers.built)], [Path(layers.env)])
    mounts += [Mount(target=target, layers=(), writable=True) for target in FOLDERS]
    if not get_language(prepared.repo.language).keeps_outputs:  # then they hold nothing of the project
        mounts.append(Mount(target=OUTPUTS, layers=(layers.outputs,)))
    policy = Policy(
        memory_bytes=(memory_mb or verdict.memory_mb) << 20,
        pids=verdict.pids,
        disk_bytes=verdict.disk_mb << 20,
        cpus=verdict.cpus,
        output_bytes=OUTPUT_BYTES,
    )
    system = system_request(interpreter, recipe.system_packages)
    variables = base_env(toolchain_of(prepared.repo.language).variables()) | dict(recipe.env)
    return sandbox_of(settings).open(mounts, policy, env=variables, system=system)


def serve(session: Session, requests: BinaryIO, answers: BinaryIO) -> None:
    """Run the commands that arrive, until ``requests`` ends."""
    _write(answers, {"ready": True})
    for line in requests:
        request = json.loads(line)
        try:
            done = session.exec(
                request["argv"],
                timeout_s=float(request["timeout_s"]),
                stdin=base64.b64decode(request.get("stdin", "")),
                cwd=request.get("cwd"),
                env=request.get("env") or {},
            )
        except SandboxError as error:
            _write(answers, {"error": str(error)})
            continue
        output = {name: base64.b64encode(getattr(done, name)).decode() for name in ("stdout", "stderr")}
        _write(answers, {"worker": str(done.worker), "rc": done.rc, **output})


def _write(answers: BinaryIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()
