"""The reader of a task set: records by id from one snapshot."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from excise.datasets import rows as row_conversion
from excise.datasets.rows import Row
from excise.datasets.storage.blobs import Blobs
from excise.datasets.storage.manifest import Manifest, no_set_error
from excise.datasets.storage.set_index import Entry
from excise.datasets.storage.snapshot import Snapshot
from excise.errors import StoreError
from excise.types import (
    Baseline,
    Certificate,
    Environment,
    GradingKit,
    Quarantine,
    Rejection,
    Repo,
    RepoReport,
    StatementStyle,
    Task,
    TaskStatement,
    Verdict,
    content_id,
    from_json,
)


class TaskSet:
    """One published snapshot; later publications are visible after opening the folder again.

    >>> tasks = TaskSet.open("demo-out").tasks()  # doctest: +SKIP
    """

    def __init__(self, store: Path, snapshot: Snapshot) -> None:
        self.root = store
        self._snapshot = snapshot
        self._blobs = Blobs(store)

    @classmethod
    def open(cls, store: Path | str, as_of: str = "") -> TaskSet:
        """The task set in the folder ``store``, or an earlier state of it (see :meth:`Snapshot.at`).

        Raises :class:`StoreError` if there is none.
        """
        snapshot = Snapshot.at(Path(store), as_of)
        if snapshot is None:
            raise no_set_error(Path(store))
        return cls(Path(store), snapshot)

    @property
    def manifest(self) -> Manifest:
        """Manifest of the snapshot."""
        return self._snapshot.manifest

    def ids(self) -> tuple[str, ...]:
        """All instance ids, sorted, quarantined ones included."""
        return tuple(sorted(self._snapshot.index.ids()))

    def entries(self) -> Mapping[str, Entry]:
        """The projects of the set by the name that the writer gave them, with the sources as the user named them."""
        return self._snapshot.index.entries

    def ids_of(self, entry: str) -> tuple[str, ...]:
        """Instance ids of one of :meth:`entries`, quarantined tasks included."""
        return tuple(self._snapshot.index.tasks(entry))

    def tasks(self, repo: str | None = None, *, quarantined: bool = False) -> tuple[Task, ...]:
        """All tasks, or those of one repository, sorted by instance id; ``quarantined`` includes quarantined tasks."""
        found = [row_conversion.task_from(row) for row in self.task_rows(repo, quarantined=quarantined)]
        if repo is not None and not found:
            self._repo_row(repo)
        return tuple(found)

    def task_rows(self, repo: str | None = None, *, quarantined: bool = False) -> list[Row]:
        """Rows of the ``tasks`` table, sorted by instance id; ``quarantined`` as in :meth:`tasks`."""
        excluded = set() if quarantined else {entry.instance_id for entry in self.quarantines()}
        rows = self._snapshot.rows("tasks") if repo is None else self._snapshot.select("tasks", "repo", repo)
        return sorted((r for r in rows if r["instance_id"] not in excluded), key=lambda row: str(row["instance_id"]))

    def rows(self, table: str, repo: str | None = None) -> list[Row]:
        """Rows of a table, or those that name one repository."""
        return [row for row in self._snapshot.rows(table) if repo in (None, row["repo"])]

    def files(self) -> Iterator[tuple[str, Path]]:
        """(path in the set, file) of everything that this snapshot needs: its folder, archives and grading kits."""
        for path in sorted(self._snapshot.root.rglob("*")):
            if path.is_file():
                yield f"snapshots/{self.manifest.number}/{path.relative_to(self._snapshot.root).as_posix()}", path
        for path in sorted(self._blobs.root.rglob("*")):
            if path.is_file():
                yield f"{self._blobs.root.name}/{path.relative_to(self._blobs.root).as_posix()}", path

    def quarantines(self, instance_id: str | None = None) -> tuple[Quarantine, ...]:
        """Quarantines of the whole set, or of one task."""
        every = instance_id is None
        rows = self._snapshot.rows("quarantines", None if every else self._owner(instance_id or "") or "")
        return tuple(row_conversion.quarantine_from(row) for row in rows if every or row["instance_id"] == instance_id)

    def statements(
        self, instance_id: str | None = None, *, style: StatementStyle | None = None
    ) -> tuple[TaskStatement, ...]:
        """Stored statements of the whole set, or of one task, in one style or all. Older sets have none."""
        owner = None if instance_id is None else self._owner(instance_id) or ""
        if instance_id is None and style is not None:
            rows = self._snapshot.select("statements", "style", str(style))
        else:
            rows = self._snapshot.rows("statements", owner)
        return tuple(
            row_conversion.statement_from(row)
            for row in rows
            if instance_id in (None, row["instance_id"]) and style in (None, row["style"])
        )

    def task(self, instance_id: str) -> Task:
        """A task. Raises :class:`StoreError` for an unknown id."""
        return row_conversion.task_from(self._task_row(instance_id))

    def is_intact(self, instance_id: str) -> bool:
        """Whether the hash of a task's row equals the one in the snapshot's index."""
        row = self._task_row(instance_id)
        known = self._snapshot.index.tasks(self._owner(instance_id) or "")
        return content_id("row", row_conversion.canonical_json(row)) == known[instance_id]

    def certificate(self, instance_id: str) -> Certificate:
        """The certificate of a task."""
        certificate = row_conversion.certificate_from(self._task_row(instance_id))
        if certificate is None:
            raise StoreError(f"{instance_id} was stored without a certificate.", reason="no_certificate")
        return certificate

    def verdicts(self, instance_id: str) -> tuple[Verdict, ...]:
        """All verdicts on a task or a rejected candidate, by gate and run."""
        owner = self._owner(instance_id)
        if owner is None:
            rows = self._snapshot.select("verdicts", "instance_id", instance_id)
        else:
            rows = self._snapshot.rows("verdicts", owner)
        found = tuple(row_conversion.verdict_from(row) for row in rows if row["instance_id"] == instance_id)
        if not found and owner is None:
            known = (
                str(row["instance_id"]) for rows in self._snapshot.batches("verdicts", ["instance_id"]) for row in rows
            )
            raise _unknown_id_error("task or candidate", instance_id, known)
        return found

    def repo(self, name: str) -> Repo:
        """The sources of a repository. Raises :class:`StoreError` if they could not be fetched."""
        row = self._repo_row(name)
        repo = row_conversion.repo_from(row)
        if repo is None:
            raise StoreError(f"{name} could not be fetched: {row['detail'] or row['status']}", reason="not_fetched")
        return repo

    def repo_of(self, entry: str) -> Repo | None:
        """The sources under a name of :meth:`entries`; ``None`` if they could not be fetched."""
        return next((row_conversion.repo_from(row) for row in self._snapshot.rows("repos", entry)), None)

    def repos(self) -> tuple[Repo, ...]:
        """All repositories that could be fetched."""
        return tuple(repo for row in self._snapshot.rows("repos") if (repo := row_conversion.repo_from(row)))

    def reports(self) -> tuple[RepoReport, ...]:
        """The reports of all sources."""
        return tuple(report for row in self._snapshot.rows("repos") if (report := row_conversion.report_from(row)))

    def environment(self, env_id: str) -> tuple[Environment, Baseline]:
        """An environment and its baseline. Raises :class:`StoreError` if either is missing."""
        rows = self._snapshot.select("environments", "env_id", env_id)
        if not rows:
            known = (str(row["env_id"]) for row in self._snapshot.rows("environments", columns=["env_id"]))
            raise _unknown_id_error("environment", env_id, known)
        environment, baseline = row_conversion.environment_from(rows[-1])
        if baseline is None:
            raise StoreError(f"Environment {env_id} of {environment.repo} has no baseline.", reason="no_baseline")
        return environment, baseline

    def rejections(self, repo: str | None = None) -> tuple[Rejection, ...]:
        """All rejections, or those of one repository."""
        snapshot = self._snapshot
        rows = snapshot.rows("rejections") if repo is None else snapshot.select("rejections", "repo", repo)
        return tuple(row_conversion.rejection_from(row) for row in rows)

    def blob(self, sha: str) -> Path:
        """Path of a source archive with a verified hash."""
        return self._blobs.path(sha)

    def kit(self, instance_id: str) -> GradingKit | None:
        """The grading kit of a task; ``None`` for tasks of older versions without a kit."""
        sha = _call_evidence(self.certificate(instance_id)).get("kit", "")
        return from_json(GradingKit, self._blobs.path(sha, ".json").read_bytes()) if sha else None

    def tests_only(self) -> frozenset[str]:
        """Ids of tasks whose recorded calls do not distinguish solutions from stubs, so that only tests grade them."""
        rows = self._snapshot.rows("tasks")
        evidence = ((row, _call_evidence(row_conversion.certificate_from(row))) for row in rows)
        return frozenset(str(row["instance_id"]) for row, calls in evidence if calls.get("calls_telling") != "true")

    def lifted_share(self, instance_id: str) -> float:
        """Share of a task's FAIL_TO_PASS tests that are lifted: what they expect is compared outside the sandbox."""
        return float(_call_evidence(self.certificate(instance_id)).get("lifted_share", 0.0))

    def tamper_proof(self) -> frozenset[str]:
        """Ids of tasks whose FAIL_TO_PASS tests, but for those that earn nothing, are decided outside the solution's
        sandbox: each is lifted, or recorded calls decide it."""
        found = set()
        for row in self._snapshot.rows("tasks"):
            certificate = row_conversion.certificate_from(row)
            evidence = _call_evidence(certificate)
            decided = int(evidence.get("tests_outside", 0)) + int(evidence.get("tests_uncounted", 0))
            if decided == len(row_conversion.task_from(row).fail_to_pass):
                found.add(str(row["instance_id"]))
        return frozenset(found)

    def _task_row(self, instance_id: str) -> Row:
        owner = self._owner(instance_id)
        if owner is None:
            raise _unknown_id_error("task", instance_id, self.ids())
        return next(row for row in self._snapshot.rows("tasks", owner) if row["instance_id"] == instance_id)

    def _owner(self, instance_id: str) -> str | None:
        """The entry of a task's repository; ``None`` for an unknown task."""
        return self._snapshot.index.owner(instance_id)

    def _repo_row(self, name: str) -> Row:
        for row in self._snapshot.select("repos", "repo", name):
            return row
        names = (str(row["repo"]) for row in self._snapshot.rows("repos", columns=["repo"]))
        raise _unknown_id_error("repository", name, names)


def _call_evidence(certificate: Certificate | None) -> Mapping[str, str]:
    """Evidence of the gate of recorded calls; empty without one."""
    verdicts = certificate.verdicts if certificate is not None else ()
    return next((verdict.evidence for verdict in verdicts if verdict.gate == "g10_calls"), {})


def _unknown_id_error(what: str, name: str, known: Iterable[str]) -> StoreError:
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or [n for n in names if n.startswith(name)][:3]
    hint = f" Did you mean {' or '.join(close)}?" if close else f" The set has {len(names)} of them."
    return StoreError(f"No {what} {name!r} in this task set.{hint}", reason="unknown_id")
