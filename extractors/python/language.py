"""Python: one object that parses, runs the tests, and maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

from excise.errors import EnvironmentFailure
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.suite_files import collected_from
from excise.extractors.python.execution import coverage_map, pytest_runner
from excise.extractors.python.execution.python_grading import PythonGrading
from excise.protocols import Codebase, Session
from excise.types import CoverageMap, Recipe, Status, TestRun


class Python:
    """The Python adapter; see :class:`excise.protocols.Language`."""

    name = "python"
    suffixes: tuple[str, ...] = (".py", ".pyw", ".pyi")
    inside = pytest_runner.INSIDE
    grading = PythonGrading()

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:
        """Parse the Python files among ``paths``."""
        return PythonCodebase.parse(root, paths, collected=collected_from(tests), packages=names)

    def run_tests(
        self,
        session: Session,
        recipe: Recipe,
        *,
        ids: Sequence[str] | None = None,
        without: Sequence[str] = (),
        shuffle_seed: int | None = None,
        starved: bool = False,
        timeout_s: float = 600.0,
        test_timeout_s: float = 60.0,
    ) -> TestRun:
        """Run pytest, all tests or exactly ``ids``."""
        return pytest_runner.run_tests(
            session,
            recipe,
            ids=ids,
            without=without,
            shuffle_seed=shuffle_seed,
            starved=starved,
            timeout_s=timeout_s,
            test_timeout_s=test_timeout_s,
        )

    def map_coverage(
        self,
        session: Session,
        recipe: Recipe,
        codebase: Codebase,
        *,
        env_id: str,
        timeout_s: float,
        test_timeout_s: float = 60.0,
        fork: bool = True,
        ids: Sequence[str] | None = None,
        slow: Sequence[str] = (),
    ) -> tuple[CoverageMap, dict[str, Status]]:
        """Map coverage, a fork per test, or one process for all where ``fork`` is off.

        Raises :class:`EnvironmentFailure`; reason ``timeout`` is worth another try without forks.
        """
        if not isinstance(codebase, PythonCodebase):
            raise EnvironmentFailure("The codebase was not parsed by this adapter.", reason="infra")
        return coverage_map.map_coverage(
            session,
            recipe,
            cast(coverage_map.LineTable, codebase),
            env_id=env_id,
            timeout_s=timeout_s,
            test_timeout_s=test_timeout_s,
            ids=None if ids is None else tuple(ids),
            fork=fork,
            slow=slow,
        )
