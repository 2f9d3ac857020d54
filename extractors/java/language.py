"""The language adapter for Java: parses code, builds and runs tests, maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from excise.extractors.compiled_language import CompiledLanguage
from excise.extractors.java import project_files
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.suite_files import SUFFIX
from excise.extractors.java.execution import java_runner
from excise.extractors.java.execution.java_grading import JavaGrading
from excise.extractors.java.needs import find_needs
from excise.extractors.java.scan_rules import SCAN_RULES
from excise.extractors.java.scrub_rules import SCRUB_RULES
from excise.protocols import Codebase, Grading
from excise.types import ProjectInfo


class Java(CompiledLanguage[JavaCodebase]):
    """The Java adapter; see :class:`excise.protocols.Language`."""

    name = "java"
    suffixes: tuple[str, ...] = (SUFFIX,)
    inside = java_runner.INSIDE
    scrub_rules = SCRUB_RULES
    scan_rules = SCAN_RULES
    grading: Grading = JavaGrading()
    shares_process = True

    def detect(self, root: Path) -> float:
        """1 with a manifest of Maven, Gradle or Ant and Java files, else the share of files that are Java."""
        return project_files.detect(root)

    def project_info(self, root: Path) -> ProjectInfo:
        """See :meth:`excise.protocols.Language.project_info`: ``pom.xml``."""
        return project_files.read_manifest(root)

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:  # noqa: ARG002
        """Parse the Java files among ``paths``."""
        return JavaCodebase.parse(root, paths, tests=tests)


LANGUAGE = Java(JavaCodebase, java_runner.RUNNER, find_needs)
