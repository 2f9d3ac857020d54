"""Test runs that are forked give the same results as runs in processes of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from excise.envs.bubblewrap import forked_sessions
from excise.protocols import Start, TestRunRequest
from excise.types import TestRun
from excise.verifiers.workbench import Workbench

from ..conftest import Vary

ABOUT_ITSELF = """
import gc, json, logging, os, random, sys, warnings


def test_describe():
    found = {
        "modules": sorted(sys.modules), "path": sys.path, "argv": sys.argv, "environ": dict(os.environ),
        "cwd": os.getcwd(), "gc": [gc.isenabled(), gc.get_threshold()], "main": sys.modules["__main__"].__file__,
        "filters": len(warnings.filters), "handlers": len(logging.getLogger().handlers),
        "finders": [repr(f if isinstance(f, type) else type(f)) for f in sys.meta_path],
        "hooks": len(sys.path_hooks), "recursion": sys.getrecursionlimit(),
        "descriptors": sorted(os.listdir("/proc/self/fd"), key=int)[:-1], "orig": sys.orig_argv[1:2],
    }
    with open("/excise/out/" + str(os.getppid() and "found"), "w") as file:
        json.dump(found, file)


def test_random():
    with open("/excise/out/random", "w") as file:
        json.dump([random.random()], file)
"""
SERVER = {"excise_fork_server", "array", "resource", "socket", "_socket", "selectors", "select"}
"""Modules that only a fork server needs."""


def run(bench: Workbench, start: Start) -> tuple[TestRun, dict, list]:
    request = TestRunRequest(ids=["tests/test_itself.py::test_describe", "tests/test_itself.py::test_random"])
    with bench.open({}, start=start) as session:
        assert session.forks is (start is not Start.FRESH)
        done = bench.language.run_tests(session, bench.recipe, replace(request, start=start))
        return done, *(json.loads((session.out / name).read_text()) for name in ("found", "random"))


def test_a_test_cannot_tell_a_forked_run(vary: Vary) -> None:
    bench = vary({"tests/test_itself.py": ABOUT_ITSELF})
    fresh, expected, drawn = run(bench, Start.FRESH)
    forked, found, other = run(bench, Start.FORKED)
    _, again, third = run(bench, Start.FORKED)
    assert fresh.statuses() == forked.statuses()
    assert set(fresh.statuses().values()) == {"PASSED"}
    assert set(found.pop("modules")) ^ set(expected.pop("modules")) <= SERVER
    assert found == expected
    assert again.pop("modules")
    assert again == expected
    assert len({json.dumps(numbers) for numbers in (drawn, other, third)}) == 3, "random numbers are random"


def test_results_of_the_whole_suite_are_equal(bench: Workbench) -> None:
    fresh, forked = bench.run({}), bench.run({}, forked=True)
    assert forked.statuses() == fresh.statuses()
    assert forked.imported == fresh.imported
    assert len(forked.statuses()) > 20


@pytest.mark.parametrize("name", ["keyword.py", "iniconfig.py", "src/bisect.py"])
def test_a_checkout_with_modules_of_the_test_runner_is_run_afresh(vary: Vary, name: str) -> None:
    """At the server's start the file is imported, or hides what was; in a fresh process it is imported as well."""
    bench = vary({name: "raise ImportError('the checkout has its own')"})
    fresh, forked = bench.run({}), bench.run({}, forked=True)
    assert (forked.statuses(), forked.finished) == (fresh.statuses(), fresh.finished)


def test_the_edits_of_a_run_decide_too(bench: Workbench) -> None:
    broken: dict[str, bytes | None] = {"pluggy.py": b"raise ImportError('the checkout has its own')"}
    assert not bench.run(broken).finished
    assert not bench.run(broken, forked=True).finished
    assert bench.run({}, forked=True).finished


def test_a_deleted_function_is_gone_and_comes_back(bench: Workbench) -> None:
    path = "src/shapes/squares.py"
    text = (Path(bench.root) / path).read_bytes()
    edits: dict[str, bytes | None] = {path: text.replace(b"class Rectangle", b"class Gone")}
    for _ in range(2):
        assert bench.run(edits, forked=True).statuses() == bench.run(edits).statuses() != bench.run({}).statuses()
        assert bench.run({}, forked=True).statuses() == bench.run({}).statuses()


def test_a_worker_that_ends_leaves_no_sandbox(bench: Workbench) -> None:
    bench.run({}, forked=True)
    assert forked_sessions._idle.waiting
    forked_sessions.close_idle()
    assert not forked_sessions._idle.waiting
