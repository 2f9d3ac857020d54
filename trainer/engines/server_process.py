"""Management of a vLLM server process: start, health check, and shutdown with all of its child processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from excise.errors import EngineError
from excise.system import supervisor
from excise.system.process_identity import owned_temporary_folder, remove_orphaned_folders
from excise.trainer.engines.http_calls import HTTPFailure, call

SUPERVISOR = Path(supervisor.__file__)
WORKER = Path(__file__).with_name("vllm_worker.py")
WORKER_MODULE = "excise_vllm_worker"
"""Module name of the copy of the worker file in the server's folder (the server's interpreter may lack excise)."""
SHUTDOWN_S = 20.0
"""Seconds to wait for the server to end before its session is killed."""
_RANK_VARIABLES = frozenset({
    "RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE",
    "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
})  # fmt: skip
LOG_TAIL_CHARS = 3000
"""Number of characters of the log's end that error messages quote."""


MAX_SOCKET_FOLDER = 60
"""Longest path in bytes of a folder for vLLM's sockets: their names have 36, and an address has room for 107."""


class ServerProcess:
    """One server process; a restart makes a new object. ``--host`` and ``--port`` are appended to ``command``."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.command, self.environment = tuple(command), dict(environment)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        remove_orphaned_folders("vllm")
        self._folder = Path(owned_temporary_folder("vllm"))
        shutil.copyfile(WORKER, self._folder / f"{WORKER_MODULE}.py")
        here = os.pathsep.join(filter(None, [str(self._folder), os.environ.get("PYTHONPATH", "")]))
        own = {"PYTHONPATH": here}
        if len(os.fsencode(self._folder)) <= MAX_SOCKET_FOLDER:
            own["VLLM_RPC_BASE_PATH"] = str(self._folder)  # a killed server leaves its sockets
        self._log = self._folder / "log"
        line = [sys.executable, "-I", "-S", str(SUPERVISOR), "0", *command, "--host", "127.0.0.1", "--port", str(port)]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                line, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self._folder, start_new_session=True,
                env={**_without_rank_variables(os.environ), **own, **environment},
            )  # fmt: skip

    @property
    def is_alive(self) -> bool:
        """Whether the process runs. A dead one is reaped by :meth:`close` only, which needs its process id."""
        if self._process.returncode is not None:
            return False
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False

    @property
    def pid(self) -> int:
        """Process id of the supervisor, the server's parent."""
        return self._process.pid

    async def is_healthy(self, timeout_s: float = 10.0) -> bool:
        """Whether the server's health check succeeds."""
        try:
            await call(f"{self.url}/health", timeout_s=timeout_s, method="GET")
        except (OSError, HTTPFailure):
            return False
        return self.is_alive

    async def wait_until_ready(self, timeout_s: float) -> None:
        """Wait until the server is healthy. Raises :class:`EngineError` with the end of its log."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if not self.is_alive:
                raise EngineError(f"vLLM ended while it was starting:\n{self.log_tail()}")
            if await self.is_healthy():
                return
            await asyncio.sleep(0.3)
        raise EngineError(f"vLLM was not ready within {timeout_s:.0f} s:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """The last :data:`LOG_TAIL_CHARS` characters of the server's log."""
        with contextlib.suppress(OSError):
            return self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]
        return ""

    def close(self) -> None:
        """End the server and all of its child processes, even if the supervisor was killed. May be called twice."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()  # the supervisor then kills everything and exits
        deadline = time.monotonic() + SHUTDOWN_S
        while self.is_alive and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._process.returncode is None:  # not reaped yet, so the session id cannot have been reused
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait(SHUTDOWN_S)
        shutil.rmtree(self._folder, ignore_errors=True)


def _without_rank_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Environment variables without those that ``torchrun`` sets: the server is not a rank."""
    return {
        name: value for name, value in variables.items()
        if name not in _RANK_VARIABLES and not name.startswith(("TORCHELASTIC_", "TORCH_NCCL_ASYNC"))
    }  # fmt: skip
