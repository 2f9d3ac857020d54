"""Runs a Rust crate's tests in a sandbox session."""

from __future__ import annotations

from pathlib import Path

from excise.extractors.test_reports.runner_program import RunnerProgram

INSIDE = Path(__file__).resolve().parents[1] / "inside"
"""Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""
RUNNER = RunnerProgram(
    file="excise_rust_run.py",
    folder=INSIDE,
    modules=("excise_rust_build.py", "excise_rust_coverage.py", "excise_rust_source.py"),
    shared=("excise_test_process.py",),
    settings=("Cargo.toml", "Cargo.lock", "build.rs", "rust-toolchain*", ".cargo/*", "tests/*"),
)
