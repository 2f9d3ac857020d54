"""The records: identity by content, and one import path for all of them."""

from __future__ import annotations

import ast
from pathlib import Path

import excise.types
from excise.types import (
    Baseline,
    Certificate,
    Environment,
    GateOutcome,
    Recipe,
    SourceSpec,
    Status,
    Verdict,
    WorkerOutcome,
    content_id,
    from_json,
    to_json,
)
from excise.types.ids import MAX_TEST_ID

RECIPE = Recipe(python="3.12.1", requirements=("a>1",), env=(("A", "b"),))
ENVIRONMENT = Environment(env_id="e", repo="r", tree="t", recipe=RECIPE, lock=("a==1",), hashes={"a==1": "sha256:x"})
VERDICT = Verdict(
    instance_id="i",
    gate="g",
    worker_outcome=WorkerOutcome.OK,
    outcome=GateOutcome.PASSED,
    evidence={"b": "1", "a": "2"},
)
CERTIFICATE = Certificate(
    instance_id="i",
    verdicts=(VERDICT,),
    excise_version="0",
    tools={"p": "1"},
    flake_rate=0.0,
    num_runs=3,
    cpu_s=1.5,
    wall_s=2.0,
    settings={"x": 1},
)


def test_content_hashes_stay_what_they_were() -> None:
    """Caches, instance ids and certificates of earlier versions hold these hashes."""
    parts = (ENVIRONMENT, RECIPE, {"b", "a"}, SourceSpec(spec="x"), 1, 1.5, None)
    assert content_id("environment", *parts) == "124942df5b899129"
    assert CERTIFICATE.certificate_id == "3b9770834f1548bc"


def test_a_record_survives_json() -> None:
    assert from_json(Certificate, to_json(CERTIFICATE)) == CERTIFICATE


def test_every_public_name_of_the_package_can_be_imported_from_it() -> None:
    folder = Path(excise.types.__file__).parent
    defined = {
        node.name
        for path in folder.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")
    }
    assert defined | {"DETERMINISTIC", "FILLED_IN", "IMPORTED", "SCHEMA_VERSION"} == set(excise.types.__all__)


def test_tests_with_ids_of_thousands_of_characters_do_not_count() -> None:
    ids = ["test_a.py::test_x", f"test_a.py::test_x[{'x' * MAX_TEST_ID}]"]
    baseline = Baseline(
        env_id="e",
        statuses=dict.fromkeys(ids, Status.PASSED),
        durations=dict.fromkeys(ids, 0.1),
        flaky={},
        num_runs=1,
        cpu_s=1.0,
        wall_s=1.0,
    )
    assert baseline.passing() == (ids[0],)
