"""Certificates: the evidence of one task, sealed by a digest that binds it to the task."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import excise
from excise.system.commands import CommandTimeout, run_command
from excise.types import Certificate, Task, Verdict, to_dict
from excise.verifiers.candidate import Candidate
from excise.verifiers.workbench import Cost

_ADDED = frozenset({"needs"})
"""Fields of a task's record that older sets do not have."""


def certify(candidate: Candidate, verdicts: Sequence[Verdict], cost: Cost) -> Certificate:
    """The sealed certificate of a candidate that passed every gate, with all verdict rows."""
    bench, task = candidate.bench, candidate.task
    repeated = [v for v in verdicts if v.gate == "g7_gold"]
    disagreeing = sum(1 for v in repeated if v.statuses)
    certificate = Certificate(
        instance_id=task.instance_id,
        verdicts=tuple(verdicts),
        excise_version=excise.__version__,
        tools={
            **bench.toolchain.versions(bench.prepared.environment),
            "sandbox": bench.sandbox.name,
            "git": _git_version(),
            "host_python": platform.python_version(),
        },
        flake_rate=disagreeing / len(repeated) if repeated else 0.0,
        num_runs=len(repeated),
        cpu_s=cost.cpu_s,
        wall_s=cost.wall_s,
        settings=bench.settings.model_dump(mode="json"),
    )
    return sealed(certificate, task)


def sealed(certificate: Certificate, task: Task) -> Certificate:
    """The certificate with the hash of its task and a digest of the whole certificate."""
    bound = replace(certificate, task_hash=_task_hash(task), digest="")
    return replace(bound, digest=_digest(bound))


def seal_problem(certificate: Certificate, task: Task) -> str:
    """A sentence that says why the digest does not match; empty if it does."""
    if not certificate.digest:
        return "The certificate has no digest; make the set again with the same command."
    if certificate.digest != _digest(certificate):
        return "The certificate is not the one that was issued: its digest differs."
    if certificate.task_hash != _task_hash(task):
        return "The certificate was issued for another task: the hash of the task differs."
    return ""


def _task_hash(task: Task) -> str:
    """The hash of a task's record. Fields that later versions added count where they have a value."""
    record = {name: value for name, value in to_dict(task).items() if value or name not in _ADDED}
    record["difficulty"] = {name: value for name, value in record["difficulty"].items() if value is not None}
    return _sha256(record)


def _digest(certificate: Certificate) -> str:
    return _sha256({name: value for name, value in to_dict(certificate).items() if name != "digest"})


def _sha256(record: Mapping[str, object]) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _git_version() -> str:
    try:
        output = run_command(["git", "--version"], timeout_s=20).stdout.decode(errors="replace")
    except (OSError, CommandTimeout):
        return ""
    return output.strip().rpartition(" ")[2]
