"""The language adapter for Python: parses code, runs tests, maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

from excise.errors import EnvironmentFailure
from excise.extractors.python import manifests, project_files
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.suite_files import collected_from
from excise.extractors.python.execution import coverage_map, pytest_runner
from excise.extractors.python.execution.python_grading import PythonGrading
from excise.extractors.python.needs import find_needs
from excise.extractors.python.needs.test_uses import uses_in
from excise.extractors.python.scan_rules import SCAN_RULES
from excise.extractors.python.scrub_rules import SCRUB_RULES
from excise.extractors.test_reports import executed_symbols
from excise.protocols import (
    Codebase,
    CoveragePass,
    CoverageRequest,
    ForkServer,
    Grading,
    PlainRun,
    Session,
    Start,
    TestRunRequest,
)
from excise.types import ExecutedCode, Need, ProjectInfo, Recipe, TestRun, Watched


class Python:
    """The Python adapter; see :class:`excise.protocols.Language`."""

    name = "python"
    suffixes: tuple[str, ...] = (".py", ".pyw", ".pyi")
    inside = pytest_runner.INSIDE
    scrub_rules = SCRUB_RULES
    scan_rules = SCAN_RULES
    keeps_outputs = True
    grading: Grading = PythonGrading()

    def detect(self, root: Path) -> float:
        """See :meth:`excise.protocols.Language.detect`: manifests of Python, or Python files."""
        return project_files.detect(root)

    def project_info(self, root: Path) -> ProjectInfo:
        """See :meth:`excise.protocols.Language.project_info`: pyproject.toml, setup.cfg, PKG-INFO and setup.py."""
        return manifests.read_manifests(root)

    def complete_subfolder(self, copy: Path, folder: Path, whole: Path) -> None:
        """Nothing: the manifest of a folder says all."""

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:
        """Parse the Python files among ``paths``."""
        return PythonCodebase.parse(root, paths, collected=collected_from(tests), packages=names)

    def fork_server(self, recipe: Recipe, start: Start) -> ForkServer | None:
        """See :meth:`excise.protocols.Language.fork_server`."""
        return None if start is Start.FRESH else pytest_runner.run_command(recipe, start)

    def run_tests(self, session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
        """Run pytest; see :meth:`excise.protocols.Language.run_tests`."""
        return pytest_runner.run_tests(session, recipe, request)

    def plain_run(
        self,
        recipe: Recipe,
        ids: Sequence[str],
        *,
        timeout_s: float,  # noqa: ARG002  (the caller ends the program)
        test_timeout_s: float,
    ) -> PlainRun:
        """Pytest with excise's plugin; see :meth:`excise.protocols.Language.plain_run`."""
        return pytest_runner.plain_run(recipe, ids, test_timeout_s)

    def map_coverage(
        self, session: Session, recipe: Recipe, codebase: Codebase, request: CoverageRequest
    ) -> Sequence[CoveragePass]:
        """See :meth:`excise.protocols.Language.map_coverage`.

        Raises :class:`EnvironmentFailure`; after the reason ``timeout``, a run without forks may still succeed.
        """
        if not isinstance(codebase, PythonCodebase):
            raise EnvironmentFailure("The codebase was not parsed by this adapter.", reason="infra")
        return coverage_map.map_coverage(session, recipe, cast(executed_symbols.LineLookup, codebase), request)

    def map_executed(
        self, codebase: Codebase, env_id: str, executed: ExecutedCode, tests: Iterable[str]
    ) -> CoveragePass:
        """See :meth:`excise.protocols.Language.map_executed`."""
        return executed_symbols.map_executed(cast(executed_symbols.LineLookup, codebase), env_id, executed, tests)

    def find_needs(
        self, codebase: Codebase, removed: Sequence[str], tests: Sequence[str], watched: Watched | None = None
    ) -> tuple[Need, ...]:
        """See :meth:`excise.protocols.Language.find_needs`."""
        if not isinstance(codebase, PythonCodebase):
            return ()
        return find_needs.find_needs(codebase, uses_in(codebase), removed, tests, watched)


LANGUAGE = Python()
