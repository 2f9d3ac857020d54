"""The whole pipeline, run once a session on the tiny project ``shapes``; everything built on it starts from there."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from excise.config import Settings, load
from excise.datasets.taskset import TaskSet
from excise.envs.sandbox.mount_points import open_to_all
from excise.extractors.fetch.trees import copy_files, git_tree_hash, list_files
from excise.pipeline.stages.baseline_stage import baseline_stage
from excise.pipeline.stages.coverage_stage import coverage_stage
from excise.pipeline.stages.environment_stage import environment_stage, open_workbench
from excise.pipeline.stages.fetch_stage import fetch_stage
from excise.system.locks import waiting_lock
from excise.types import Rejection, SourceSpec
from excise.verifiers.workbench import Prepared, Workbench

from . import private_docker

os.environ["OMP_NUM_THREADS"] = "1"
"""The processes of a parallel run share the cores. With more threads, torch and vLLM wait for each other in loops: real
vLLM took 124 CPU seconds for what takes it 48 with one."""
gc.set_threshold(100_000, 20, 50)
"""With Python's own 700, collections took a twentieth of the tests' CPU time, mostly to look at libraries' objects."""
ROOT = Path(__file__).resolve().parents[1]
REPOS = Path(__file__).resolve().parent / "repos"
SETS = Path(__file__).resolve().parent / "sets"
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


def run_excise(*arguments: str | Path, timeout: float = 2400, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line of this checkout."""
    command = [sys.executable, "-m", "excise.pipeline.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, **options)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Run:
    """The folders of ``excise generate`` on one project, and what it printed."""

    config: Path
    out: Path
    cache: Path

    @property
    def answer(self) -> Path:
        """The file with what the finished run printed."""
        return self.config.with_name("result.json")

    @property
    def result(self) -> dict:
        """What the finished run printed, parsed."""
        return json.loads(self.answer.read_text())

    @property
    def settings(self) -> Settings:
        """The run's settings."""
        return load([self.config], out=self.out, cache=self.cache)

    @property
    def taskset(self) -> TaskSet:
        """The task set."""
        return TaskSet.open(self.out)

    def copy_cache(self, target: Path) -> None:
        """Copy the cache, without what other tests remove from it meanwhile."""
        try:
            passing = shutil.ignore_patterns("workspaces")  # of tests that run at the moment
            shutil.copytree(self.cache, target, symlinks=True, copy_function=_link_or_copy, ignore=passing)
        except shutil.Error as error:
            if any(os.path.lexists(path) for path, *_ in error.args[0]):
                raise


def _link_or_copy(source: str, target: str) -> None:
    """Make a hard link, since files of a cache are never written again; databases are, so these are copied."""
    if source.endswith(".sqlite"):
        with closing(sqlite3.connect(source)) as base, closing(sqlite3.connect(target)) as copy:
            base.backup(copy)
    elif ".sqlite-" not in source:
        os.link(source, target)


MARKS = {
    "shapes": "slow",
    "spans": "slow",
    "lengths": "slow",
    "ledger": "slow",
    "parcels": "slow",
    "ranks": "slow",
    "docker_host": "docker",
}
"""Marks by fixture: these wait for a whole run, for four processes that train together, or for a Docker engine."""
RUNS = {"shapes", "spans", "lengths", "ledger", "parcels"}
"""Fixtures that are finished runs of ``excise generate``: one process makes each, and the others wait for it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures, group those that must not run side by side, and begin with the long ones."""
    for item in items:
        for name in MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS[name])
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))
    items[:] = _in_order(items)


def _group(item: pytest.Item) -> str:
    """The tests that share one process: those of one Docker engine, of one vLLM, of one module's fixture."""
    for service in ("docker", "vllm"):
        if item.get_closest_marker(service):
            return service
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    shared = any(found.scope == "module" for name in item.fixturenames for found in definitions.get(name, ()))  # type: ignore[attr-defined]
    return item.nodeid.partition("::")[0] if shared else ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: many tests wait for a timeout or another process."""
    return len(os.sched_getaffinity(0)) + 1


LONG_SHARE = 0.85
"""Share of the queue that holds the long tests, so that no process ends long after the others."""


def _in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """The queue that the processes take tests from: those of services first, then long ones spread among quick ones.

    Many quick tests wait most of their time, for a timeout or a process. Beside a long test they leave it their core.
    One test starts each run that many wait for early; the others come when it is likely to be finished.
    """
    services, long, quick = [], [], []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        kind = services if marks & {"vllm", "docker"} else long if "slow" in marks else quick
        kind.append(item)
    places = [(LONG_SHARE * n / len(long), item) for n, item in enumerate(_starters_first(long))]
    places += [(n / len(quick), item) for n, item in enumerate(quick)]
    return [*services, *(item for _, item in sorted(places, key=lambda place: place[0]))]


def _starters_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests, those last that need only runs which a test before them starts."""
    started: set[str] = set()
    starting, waiting = [], []
    for item in items:
        runs = RUNS & set(getattr(item, "fixturenames", ()))
        (waiting if runs and runs <= started else starting).append(item)
        started |= runs
    return [*starting, *waiting]


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
def vllm_environment() -> Path:
    """The virtual environment with vLLM; waits while ``./check`` is installing it."""
    venv = ROOT / os.environ.get("EXCISE_VLLM_VENV", ".venv-vllm")
    lock = venv.with_name(f"{venv.name}.lock")
    if lock.exists():
        with waiting_lock(lock):
            pass
    assert (venv / ".excise-vllm").exists(), "vLLM is not installed for the tests: run scripts/vllm.sh (./check does)"
    return venv


@pytest.fixture(scope="session")
def peers() -> Path:
    """The folder with the virtual environments of other tools; waits while ``./check`` is installing them."""
    folder = (ROOT / os.environ.get("EXCISE_PEERS_VENV", ".venv-peers")).absolute()
    lock = folder.with_name(f"{folder.name}.lock")
    if lock.exists():
        with waiting_lock(lock):
            pass
    assert (folder / ".excise-peers").exists(), "Other tools are not installed: run scripts/peers.sh (./check does)"
    return folder


@pytest.fixture(scope="session")
def mini_swe_agent(peers: Path) -> Path:
    """The virtual environment with mini-swe-agent."""
    return peers / "data"


@pytest.fixture(scope="session")
def docker_host(shared: Path) -> Iterator[None]:
    """A Docker engine; ``DOCKER_HOST`` leads to it while the tests run."""
    try:
        host = private_docker.engine(engine_folder(shared))
    except private_docker.NoEngine as reason:
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
        private_docker.stop(engine_folder(session.config._tmp_path_factory.getbasetemp()))


def run_folder(shared: Path, project: str, config: str) -> Run:
    """The folders of a run that all processes share, with its configuration."""
    folder = shared / f"{project}-run"
    with waiting_lock(shared / f"{project}-run.lock"):
        folder.mkdir(exist_ok=True)
        (folder / "excise.toml").write_text(config)
    return Run(config=folder / "excise.toml", out=folder / "out", cache=folder / "cache")


@pytest.fixture(scope="session")
def shapes_run(shared: Path) -> Run:
    """Where everything about ``shapes`` is made: one cache for all tests and all of their processes."""
    return run_folder(shared, "shapes", CONFIG)


def prepare(run: Run, project: str) -> Prepared:
    """Environment, baseline and coverage of a tiny project: made by one process, read from the cache by the others."""
    settings, spec = run.settings, SourceSpec(spec=str(REPOS / project))
    with waiting_lock(run.config.with_name("prepared.lock")):
        sourced = present(fetch_stage(settings, spec.spec, spec))
        installed = present(environment_stage(settings, spec.spec, spec, sourced))
        measured = present(baseline_stage(settings, spec.spec, installed))
        return present(coverage_stage(settings, spec.spec, measured))


def finish(run: Run, project: str, *more: str) -> Run:
    """The run, after ``excise generate`` on a tiny project by one process."""
    with waiting_lock(run.config.with_name("finished.lock")):
        if not run.answer.exists():
            done = run_excise(
                "generate", REPOS / project, "--out", run.out, "--cache", run.cache, "--config", run.config,
                "--json", *more,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            run.answer.write_text(done.stdout)
    return run


@pytest.fixture(scope="session")
def prepared(shapes_run: Run) -> Prepared:
    """``shapes`` with environment, baseline and coverage."""
    return prepare(shapes_run, "shapes")


@pytest.fixture(scope="session")
def shapes(shapes_run: Run, prepared: Prepared) -> Run:
    """A finished run of ``excise generate`` on ``shapes``: eight tasks."""
    return finish(shapes_run, "shapes")


@pytest.fixture(scope="session")
def spans(shared: Path) -> Run:
    """A finished run of ``excise generate`` on ``spans``, a tiny project in Go: one task."""
    return finish(run_folder(shared, "spans", CONFIG), "spans", "--limit", "1", "--workers", "1")


@pytest.fixture(scope="session")
def lengths(shared: Path) -> Run:
    """A finished run of ``excise generate`` on ``lengths``, a tiny project in Rust: one task."""
    return finish(run_folder(shared, "lengths", CONFIG), "lengths", "--limit", "1", "--workers", "1")


@pytest.fixture(scope="session")
def ledger(shared: Path) -> Run:
    """A finished run of ``excise generate`` on ``ledger``, a tiny project in Java: one task."""
    return finish(run_folder(shared, "ledger", CONFIG), "ledger", "--limit", "1", "--workers", "1")


@pytest.fixture(scope="session")
def stored(shapes_run: Run) -> Run:
    """A task set of ``shapes`` that an earlier version of excise made (``tests/sets``): eight tasks, without a run."""
    out = shapes_run.config.with_name("stored-set")
    with waiting_lock(shapes_run.config.with_name("stored.lock")):
        if not out.exists():
            shutil.copytree(SETS / "shapes", out, symlinks=True)
    return Run(config=shapes_run.config, out=out, cache=shapes_run.cache)


def present(answer: Any) -> Any:
    assert not isinstance(answer, Rejection), answer
    return answer


@pytest.fixture(scope="session")
def bench(shapes_run: Run, prepared: Prepared) -> Workbench:
    """A workbench on ``shapes``."""
    return open_workbench(shapes_run.settings, prepared)


@pytest.fixture(scope="session")
def parcels_run(shared: Path) -> Run:
    """Where everything about ``parcels``, a project in JavaScript, is made."""
    config = CONFIG.replace("limit = 8", "limit = 3").replace("workers = 2", "workers = 1")
    return run_folder(shared, "parcels", config)


@pytest.fixture(scope="session")
def prepared_parcels(parcels_run: Run) -> Prepared:
    """``parcels`` with environment, baseline and coverage."""
    return prepare(parcels_run, "parcels")


@pytest.fixture(scope="session")
def parcels(parcels_run: Run, prepared_parcels: Prepared) -> Run:
    """A finished run of ``excise generate`` on ``parcels``: three tasks."""
    return finish(parcels_run, "parcels")


Vary = Callable[..., Workbench]


@pytest.fixture
def vary(shapes_run: Run, prepared: Prepared, tmp_path: Path) -> Vary:
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
        open_to_all(root)
        other = replace(
            prepared,
            repo=replace(prepared.repo, tree=git_tree_hash(root)),
            layers=replace(prepared.layers, sources=str(root)),
            baseline=prepared.baseline if baseline else None,
            coverage=prepared.coverage if baseline else None,
        )
        settings = shapes_run.settings
        changed = settings.verdict.model_copy(update=verdict)
        return open_workbench(settings.model_copy(update={"verdict": changed}), other)

    return make
