"""Runs a Go module's tests in a sandbox session."""

from __future__ import annotations

from pathlib import Path

from excise.extractors.test_reports.runner_program import RunnerProgram
from excise.types import Recipe

INSIDE = Path(__file__).resolve().parents[1] / "inside"
"""Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""


def root_of(recipe: Recipe) -> str:
    """The checkout in the sandbox, by a link whose path ends with the import path, as in a workspace of Go.

    Tests of stack traces look for such paths.
    """
    return f"/opt/env/src/{recipe.packages[0]}"


RUNNER = RunnerProgram(
    file="excise_go_run.py",
    folder=INSIDE,
    modules=("excise_go_build.py",),
    shared=("excise_test_process.py",),
    settings=("*_test.go", "go.mod", "go.sum", "go.work", "vendor/*"),
    root=root_of,
)
