"""The language adapter for Rust: parses code, builds and runs tests, maps their coverage."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from excise.extractors.compiled_language import CompiledLanguage
from excise.extractors.fetch.trees import list_files
from excise.extractors.rust.analysis.codebase import SUFFIX, RustCodebase
from excise.extractors.rust.execution import rust_runner
from excise.extractors.rust.execution.rust_grading import RustGrading
from excise.extractors.rust.needs import find_needs
from excise.extractors.rust.scan_rules import SCAN_RULES
from excise.extractors.rust.scrub_rules import SCRUB_RULES
from excise.protocols import Codebase


class Rust(CompiledLanguage[RustCodebase]):
    """The Rust adapter; see :class:`excise.protocols.Language`."""

    name = "rust"
    suffixes: tuple[str, ...] = (SUFFIX,)
    inside = rust_runner.INSIDE
    scrub_rules = SCRUB_RULES
    scan_rules = SCAN_RULES
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


LANGUAGE = Rust(RustCodebase, rust_runner.RUNNER, find_needs)
