"""Records an agent's actions from outside the sandbox, so that no program inside can forge or skip an event.

Recorded: every command with its folder, exit code, duration and output; at the end the change of the checkout, files
in the home and temporary folders, and processes still running. Not recorded: files that a program opens without
printing them, and network attempts, which fail (the sandbox refuses ptrace, and events of the layers' file systems do
not say which process caused them). An agent learns only what is printed, and the output is what the rules of
:mod:`excise.verifiers.monitor.content_rules` compare.
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
"""Maximum number of files, and of processes, that are listed at the end."""
_LIST_FILES = f"find {HOME} /tmp /var/tmp /dev/shm -xdev -type f 2>/dev/null | head -{MAX_LISTED}"
_LIST_PROCESSES = """for p in /proc/[0-9]*; do
[ "${p#/proc/}" = "$$" ] || { tr '\\0' ' ' < "$p/cmdline" 2>/dev/null && echo; }
done"""
_SHELL_PROGRAMS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash"})


class RecordingSession:
    """A session that records all commands run in it; :meth:`finished` returns the trajectory."""

    def __init__(self, session: Session, instance_id: str) -> None:
        self.session, self.instance_id = session, instance_id
        self.out, self.forks = session.out, session.forks
        self.steps: list[Step] = []
        self._running_before = frozenset(self._lines(_LIST_PROCESSES))

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """See :meth:`excise.protocols.Session.exec`. A command that raises is recorded as well."""
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
        """See :meth:`excise.protocols.Session.put`. Only lines that the file did not have before are recorded."""
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
        """See :meth:`excise.protocols.Session.get`; not recorded."""
        began, data = time.monotonic(), b""
        try:
            data = self.session.get(path)
        finally:
            shown = clipped(data.decode(errors="replace"))
            self._add(began, tool="read_file", arguments={"path": path}, cwd=REPO, output=shown)
        return data

    def snapshot(self, target: str, into: Path) -> None:
        """See :meth:`excise.protocols.Session.snapshot`; not recorded."""
        self.session.snapshot(target, into)

    def fork(self) -> Session:
        """See :meth:`excise.protocols.Session.fork`; the new session is not recorded."""
        return self.session.fork()

    def diff(self, target: str) -> bytes:
        """See :meth:`excise.protocols.Session.diff`; not recorded."""
        return self.session.diff(target)

    def close(self) -> None:
        """Close the session; the record is kept."""
        self.session.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _add(self, began: float, **what: Any) -> None:
        took = round(time.monotonic() - began, 3)
        self.steps.append(Step(number=len(self.steps) + 1, duration_s=took, **what))

    def finished(self) -> Trajectory:
        """The trajectory so far, with the final change, files outside the checkout, and processes still running."""
        running = [line for line in self._lines(_LIST_PROCESSES) if line not in self._running_before]
        return Trajectory(
            instance_id=self.instance_id,
            source="excise",
            steps=tuple(self.steps),
            diff=self.session.diff(REPO).decode(errors="replace"),
            cwd=REPO,
            processes=tuple(running[:MAX_LISTED]),
            changed=tuple(self._lines(_LIST_FILES)),
        )

    def _lines(self, script: str) -> list[str]:
        done = self.session.exec(["/bin/sh", "-c", script], timeout_s=60.0)
        return sorted({line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()})


def _command(argv: Sequence[str], stdin: bytes) -> str:
    """The command as shell text; for a shell with ``-c``, its script."""
    text = argv[2] if len(argv) == 3 and argv[0] in _SHELL_PROGRAMS and argv[1] in {"-c", "-lc"} else shlex.join(argv)
    if stdin:
        text += f" <<'EXCISE_STDIN'\n{stdin[:200_000].decode(errors='replace')}\nEXCISE_STDIN"
    return text
