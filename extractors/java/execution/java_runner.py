"""Runs a Java project's tests in a sandbox session."""

from __future__ import annotations

from pathlib import Path

from excise.extractors.test_reports.runner_program import RunnerProgram

INSIDE = Path(__file__).resolve().parents[1] / "inside"
"""Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""
RUNNER = RunnerProgram(
    file="excise_java_run.py",
    folder=INSIDE,
    modules=("excise_java_build.py", "excise_java_jvm.py"),
    shared=(),
    settings=("*/META-INF/*", "META-INF/*", "junit-platform.properties", "module-info.java", "*/org/junit/*"),
)
