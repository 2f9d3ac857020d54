"""Exports of task sets in other tools' formats: what an exporter is given, and what it reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from excise.types import Certificate, Environment, Repo, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTask:
    """One task with everything that the set's tables say about it."""

    row: Mapping[str, Any]
    """Its row of the table ``tasks``, with all columns."""
    task: Task
    """The task."""
    certificate: Certificate
    """Its certificate."""
    repo: Repo
    """The project's sources."""
    environment: Environment
    """The environment of the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A tree of a task as an archive: the shipped one, or the solved one."""

    archive: bytes
    """The files as tar.gz, with ``.git/info/attributes`` and without any other file of a repository."""
    commit: str
    """The commit that holds exactly these files, when it is made as :data:`CHECKOUT_SCRIPT` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskImage:
    """The image of an environment, which all tasks of a project share. It holds no sources of the project."""

    tag: str
    """Name of the image."""
    files: Mapping[str, bytes | Path]
    """File name to content, or to a file to copy: the build context, and what excise rebuilds its sandboxes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingFiles:
    """What a plain grader of one task needs: it runs the tests and believes their report."""

    kept: bytes
    """Files that graders put back after a solution was applied (tests and their settings), as tar.gz."""
    request: Mapping[str, Any]
    """What :class:`~excise.protocols.PlainRun` requests, for FAIL_TO_PASS and PASS_TO_PASS, with ``program`` and
    ``settings``."""
    programs: Mapping[str, bytes]
    """File name to content of the program that runs the tests, and of all that it loads."""
    solution_paths: tuple[str, ...]
    """Files that the gold patch changes."""
    timeout_s: float
    """Wall seconds after which the whole run counts as failed."""


class ExportMaterials(Protocol):
    """Files that exporters cannot make from a set's tables alone; made from its archives."""

    def image(self, env_id: str) -> TaskImage:
        """The image of an environment."""
        ...

    def checkout(self, instance_id: str) -> Checkout:
        """The tree that an agent gets, without files that an installation makes. Raises :class:`StoreError`."""
        ...

    def solved(self, instance_id: str) -> Checkout:
        """The untouched sources: the feature and all tests are there. Raises :class:`StoreError`."""
        ...

    def bug_patch(self, instance_id: str) -> str:
        """The patch from the untouched sources that takes the feature out and leaves all tests."""
        ...

    def grading(self, instance_id: str) -> GradingFiles:
        """What a plain grader of the task needs. Raises :class:`StoreError`."""
        ...

    def program(self, name: str) -> bytes:
        """A program of excise that runs in another tool's process, by file name."""
        ...


class ExportedSet(Protocol):
    """What an exporter is given."""

    @property
    def name(self) -> str:
        """Short name of the set, from the folder that is written."""
        ...

    @property
    def materials(self) -> ExportMaterials:
        """Files beside the tables."""
        ...

    def tasks(self) -> Iterator[ExportedTask]:
        """The tasks to export, sorted by instance id; quarantined ones are left out."""
        ...

    def rows(self, table: str) -> Iterator[Mapping[str, Any]]:
        """Rows of a table about what is exported; of ``tasks``, quarantined ones are left out."""
        ...

    def files(self) -> Iterator[tuple[str, Path]]:
        """(path, file) of the whole set's files; none if only a part of the set is exported."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What was written."""

    num_tasks: int
    """Number of tasks."""
    not_carried: tuple[str, ...] = ()
    """What the format has no place for, one sentence each."""
    run: tuple[str, ...] = field(default=())
    """Commands of the other tool that use the folder, to be run in it."""


class Exporter(Protocol):
    """Writes a task set in another tool's format."""

    name: str

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write the tasks into the folder ``into``, which exists."""
        ...
