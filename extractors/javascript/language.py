"""The language adapter for JavaScript: parses code, runs tests, maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from excise.errors import EnvironmentFailure
from excise.extractors.javascript import needs, project_files
from excise.extractors.javascript.analysis.codebase import SUFFIXES, JavaScriptCodebase
from excise.extractors.javascript.execution import coverage_map, node_runner
from excise.extractors.javascript.execution.javascript_grading import JavaScriptGrading
from excise.extractors.javascript.scan_rules import SCAN_RULES
from excise.extractors.javascript.scrub_rules import SCRUB_RULES
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


class JavaScript:
    """The JavaScript adapter; see :class:`excise.protocols.Language`."""

    name = "javascript"
    suffixes: tuple[str, ...] = SUFFIXES
    inside = node_runner.INSIDE
    scrub_rules = SCRUB_RULES
    scan_rules = SCAN_RULES
    keeps_outputs = True
    grading: Grading = JavaScriptGrading()

    def detect(self, root: Path) -> float:
        """See :meth:`excise.protocols.Language.detect`: ``package.json``, or JavaScript files."""
        return project_files.detect(root)

    def project_info(self, root: Path) -> ProjectInfo:
        """See :meth:`excise.protocols.Language.project_info`: ``package.json``."""
        return project_files.read_manifest(root)

    def complete_subfolder(self, copy: Path, folder: Path, whole: Path) -> None:
        """Nothing: the manifest of a folder says all."""

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:
        """Parse the JavaScript files among ``paths``; type declarations and the manifest are kept beside them."""
        return JavaScriptCodebase.parse(root, paths, tests=tests)

    def fork_server(self, recipe: Recipe, start: Start) -> ForkServer | None:
        """Every test file has a node process of its own."""
        return None

    def run_tests(self, session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
        """Run test files in node; see :meth:`excise.protocols.Language.run_tests`."""
        return node_runner.run_tests(session, recipe, request)

    def plain_run(self, recipe: Recipe, ids: Sequence[str], *, timeout_s: float, test_timeout_s: float) -> PlainRun:
        """The runner of test files; see :meth:`excise.protocols.Language.plain_run`."""
        return node_runner.plain_run(recipe, ids, timeout_s, test_timeout_s)

    def map_coverage(
        self, session: Session, recipe: Recipe, codebase: Codebase, request: CoverageRequest
    ) -> Sequence[CoveragePass]:
        """See :meth:`excise.protocols.Language.map_coverage`. Raises :class:`EnvironmentFailure`."""
        if not isinstance(codebase, JavaScriptCodebase):
            raise EnvironmentFailure("The codebase was not parsed by this adapter.", reason="infra")
        return coverage_map.map_coverage(session, recipe, codebase, request)

    def map_executed(
        self, codebase: Codebase, env_id: str, executed: ExecutedCode, tests: Iterable[str]
    ) -> CoveragePass:
        """Ordinary runs do not note what they execute. Raises :class:`EnvironmentFailure`."""
        raise EnvironmentFailure("Ordinary runs of JavaScript note no executed code.", reason="infra")

    def find_needs(
        self, codebase: Codebase, removed: Sequence[str], tests: Sequence[str], watched: Watched | None = None
    ) -> tuple[Need, ...]:
        """Texts, errors and properties, by syntax; see :meth:`excise.protocols.Language.find_needs`."""
        if not isinstance(codebase, JavaScriptCodebase):
            raise EnvironmentFailure("The codebase was not parsed by this adapter.", reason="infra")
        return needs.find_needs(codebase, removed, tests)


LANGUAGE = JavaScript()
"""The adapter of the language."""
