"""The language adapter for Rust: parses code, builds and runs tests, maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from excise.extractors.compiled_language import CompiledLanguage
from excise.extractors.rust import project_files
from excise.extractors.rust.analysis.codebase import SUFFIX, RustCodebase
from excise.extractors.rust.execution import rust_runner
from excise.extractors.rust.execution.rust_grading import RustGrading
from excise.extractors.rust.needs import find_needs
from excise.extractors.rust.scan_rules import SCAN_RULES
from excise.extractors.rust.scrub_rules import SCRUB_RULES
from excise.protocols import Codebase, Grading
from excise.types import ProjectInfo


class Rust(CompiledLanguage[RustCodebase]):
    """The Rust adapter; see :class:`excise.protocols.Language`."""

    name = "rust"
    suffixes: tuple[str, ...] = (SUFFIX,)
    inside = rust_runner.INSIDE
    scrub_rules = SCRUB_RULES
    scan_rules = SCAN_RULES
    grading: Grading = RustGrading()

    def detect(self, root: Path) -> float:
        """1 with a ``Cargo.toml`` in the main folder, else the share of files that are Rust."""
        return project_files.detect(root)

    def project_info(self, root: Path) -> ProjectInfo:
        """See :meth:`excise.protocols.Language.project_info`: ``Cargo.toml``."""
        return project_files.read_manifest(root)

    def complete_subfolder(self, copy: Path, folder: Path, whole: Path) -> None:
        """Write the tables of its workspace into the manifest of a member; see
        :meth:`excise.protocols.Language.complete_subfolder`."""
        project_files.add_workspace_tables(copy, folder, whole)

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:
        """Parse the Rust files among ``paths``; ``names`` has the name of the crate."""
        return RustCodebase.parse(root, paths, tests=tests, names=names)


LANGUAGE = Rust(RustCodebase, rust_runner.RUNNER, find_needs)
