"""Harbor's environment and verifier classes over excise; this file is copied into every export as ``excise_harbor.py``.

It runs in Harbor's process, with Harbor and the standard library alone, and calls the command ``excise`` (or what the
variable EXCISE names) of any other Python. With the exported folder on PYTHONPATH:

    harbor run -p tasks -a oracle -e excise_harbor:BubblewrapEnvironment -y
    EXCISE_SET=SET harbor run -p tasks -a oracle -e excise_harbor:BubblewrapEnvironment \
        --verifier excise_harbor:ExciseVerifier -y

``excise_harbor:PlainDockerEnvironment`` runs the same tasks in containers.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import os
import shlex
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.models.task.config import NetworkMode
from harbor.models.verifier.result import VerifierResult
from harbor.verifier.base import BaseVerifier

HERE = Path(__file__).resolve().parent
EXEC_TIMEOUT_S = 3600
"""Seconds for a command without a time limit."""
TRANSFER_TIMEOUT_S = 300
"""Seconds for a copy into a sandbox or out of it."""
LINE_BYTES = 512 << 20
"""Most bytes of an answer: a downloaded folder is one line."""


def excise_command(*arguments: str) -> list[str]:
    """The command line of excise with these arguments."""
    return [*shlex.split(os.environ.get("EXCISE", "excise")), *arguments]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command to be run in a sandbox."""

    argv: list[str]
    """Program and arguments."""
    cwd: str | None = "/"
    """Folder to run it in."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables."""
    timeout_s: float = TRANSFER_TIMEOUT_S
    """Time limit in seconds."""
    stdin: bytes = b""
    """Input."""
    user: str | int | None = None
    """User, where there are several."""


class CommandEnvironment(BaseEnvironment):  # type: ignore[misc]
    """An environment of an exported task, all of whose operations are commands; the network is always off."""

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """The network is always off."""
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """Memory is limited."""
        return EnvironmentResourceCapabilities(memory_limit=True)

    def _validate_definition(self) -> None:
        if not self.task_env_config.docker_image:
            raise FileNotFoundError("The task names no image: it is no export of excise.")
        if self._network_policy.network_mode != NetworkMode.NO_NETWORK:
            raise ValueError("These sandboxes have no network: the task must say network_mode = 'no-network'.")

    async def _run(self, command: Command) -> tuple[int, bytes, bytes]:
        """Exit code, stdout and stderr of a command. Raises ``TimeoutError``."""
        raise NotImplementedError

    async def _prepare(self) -> None:
        """Make the folders that Harbor writes, and upload what the task brings."""
        folders = ["/logs/agent", "/logs/verifier", "/logs/artifacts", "/tests", "/solution"]
        await self._run(Command(argv=["mkdir", "-p", *folders]))
        await self._upload_environment_dir_after_start()

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command with bash, in the checkout unless ``cwd`` says otherwise."""
        rc, out, err = await self._run(
            Command(
                argv=["/bin/bash", "-c", command],
                cwd=cwd or self.task_env_config.workdir,
                env=self._merge_env(env) or {},
                timeout_s=timeout_sec or EXEC_TIMEOUT_S,
                user=self._resolve_user(user),
            )
        )
        return ExecResult(stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace"), return_code=rc)

    async def _unpack(self, archive: bytes, folder: str) -> None:
        script = 'mkdir -p "$1" && tar -xf - --no-same-owner -C "$1"'
        rc, _, err = await self._run(Command(argv=["/bin/sh", "-c", script, "sh", folder], stdin=archive))
        if rc != 0:
            raise RuntimeError(f"Uploading to {folder} failed: {err.decode(errors='replace')}")

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file into the sandbox."""
        folder, _, name = target_path.rpartition("/")
        await self._unpack(_packed([(Path(source_path), name)]), folder or "/")

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy a folder's content into the sandbox."""
        await self._unpack(_packed([(path, path.name) for path in sorted(Path(source_dir).iterdir())]), target_dir)

    async def _download(self, arguments: list[str]) -> tarfile.TarFile:
        rc, out, err = await self._run(Command(argv=["tar", "-cf", "-", *arguments]))
        if rc != 0:
            raise RuntimeError(f"Downloading failed: {err.decode(errors='replace')}")
        return tarfile.open(fileobj=io.BytesIO(out))

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file out of the sandbox."""
        folder, _, name = source_path.rpartition("/")
        with await self._download(["-C", folder or "/", "--", name]) as archive:
            file = archive.extractfile(name)
            if file is None:
                raise RuntimeError(f"{source_path} is no regular file.")
            Path(target_path).parent.mkdir(parents=True, exist_ok=True)
            Path(target_path).write_bytes(file.read())

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy a folder's content out of the sandbox; links that lead out of it are refused."""
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        with await self._download(["-C", source_dir, "."]) as archive:
            archive.extractall(target_dir, filter="data")


class BubblewrapEnvironment(CommandEnvironment):
    """Runs a task in excise's sandbox: no container engine, the environment built from its lock.

    The image of the task is a folder of the export (EXCISE_IMAGES names another place for them). Every command is run
    by the one user of the sandbox, and its processes end with it.
    """

    _server: asyncio.subprocess.Process | None = None

    @staticmethod
    def type() -> str:
        """Name of the environment."""
        return "excise-bubblewrap"

    @property
    def image_folder(self) -> Path:
        """The folder that describes the image of the task."""
        images = Path(os.environ.get("EXCISE_IMAGES") or HERE / "images")
        return images / str(self.task_env_config.docker_image).replace(":", "-").replace("/", "-")

    def _validate_definition(self) -> None:
        super()._validate_definition()
        if not (self.image_folder / "environment.json").is_file():
            raise FileNotFoundError(f"{self.image_folder} describes no environment of excise; set EXCISE_IMAGES.")

    async def start(self, force_build: bool) -> None:
        """Open the sandbox; the first one of an environment builds it."""
        command = ["sandbox", str(self.image_folder)]
        if self._effective_memory_mb:
            command += ["--memory-mb", str(self._effective_memory_mb)]
        self._lock = asyncio.Lock()
        self._log = open(self.trial_paths.trial_dir / f"sandbox-{self.session_id}.log", "wb")  # noqa: SIM115
        self._server = await asyncio.create_subprocess_exec(
            *excise_command(*command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._log,
            limit=LINE_BYTES,
        )
        await self._answer()
        await self._prepare()

    async def stop(self, delete: bool) -> None:
        """Close the sandbox; everything in it is gone."""
        if self._server is None:
            return
        with contextlib.suppress(ProcessLookupError):
            assert self._server.stdin is not None
            self._server.stdin.close()
            try:
                await asyncio.wait_for(self._server.wait(), 20)
            except TimeoutError:
                self._server.kill()
                await self._server.wait()
        self._log.close()
        self._server = None

    async def _answer(self) -> dict[str, Any]:
        assert self._server is not None
        assert self._server.stdout is not None
        line = await self._server.stdout.readline()
        if not line:
            self._log.flush()
            raise RuntimeError(f"excise's sandbox ended: {Path(self._log.name).read_text(errors='replace')[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"excise's sandbox failed: {answer['error']}")
        return answer

    async def _run(self, command: Command) -> tuple[int, bytes, bytes]:
        if self._server is None or self._server.stdin is None:
            raise RuntimeError("The environment has not been started.")
        request = {"argv": command.argv, "cwd": command.cwd, "env": command.env, "timeout_s": command.timeout_s}
        line = json.dumps(request | {"stdin": base64.b64encode(command.stdin).decode()}).encode() + b"\n"
        async with self._lock:
            self._server.stdin.write(line)
            await self._server.stdin.drain()
            answer = await self._answer()
        if answer["worker"] == "timeout":
            raise TimeoutError(f"The command took more than {command.timeout_s:.0f} s.")
        return answer["rc"], base64.b64decode(answer["stdout"]), base64.b64decode(answer["stderr"])


class PlainDockerEnvironment(CommandEnvironment):
    """Runs a task in a container without network, by the command ``docker`` alone.

    Harbor's own Docker environment needs Docker Compose, and an image of its own to keep containers off the network.
    """

    _container: str | None = None

    @staticmethod
    def type() -> str:
        """Name of the environment."""
        return "excise-docker"

    async def start(self, force_build: bool) -> None:
        """Start the container; ``images/build.sh`` has built its image."""
        options = ["--memory", f"{self._effective_memory_mb}m"] if self._effective_memory_mb else []
        image = str(self.task_env_config.docker_image)
        command = ["run", "--detach", "--rm", "--init", "--network", "none", *options, image, "sleep", "infinity"]
        rc, out, err = await _docker(command, b"", 120)
        if rc != 0:
            raise RuntimeError(f"{image} cannot be started: {err.decode(errors='replace').strip()}")
        self._container = out.decode().strip()
        await self._prepare()

    async def stop(self, delete: bool) -> None:
        """Remove the container."""
        if self._container is not None:
            await _docker(["rm", "--force", self._container], b"", 120)
            self._container = None

    async def _run(self, command: Command) -> tuple[int, bytes, bytes]:
        options = ["--interactive"]
        options += ["--workdir", command.cwd] if command.cwd else []
        options += ["--user", str(command.user)] if command.user is not None else []
        for name, value in command.env.items():
            options += ["--env", f"{name}={value}"]
        arguments = ["exec", *options, str(self._container), *command.argv]
        return await _docker(arguments, command.stdin, command.timeout_s)


async def _docker(arguments: list[str], stdin: bytes, timeout_s: float) -> tuple[int, bytes, bytes]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("docker", *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), timeout_s)
    except TimeoutError:
        process.kill()
        raise TimeoutError(f"docker {arguments[0]} took more than {timeout_s:.0f} s.") from None
    assert process.returncode is not None
    return process.returncode, out, err


def _packed(files: list[tuple[Path, str]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, name in files:
            archive.add(path, name)
    return out.getvalue()


class ExciseVerifier(BaseVerifier):  # type: ignore[misc]
    """Grades the agent's changes with ``excise grade`` on the task set in the folder EXCISE_SET."""

    async def verify(self) -> VerifierResult:
        """The reward of excise's grader. Raises ``RuntimeError`` if the infrastructure failed: that is no reward."""
        taskset = os.environ.get("EXCISE_SET", "")
        if not taskset:
            raise RuntimeError("Set EXCISE_SET to the folder of the task set.")
        patch = self.trial_paths.artifacts_dir / "logs" / "artifacts" / "solution.patch"
        diff = patch.read_bytes() if patch.exists() else b""
        instance_id = self.task.config.metadata["instance_id"]
        process = await asyncio.create_subprocess_exec(
            *excise_command("grade", instance_id, "--out", taskset, "--diff", "-", "--json"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(diff)
        self.trial_paths.verifier_dir.mkdir(parents=True, exist_ok=True)
        (self.trial_paths.verifier_dir / "grade.json").write_bytes(out)
        grade = json.loads(out) if out.strip() else {}
        if not grade.get("decided"):
            raise RuntimeError(f"Not graded: {err.decode(errors='replace')[-1000:] or grade.get('reasons')}")
        return VerifierResult(rewards={"reward": grade["reward"], "reward_tests": grade["reward_tests"]})
