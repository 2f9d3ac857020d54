"""``excise import``: reads another tool's set, checks every task, and publishes those that pass as tasks of a set.

Rows of the report are written after the snapshot that has their tasks, so that a killed import loses what was in
progress and nothing else; it continues when the command is run again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import excise
from excise.config import Settings
from excise.datasets.exports.registry import set_name
from excise.datasets.imports.registry import importer
from excise.datasets.queries.imports import (
    FOLDER,
    REPORT,
    ImportRow,
    finished_imports,
    report_markdown,
    write_import,
)
from excise.datasets.storage.store import Store
from excise.datasets.storage.writer import Writer
from excise.errors import StoreError
from excise.pipeline.cluster.local_cluster import open_worker_pool
from excise.pipeline.run.job_queue import JobQueue, Rank
from excise.pipeline.services.inspect_foreign import BAD_ROW, NOT_RUN, REFUSED, Inspection, inspect_foreign
from excise.system.files import replace_file
from excise.types import BadRow, ForeignTask

PUBLISH_EVERY_S = 30.0
"""Seconds between publications."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What the user asked for."""

    format: str
    """Name of the format."""
    path: Path
    """File or folder of the set."""
    name: str = ""
    """Name of the set in the report; empty for that of the file or folder."""
    repos: Path | None = None
    """Folder of local repositories, which are then used instead of the network."""
    attacks: int = 1
    """Number of attacks of each vector to try on the grading of each task; 0 for none."""
    limit: int | None = None
    """Maximum number of tasks to check."""
    only: frozenset[str] = frozenset()
    """Ids of the tasks to check; empty for all."""
    again: bool = False
    """Whether to check rows again that were imported or refused before."""


@dataclass(slots=True, kw_only=True)
class ImportResult:
    """What became of a set."""

    name: str
    """Its name in the report."""
    counts: Counter[str] = field(default_factory=Counter)
    """Status to number of rows; ``done_before`` for those that an earlier call had finished."""
    report: Path
    """File with the readable table."""

    @property
    def num_checked(self) -> int:
        """Number of rows that this call checked."""
        return sum(self.counts.values()) - self.counts["done_before"]


def import_set(
    settings: Settings, options: ImportOptions, listener: Callable[[ImportRow], None] = lambda _: None
) -> ImportResult:
    """Import a set into the task set ``settings.out``; ``listener`` gets the row of each task when it is known.

    Raises :class:`ConfigError` if there is nothing of this format, :class:`StoreError` if the set cannot be written.
    """
    name = set_name(Path(options.name or options.path.name.partition(".")[0]))
    result = ImportResult(name=name, report=settings.out / FOLDER / name / REPORT)
    done = {} if options.again else finished_imports(settings.out, name)
    tasks = []
    with Store(settings.out).writer() as writer:
        publication = _Publication(settings.out, writer, result, listener)
        for task in _chosen(options):
            if isinstance(task, BadRow):
                publication.add(bad_row(name, options.format, task), None)
            elif done.get(task.place) == _sha256(task.row):
                result.counts["done_before"] += 1
            else:
                tasks.append(task)
        try:
            for task, found in _inspected(settings, options, tasks):
                publication.add(import_row(name, task, found), found)
        finally:
            publication.flush()
            publication.report()
    return result


def _chosen(options: ImportOptions) -> Iterator[ForeignTask | BadRow]:
    count = 0
    for task in importer(options.format).read(options.path):
        if options.only and task.instance_id not in options.only:
            continue
        if options.limit is not None and count >= options.limit:
            return
        count += 1
        yield task


def _inspected(
    settings: Settings, options: ImportOptions, tasks: list[ForeignTask]
) -> Iterator[tuple[ForeignTask, Inspection]]:
    """Each task with what came of it, in the order in which they end."""
    if not tasks:
        return
    repos = options.repos.absolute() if options.repos else None
    with open_worker_pool(settings.scheduler, min(settings.workers, len(tasks))) as pool:
        jobs: JobQueue[ForeignTask] = JobQueue(pool)
        for number, task in enumerate(tasks):
            jobs.put(task, Rank(number, 0.0), inspect_foreign, settings, task, repos, options.attacks)
        for task, ended in jobs:
            if why := ended.failure("run the command again"):
                yield task, Inspection(status=NOT_RUN, reason=why[0], detail=why[1], retry=True)
            else:
                yield task, ended.value


class _Publication:
    """Publishes tasks now and then, and writes the rows of the report after them."""

    def __init__(
        self, store: Path, writer: Writer, result: ImportResult, listener: Callable[[ImportRow], None]
    ) -> None:
        self.store, self.writer, self.result, self.listener = store, writer, result, listener
        self.pending: list[ImportRow] = []
        self.published_at = time.monotonic()

    def add(self, row: ImportRow, found: Inspection | None) -> None:
        """Put a task into the next snapshot; a task that another project of the set has is refused."""
        entry = f"import:{row.imported_set}:{row.instance_id}"
        if found is not None and found.rows is not None:
            try:
                self.writer.put_repo(entry, found.rows)
            except StoreError as error:
                if error.reason != "duplicate_task":
                    raise
                row = _refused(row, error)
        elif row.status in {REFUSED, NOT_RUN} and row.instance_id:
            self.writer.drop_repo(entry)
        self.pending.append(row)
        self.result.counts[row.status] += 1
        self.listener(row)
        if time.monotonic() - self.published_at > PUBLISH_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Publish, then write the rows of the report."""
        self.writer.publish()
        for row in self.pending:
            write_import(self.store, row)
        self.pending.clear()
        self.published_at = time.monotonic()

    def report(self) -> None:
        """Write the readable table."""
        replace_file(self.result.report, report_markdown(self.store, self.result.name).encode())


def import_row(name: str, task: ForeignTask, found: Inspection) -> ImportRow:
    """The row of the report about a task."""
    proof = found.proof
    return ImportRow(
        imported_set=name,
        format=task.format,
        place=task.place,
        instance_id=task.instance_id,
        repo=task.repo,
        base_commit=task.commit,
        status=found.status,
        reason=found.reason,
        detail=found.detail,
        advice=found.advice,
        checks=found.checks,
        num_f2p=None if task.fail_to_pass is None else len(task.fail_to_pass),
        num_f2p_confirmed=proof.num_f2p,
        num_p2p=None if task.pass_to_pass is None else len(task.pass_to_pass),
        num_p2p_confirmed=proof.num_p2p,
        unconfirmed=proof.unconfirmed,
        unconfirmed_examples=proof.examples,
        history=found.history,
        num_attacks=found.attacks.num_tried,
        attacks_on_log=found.attacks.by_log,
        attacks_on_excise=found.attacks.by_excise,
        image_name=task.image_name,
        wall_s=found.wall_s,
        row=task.row,
        row_sha256="" if found.retry else _sha256(task.row),
        excise_version=excise.__version__,
    )


def bad_row(name: str, format_: str, row: BadRow) -> ImportRow:
    """The row of the report about a row that is no task."""
    return ImportRow(
        imported_set=name,
        format=format_,
        place=row.place,
        instance_id=row.instance_id,
        repo="",
        base_commit="",
        status=BAD_ROW,
        reason="bad_row",
        detail=f"{row.field} {row.problem}",
        advice="",
        history="",
        row=row.row or json.dumps({row.field: row.problem}),
        row_sha256=_sha256(row.row),
        excise_version=excise.__version__,
    )


def _refused(row: ImportRow, error: StoreError) -> ImportRow:
    return replace(row, status=REFUSED, reason=error.reason, detail=str(error), advice="Import it into another set.")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
