"""A small but complete task set: three projects (one that could not be fetched), ten tasks."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path

import pytest

from excise.datasets.rows import RepoRows
from excise.datasets.storage.store import Store
from excise.deleters.statement.styles import deterministic
from excise.types import (
    Baseline,
    Certificate,
    Difficulty,
    Environment,
    Feature,
    FeatureKind,
    GateOutcome,
    Recipe,
    Rejection,
    Repo,
    RepoReport,
    StatementStyle,
    Status,
    SymbolKind,
    SymbolReport,
    Task,
    Verdict,
    Visibility,
    WorkerOutcome,
    content_id,
)
from excise.verifiers.prove import candidate_id

SOURCES = {
    "toolz": {
        "take": 'def take(n, seq):\n    """The first n elements."""\n    return itertools.islice(seq, n)\n',
        "pluck": "def pluck(ind, seqs):\n    get = getter(ind)\n    return map(get, seqs)\n",
        "groupby": (
            "def groupby(key, seq):\n    groups = {}\n    for item in seq:\n"
            "        groups.setdefault(key(item), []).append(item)\n    return groups\n"
        ),
        "frequencies": (
            "def frequencies(seq):\n    counts = {}\n    for item in seq:\n"
            "        counts[item] = counts.get(item, 0) + 1\n    return counts\n"
        ),
        "last": "def last(seq):\n    return tail(1, seq)[0]\n",
        "first": "def first(seq):\n    return next(iter(seq))\n",
    },
    "humanize": {
        "ordinal": (
            "def ordinal(value):\n    suffix = ('th', 'st', 'nd', 'rd')\n    if value % 100 in (11, 12, 13):\n"
            "        return f'{value}th'\n    return f'{value}{suffix[value % 10]}'\n"
        ),
        "intcomma": "def intcomma(value):\n    return f'{value:,}'\n",
        "Formatter": (
            "class Formatter:\n    def __init__(self, unit):\n        self.unit = unit\n\n"
            "    def format(self, value):\n        return f'{value} {self.unit}'\n"
        ),
        "naturalsize": "def naturalsize(value):\n    for unit in UNITS:\n        if value < 1024:\n            break\n",
    },
}
LICENSES = {"toolz": "BSD-3-Clause", "humanize": "MIT"}
GATES = ("g3_apply", "g4_collect", "g5_f2p_fail", "g6_p2p_pass", "g7_gold", "g7_gold", "g8_noop", "g9_leaks")


def diff(path: str, before: str, after: str) -> str:
    """A unified diff as git writes it."""
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return f"diff --git a/{path} b/{path}\n" + "".join(lines)


def make_verdict(instance_id: str, gate: str, run: int = 0, **changes: object) -> Verdict:
    """A verdict that passed, unless ``changes`` say otherwise."""
    values = {
        "instance_id": instance_id, "gate": gate, "run": run, "worker_outcome": WorkerOutcome.OK,
        "outcome": GateOutcome.PASSED, "num_tests": 40,
        "statuses": {"tests/test_x.py::test_a[1-é]": Status.FAILED} if "fail" in gate else {},
        "evidence": {"tree": "5" * 40}, "cpu_s": 0.5, "wall_s": 0.75,
    }  # fmt: skip
    return Verdict(**(values | changes))  # type: ignore[arg-type]


def make_task(repo: str, name: str, *, rank: int = 0) -> tuple[Task, Certificate]:
    """The task of one function of ``SOURCES``, and its certificate."""
    code = SOURCES[repo][name]
    path, test_path = f"{repo}/core.py", f"tests/test_{repo}.py"
    header = '"""Functions."""\nimport itertools\n\n\n'
    test = f"def test_{name}():\n    assert {name}\n"
    gold, tests = diff(path, header, header + code), diff(test_path, "import pytest\n", "import pytest\n" + test)
    removal = diff(path, header + code, header) + diff(test_path, "import pytest\n" + test, "import pytest\n")
    instance_id = f"{repo}__{content_id('task', gold)[:12]}"
    f2p = tuple(f"{test_path}::test_{name}[{i}]" for i in range(rank + 1))
    p2p = tuple(f"{test_path}::test_{other}" for other in sorted(SOURCES[repo]) if other != name)
    kind = FeatureKind.CLASS if name[0].isupper() else FeatureKind.FUNCTION
    difficulty = Difficulty(
        kind=kind, tier=min(rank, 5), loc=code.count("\n"), num_files=1, num_symbols=1, fan_in=rank,
        complexity=1 + code.count("for ") + code.count("if "), num_f2p=len(f2p), num_p2p=len(p2p),
    )  # fmt: skip
    task = Task(
        instance_id=instance_id, repo=repo, base_commit=hashlib.sha1(repo.encode()).hexdigest(), tree=tree(repo),
        shipped_tree=hashlib.sha1(name.encode()).hexdigest(), language="python", version="1.2.0", patch=gold,
        test_patch=tests, deletion_patch=removal,
        problem_statement=f"# Implement `{name}`\n\n`{repo}.core` lacks `{name}`. Write it so that:\n\n- it works\n",
        interface=f"{repo}.core.{name}", fail_to_pass=f2p, pass_to_pass=p2p, env_id=f"env-{repo}",
        visibility=Visibility.DOCSTRING, difficulty=difficulty, deleter="whole_symbol",
        feature_id=content_id("feature", name), removed=(f"{path}::{name}",),
        needs={"attribute size": "details", "exception ValueError": "tree"}, created_at="2025-01-02T03:04:05Z",
    )  # fmt: skip
    verdicts = tuple(
        make_verdict(instance_id, gate, run=int(i > 0 and GATES[i - 1] == gate), cpu_s=0.5 + rank)
        for i, gate in enumerate(GATES)
    )
    certificate = Certificate(
        instance_id=instance_id, verdicts=verdicts, excise_version="0.1.0", tools={"python": "3.11.9", "pytest": "8"},
        flake_rate=0.0, num_runs=3, cpu_s=sum(v.cpu_s for v in verdicts), wall_s=9.5,
    )  # fmt: skip
    return task, certificate


def tree(repo: str) -> str:
    """The tree hash of a sample project."""
    return hashlib.sha1(f"tree {repo}".encode()).hexdigest()


def make_rows(repo: str, names: tuple[str, ...] | None = None, blob: str = "") -> RepoRows:
    """Everything about a sample project, with tasks for ``names`` (all functions if ``None``)."""
    chosen = tuple(SOURCES[repo]) if names is None else names
    made = [make_task(repo, name, rank=list(SOURCES[repo]).index(name)) for name in chosen]
    refused = candidate_id(content_id("feature", repo), "remove", Visibility.DOCSTRING)
    source = f"pypi:{repo}==1.2.0"
    return RepoRows(
        repo=Repo(
            repo=repo, base_commit=hashlib.sha1(repo.encode()).hexdigest(), tree=tree(repo), version="1.2.0",
            license=LICENSES[repo], source=source, created_at="2025-01-02T03:04:05Z", blob=blob, num_files=12,
            num_bytes=34567,
        ),
        report=RepoReport(
            repo=repo, source=source, status="ok", num_tests=50, num_passing=48, num_flaky=int(repo == "toolz"),
            num_symbols=60, num_covered=55, num_features=20, num_candidates=len(made) + 1, num_valid=len(made),
            not_proposed={"executed_at_import": 3, "not_covered": 5}, rejected={"p2p_breaks": 1}, cpu_s=100.0,
            wall_s=60.0,
        ),
        environment=Environment(
            env_id=f"env-{repo}", repo=repo, tree=tree(repo), lock=("pytest==8.3.0",), install_s=4.5,
            recipe=Recipe(python="3.11.9", requirements=("-r requirements.txt",), env=(("TZ", "UTC"),),
                          evidence=("setup.cfg: tests in tests/",)),
        ),
        baseline=Baseline(
            env_id=f"env-{repo}", statuses={f"tests/test_{repo}.py::test_{n}": Status.PASSED for n in SOURCES[repo]},
            durations={f"tests/test_{repo}.py::test_{n}": 0.25 for n in SOURCES[repo]},
            flaky={f"tests/test_{repo}.py::test_clock": "statuses differ"} if repo == "toolz" else {}, num_runs=3,
            cpu_s=2.5, wall_s=3.0,
        ),
        tasks=tuple(task for task, _ in made),
        certificates=tuple(certificate for _, certificate in made),
        verdicts=(
            make_verdict(
                refused, "g6_p2p_pass", outcome=GateOutcome.FAILED, reason="p2p_breaks", detail="2 tests fail"
            ),
            make_verdict(refused, "g5_f2p_fail", worker_outcome=WorkerOutcome.TIMEOUT, outcome=GateOutcome.UNDECIDED),
        ),
        rejections=(
            Rejection(repo=repo, stage="gate", subject=refused, reason="p2p_breaks", detail="2 other tests fail.",
                      kind="function", symbols=(f"{repo}/core.py::tail",), evidence={"test": "tests/test_a.py::b"}),
        ),
        features=tuple(
            Feature(
                feature_id=content_id("feature", repo, name), kind=FeatureKind.FUNCTION, tier=1, loc=5,
                entry=(f"{repo}/core.py::{name}",), symbols=(f"{repo}/core.py::{name}",), name=name,
                tests=(f"tests/test_{repo}.py::test_{name}",), summary="Does what its name says.",
            )
            for name in SOURCES[repo]
        ),
        symbols=(
            SymbolReport(symbol=f"{repo}/core.py::main", kind=SymbolKind.FUNCTION, loc=9, num_tests=48,
                         reason="too_central"),
        ),
        statements=tuple(deterministic(task, style) for task, _ in made for style in StatementStyle),
    )  # fmt: skip


UNAVAILABLE = RepoRows(
    report=RepoReport(
        repo="vanished", source="pypi:vanished", status="source_unavailable", detail="No such project."
    ),
    rejections=(
        Rejection(
            repo="vanished", stage="fetch", subject="pypi:vanished", reason="source_unavailable", detail="No release."
        ),
    ),
)  # fmt: skip
"""A source that could not be fetched."""


@pytest.fixture(scope="session")
def store_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task set with two snapshots: the second adds tasks and removes one."""
    root = tmp_path_factory.mktemp("sets") / "a [set], with 'quotes'"
    store = Store(root)
    blob = store.put_blob(b"toolz sources")
    with store.writer() as writer:
        writer.put_repo("toolz", make_rows("toolz", ("take", "pluck", "groupby", "frequencies", "last"), blob))
        writer.put_repo("vanished", UNAVAILABLE)
        writer.publish()
    with store.writer() as writer:
        writer.put_repo("toolz", make_rows("toolz", ("pluck", "groupby", "frequencies", "last", "first"), blob))
        writer.put_repo("humanize", make_rows("humanize"))
        writer.publish()
    return root
