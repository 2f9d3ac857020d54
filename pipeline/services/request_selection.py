"""``excise generate --request``: tasks of the rungs that a trainer asks for, from the sources of a set.

They are published under a name of their own for each source, ``NAME#request=ID``, so that neither another request nor
the next ordinary run touches them; a request that is made again goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import zip_longest
from math import ceil
from pathlib import Path

from pydantic import ValidationError

from excise.config import Settings
from excise.datasets.snapshot import Snapshot
from excise.datasets.taskset import TaskSet
from excise.deleters.statement.problem_statement import LEVELS
from excise.errors import ConfigError
from excise.extractors.finder import MIN_LOC
from excise.extractors.languages import get_language
from excise.pipeline.run.selection import MARK, Attempt, Plan
from excise.trainer.curriculum.rungs import Level, level_of
from excise.trainer.curriculum.task_request import HarderTasks
from excise.types import Feature, FeatureKind, SourceSpec, from_json

_ONE_FUNCTION = frozenset({FeatureKind.FUNCTION, FeatureKind.METHOD})
_WAYS = ("line", "expression", "stub", "remove")
"""Deleters, from the lowest rung up; classes and larger things are only removed."""


def read_request(path: Path) -> HarderTasks:
    """A request from its JSON file. Raises :class:`ConfigError` that says what is wrong with it."""
    try:
        text = path.read_text()
        given = json.loads(text)
        request = from_json(HarderTasks, text)
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"{path}: {said}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: no request can be read from it: {error}") from None
    if unknown := sorted(set(given) - {field.name for field in fields(HarderTasks)}):
        raise ConfigError(f"{path}: a request has no {', '.join(unknown)}")
    low, high = request.pass_rate
    problems = {
        "lowest is above highest": request.lowest.order > request.highest.order,
        "pass_rate: write the lower one first, both between 0 and 1": not 0 <= low <= high <= 1,
        "count has to be 1 or more": request.count < 1,
        f"visibility: there are {', '.join(LEVELS)}": request.visibility not in LEVELS,
    }
    if found := [problem for problem, holds in problems.items() if holds]:
        raise ConfigError(f"{path}: {'; '.join(found)}")
    get_language(request.language)
    return request


class RequestPlan(Plan):
    """What fits a request: each feature on one rung, other rungs for other features, nothing that the set has."""

    def __init__(self, request: HarderTasks, taskset: TaskSet | None, names: dict[str, str] | None = None) -> None:
        """``names`` are the set's names of sources whose specs are pinned."""
        self.request = request
        self.min_loc = 1 if request.lowest.order < Level.STUB.order else MIN_LOC
        self._names = names or {}
        self._tried: set[tuple[str, str]] = set()
        self._taken: set[str] = set()
        mine = f"{MARK}{request.request_id}"
        for name, entry in taskset.manifest.repos.items() if taskset else ():
            if not name.endswith(mine):
                self._taken |= entry.tasks.keys()
        for task in taskset.tasks(quarantined=True) if taskset else ():
            if task.visibility is request.visibility and task.instance_id in self._taken:
                self._tried.add((task.feature_id, task.deleter))

    def entry(self, spec: SourceSpec) -> str:
        """See :class:`Plan`."""
        return f"{self._names.get(spec.name, spec.name)}{MARK}{self.request.request_id}"

    def is_taken(self, instance_id: str) -> bool:
        """See :class:`Plan`."""
        return instance_id in self._taken

    def attempts(self, features: Sequence[Feature]) -> list[Attempt]:
        """The features that fit, level by level in turn."""
        lanes: dict[Level, list[Attempt]] = {}
        for feature in features:
            ways = [way for way in _WAYS if self._fits(feature, way)]
            if ways:
                way = ways[self._draw(feature) % len(ways)]
                lanes.setdefault(level_of(way, feature.kind), []).append((feature, way))
        ordered = [lanes[level] for level in Level if level in lanes]
        return [attempt for row in zip_longest(*ordered) for attempt in row if attempt is not None]

    def _fits(self, feature: Feature, way: str) -> bool:
        possible = way == "remove" or feature.kind in _ONE_FUNCTION
        sizable = feature.loc <= MIN_LOC if way == "line" else feature.loc >= MIN_LOC  # the least of two statements
        if not (possible and sizable) or (feature.feature_id, way) in self._tried:
            return False
        return self.request.fits(level_of(way, feature.kind), feature.loc)

    def _draw(self, feature: Feature) -> int:
        """A number that is the same whenever this request meets this feature."""
        text = f"{self.request.number}:{feature.feature_id}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


def prepare_request(settings: Settings, request: HarderTasks) -> tuple[Settings, RequestPlan]:
    """Settings and plan of a request's run; without sources in the settings, those of the set are taken, as they were.

    Raises :class:`ConfigError` if there are none, and :class:`StoreError` if the set cannot be read.
    """
    taskset = TaskSet.open(settings.out) if Snapshot.current(settings.out) else None
    names: dict[str, str] = {}
    sources = settings.sources
    if not sources and taskset is not None:
        pinned = _pinned(taskset)
        names = {spec.name: name for name, spec in pinned.items()}
        sources = tuple({spec.name: spec for spec in pinned.values()}.values())
    if not sources:
        raise ConfigError(f"{settings.out} has no sources to make tasks from. Name some, or give --config.")
    changed = {
        "verdict": settings.verdict.model_copy(update={"visibility": request.visibility}),
        "sources": tuple(replace(source, limit=None) for source in sources),
        "limit": ceil(request.count / len(sources)),
    }
    return settings.model_copy(update=changed), RequestPlan(request, taskset, names)


def _pinned(taskset: TaskSet) -> dict[str, SourceSpec]:
    """The set's names of sources, to specs that are pinned, of all that gave a repository; as the last ordinary run had
    them, with the interpreter and the requirements that were asked for."""
    found: dict[str, SourceSpec] = {}
    for entry in sorted(taskset.manifest.repos, key=lambda entry: MARK not in entry):
        if (repo := taskset.repo_of(entry)) is not None:
            name = entry.partition(MARK)[0]
            asked = taskset.manifest.repos[entry].spec or SourceSpec(spec=repo.source)
            found[name] = replace(asked, spec=repo.source, subdir="")  # the pin has the subfolder
    return found
