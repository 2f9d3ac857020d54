"""The whole pipeline, run once a session on the tiny project ``shapes``; everything built on it starts from there."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from excise.config import Settings, load
from excise.datasets.taskset import TaskSet
from excise.extractors.fetch.trees import copy_files, git_tree_hash, list_files
from excise.pipeline.stages import environment_stage as stages
from excise.types import Rejection, SourceSpec
from excise.verifiers.workbench import Prepared, Workbench

sys.path.insert(0, str(Path(__file__).parent))
import engine

REPOS = Path(__file__).resolve().parent / "repos"
CONFIG = """
limit = 8
workers = 2
[verdict]
gold_runs = 2
starved_runs = 1
test_timeout_s = 5.0
suite_timeout_s = 300.0
memory_mb = 512
disk_mb = 128
"""


def run_excise(*arguments: str | Path, timeout: float = 600, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line of this checkout."""
    command = [sys.executable, "-m", "excise.pipeline.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, **options)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Made:
    """What one run of ``excise generate`` left."""

    config: Path
    out: Path
    cache: Path
    result: dict

    @property
    def settings(self) -> Settings:
        """The run's settings."""
        return load([self.config], out=self.out, cache=self.cache)

    @property
    def taskset(self) -> TaskSet:
        """The task set."""
        return TaskSet.open(self.out)


@pytest.fixture(scope="session")
def excise() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line."""
    return run_excise


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of a parallel test run share; ``TESTS_SHARED`` names one that outlives the run."""
    if kept := os.environ.get("TESTS_SHARED"):
        Path(kept).mkdir(parents=True, exist_ok=True)
        return Path(kept)
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def docker_host(shared: Path) -> Iterator[None]:
    """A Docker engine; ``DOCKER_HOST`` leads to it while the tests run."""
    try:
        host = engine.engine(engine_folder(shared))
    except engine.NoEngine as reason:
        pytest.skip(str(reason))
    with pytest.MonkeyPatch.context() as patch:
        if host:
            patch.setenv("DOCKER_HOST", host)
        yield


def engine_folder(shared: Path) -> Path:
    """Where a private engine keeps everything: a short path, since a socket's name has room for a hundred letters."""
    return Path("/tmp") / f"excise-engine-{os.geteuid()}-{hashlib.sha256(str(shared).encode()).hexdigest()[:8]}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the engine when the whole run is over, not when one of its workers is."""
    if "PYTEST_XDIST_WORKER" not in os.environ and hasattr(session.config, "_tmp_path_factory"):
        engine.stop(engine_folder(session.config._tmp_path_factory.getbasetemp()))


@pytest.fixture(scope="session")
def shapes(shared: Path) -> Made:
    """A finished run on ``shapes``: eight tasks."""
    folder = shared / "shapes-run"
    with open(shared / "shapes-run.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder / "result.json"
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "excise.toml").write_text(CONFIG)
            done = run_excise(
                "generate", REPOS / "shapes", "--out", folder / "out", "--cache", folder / "cache",
                "--config", folder / "excise.toml", "--json",
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            made.write_text(done.stdout)
    return Made(folder / "excise.toml", folder / "out", folder / "cache", json.loads(made.read_text()))


@pytest.fixture(scope="session")
def prepared(shapes: Made) -> Prepared:
    """``shapes`` with environment, baseline and coverage, all from the run's cache."""
    settings, spec = shapes.settings, SourceSpec(spec=str(REPOS / "shapes"))
    sourced = present(stages.fetch_stage(settings, spec.spec, spec))
    installed = present(stages.environment_stage(settings, spec.spec, spec, sourced))
    measured = present(stages.baseline_stage(settings, spec.spec, installed))
    return present(stages.coverage_stage(settings, spec.spec, measured))


def present(answer: Any) -> Any:
    assert not isinstance(answer, Rejection), answer
    return answer


@pytest.fixture(scope="session")
def bench(shapes: Made, prepared: Prepared) -> Workbench:
    """A workbench on ``shapes``."""
    return stages.workbench(shapes.settings, prepared)


Vary = Callable[..., Workbench]


@pytest.fixture
def vary(shapes: Made, prepared: Prepared, tmp_path: Path) -> Vary:
    """Makes workbenches on ``shapes`` with other files, in the same environment, with or without its baseline."""

    def make(
        files: Mapping[str, str | None], *, only: bool = False, baseline: bool = False, **verdict: object
    ) -> Workbench:
        root = tmp_path / f"sources{len(list(tmp_path.iterdir()))}"
        base = Path(prepared.layers.sources)
        root.mkdir()
        copy_files(base, [] if only else list_files(base), root)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                (root / path).unlink()
            else:
                (root / path).write_text(text)
        stages.open_to_all(root)
        other = replace(
            prepared,
            repo=replace(prepared.repo, tree=git_tree_hash(root)),
            layers=replace(prepared.layers, sources=str(root)),
            baseline=prepared.baseline if baseline else None,
            coverage=prepared.coverage if baseline else None,
        )
        settings = shapes.settings
        changed = settings.verdict.model_copy(update=verdict)
        return stages.workbench(settings.model_copy(update={"verdict": changed}), other)

    return make
