"""Finds sources that cannot be fetched from here before workers are started: a wrong name is reported at once."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from excise.config import Settings
from excise.errors import SourceError
from excise.extractors.sources import resolve_source
from excise.pipeline.stages.error_boundary import rejection_of
from excise.types import Rejection, SourceSpec

MAX_CHECKED = 8
"""Number of sources that are checked, all at the same time; the others are left to the fetch stage."""
PATIENCE_S = 2.0
"""Wall seconds after which a run begins without the remaining answers."""


def missing_sources(settings: Settings, specs: Sequence[SourceSpec]) -> dict[str, Rejection]:
    """Resolve the first sources; return those that do not exist, or whose index does not answer, by name.

    Returns early once a source is found that does exist.
    """
    answers: queue.SimpleQueue[tuple[str, Rejection | None]] = queue.SimpleQueue()

    def check(spec: SourceSpec) -> None:
        problem = None
        try:
            resolve_source(spec).resolve(spec, settings.cache)
        except SourceError as error:
            problem = rejection_of("fetch", spec.name, error)
        except Exception:
            pass
        answers.put((spec.name, problem))

    checked = specs[:MAX_CHECKED]
    for spec in checked:
        threading.Thread(target=check, args=(spec,), daemon=True).start()
    missing: dict[str, Rejection] = {}
    deadline = time.monotonic() + PATIENCE_S
    with suppress(queue.Empty):
        for _ in checked:
            name, problem = answers.get(timeout=max(0.0, deadline - time.monotonic()))
            if problem is None:
                break
            missing[name] = problem
    return missing
