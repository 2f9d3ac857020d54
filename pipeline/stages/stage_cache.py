"""The cache of finished stages: a rerun does only what changed, a killed run loses only what was in flight.

An answer's key is the hash of the stage's inputs and of its fingerprint: exactly those settings and code versions that
could change the answer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from excise.config import Settings
from excise.envs.sandbox.host_identity import host_state
from excise.errors import EnvironmentFailure, StoreError
from excise.pipeline.stages.error_boundary import is_conclusive, rejection_of
from excise.system.files import replace_file
from excise.types import Rejection, content_id, from_dict, to_dict

T = TypeVar("T")

VERSIONS = {
    "fetch": 2, "environment": 2, "model": 1, "baseline": 5, "coverage": 3, "find": 5, "candidate": 19,
    "conditions": 1, "kit": 5, "brief": 2, "grade": 5,
}  # fmt: skip
"""Version of each stage's code. Raise a stage's number when a change makes it answer differently."""

HOST_DEPENDENT_REASONS = frozenset({"python_unavailable", "missing_system_lib"})
"""Reasons that may no longer hold once something is installed on the host."""


def stage_key(stage: str, *inputs: object) -> str:
    """The cache key of a stage's answer for these inputs."""
    return content_id(stage, VERSIONS[stage], *inputs)


def verdict_fingerprint(settings: Settings) -> dict[str, object]:
    """The settings that can change a verdict, or what its certificate says about the proof."""
    return settings.verdict.model_dump(mode="json") | {"sandbox": settings.sandbox}


def measurement_fingerprint(settings: Settings) -> dict[str, object]:
    """The settings that can change what is measured on the untouched project: all but the visibility of tasks."""
    return {name: value for name, value in verdict_fingerprint(settings).items() if name != "visibility"}


class StageCache:
    """Answers of stages as JSON files, ``stages/STAGE/KEY``; several workers may write the same one at once."""

    def __init__(self, root: Path) -> None:
        self.root = root / "stages"

    def _path(self, stage: str, key: str) -> Path:
        return self.root / stage / key[:2] / f"{key}.json"

    def get(self, cls: type[T], stage: str, key: str) -> T | Rejection | None:
        """The cached answer, or the cached rejection; ``None`` if there is neither or it cannot be read."""
        try:
            data = json.loads(self._path(stage, key).read_bytes())
            kind, body = data["kind"], data["body"]
            return from_dict(Rejection, body) if kind == "rejection" else from_dict(cls, body)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, stage: str, key: str, answer: object) -> None:
        """Cache an answer. Raises :class:`StoreError` where it cannot be written, for example on a full disk."""
        kind = "rejection" if isinstance(answer, Rejection) else "answer"
        try:
            replace_file(self._path(stage, key), json.dumps({"kind": kind, "body": to_dict(answer)}).encode())
        except OSError as error:
            raise StoreError(
                f"The cache {self.root} cannot be written ({error.strerror}). Free some space, or set EXCISE_CACHE "
                "to another folder; what is finished stays usable."
            ) from error

    def put_failure(self, stage: str, key: str, source: str, failure: EnvironmentFailure) -> None:
        """Cache a failure that another try would only repeat.

        What the user can mend on this machine is cached for the present state of the machine.
        """
        rejection = rejection_of(stage, source, failure)
        if is_conclusive(rejection):
            on_this_host = rejection.reason in HOST_DEPENDENT_REASONS
            self.put(stage, stage_key(stage, key, host_state()) if on_this_host else key, rejection)

    def get_or_raise(self, cls: type[T], stage: str, key: str) -> T | None:
        """The cached answer; ``None`` if there is none. Raises a cached failure as :class:`EnvironmentFailure`."""
        cached = self.get(cls, stage, key)
        if cached is None:
            cached = self.get(cls, stage, stage_key(stage, key, host_state()))
        if isinstance(cached, Rejection):
            raise EnvironmentFailure(cached.detail, reason=cached.reason)
        return cached
