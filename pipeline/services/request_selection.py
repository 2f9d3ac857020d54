"""``excise generate --request``: makes tasks of the difficulty that a trainer requests, from the sources of a set.

They are published in entries of their own, ``SOURCE#request=ID``, so that neither other requests nor the next ordinary
run replaces them. A request that is run again continues where it stopped.
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
from excise.datasets.difficulty.measures import measures_of_feature
from excise.datasets.difficulty.rungs import Level, Rung, level_of
from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.taskset import TaskSet
from excise.deleters.all_deleters import DELETERS
from excise.deleters.code_editors import editor_of
from excise.errors import ConfigError
from excise.extractors.features.search_index import MIN_LOC
from excise.extractors.languages import get_language
from excise.pipeline.run.selection import REQUEST_MARK, CandidateSelection, CandidateSpec
from excise.trainer.curriculum.task_request import TaskRequest
from excise.types import Feature, FeatureKind, SourceSpec, from_json

_ONE_FUNCTION = frozenset({FeatureKind.FUNCTION, FeatureKind.METHOD})


def read_request(path: Path) -> TaskRequest:
    """Read a request from its JSON file. Raises :class:`ConfigError` if it is not valid."""
    try:
        text = path.read_text()
        given = json.loads(text)
        request = from_json(TaskRequest, text)
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"{path}: {said}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: no request can be read from it: {error}") from None
    if unknown := sorted(set(given) - {field.name for field in fields(TaskRequest)}):
        raise ConfigError(f"{path}: a request has no {', '.join(unknown)}")
    low, high = request.pass_rate
    problems = {
        "lowest is above highest": request.lowest.order > request.highest.order,
        "pass_rate: write the lower one first, both between 0 and 1": not 0 <= low <= high <= 1,
        "count has to be 1 or more": request.count < 1,
    }
    if found := [problem for problem, holds in problems.items() if holds]:
        raise ConfigError(f"{path}: {'; '.join(found)}")
    get_language(request.language)
    return request


class RequestSelection(CandidateSelection):
    """Selects candidates that fit a request: one deleter for each feature, and nothing that the set already has."""

    publishes_features = False

    def __init__(self, request: TaskRequest, taskset: TaskSet | None, names: dict[str, str] | None = None) -> None:
        """``names``: pinned spec to the source's name in the set."""
        self.request = request
        self.min_loc = 1 if request.lowest.order < Level.STUB.order else MIN_LOC
        self._names = names or {}
        self._tried: set[tuple[str, str]] = set()
        self._published: set[str] = set()
        mine = f"{REQUEST_MARK}{request.request_id}"
        for name in taskset.entries() if taskset else ():
            if taskset and not name.endswith(mine):
                self._published.update(taskset.ids_of(name))
        for task in taskset.tasks(quarantined=True) if taskset else ():
            if task.visibility is request.visibility and task.instance_id in self._published:
                self._tried.add((task.feature_id, task.deleter))

    def entry_name(self, spec: SourceSpec) -> str:
        """See :class:`CandidateSelection`."""
        return f"{self._names.get(spec.name, spec.name)}{REQUEST_MARK}{self.request.request_id}"

    def is_published_elsewhere(self, instance_id: str) -> bool:
        """See :class:`CandidateSelection`."""
        return instance_id in self._published

    def candidates(self, features: Sequence[Feature], language: str = "python") -> list[CandidateSpec]:
        """Return the candidates that fit, levels in turn."""
        by_level: dict[Level, list[CandidateSpec]] = {}
        for feature in features:
            offered = editor_of(language).deleters
            deleters = [deleter for deleter in DELETERS if deleter in offered and self._fits(feature, deleter)]
            if deleters and not self.request.features:
                deleters = [deleters[self._draw(feature) % len(deleters)]]
            for deleter in deleters:
                by_level.setdefault(level_of(deleter, feature.kind), []).append((feature, deleter))
        ordered = [by_level[level] for level in Level if level in by_level]
        return [candidate for row in zip_longest(*ordered) for candidate in row if candidate is not None]

    def _fits(self, feature: Feature, deleter: str) -> bool:
        if self.request.features and not self._is_named(feature):
            return False
        if deleter in {"proposed", "remove_and_stub"} or (deleter == "path") != bool(feature.changed):
            return False  # these are for what a model proposed, and where ``remove`` is refused
        # all but ``remove`` take single functions only
        possible = not feature.needed_by if deleter == "remove" else feature.kind in _ONE_FUNCTION
        right_size = feature.loc <= MIN_LOC if deleter == "line" else feature.loc >= MIN_LOC
        if not (possible and right_size) or (feature.feature_id, deleter) in self._tried:
            return False
        rung = Rung(level_of(deleter, feature.kind), self.request.visibility)
        return self.request.fits(measures_of_feature(feature, rung))

    def _is_named(self, feature: Feature) -> bool:
        is_whole = len(feature.entry) == 1 and feature.entry[0] in self.request.features
        return feature.feature_id in self.request.features or is_whole

    def _draw(self, feature: Feature) -> int:
        """A pseudo-random number that depends on request and feature alone."""
        text = f"{self.request.number}:{feature.feature_id}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


def prepare_request(settings: Settings, request: TaskRequest) -> tuple[Settings, RequestSelection]:
    """Return settings and selection for the run of a request.

    If ``settings`` name no sources, the pinned sources of the set are used. Raises :class:`ConfigError` if there are
    none, and :class:`StoreError` if the set cannot be read.
    """
    taskset = TaskSet.open(settings.out) if Snapshot.current(settings.out) else None
    names: dict[str, str] = {}
    sources = settings.sources
    if not sources and taskset is not None:
        pinned = _pinned_sources(taskset)
        names = {spec.name: name for name, spec in pinned.items()}
        sources = tuple({spec.name: spec for spec in pinned.values()}.values())
    if not sources:
        raise ConfigError(f"{settings.out} has no sources to make tasks from. Name some, or give --config.")
    visible = {"visibility": request.visibility, "sample_undescribed": False}
    changed = {
        "verdict": settings.verdict.model_copy(update=visible),
        "sources": tuple(replace(source, limit=None) for source in sources),
        "limit": ceil(request.count / len(sources)),
    }
    return settings.model_copy(update=changed), RequestSelection(request, taskset, names)


def _pinned_sources(taskset: TaskSet) -> dict[str, SourceSpec]:
    """Name of each fetched source of the set, to its pinned spec with the options of its last ordinary run."""
    found: dict[str, SourceSpec] = {}
    for entry in sorted(taskset.entries(), key=lambda entry: (REQUEST_MARK not in entry, entry)):
        if (repo := taskset.repo_of(entry)) is not None:
            name = entry.partition(REQUEST_MARK)[0]
            asked = taskset.entries()[entry].spec or SourceSpec(spec=repo.source)
            found[name] = replace(asked, spec=repo.source, subdir="")  # the pin has the subfolder
    return found
