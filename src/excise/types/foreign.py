"""Foreign tasks: tasks of other tools' sets as ``excise import`` reads them, before anything is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTask:
    """One task of another tool's set. Everything in it is a claim of that set.

    A format gives either ``patch``, which solves the task at ``commit``, or ``bug_patch``, which makes the task out of
    the solved sources at ``commit``.
    """

    instance_id: str
    """Id in the set; kept as the id of the imported task."""
    format: str
    """Name of the format."""
    place: str
    """Where it was read: file and line, row or folder."""
    repo: str
    """``owner/name`` of the project."""
    urls: tuple[str, ...]
    """Git URLs that may have the commit, the best one first."""
    commit: str
    """Commit of the sources, or a prefix of its id; empty for the default branch."""
    patch: str = ""
    """The gold patch, against the sources at ``commit``."""
    bug_patch: str = ""
    """The patch that makes the bug in the sources at ``commit``; its reverse is the gold patch."""
    test_patch: str = ""
    """Adds the hidden tests."""
    test_files: tuple[tuple[str, str], ...] = ()
    """(path, text) of hidden tests that the format has as whole files."""
    problem_statement: str
    """The task description that the agent gets."""
    hints_text: str = ""
    """Hints of the set."""
    interface: str = ""
    """Names and signatures that the hidden tests use, as the set gives them."""
    fail_to_pass: tuple[str, ...] | None
    """Tests that fail without the gold patch and pass with it; ``None`` if the format does not list them."""
    pass_to_pass: tuple[str, ...] | None
    """Tests that pass with and without it; ``None`` if the format does not list them."""
    expected: tuple[tuple[str, str], ...] = ()
    """(test, status) with the gold patch, for formats that list these instead."""
    created_at: str = ""
    """ISO date that the set gives; of that and the commit's date, the later one limits which releases are installed."""
    version: str = ""
    """Version of the project."""
    language: str = "python"
    """Programming language in lower case."""
    python: str = ""
    """Version of the interpreter that the set names."""
    requirements: tuple[str, ...] = ()
    """Distributions that the set installs in addition to the project's own."""
    image_name: str = ""
    """Docker image that the set runs the task in."""
    environment_files: tuple[tuple[str, str], ...] = ()
    """(path, text) of files that the set puts into the agent's environment."""
    solution_script: str = ""
    """Script that solves the task, for formats that have one instead of a patch."""
    row: str
    """The whole row as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row of another tool's set that cannot be read as a task."""

    place: str
    """Where it is: file and line, row or folder."""
    instance_id: str = ""
    """Its id, if it has one."""
    field: str
    """The field that is missing or wrong."""
    problem: str
    """What is wrong, and what to do."""
    row: str = ""
    """The row as JSON or text, at most the beginning of it."""
