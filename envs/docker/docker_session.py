"""The worker's side of an open Docker sandbox: sends requests to the first process of a container."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from excise.envs.docker.attached_stream import AttachedStream, StreamClosed
from excise.envs.docker.container import ContainerRequest, create_container
from excise.envs.docker.docker_engine import engine_errors
from excise.envs.docker.layer_archives import LayerWriter, write_results
from excise.envs.sandbox.seccomp import filter_program
from excise.envs.sandbox.session_base import SessionBase
from excise.errors import SandboxError
from excise.protocols import Completed
from excise.system.deadline import time_limit
from excise.system.job_costs import count_command
from excise.system.process_identity import owned_temporary_folder
from excise.types import WorkerOutcome

START_TIMEOUT_S = 120.0
"""Seconds to wait for the first process to fill the writable folders."""
GRACE_S = 10.0
"""Seconds to wait for the first process after its command was killed."""


class DockerSession(SessionBase):
    """One open sandbox; see :class:`excise.protocols.Session`."""

    def __init__(
        self,
        client: Any,
        request: ContainerRequest,
        *,
        env: Mapping[str, str],
        cwd: str,
        edits: Mapping[str, bytes | None],
    ) -> None:
        self.client, self.policy, self.env, self.cwd = client, request.policy, dict(env), cwd
        self._closed = False
        self._stream: AttachedStream | None = None
        self.container = ""
        self.out = Path(owned_temporary_folder("out"))
        try:
            with engine_errors("The sandbox's container cannot be started"):
                self.container = create_container(client, request)
                parts = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                self._stream = AttachedStream(client.api.attach_socket(self.container, parts))
                client.api.start(self.container)
            self._begin(request.writable, edits)
        except BaseException:
            self.close()
            raise

    def _begin(self, writable: Sequence[str], edits: Mapping[str, bytes | None]) -> None:
        """Send the settings, and make the edits."""
        config = {"mounts": writable, "disk_bytes": self.policy.disk_bytes, "filter": filter_program().hex()}
        self._ask(config, timeout_s=START_TIMEOUT_S)
        for path, data in edits.items():
            self._send({"edit": path}, *([] if data is None else [data]))
        if edits:
            self._ask({"edited": True}, timeout_s=START_TIMEOUT_S)

    def _send(self, header: Mapping[str, object], *bodies: bytes) -> None:
        if self._closed or self._stream is None:
            raise SandboxError("The sandbox is closed.")
        self._stream.send(header, *bodies)

    def _ask(
        self, header: Mapping[str, object], *bodies: bytes, timeout_s: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        self._send(header, *bodies)
        return self._receive(time.monotonic() + timeout_s)

    def _receive(self, deadline: float) -> tuple[dict[str, Any], list[bytes]]:
        assert self._stream is not None
        try:
            header, bodies = self._stream.receive(deadline)
        except TimeoutError:
            raise SandboxError("The sandbox's container does not answer.") from None
        if "error" in header:
            raise SandboxError(f"The sandbox failed: {header['error']}.")
        return header, bodies

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a command; all processes that it started have ended when this returns."""
        with time_limit(timeout_s) as limit_s:
            return self._run(argv, limit_s, stdin, cwd, env)

    def _run(
        self,
        argv: Sequence[str],
        timeout_s: float,
        stdin: bytes,
        cwd: str | None,
        env: Mapping[str, str] | None,
    ) -> Completed:
        began = time.monotonic()
        request = {
            "argv": list(argv),
            "cwd": cwd or self.cwd,
            "env": {**self.env, **(env or {})},
            "keep": self.policy.output_bytes,
            "results": self.policy.disk_bytes // 2,
        }
        self._send({"exec": request}, stdin)
        timed_out = False
        try:
            reply, bodies = self._wait_for_reply(began + timeout_s)
            if reply is None:
                timed_out = True
                self._send({"kill": True})
                reply, bodies = self._receive(time.monotonic() + GRACE_S)
        except StreamClosed:
            return self._completed_by_death(began)
        except SandboxError:
            self.close()
            raise
        stdout, stderr, *results = bodies
        write_results(self.out, dict(zip(reply["results"], results, strict=True)))
        if reply["rc"] == 125 and stderr.startswith(b"excise: cannot start"):
            raise SandboxError(stderr.decode(errors="replace").strip())
        worker = WorkerOutcome.TIMEOUT if timed_out else WorkerOutcome.OOM if reply["oom"] else WorkerOutcome.OK
        wall_s = time.monotonic() - began
        count_command(argv, float(reply["cpu_s"]), wall_s)
        return Completed(
            worker=worker,
            rc=int(reply["rc"]),
            stdout=stdout,
            stderr=stderr,
            wall_s=wall_s,
            cpu_s=float(reply["cpu_s"]),
            peak_bytes=int(reply["peak_bytes"]),
        )

    def _wait_for_reply(self, deadline: float) -> tuple[dict[str, Any] | None, list[bytes]]:
        """Wait for the report of the command's end; (None, []) at the deadline."""
        assert self._stream is not None
        try:
            header, bodies = self._stream.receive(deadline)
        except TimeoutError:
            return None, []
        if "error" in header:
            raise SandboxError(f"The sandbox failed: {header['error']}.")
        return header, bodies

    def _completed_by_death(self, began: float) -> Completed:
        """Return the result of a command whose container ran out of memory; raise if it ended for another reason."""
        state: dict[str, Any] = {}
        with contextlib.suppress(SandboxError), engine_errors("The container is gone"):
            state = self.client.api.inspect_container(self.container)["State"]
        errors = self._stream.error_output if self._stream is not None else b""
        self.close()
        if not state.get("OOMKilled"):
            raise SandboxError(
                f"The sandbox's container ended unexpectedly; was it killed? {errors.decode(errors='replace').strip()}"
            )
        wall_s = time.monotonic() - began
        return Completed(worker=WorkerOutcome.OOM, rc=-9, stdout=b"", stderr=b"", wall_s=wall_s, cpu_s=0.0)

    def snapshot(self, target: str, into: Path) -> None:
        """Copy the changes in the mount ``target`` to the folder ``into``, as a layer."""
        writer = LayerWriter(into)
        self._send({"snapshot": target})
        with writer:
            while True:
                header, bodies = self._receive(time.monotonic() + 600.0)
                if "piece" not in header:
                    break
                writer.feed(bodies[0])
        writer.hide(header["deleted"])

    def close(self) -> None:
        """End the container and everything in it."""
        if self._closed:
            return
        self._closed = True
        if self._stream is not None:
            self._stream.close()
        if self.container:
            self._remove()
        shutil.rmtree(self.out, ignore_errors=True)
        super().close()

    def _remove(self) -> None:
        """Remove the container if it still exists, and wait until it is gone."""
        import docker

        deadline = time.monotonic() + 3 * GRACE_S
        while time.monotonic() < deadline:
            try:
                self.client.api.remove_container(self.container, force=True, v=True)
            except docker.errors.NotFound:
                return
            except (docker.errors.APIError, OSError):  # the engine is removing it already
                time.sleep(0.02)
