"""The language adapter for Go: parses code, builds and runs tests, maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from excise.extractors.compiled_language import CompiledLanguage
from excise.extractors.go import project_files
from excise.extractors.go.analysis.codebase import SUFFIX, GoCodebase
from excise.extractors.go.execution import go_runner
from excise.extractors.go.execution.go_grading import GoGrading
from excise.extractors.go.needs import find_needs
from excise.extractors.go.scan_rules import SCAN_RULES
from excise.extractors.go.scrub_rules import SCRUB_RULES
from excise.protocols import Codebase, Grading
from excise.types import ProjectInfo


class Go(CompiledLanguage[GoCodebase]):
    """The Go adapter; see :class:`excise.protocols.Language`."""

    name = "go"
    suffixes: tuple[str, ...] = (SUFFIX,)
    inside = go_runner.INSIDE
    scrub_rules = SCRUB_RULES
    scan_rules = SCAN_RULES
    grading: Grading = GoGrading()

    def detect(self, root: Path) -> float:
        """1 with a ``go.mod`` in the main folder, else the share of files that are Go."""
        return project_files.detect(root)

    def project_info(self, root: Path) -> ProjectInfo:
        """See :meth:`excise.protocols.Language.project_info`: ``go.mod``, which has a name alone."""
        return project_files.read_manifest(root)

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:  # noqa: ARG002
        """Parse the Go files among ``paths``; ``names`` are the import paths of the project's modules."""
        return GoCodebase.parse(root, paths, import_paths=names)


LANGUAGE = Go(GoCodebase, go_runner.RUNNER, find_needs)
