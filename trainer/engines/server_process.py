"""A vLLM server as a process: started, waited for, ended with all that it started."""

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
from excise.system.process_identity import owned_temporary_folder, remove_orphaned_folders
from excise.trainer.engines.http_calls import HTTPFailure, call

WARDEN = Path(__file__).with_name("supervisor.py")
WORKER = Path(__file__).with_name("vllm_worker.py")
WORKER_MODULE = "excise_vllm_worker"
"""The name of that file where the server finds it: its interpreter need not have excise."""
END_S = 20.0
_RANKS = frozenset({
    "RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE",
    "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
})  # fmt: skip
TAIL = 3000
"""Characters of a log that an error quotes."""


class ServerProcess:
    """One server; a restart is a new one. ``command`` gets ``--host`` and ``--port``."""

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
        self._log = self._folder / "log"
        line = [sys.executable, "-I", "-S", str(WARDEN), "0", *command, "--host", "127.0.0.1", "--port", str(port)]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                line, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self._folder, start_new_session=True,
                env={**_of_one_process(os.environ), "PYTHONPATH": here, **environment},
            )  # fmt: skip

    @property
    def alive(self) -> bool:
        """Whether the process is there; one that ended is kept until :meth:`close`, which needs its number."""
        if self._process.returncode is not None:
            return False
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False

    @property
    def pid(self) -> int:
        """Of the warden, whose children are the server."""
        return self._process.pid

    async def healthy(self, timeout_s: float = 10.0) -> bool:
        """Whether it answers, and says that it can work."""
        try:
            await call(f"{self.url}/health", timeout_s=timeout_s, method="GET")
        except (OSError, HTTPFailure):
            return False
        return self.alive

    async def ready(self, timeout_s: float) -> None:
        """Wait until it can work. Raises :class:`EngineError`, with the end of its log."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if not self.alive:
                raise EngineError(f"vLLM ended while it was starting:\n{self.tail()}")
            if await self.healthy():
                return
            await asyncio.sleep(0.3)
        raise EngineError(f"vLLM was not ready within {timeout_s:.0f} s:\n{self.tail()}")

    def tail(self) -> str:
        """The end of what it said."""
        with contextlib.suppress(OSError):
            return self._log.read_text(errors="replace")[-TAIL:]
        return ""

    def close(self) -> None:
        """End it and all that it started, even if its warden was killed; safe to call twice."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()  # the warden kills everything, then goes
        deadline = time.monotonic() + END_S
        while self.alive and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._process.returncode is None:  # not waited for yet: the session's number is nobody else's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait(END_S)
        shutil.rmtree(self._folder, ignore_errors=True)


def _of_one_process(variables: Mapping[str, str]) -> dict[str, str]:
    """Without what ``torchrun`` says to a rank: a server is none of them."""
    return {
        name: value for name, value in variables.items()
        if name not in _RANKS and not name.startswith(("TORCHELASTIC_", "TORCH_NCCL_ASYNC"))
    }  # fmt: skip
