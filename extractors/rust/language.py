"""The language adapter for Rust: parses code, builds and runs tests, maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from excise.errors import EnvironmentFailure
from excise.extractors.fetch.trees import list_files
from excise.extractors.rust.analysis.codebase import SUFFIX, RustCodebase
from excise.extractors.rust.execution import rust_runner
from excise.extractors.rust.execution.rust_grading import RustGrading
from excise.extractors.rust.needs import find_needs
from excise.extractors.rust.scan_rules import SCAN_RULES
from excise.extractors.rust.scrub_rules import SCRUB_RULES
from excise.extractors.test_reports import executed_symbols
from excise.protocols import Codebase, CoveragePass, CoverageRequest, ForkServer, Session, Start, TestRunRequest
from excise.types import ExecutedCode, Need, Recipe, TestRun, Watched


class Rust:
    """The Rust adapter; see :class:`excise.protocols.Language`."""

    name = "rust"
    suffixes: tuple[str, ...] = (SUFFIX,)
    inside = rust_runner.INSIDE
    scrub_rules = SCRUB_RULES
    scan_rules = SCAN_RULES
    keeps_outputs = False
    grading = RustGrading()

    def detect(self, root: Path) -> float:
        """1 with a ``Cargo.toml`` in the main folder, else the share of files that are Rust."""
        if (root / "Cargo.toml").is_file():
            return 1.0
        files = list_files(root)
        return sum(path.endswith(SUFFIX) for path in files) / len(files) if files else 0.0

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:
        """Parse the Rust files among ``paths``; ``names`` has the name of the crate."""
        return RustCodebase.parse(root, paths, tests=tests, names=names)

    def fork_server(self, recipe: Recipe, start: Start) -> ForkServer | None:  # noqa: ARG002
        """Every test has a process of its own."""
        return None

    def run_tests(self, session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
        """Build and run the tests; see :meth:`excise.protocols.Language.run_tests`."""
        return rust_runner.run_tests(session, recipe, request)

    def map_coverage(
        self, session: Session, recipe: Recipe, codebase: Codebase, request: CoverageRequest
    ) -> Sequence[CoveragePass]:
        """See :meth:`excise.protocols.Language.map_coverage`. Raises :class:`EnvironmentFailure`."""
        return rust_runner.map_coverage(session, recipe, _own(codebase), request)

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


def _own(codebase: Codebase) -> RustCodebase:
    if not isinstance(codebase, RustCodebase):
        raise EnvironmentFailure("The codebase was not parsed by this adapter.", reason="infra")
    return codebase


LANGUAGE = Rust()
