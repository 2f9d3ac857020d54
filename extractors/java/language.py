"""The language adapter for Java: parses code, builds and runs tests, maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from excise.errors import EnvironmentFailure
from excise.extractors.fetch.trees import list_files
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.suite_files import SUFFIX
from excise.extractors.java.execution import java_runner
from excise.extractors.java.execution.java_grading import JavaGrading
from excise.extractors.java.needs import find_needs
from excise.extractors.java.scan_rules import SCAN_RULES
from excise.extractors.java.scrub_rules import SCRUB_RULES
from excise.extractors.test_reports import executed_symbols
from excise.protocols import Codebase, CoveragePass, CoverageRequest, ForkServer, Session, Start, TestRunRequest
from excise.types import ExecutedCode, Need, Recipe, TestRun, Watched

_MANIFESTS = ("pom.xml", "build.gradle", "build.gradle.kts", "build.xml")


class Java:
    """The Java adapter; see :class:`excise.protocols.Language`."""

    name = "java"
    suffixes: tuple[str, ...] = (SUFFIX,)
    inside = java_runner.INSIDE
    scrub_rules = SCRUB_RULES
    scan_rules = SCAN_RULES
    keeps_outputs = False
    grading = JavaGrading()

    def detect(self, root: Path) -> float:
        """1 with a manifest of Maven, Gradle or Ant and Java files, else the share of files that are Java."""
        files = list_files(root)
        number = sum(path.endswith(SUFFIX) for path in files)
        if number and any((root / name).is_file() for name in _MANIFESTS):
            return 1.0
        return number / len(files) if files else 0.0

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:  # noqa: ARG002
        """Parse the Java files among ``paths``."""
        return JavaCodebase.parse(root, paths, tests=tests)

    def fork_server(self, recipe: Recipe, start: Start) -> ForkServer | None:  # noqa: ARG002
        """Nothing is forked: a virtual machine has threads."""
        return None

    def run_tests(self, session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
        """Build and run the tests; see :meth:`excise.protocols.Language.run_tests`."""
        return java_runner.run_tests(session, recipe, request)

    def map_coverage(
        self, session: Session, recipe: Recipe, codebase: Codebase, request: CoverageRequest
    ) -> Sequence[CoveragePass]:
        """See :meth:`excise.protocols.Language.map_coverage`. Raises :class:`EnvironmentFailure`."""
        return java_runner.map_coverage(session, recipe, _own(codebase), request)

    def map_executed(
        self, codebase: Codebase, env_id: str, executed: ExecutedCode, tests: Iterable[str]
    ) -> CoveragePass:
        """See :meth:`excise.protocols.Language.map_executed`."""
        return executed_symbols.map_executed(_own(codebase), env_id, executed, tests)

    def find_needs(
        self,
        codebase: Codebase,
        removed: Sequence[str],
        tests: Sequence[str],
        watched: Watched | None = None,  # noqa: ARG002
    ) -> tuple[Need, ...]:
        """Texts that the tests expect; see :meth:`excise.protocols.Language.find_needs`."""
        return find_needs(_own(codebase), removed, tests)


def _own(codebase: Codebase) -> JavaCodebase:
    if not isinstance(codebase, JavaCodebase):
        raise EnvironmentFailure("The codebase was not parsed by this adapter.", reason="infra")
    return codebase


LANGUAGE = Java()
