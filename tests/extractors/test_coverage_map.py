"""Coverage maps: each test is measured on its own, and imports separately."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from excise.errors import EnvironmentFailure
from excise.extractors.coverage_passes import hits_by_symbol
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.pipeline.stages.environment_stage import environment_stage, open_workbench
from excise.pipeline.stages.fetch_stage import fetch_stage
from excise.protocols import CoverageRequest
from excise.types import CoverageMap, SourceSpec, Status
from excise.verifiers.workbench import Workbench

REPOS = Path(__file__).resolve().parents[1] / "repos"
SQUARES = "tests/test_squares.py::"
MEMO = {f"{SQUARES}test_diagonal", f"{SQUARES}test_corner_distance", f"{SQUARES}test_corner_distance_of_frame"}
DIAGONAL = "src/shapes/squares.py::diagonal"


def executing_tests(coverage: CoverageMap, symbol: str) -> set[str]:
    return {coverage.tests[n] for n in coverage.by_symbol.get(symbol, ())}


def map_tests(bench: Workbench, *, ids=None, **options) -> tuple[CoverageMap, dict[str, Status]]:
    with bench.open({}) as session:
        request = CoverageRequest(env_id="env", timeout_s=120.0, ids=ids, **options)
        made = bench.language.map_coverage(session, bench.recipe, bench.codebase, request)[0]
        return made.coverage, made.statuses


def test_the_map_of_shapes(prepared) -> None:
    coverage = prepared.coverage
    assert executing_tests(coverage, DIAGONAL) == MEMO, "a memoised function is seen by all its tests"
    assert executing_tests(coverage, "src/shapes/walk.py::spiral") == {
        f"tests/test_walk.py::{name}" for name in ("test_start", "test_first_turn", "test_no_field_twice")
    }
    assert executing_tests(coverage, "src/shapes/round.py::_disc") == executing_tests(
        coverage, "src/shapes/round.py::ring_area"
    )
    assert executing_tests(coverage, "src/shapes/base.py::registered") >= {
        "src/shapes/base.py::shapes.base.registered", "tests/test_base.py::test_lookup_unknown"
    }  # fmt: skip
    assert executing_tests(coverage, "src/shapes/base.py::Shape.area") == set()
    assert not any(symbol.startswith("tests/") for symbol in coverage.by_symbol)


def test_lines_run_by_imports_are_separate(prepared) -> None:
    at_import = set(prepared.coverage.at_import)
    assert at_import >= {
        "src/shapes/base.py::register", "src/shapes/tables.py::make_table", "src/shapes/round.py::Circle.area",
        "src/shapes/round.py::Circle.__init__",
    }  # fmt: skip
    assert not at_import & {DIAGONAL, "src/shapes/text.py::parse", "src/shapes/walk.py::spiral"}
    assert executing_tests(prepared.coverage, "src/shapes/tables.py::make_table") == {
        "tests/test_tables.py::test_make_table"
    }


def test_tests_that_depend_on_others_are_unstable(prepared) -> None:
    assert prepared.coverage.unstable == ("tests/test_order.py::test_b_second",)


def test_without_forks_memoised_functions_hide(bench: Workbench) -> None:
    together, _ = map_tests(bench, ids=sorted(MEMO), fork=False)
    assert len(executing_tests(together, DIAGONAL)) == 1
    apart, alone = map_tests(bench, ids=sorted(MEMO))
    assert executing_tests(apart, DIAGONAL) == MEMO
    assert set(alone.values()) == {Status.PASSED}


def test_both_orders_are_two_passes_without_traces_of_each_other(vary) -> None:
    left = (
        "import pathlib\nfrom shapes import spiral\nnotes = pathlib.Path('/tmp/left')\nseen = []\n"
        "def test_a():\n    assert not seen and not notes.exists()\n    notes.touch()\n"
        "def test_b():\n    seen.append(list(spiral(1)))\n"
    )
    bench = vary({"tests/test_left.py": left})
    ids = ["tests/test_left.py::test_a", "tests/test_left.py::test_b"]
    request = CoverageRequest(env_id="env", timeout_s=120.0, ids=ids, fork=False, both_orders=True)
    with bench.open({}) as session:
        first, second = bench.language.map_coverage(session, bench.recipe, bench.codebase, request)
    assert first.statuses == dict.fromkeys(ids, Status.PASSED)
    assert second.statuses == {ids[0]: Status.FAILED, ids[1]: Status.PASSED}
    for made in (first, second):
        assert executing_tests(made.coverage, "src/shapes/walk.py::spiral") == {ids[1]}
        assert made.coverage.cpu_s > 0


def test_code_of_folders_that_are_not_named_plainly_is_mapped(vary) -> None:
    test = (
        "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, 'src'))\n"
        "for name in [each for each in sys.modules if each.startswith('shapes')]:\n    del sys.modules[name]\n"
        "from shapes import spiral\n\ndef test_it():\n    assert list(spiral(2))\n"
    )
    coverage, _ = map_tests(vary({"tests/test_path.py": test}), ids=["tests/test_path.py::test_it"])
    assert executing_tests(coverage, "src/shapes/walk.py::spiral") == {"tests/test_path.py::test_it"}


def test_older_interpreters_give_the_same_map(shapes_run, bench: Workbench) -> None:
    """``bench`` is measured by ``sys.monitoring`` where Python 3.12 or later is there, 3.11 by coverage.py."""
    settings, python = shapes_run.settings, ".".join(map(str, sys.version_info[:2]))
    spec = SourceSpec(spec=str(REPOS / "shapes"), python=python)
    installed = environment_stage(settings, spec.spec, spec, fetch_stage(settings, spec.spec, spec))
    assert installed.environment.recipe.python.startswith(f"{python}.")
    ids = sorted(bench.baseline.passing())
    usual, _ = map_tests(bench, ids=ids)
    other, _ = map_tests(open_workbench(settings, installed), ids=ids)
    assert hits_by_symbol(other) == hits_by_symbol(usual)
    assert other.at_import == usual.at_import


def test_tests_that_hang_crash_or_fork_fail_alone(vary) -> None:
    bench = vary(
        {
            "tests/test_odd.py": (
                "import os, time, collections, itertools\nfrom shapes import spiral\n"
                "def test_hangs():\n    collections.deque(itertools.repeat(0), maxlen=0)\n"
                "def test_sleeps():\n    list(spiral(3))\n    time.sleep(60)\n"
                "def test_dies():\n    os._exit(0)\n"
                "def test_forks():\n    assert os.fork() > 0\n    list(spiral(2))\n"
                "def test_good():\n    list(spiral(1))\n"
            )
        }
    )
    names = ("test_sleeps", "test_dies", "test_forks", "test_good")
    coverage, alone = map_tests(bench, ids=[f"tests/test_odd.py::{name}" for name in names], test_timeout_s=1.0)
    assert {t.rpartition("::")[2]: str(s) for t, s in alone.items()} == {
        "test_sleeps": "FAILED", "test_forks": "PASSED", "test_good": "PASSED"
    }  # fmt: skip
    assert {t.rpartition("::")[2] for t in executing_tests(coverage, "src/shapes/walk.py::spiral")} == {
        "test_sleeps", "test_forks", "test_good"
    }  # fmt: skip


def test_a_mapping_that_does_not_end_is_refused(vary) -> None:
    bench = vary({"conftest.py": "import time\ntime.sleep(60)\n"})
    request = CoverageRequest(env_id="env", timeout_s=2.0)
    with bench.open({}) as session, pytest.raises(EnvironmentFailure, match="did not end") as caught:
        bench.language.map_coverage(session, bench.recipe, bench.codebase, request)
    assert caught.value.reason == "timeout"


BOX = """\
import os


class Box:
    size = 1

    def open(self):
        if self.size:
            return 2
        return os
"""


def test_lines_belong_to_the_symbols_around_them() -> None:
    codebase = PythonCodebase.from_texts({"box.py": BOX})
    inside = {1: set(), 5: {"Box"}, 7: {"Box"}, 8: {"Box", "Box.open"}, 10: {"Box", "Box.open"}}
    for line, names in inside.items():
        expected = {"box.py", *(f"box.py::{name}" for name in names)}
        assert codebase.symbols_of_lines("box.py", [line]) == expected, line
    assert codebase.symbols_of_lines("box.py", []) == frozenset()
    assert codebase.symbols_of_lines("other.py", [1]) == frozenset()
