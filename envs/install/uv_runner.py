"""uv in an open sandbox session: how it is called, and what its endings mean."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from packaging.utils import canonicalize_name

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.install_failures import InstallFailure, classify, decisive
from excise.envs.install.install_sandbox import UV
from excise.envs.install.lockfile import lock_text, read_hashes
from excise.envs.interpreters import Interpreter
from excise.envs.sandbox.mount_points import ENV, REPO
from excise.errors import EnvironmentFailure
from excise.protocols import Completed, Session
from excise.types import Worker

PYTHON = f"{ENV}/bin/python"
"""The environment's interpreter."""
LOCK = "/tmp/excise-lock.txt"
"""Where a lock is put for uv to read."""


class UvRunner:
    """Runs uv, and what it builds, behind the index relay, until a deadline (of the monotonic clock).

    Every method raises :class:`EnvironmentFailure` (``timeout``, ``oom``, ``infra``) when a command does not end by
    itself.
    """

    def __init__(
        self, session: Session, relay: IndexRelay, interpreter: Interpreter, name: str, deadline: float
    ) -> None:
        self.session, self.relay, self.interpreter = session, relay, interpreter
        self.name, self.deadline = name, deadline

    def fresh_venv(self) -> None:
        """An empty virtual environment in place of what was there."""
        self.run("/usr/bin/find", ENV, "-mindepth", "1", "-delete")  # the folder itself is a mount
        python = str(self.interpreter.executable)
        made = self.run(UV, "venv", "--quiet", "--allow-existing", "--no-project", "--python", python, ENV)
        if made.rc != 0:
            raise EnvironmentFailure(
                f"Python {self.interpreter.version} makes no venv: {decisive(output(made))}", reason="infra"
            )

    def freeze(self, own: str) -> tuple[str, ...]:
        """``name==version`` of everything installed but the project itself, called ``own``; sorted."""
        listed = self.pip("freeze").stdout.decode(errors="replace").splitlines()
        own = canonicalize_name(own)
        lines = [
            line.strip() for line in listed if line.strip() and "file://" not in line and not line.startswith("-e")
        ]
        return tuple(sorted(line for line in lines if canonicalize_name(line.partition("==")[0]) != own))

    def hashes(self, lock: Sequence[str], cutoff: str) -> dict[str, str]:
        """The hashes of the files of a lock, as the index gives them; empty if it gives none."""
        self.put_lock(lock, {})
        done = self.uv(
            "pip", "compile", "--quiet", "--generate-hashes", "--no-deps", "--no-header", "--no-annotate",
            "--python", PYTHON, *dated(cutoff), LOCK,
        )  # fmt: skip
        found = read_hashes(done.stdout.decode(errors="replace")) if done.rc == 0 else {}
        return {line: found[line] for line in lock} if all(found.get(line) for line in lock) else {}

    def put_lock(self, lock: Sequence[str], hashes: Mapping[str, str]) -> None:
        """Write a lock to :data:`LOCK`."""
        self.session.put(LOCK, lock_text(lock, hashes).encode())

    def classify(self, done: Completed) -> InstallFailure:
        """What a failure of uv means."""
        return classify(output(done), index_failed=bool(self.relay.failures))

    def pip(self, action: str, *arguments: str) -> Completed:
        """``uv pip`` on the environment."""
        return self.uv("pip", action, "--python", PYTHON, *arguments)

    def uv(self, *arguments: str) -> Completed:
        """uv, with the package indexes within reach."""
        return self.relayed(UV, *arguments)

    def relayed(self, *argv: str) -> Completed:
        """Any command, with the package indexes within reach."""
        return self.run(*self.relay.command(str(self.interpreter.executable), argv), what=" ".join(argv[:3]))

    def run(self, *argv: str, cwd: str = REPO, what: str = "") -> Completed:
        """A command by itself; ``what`` is its name in messages."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise EnvironmentFailure(f"{self.name}: the installation ran out of time", reason="timeout")
        done = self.session.exec(argv, timeout_s=left, cwd=cwd)
        if done.worker is Worker.TIMEOUT:
            raise EnvironmentFailure(
                f"{self.name}: the installation ran out of time in `{what or ' '.join(argv[:3])}`",
                reason="timeout",
            )
        if done.worker is Worker.OOM:
            raise EnvironmentFailure(f"{self.name}: the installation needs more memory than it is given", reason="oom")
        if done.worker is not Worker.OK:
            raise EnvironmentFailure(f"{self.name}: the installation was killed from outside", reason="infra")
        return done


def dated(cutoff: str) -> list[str]:
    """uv's option for releases before a date; nothing for all of them."""
    return ["--exclude-newer", cutoff] if cutoff else []


def output(done: Completed) -> str:
    """Everything that a command wrote."""
    return (done.stdout + b"\n" + done.stderr).decode(errors="replace")
