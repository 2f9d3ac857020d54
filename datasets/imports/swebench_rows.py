"""Import of SWE-bench's rows and of sets with the same columns (SWE-Gym, Multi-SWE, …), from JSON lines or Parquet.

Lists of tests may be lists, or texts of JSON lists as in older versions. SWE-rebench has the same columns and says in
``install_config`` how the environment was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from excise.datasets.imports.row_files import Fields, Place, read_tasks, row_json
from excise.types import BadRow, ForeignTask

FORGE = "https://github.com/{repo}"
"""URL of a project's repository."""


class SweBenchImporter:
    """Reads rows with SWE-bench's columns."""

    name = "swebench"

    def read(self, path: Path) -> Iterator[ForeignTask | BadRow]:
        """The tasks of a ``.jsonl``, ``.json`` or ``.parquet`` file, or of a folder of such."""
        return read_tasks(path, self.parse)

    def parse(self, fields: Fields, place: Place) -> ForeignTask:
        """The task of a row. Raises :class:`FieldError`."""
        repo = fields.repo()
        install = fields.mapping("install_config")
        return ForeignTask(
            instance_id=fields.instance_id(),
            format=self.name,
            place=place,
            repo=repo,
            urls=(FORGE.format(repo=repo),),
            commit=fields.commit(),
            patch=fields.patch("patch"),
            test_patch=fields.patch("test_patch", required=False),
            problem_statement=fields.text("problem_statement"),
            hints_text=fields.text("hints_text", ""),
            interface=fields.text("interface", ""),
            fail_to_pass=fields.tests("FAIL_TO_PASS", required=True),
            pass_to_pass=fields.tests("PASS_TO_PASS", required=False),
            created_at=fields.date(),
            version=fields.text("version", ""),
            language=fields.text("language", "python").lower(),
            python=str(install.get("python") or ""),
            requirements=_requirements(install),
            image_name=fields.text("image_name", "") or fields.text("docker_image", "") or fields.text("image", ""),
            row=row_json(fields.row),
        )


class SweRebenchImporter(SweBenchImporter):
    """Reads SWE-rebench's rows, of both versions."""

    name = "swe-rebench"


def _requirements(install: Mapping[str, Any]) -> tuple[str, ...]:
    """Distributions of an ``install_config``, without options of pip."""
    found = install.get("pip_packages") or ()
    return tuple(str(line) for line in found if str(line).strip() and not str(line).startswith("-"))
