"""Rows of made-up projects, as many as wanted, with ids that differ from project to project."""

from __future__ import annotations

from dataclasses import replace

from excise.datasets.rows import RepoRows
from excise.types import content_id

from .conftest import SOURCES, make_rows


def many_rows(name: str, num_tasks: int, version: int = 0) -> RepoRows:
    """A project with ``num_tasks`` tasks; other versions have other tasks."""
    base = make_rows("toolz")
    tasks, certificates = [], []
    for number in range(num_tasks):
        place = number % len(SOURCES["toolz"])
        task, certificate = base.tasks[place], base.certificates[place]
        instance_id = f"{name}__{content_id('made', name, number, version)[:12]}"
        verdicts = tuple(replace(verdict, instance_id=instance_id) for verdict in certificate.verdicts)
        tasks.append(replace(task, instance_id=instance_id, repo=name))
        certificates.append(replace(certificate, instance_id=instance_id, verdicts=verdicts))
    assert base.repo is not None
    assert base.report is not None
    return replace(
        base,
        repo=replace(base.repo, repo=name, version=f"1.{version}"),
        report=replace(base.report, repo=name),
        tasks=tuple(tasks),
        certificates=tuple(certificates),
        rejections=tuple(replace(row, repo=name) for row in base.rejections),
    )
