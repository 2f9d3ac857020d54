"""Finished stages, by content: a rerun does only what changed, a killed run loses only what was in flight.

The key of an answer is the hash of what went in: the stage's input records and its fingerprint, which is exactly
those settings and code versions that could change the answer.
"""

from __future__ import annotations

import json
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from excise.errors import StoreError
from excise.types import Rejection, content_id, from_dict, to_dict

T = TypeVar("T")

VERSIONS = {
    "fetch": 2, "environment": 2, "model": 1, "baseline": 5, "coverage": 3, "find": 5, "candidate": 19,
    "conditions": 1, "kit": 5, "brief": 2, "grade": 5,
}  # fmt: skip
"""Raise a stage's number when its code changes what it answers."""


def stage_key(stage: str, *inputs: object) -> str:
    """Key of a stage's answer for these inputs."""
    return content_id(stage, VERSIONS[stage], *inputs)


class StageCache:
    """Answers of stages as JSON files; writing is atomic, so that workers may race."""

    def __init__(self, root: Path) -> None:
        self.root = root / "stages"

    def _path(self, stage: str, key: str) -> Path:
        return self.root / stage / key[:2] / f"{key}.json"

    def get(self, cls: type[T], stage: str, key: str) -> T | Rejection | None:
        """The answer, or the remembered refusal; ``None`` if there is neither (or it cannot be read)."""
        try:
            data = json.loads(self._path(stage, key).read_bytes())
            kind, body = data["kind"], data["body"]
            return from_dict(Rejection, body) if kind == "rejection" else from_dict(cls, body)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, stage: str, key: str, answer: object) -> None:
        """Keep an answer. Raises :class:`StoreError` if the disk is full."""
        path = self._path(stage, key)
        kind = "rejection" if isinstance(answer, Rejection) else "answer"
        scratch = path.with_name(f".{key}.{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(scratch, "wb") as file:
                file.write(json.dumps({"kind": kind, "body": to_dict(answer)}).encode())
                file.flush()
                os.fsync(file.fileno())
            scratch.rename(path)
        except OSError as error:
            with suppress(OSError):
                scratch.unlink()
            raise StoreError(
                f"The cache {self.root} cannot be written ({error.strerror}). Free some space, or set EXCISE_CACHE "
                "to another folder; what is finished stays usable."
            ) from error
