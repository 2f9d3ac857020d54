"""Records what is done in a sandbox, from outside of it: nothing that runs inside can forge or skip an event.

Seen: every command that is given to the sandbox with its folder, exit code, duration and output; at the end the change
of the checkout, files in the home and temporary folders, and processes that are left. Not seen: files that a program
opens without showing them, and network attempts, which fail in there (the sandbox refuses ptrace, so that nothing can
trace what runs inside; events of the layers' file systems do not say whose they are). What an agent learned it was
shown, and output is what the rules of :mod:`excise.verifiers.monitor.content_rules` judge.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from excise.envs.sandbox.mount_points import HOME, REPO
from excise.protocols import Completed, Session
from excise.verifiers.monitor.trajectory import Step, Trajectory, clipped

MAX_LISTED = 1000
_LEFT = f"find {HOME} /tmp /var/tmp /dev/shm -xdev -type f 2>/dev/null | head -{MAX_LISTED}"
_RUNNING = """for p in /proc/[0-9]*; do
[ "${p#/proc/}" = "$$" ] || { tr '\\0' ' ' < "$p/cmdline" 2>/dev/null && echo; }
done"""
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash"})


class Recorder:
    """A session that keeps what is done in it; :meth:`finished` is the trajectory."""

    def __init__(self, session: Session, instance_id: str) -> None:
        self.session, self.instance_id = session, instance_id
        self.out = session.out
        self.steps: list[Step] = []
        self._running_before = frozenset(self._lines(_RUNNING))

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """As :meth:`excise.protocols.Session.exec`. A command that does not come to its end is a step, too."""
        began = time.monotonic()
        done: Completed | None = None
        try:
            done = self.session.exec(argv, timeout_s=timeout_s, stdin=stdin, cwd=cwd, env=env)
        finally:
            output = (done.stdout + done.stderr).decode(errors="replace") if done else ""
            self._add(
                began,
                command=_command(argv, stdin),
                cwd=cwd or REPO,
                exit_code=done.rc if done else None,
                output=clipped(output),
            )
        return done

    def put(self, path: str, data: bytes | None) -> None:
        """As :meth:`excise.protocols.Session.put`. Lines that stood in the file before are not the writer's own."""
        began = time.monotonic()
        try:
            before = set(self.session.get(path).splitlines())
        except FileNotFoundError:
            before = set()
        new = b"\n".join(line for line in (data or b"").splitlines() if line not in before)
        arguments = {"path": path, "content": clipped(new.decode(errors="replace"))}
        try:
            self.session.put(path, data)
        finally:
            self._add(began, tool="write_file" if data is not None else "delete_file", arguments=arguments, cwd=REPO)

    def get(self, path: str) -> bytes:
        """As :meth:`excise.protocols.Session.get`."""
        began, data = time.monotonic(), b""
        try:
            data = self.session.get(path)
        finally:
            shown = clipped(data.decode(errors="replace"))
            self._add(began, tool="read_file", arguments={"path": path}, cwd=REPO, output=shown)
        return data

    def snapshot(self, target: str, into: Path) -> None:
        """As :meth:`excise.protocols.Session.snapshot`; no step."""
        self.session.snapshot(target, into)

    def fork(self) -> Session:
        """A second session, which is not recorded."""
        return self.session.fork()

    def diff(self, target: str) -> bytes:
        """As :meth:`excise.protocols.Session.diff`; no step."""
        return self.session.diff(target)

    def close(self) -> None:
        """End the session; what was recorded stays."""
        self.session.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _add(self, began: float, **what: Any) -> None:
        took = round(time.monotonic() - began, 3)
        self.steps.append(Step(number=len(self.steps) + 1, duration_s=took, **what))

    def finished(self) -> Trajectory:
        """What was done, with the final change, files outside the checkout, and processes that are left."""
        running = [line for line in self._lines(_RUNNING) if line not in self._running_before]
        return Trajectory(
            instance_id=self.instance_id,
            source="excise",
            steps=tuple(self.steps),
            diff=self.session.diff(REPO).decode(errors="replace"),
            cwd=REPO,
            processes=tuple(running[:MAX_LISTED]),
            changed=tuple(self._lines(_LEFT)),
        )

    def _lines(self, script: str) -> list[str]:
        done = self.session.exec(["/bin/sh", "-c", script], timeout_s=60.0)
        return sorted({line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()})


def _command(argv: Sequence[str], stdin: bytes) -> str:
    """The command as a shell would read it; a shell's own script as it is."""
    text = argv[2] if len(argv) == 3 and argv[0] in _SHELLS and argv[1] in {"-c", "-lc"} else shlex.join(argv)
    if stdin:
        text += f" <<'EXCISE_STDIN'\n{stdin[:200_000].decode(errors='replace')}\nEXCISE_STDIN"
    return text
