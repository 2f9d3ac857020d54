"""Calls of uv in an open sandbox session, and lock files as uv reads them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from packaging.utils import canonicalize_name

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.install_failures import InstallFailure, classify, error_lines
from excise.envs.install.install_sandbox import UV
from excise.envs.interpreters import Interpreter
from excise.envs.sandbox.mount_points import ENV, OUTPUTS, REPO
from excise.errors import EnvironmentFailure
from excise.protocols import Completed, Session
from excise.types import WorkerOutcome

PYTHON = f"{ENV}/bin/python"
"""Path of the environment's interpreter inside the sandbox."""
BYTE_CODE = {"PYTHONPYCACHEPREFIX": OUTPUTS, "PYTHONDONTWRITEBYTECODE": ""}
"""Variables with which Python keeps byte code in the mount for it."""
LOCK = "/tmp/excise-lock.txt"
"""Path of the lock file inside the sandbox."""
CONSTRAINTS = "/tmp/excise-constraints.txt"
"""Path of the file with constraints inside the sandbox."""

_COMPILED_LINE = re.compile(r"^([A-Za-z0-9][\w.-]*==[^\s;\\]+)([^\n]*(?:\n[ \t]+--hash[^\n]*)*)", re.MULTILINE)
_HASH = re.compile(r"--hash[=\s](sha256:[0-9a-f]{64})")


def lock_text(lock: Sequence[str], hashes: Mapping[str, str]) -> str:
    """A lock as a requirements file: ``name==version --hash=sha256:…`` lines, with the hashes that are known.

    pip and uv install it with ``--require-hashes --no-deps``.
    """
    lines: list[str] = []
    for line in lock:
        lines += [" \\\n    ".join([line, *(f"--hash={known}" for known in hashes.get(line, "").split())])]
    return "".join(f"{line}\n" for line in lines)


def read_hashes(compiled: str) -> dict[str, str]:
    """Hashes in the output of ``uv pip compile --generate-hashes``: ``name==version`` to hashes joined by spaces."""
    plain = re.sub(r"\\\n", "\n", compiled)
    return {match[1]: " ".join(sorted(_HASH.findall(match[2]))) for match in _COMPILED_LINE.finditer(plain)}


class UvRunner:
    """Runs uv and other commands in a session until a deadline.

    ``name`` is the repository's name, for messages; ``deadline`` is a time of the monotonic clock. Every method raises
    :class:`EnvironmentFailure` (``timeout``, ``oom``, ``infra``) when a command is killed.
    """

    def __init__(
        self, session: Session, relay: IndexRelay, interpreter: Interpreter, name: str, deadline: float
    ) -> None:
        self.session, self.relay, self.interpreter = session, relay, interpreter
        self.name, self.deadline = name, deadline

    def fresh_venv(self) -> None:
        """Replace the environment by an empty virtual environment."""
        self.run("/usr/bin/find", ENV, "-mindepth", "1", "-delete")  # the folder itself is a mount
        python = str(self.interpreter.executable)
        made = self.run(UV, "venv", "--quiet", "--allow-existing", "--no-project", "--python", python, ENV)
        if made.rc != 0:
            raise EnvironmentFailure(
                f"Python {self.interpreter.version} makes no venv: {error_lines(output(made))}", reason="infra"
            )

    def freeze(self, own: str) -> tuple[str, ...]:
        """``name==version`` of everything installed except the project, which is called ``own``; sorted."""
        done = self.run(UV, "pip", "freeze", "--python", PYTHON)  # needs no index
        listed = done.stdout.decode(errors="replace").splitlines()
        own = canonicalize_name(own)
        lines = [
            line.strip() for line in listed if line.strip() and "file://" not in line and not line.startswith("-e")
        ]
        return tuple(sorted(line for line in lines if canonicalize_name(line.partition("==")[0]) != own))

    def hashes(self, lock: Sequence[str], cutoff: str) -> dict[str, str]:
        """Line of the lock to the hashes in the index; empty unless the index gives hashes for every line."""
        self.put_lock(lock, {})
        found = self._compile(PYTHON, "--no-deps", *cutoff_option(cutoff)) or {}
        return {line: found[line] for line in lock} if all(found.get(line) for line in lock) else {}

    def resolve(self, requirements: Sequence[str], constraints: Sequence[str], cutoff: str) -> dict[str, str] | None:
        """Resolve requirements without installing them; ``None`` if uv cannot.

        Returns ``name==version`` to its hashes in the index, joined by spaces. What has no version or no hash is left
        out.
        """
        self.session.put(LOCK, "".join(f"{line}\n" for line in requirements).encode())
        options = list(cutoff_option(cutoff))
        if constraints:
            self.session.put(CONSTRAINTS, "".join(f"{line}\n" for line in constraints).encode())
            options += ["--constraints", CONSTRAINTS]
        return self._compile(str(self.interpreter.executable), *options)

    def _compile(self, python: str, *options: str) -> dict[str, str] | None:
        """Resolve the requirements in :data:`LOCK` with ``uv pip compile``."""
        done = self.uv(
            "pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--python", python,
            *options, LOCK,
        )  # fmt: skip
        return read_hashes(done.stdout.decode(errors="replace")) if done.rc == 0 else None

    def put_lock(self, lock: Sequence[str], hashes: Mapping[str, str]) -> None:
        """Write a lock file to :data:`LOCK`."""
        self.session.put(LOCK, lock_text(lock, hashes).encode())

    def classify(self, done: Completed) -> InstallFailure:
        """Classify a failed call of uv."""
        return classify(output(done), index_failed=bool(self.relay.failures))

    def pip(self, action: str, *arguments: str) -> Completed:
        """Run ``uv pip ACTION`` on the environment."""
        return self.uv("pip", action, "--python", PYTHON, *arguments)

    def uv(self, *arguments: str) -> Completed:
        """Run uv with access to the package indexes."""
        return self.relayed(UV, *arguments)

    def relayed(self, *argv: str) -> Completed:
        """Run any command with access to the package indexes."""
        return self.run(*self.relay.command(str(self.interpreter.executable), argv), what=" ".join(argv[:3]))

    def run(self, *argv: str, cwd: str = REPO, what: str = "", env: Mapping[str, str] | None = None) -> Completed:
        """Run a command without access to the indexes; ``what`` is its name in messages."""
        remaining_s = self.deadline - time.monotonic()
        if remaining_s <= 0:
            raise EnvironmentFailure(f"{self.name}: the installation ran out of time", reason="timeout")
        done = self.session.exec(argv, timeout_s=remaining_s, cwd=cwd, env=env)
        if done.worker is WorkerOutcome.TIMEOUT:
            raise EnvironmentFailure(
                f"{self.name}: the installation ran out of time in `{what or ' '.join(argv[:3])}`",
                reason="timeout",
            )
        if done.worker is WorkerOutcome.OOM:
            raise EnvironmentFailure(f"{self.name}: the installation needs more memory than it is given", reason="oom")
        if done.worker is not WorkerOutcome.OK:
            raise EnvironmentFailure(f"{self.name}: the installation was killed from outside", reason="infra")
        return done


def cutoff_option(cutoff: str) -> list[str]:
    """uv's option that admits only releases before a date; empty for no limit."""
    return ["--exclude-newer", cutoff] if cutoff else []


def output(done: Completed) -> str:
    """stdout and stderr of a command, as one text."""
    return (done.stdout + b"\n" + done.stderr).decode(errors="replace")
