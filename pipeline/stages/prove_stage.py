"""The last stage: shards of a repository's candidates, tried on a worker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from excise.config import Settings
from excise.datasets.store import Store
from excise.pipeline.stages.environment_stage import workbench
from excise.pipeline.stages.error_boundary import GRACE_S, decided, fingerprint, rejection_of
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.system.deadline import deadline
from excise.types import Feature, content_id, from_json, to_json
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
    bench = bench_of(settings, prepared)
    return [_prove_one(settings, bench, feature, deleter) for feature, deleter in shard]


def bench_of(settings: Settings, prepared: Path | Prepared) -> Workbench:
    """This process's workbench for a repository; the last one is kept."""
    key = content_id("bench", str(prepared) if isinstance(prepared, Path) else prepared, fingerprint(settings))
    if key not in _benches:
        if isinstance(prepared, Path):
            prepared = from_json(Prepared, prepared.read_bytes())
        _benches.clear()
        _benches[key] = workbench(settings, prepared)
    return _benches[key]


def _prove_one(settings: Settings, bench: Workbench, feature: Feature, deleter: str) -> Proof:
    key = stage_key("candidate", bench.prepared.environment.env_id, fingerprint(settings), feature.feature_id, deleter)
    cache = StageCache(settings.cache)
    known = cache.get(Proof, "candidate", key)
    if isinstance(known, Proof):
        _keep_kit(settings, known)
        return known
    began = time.monotonic()
    limit = 20 * bench.settings.suite_timeout_s + GRACE_S
    try:
        with deadline(limit, f"Proving {feature.feature_id}"):
            proof = prove(bench, feature, deleter)
    except Exception as error:
        row = rejection_of("gate", bench.repo.repo, error)
        row = replace(row, subject=feature.feature_id, kind=feature.kind, symbols=feature.symbols)
        return Proof(rejection=row, wall_s=time.monotonic() - began)
    if proof.rejection is None or decided(proof.rejection):
        cache.put("candidate", key, proof)
    _keep_kit(settings, proof)
    return proof


def _keep_kit(settings: Settings, proof: Proof) -> None:
    """Put what graders need into the task set, under the hash that the certificate names."""
    if proof.kit is not None:
        Store(settings.out).put_blob(to_json(proof.kit), ".json")


def save_prepared(settings: Settings, prepared: Prepared) -> Path:
    """Write a prepared repository, under a name made of its content, where all workers can read it."""
    data = to_json(prepared)
    path = settings.cache / "prepared" / f"{content_id('prepared', data.decode())}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        scratch.write_bytes(data)
        scratch.rename(path)
    return path
