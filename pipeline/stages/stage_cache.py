"""The cache of stage results: a second run repeats only what changed, a killed run loses only unfinished stages.

The key of a result is a hash of the stage's inputs and of exactly those settings and code versions that could change
the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from excise.config import Settings
from excise.envs.sandbox.host_identity import host_state
from excise.errors import EnvironmentFailure, StoreError
from excise.pipeline.stages.error_boundary import is_conclusive, rejection_of
from excise.pipeline.stages.run_files import current_run_files
from excise.system.files import replace_file
from excise.types import Rejection, content_id, from_dict, to_dict

T = TypeVar("T")

VERSIONS = {
    "fetch": 16, "environment": 20, "model": 2, "baseline": 11, "executed": 4, "byte code": 1, "coverage": 11,
    "find": 34, "propose": 1, "candidate": 178, "conditions": 4, "kit": 63, "brief": 2, "grade": 23, "statement": 1,
}  # fmt: skip
"""Version of the code behind each kind of cached result. Raise it when a change of the code changes the results."""

HOST_DEPENDENT_REASONS = frozenset(
    {"python_unavailable", "toolchain_unavailable", "missing_system_lib", "missing_dependency"}
)
"""Reasons of failures that may not occur again after something was installed on the host."""


_MEASUREMENTS = ("executed", "baseline", "coverage", "find", "candidate")
"""Stages each of which uses what those before it have measured, though their keys do not name it."""


def stage_key(stage: str, *inputs: object) -> str:
    """Return the cache key of a stage's result for these inputs."""
    used = _MEASUREMENTS[: _MEASUREMENTS.index(stage)] if stage in _MEASUREMENTS else ()
    return content_id(stage, VERSIONS[stage], [VERSIONS[each] for each in used], *inputs)


def verdict_fingerprint(settings: Settings) -> dict[str, object]:
    """Return the settings that can change a verdict or the content of a certificate."""
    return settings.verdict.model_dump(mode="json") | {"sandbox": settings.sandbox}


def measurement_fingerprint(settings: Settings) -> dict[str, object]:
    """Return the settings that can change measurements of the untouched project: all but what tasks show."""
    what_tasks_show = {"visibility", "sample_undescribed"}
    return {name: value for name, value in verdict_fingerprint(settings).items() if name not in what_tasks_show}


def format_answer(answer: object) -> bytes:
    """A result or rejection as it is cached."""
    kind = "rejection" if isinstance(answer, Rejection) else "answer"
    return json.dumps({"kind": kind, "body": to_dict(answer)}).encode()


def parse_answer(cls: type[T], data: bytes) -> T | Rejection:
    """What :func:`format_answer` wrote. Raises ``ValueError``, ``KeyError`` or ``TypeError`` for anything else."""
    found = json.loads(data)
    kind, body = found["kind"], found["body"]
    return from_dict(Rejection, body) if kind == "rejection" else from_dict(cls, body)


class StageCache:
    """Results of stages as JSON files, ``stages/STAGE/KK/KEY.json``; several workers may write one at the same time."""

    def __init__(self, root: Path) -> None:
        self.root = root / "stages"

    def path(self, stage: str, key: str) -> Path:
        """The file of a result, which need not exist."""
        return self.root / stage / key[:2] / f"{key}.json"

    def get(self, cls: type[T], stage: str, key: str) -> T | Rejection | None:
        """Return the cached result or rejection; ``None`` if there is neither or it cannot be read.

        On a worker with folders of its own, the cache is that of the main process.
        """
        files = current_run_files.get()
        try:
            content = files.read_result(stage, key) if files else self.path(stage, key).read_bytes()
            if content is None:
                return None
            answer = parse_answer(cls, content)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return files.arrive(answer) if files else answer

    def put(self, stage: str, key: str, answer: object) -> None:
        """Cache a result. Raises :class:`StoreError` if it cannot be written, for example on a full disk."""
        if files := current_run_files.get():
            files.write_result(stage, key, format_answer(files.leave(answer)))
            return
        self.write(stage, key, format_answer(answer))

    def write(self, stage: str, key: str, data: bytes) -> None:
        """Write a result that :func:`format_answer` made. Raises like :meth:`put`."""
        try:
            replace_file(self.path(stage, key), data)
        except OSError as error:
            raise StoreError(
                f"The cache {self.root} cannot be written ({error.strerror}). Free some space, or set EXCISE_CACHE "
                "to another folder; what is finished stays usable."
            ) from error

    def get_or_make(
        self, cls: type[T], stage: str, key: str, make: Callable[[], T], keep_if: Callable[[T], bool] = lambda _: True
    ) -> T:
        """Return the cached result; otherwise make it, and cache it if ``keep_if`` is true for it."""
        cached = self.get(cls, stage, key)
        if isinstance(cached, cls):
            return cached
        made = make()
        if keep_if(made):
            self.put(stage, key, made)
        return made

    def put_failure(self, stage: str, key: str, source: str, failure: EnvironmentFailure) -> None:
        """Cache a failure unless a retry may succeed.

        Failures that the user can fix on this machine are cached until something is installed on it.
        """
        rejection = rejection_of(stage, source, failure)
        if is_conclusive(rejection):
            on_this_host = rejection.reason in HOST_DEPENDENT_REASONS
            self.put(stage, stage_key(stage, key, host_state()) if on_this_host else key, rejection)

    def get_or_raise(self, cls: type[T], stage: str, key: str) -> T | None:
        """Return the cached result; ``None`` without one. Raises a cached failure as :class:`EnvironmentFailure`."""
        cached = self.get(cls, stage, key)
        if cached is None:
            cached = self.get(cls, stage, stage_key(stage, key, host_state()))
        if isinstance(cached, Rejection):
            raise EnvironmentFailure(cached.detail, reason=cached.reason)
        return cached
