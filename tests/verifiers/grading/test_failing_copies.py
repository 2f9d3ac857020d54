"""Which test files a grade may run failing copies of."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import cast

from excise.protocols import Canaries
from excise.types import Status, TestResult, TestRun, WorkerOutcome
from excise.verifiers.grading.failing_copies import MAX_COPIES, drawn_copies, usable_files
from excise.verifiers.workbench import Workbench

TESTS = ["a/one.t::x", "a/one.t::y", "a/one.t::z", "a/one.t::u", "b/two.t::x", "b/two.t::y", "three.t::x"]


class Language:
    """Copies tests of all files but those whose source says that it cannot be done."""

    @property
    def grading(self) -> Language:
        return self

    def failing_copies(
        self, path: str, source: bytes, functions: Sequence[str], seed: str
    ) -> tuple[str, Canaries] | None:
        if source == b"strange":
            return None
        return f"copy-of-{path.rpartition('/')[2]}", Canaries(text=seed, tests=tuple(functions))


def bench(statuses: Mapping[str, Status], strange: str = "") -> tuple[Workbench, list[str]]:
    """A workbench where copies in a file have a status, and do not report without one; and the files that ran."""
    ran: list[str] = []

    def run(edits: Mapping[str, bytes], *, ids: Sequence[str], explained: bool) -> TestRun:
        assert not explained
        (path,) = edits
        ran.append(path)
        found = [(test, statuses[path]) for test in ids if path in statuses]
        results = tuple(TestResult(test_id=test, status=status) for test, status in found)
        return TestRun(worker=WorkerOutcome.OK, results=results)

    def read(paths: Sequence[str]) -> dict[str, bytes]:
        return {path: b"strange" if path == strange else b"" for path in paths}

    return cast("Workbench", SimpleNamespace(language=Language(), read=read, run=run)), ran


def test_the_file_with_most_tests_is_taken_if_its_copies_fail() -> None:
    made, ran = bench({"a/copy-of-one.t": Status.FAILED})
    assert usable_files(made, TESTS) == ("a/one.t",)
    assert ran == ["a/copy-of-one.t"]


def test_a_file_whose_copies_pass_or_do_not_compile_is_left_out() -> None:
    made, ran = bench({"a/copy-of-one.t": Status.PASSED, "copy-of-three.t": Status.ERROR})
    assert usable_files(made, TESTS) == ("three.t",)
    assert ran == ["a/copy-of-one.t", "b/copy-of-two.t", "copy-of-three.t"]
    assert usable_files(bench({})[0], TESTS) == ()


def test_a_file_that_cannot_be_copied_costs_no_run() -> None:
    made, ran = bench({"b/copy-of-two.t": Status.FAILED}, strange="a/one.t")
    assert usable_files(made, TESTS) == ("b/two.t",)
    assert ran == ["b/copy-of-two.t"]


def test_copies_are_drawn_from_usable_files_only() -> None:
    made, _ = bench({})
    drawn = drawn_copies(made, TESTS, ("a/one.t",), random.Random(3))
    assert drawn is not None
    assert drawn.path == "a/copy-of-one.t"
    assert len(drawn.ids) == MAX_COPIES
    assert {test.partition("::")[0] for test in drawn.ids} == {"a/copy-of-one.t"}
    assert drawn_copies(made, TESTS, (), random.Random(3)) is None
