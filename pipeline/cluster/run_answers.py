"""What the main process of a run answers its workers: cached results of stages, blobs of the set, layers, the log."""

from __future__ import annotations

import re
from typing import Any

from excise.config import Settings
from excise.datasets.storage.store import Store
from excise.errors import StoreError
from excise.pipeline.cluster.artifacts import FolderArtifacts, answer_artifact_request
from excise.pipeline.cluster.layer_names import LayerNames
from excise.pipeline.stages.fetch_stage import FetchedSources
from excise.pipeline.stages.run_files import KeptLayer
from excise.pipeline.stages.stage_cache import VERSIONS, StageCache, format_answer, parse_answer
from excise.system.run_log import add_worker_lines
from excise.types import Rejection
from excise.verifiers.workbench import Prepared

_WITH_LAYERS: dict[str, type[FetchedSources] | type[Prepared] | type[KeptLayer]] = {
    "fetch": FetchedSources,
    "environment": Prepared,
    "model": Prepared,
    "byte code": KeptLayer,
}
"""Stages whose results have layers."""


class RunAnswers:
    """Answers requests (:data:`excise.pipeline.cluster.relay.Handler`) with the cache and the set of a run."""

    def __init__(self, settings: Settings, names: LayerNames) -> None:
        self.names = names
        self.results, self.blobs = StageCache(settings.cache), Store(settings.out)
        self.artifacts = FolderArtifacts(settings.cache / "artifacts")

    def answer(self, request: str, given: dict[str, Any]) -> Any:
        """Answer a request. Raises :class:`StoreError`, and ``OSError`` if a disk of this machine is full."""
        match request:
            case "read result":
                return self._read_result(given["stage"], _safe(given["key"]))
            case "write result":
                if given["stage"] not in VERSIONS:
                    raise StoreError(f"{given['stage']!r} is no stage of this version of excise.")
                self.results.write(given["stage"], _safe(given["key"]), given["data"])
            case "has blob":
                return self.blobs.blobs.has(_safe(given["sha"]))
            case "put blob":
                return self.blobs.put_blob(given["content"], given["suffix"])
            case "log":
                add_worker_lines(given["lines"])
            case _:
                return answer_artifact_request(self.artifacts, request, given)
        return None

    def _read_result(self, stage: str, key: str) -> bytes | None:
        try:
            data = self.results.path(stage, key).read_bytes()
        except OSError:
            return None
        if stage not in _WITH_LAYERS:
            return data
        try:
            answer: Any = parse_answer(_WITH_LAYERS[stage], data)
            return data if isinstance(answer, Rejection) else format_answer(self._with_names(answer))
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            return None  # of an earlier version, or its layers are gone

    def _with_names(self, answer: Any) -> Any:
        """A result that this machine has made, with its layers stored for others. Raises ``FileNotFoundError``."""
        return self.names.leave(answer)


def _safe(name: str) -> str:
    """A name that workers give, as a part of a path. Raises :class:`StoreError` for anything but letters and digits."""
    if not re.fullmatch(r"[0-9a-zA-Z]*", name):
        raise StoreError(f"{name!r} is no key.")
    return name
