"""The language adapter for Go: parses code, builds and runs tests, maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from excise.errors import EnvironmentFailure
from excise.extractors.fetch.trees import list_files
from excise.extractors.go.analysis.codebase import SUFFIX, GoCodebase
from excise.extractors.go.execution import go_runner
from excise.extractors.go.execution.go_grading import GoGrading
from excise.extractors.go.needs import find_needs
from excise.extractors.go.scan_rules import SCAN_RULES
from excise.extractors.go.scrub_rules import SCRUB_RULES
from excise.extractors.test_reports import executed_symbols
from excise.protocols import Codebase, CoveragePass, CoverageRequest, ForkServer, Session, Start, TestRunRequest
from excise.types import ExecutedCode, Need, Recipe, TestRun, Watched


class Go:
    """The Go adapter; see :class:`excise.protocols.Language`."""

    name = "go"
    suffixes: tuple[str, ...] = (SUFFIX,)
    inside = go_runner.INSIDE
    scrub_rules = SCRUB_RULES
    scan_rules = SCAN_RULES
    keeps_outputs = False
    grading = GoGrading()

    def detect(self, root: Path) -> float:
        """1 with a ``go.mod`` in the main folder, else the share of files that are Go."""
        if (root / "go.mod").is_file():
            return 1.0
        files = list_files(root)
        return sum(path.endswith(SUFFIX) for path in files) / len(files) if files else 0.0

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:  # noqa: ARG002
        """Parse the Go files among ``paths``; ``names`` are the import paths of the project's modules."""
        return GoCodebase.parse(root, paths, import_paths=names)

    def fork_server(self, recipe: Recipe, start: Start) -> ForkServer | None:  # noqa: ARG002
        """Every test has a process of its own."""
        return None

    def run_tests(self, session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
        """Build and run the tests; see :meth:`excise.protocols.Language.run_tests`."""
        return go_runner.run_tests(session, recipe, request)

    def map_coverage(
        self, session: Session, recipe: Recipe, codebase: Codebase, request: CoverageRequest
    ) -> Sequence[CoveragePass]:
        """See :meth:`excise.protocols.Language.map_coverage`. Raises :class:`EnvironmentFailure`."""
        return go_runner.map_coverage(session, recipe, _own(codebase), request)

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


def _own(codebase: Codebase) -> GoCodebase:
    if not isinstance(codebase, GoCodebase):
        raise EnvironmentFailure("The codebase was not parsed by this adapter.", reason="infra")
    return codebase


LANGUAGE = Go()
