"""Agents whose reward is known: gold (1), no-op (0) and stub (0). They act in the sandbox, like any agent."""

from __future__ import annotations

from collections.abc import Callable

from excise.envs.sandbox.mount_points import REPO
from excise.errors import SandboxError
from excise.pipeline.services.arena import RecordedSandbox
from excise.pipeline.services.attack_suite import stub_of
from excise.pipeline.solve.attempt import AttemptJob, AttemptOutcome

APPLY_S = 120.0
"""Timeout of applying a patch in seconds."""


def _gold(sandbox: RecordedSandbox) -> str:
    return sandbox.task.patch


def _stub(sandbox: RecordedSandbox) -> str:
    return stub_of(sandbox.workspace.bench, sandbox.task)


def _nothing(_: RecordedSandbox) -> str:
    return ""


REFERENCES: dict[str, Callable[[RecordedSandbox], str]] = {"gold": _gold, "noop": _nothing, "stub": _stub}
"""Name of each reference agent to the function that returns its patch."""


class ReferenceAgent:
    """Applies a known patch. See :class:`excise.pipeline.solve.attempt.Agent`."""

    model = ""
    detail = ""

    def __init__(self, name: str) -> None:
        """``name`` is one of :data:`REFERENCES`."""
        self.name = name

    def attempt(self, job: AttemptJob) -> AttemptOutcome:
        """Apply the patch. Raises :class:`SandboxError` if that fails."""
        patch = REFERENCES[self.name](job.sandbox)
        if patch:
            data = patch.encode("utf-8", "surrogateescape")
            done = job.sandbox.session.exec(
                ["git", "apply", "--whitespace=nowarn", "-"], timeout_s=APPLY_S, stdin=data, cwd=REPO
            )
            if done.rc != 0:
                raise SandboxError(f"The patch does not apply: {done.stderr.decode(errors='replace')[:500]}")
        return AttemptOutcome()
