"""The last stage: shards of a repository's candidates, tried on a worker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from excise.config import Settings
from excise.errors import ExciseError
from excise.pipeline.cache import StageCache, stage_key
from excise.pipeline.deadline import deadline
from excise.pipeline.stages import GRACE_S, decided, fingerprint, rejection_of, workbench
from excise.types import Feature, from_json, to_json
from excise.verifiers.prove import Proof, prove
from excise.verifiers.workbench import Prepared, Workbench

_benches: dict[str, Workbench] = {}


def prove_shard(
    settings: Settings, _source: str, prepared: Path | Prepared, shard: Sequence[tuple[Feature, str]]
) -> list[Proof]:
    """Try a shard of one repository's candidates; one answer each, whatever happens.

    ``prepared`` may be the path of its JSON: the maps of a large repository are read once per worker, not sent
    with every shard.
    """
    if isinstance(prepared, Path):
        prepared = from_json(Prepared, prepared.read_bytes())
    env_id = prepared.environment.env_id
    if env_id not in _benches:
        _benches.clear()
        _benches[env_id] = workbench(settings, prepared)
    return [_prove_one(settings, _benches[env_id], feature, deleter) for feature, deleter in shard]


def _prove_one(settings: Settings, bench: Workbench, feature: Feature, deleter: str) -> Proof:
    key = stage_key("candidate", bench.prepared.environment.env_id, fingerprint(settings), feature.feature_id, deleter)
    cache = StageCache(settings.cache)
    known = cache.get(Proof, "candidate", key)
    if isinstance(known, Proof):
        return known
    began = time.monotonic()
    limit = 20 * bench.settings.suite_timeout_s + GRACE_S
    try:
        with deadline(limit, f"Proving {feature.feature_id}"):
            proof = prove(bench, feature, deleter)
    except (ExciseError, OSError, RecursionError, MemoryError) as error:
        row = rejection_of("gate", bench.repo.repo, error)
        row = replace(row, subject=feature.feature_id, kind=feature.kind, symbols=feature.symbols)
        return Proof(rejection=row, wall_s=time.monotonic() - began)
    if proof.rejection is None or decided(proof.rejection):
        cache.put("candidate", key, proof)
    return proof


def save_prepared(settings: Settings, prepared: Prepared) -> Path:
    """Write a prepared repository where all workers can read it."""
    key = stage_key("coverage", prepared.environment.env_id, fingerprint(settings), prepared.repo.blob)
    path = settings.cache / "prepared" / f"{key}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        scratch.write_bytes(to_json(prepared))
        scratch.rename(path)
    return path
