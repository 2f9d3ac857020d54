"""The prove stage: tries the candidates of one repository in shards; each becomes a task or a rejection.

Comes after :mod:`excise.pipeline.stages.find_stage` and is the last stage: :mod:`excise.pipeline.run.graph` publishes
its results. The proof of one candidate is in :mod:`excise.verifiers.prove`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from excise.config import Settings
from excise.pipeline.stages.environment_stage import open_workbench
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, is_conclusive, rejection_of
from excise.pipeline.stages.model_conversation import answering_model
from excise.pipeline.stages.model_solver import VERSION as SOLVER_VERSION
from excise.pipeline.stages.model_solver import solver_of
from excise.pipeline.stages.run_files import put_blob
from excise.pipeline.stages.stage_cache import StageCache, stage_key, verdict_fingerprint
from excise.pipeline.stages.statement_writer import model_statements
from excise.system.deadline import deadline
from excise.system.files import replace_file
from excise.system.job_costs import measure_job, step
from excise.types import Feature, content_id, from_json, to_json
from excise.verifiers.prove import Proof, prove
from excise.verifiers.workbench import Prepared, Workbench

SUITES_PER_CANDIDATE = 20
"""Time limit of one candidate, as a multiple of the time limit of the whole suite."""

MAX_WORKBENCHES = 3
"""Repositories that a process keeps parsed: its jobs alternate between some."""

_workbenches: dict[str, Workbench] = {}
"""Key to workbench, the least recently used first."""


def prove_shard(
    settings: Settings, source: str, prepared: Path | Prepared, shard: Sequence[tuple[Feature, str]]
) -> list[Proof]:
    """Try a shard of one repository's candidates (feature, deleter); return one proof for each, also after failures.

    ``prepared`` may be the path of a file written by :func:`save_prepared`, so that each worker reads the maps of a
    large repository once, instead of receiving them with every shard.
    """
    with measure_job(source, "prove"):
        bench = workbench_of(settings, prepared)
        proofs = [_prove_one(settings, bench, feature, deleter) for feature, deleter in shard]
        return [_with_statements(settings, proof) for proof in proofs]


def workbench_of(settings: Settings, prepared: Path | Prepared) -> Workbench:
    """Return this process's workbench for a repository; the process keeps those of the latest repositories."""
    subject = str(prepared) if isinstance(prepared, Path) else prepared
    key = content_id("bench", subject, verdict_fingerprint(settings))
    bench = _workbenches.pop(key, None)
    if bench is None:
        if isinstance(prepared, Path):
            prepared = from_json(Prepared, prepared.read_bytes())
        bench = open_workbench(settings, prepared)
    _workbenches[key] = bench
    while len(_workbenches) > MAX_WORKBENCHES:
        del _workbenches[next(iter(_workbenches))]
    return bench


def _prove_one(settings: Settings, bench: Workbench, feature: Feature, deleter: str) -> Proof:
    env_id = bench.prepared.environment.env_id
    solving = (SOLVER_VERSION, answering_model(settings)) if settings.model.solve_attempts else ()
    key = stage_key("candidate", env_id, verdict_fingerprint(settings), feature.feature_id, deleter, *solving)
    cache = StageCache(settings.cache)
    cached = cache.get(Proof, "candidate", key)
    if isinstance(cached, Proof):
        _store_kit(settings, cached)
        return cached
    began = time.monotonic()
    limit_s = SUITES_PER_CANDIDATE * bench.settings.suite_timeout_s + STAGE_GRACE_S
    limit_s += settings.model.max_wall_s if settings.model.solve_attempts else 0
    try:
        with deadline(limit_s, f"Proving {feature.feature_id}"):
            proof = prove(bench, feature, deleter, solver_of(settings))
    except Exception as error:
        rejection = rejection_of("gate", bench.repo.repo, error)
        rejection = replace(rejection, subject=feature.feature_id, kind=feature.kind, symbols=feature.symbols)
        return Proof(rejection=rejection, wall_s=time.monotonic() - began)
    if proof.rejection is None or is_conclusive(proof.rejection):
        cache.put("candidate", key, proof)
    _store_kit(settings, proof)
    return proof


def _with_statements(settings: Settings, proof: Proof) -> Proof:
    """The proof with what the model wrote about its task, if the settings ask for it."""
    if proof.task is None or not settings.model.write_statements:
        return proof
    with step("statements"):
        written = model_statements(settings, proof.task)
    return replace(proof, statements=written.statements, refused_statements=written.rejections)


def _store_kit(settings: Settings, proof: Proof) -> None:
    """Store the grading kit in the task set, under the hash that the certificate contains."""
    if proof.kit is not None:
        put_blob(settings, to_json(proof.kit), ".json")


def save_prepared(settings: Settings, prepared: Prepared) -> Path:
    """Write a prepared repository as JSON, named by its content, where all workers can read it."""
    data = to_json(prepared)
    path = settings.cache / "prepared" / f"{content_id('prepared', data.decode())}.json"
    if not path.exists():
        replace_file(path, data)
    return path
