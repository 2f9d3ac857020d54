"""Import of SWE-smith's rows. Their ``patch`` **makes** the bug: its reverse is the gold patch.

``repo`` names a mirror, ``owner__name.commit``: the sources of ``owner/name`` at a commit of which eight digits are
given. The mirror's default branch holds the same sources, so both can be used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from excise.datasets.imports.row_files import FieldError, Fields, Place, read_tasks, row_json
from excise.types import BadRow, ForeignTask

MIRRORS = "swesmith"
"""Owner of the mirrors."""
_MIRROR = re.compile(r"(?:[\w.-]+/)?(?P<owner>[A-Za-z0-9-]+)__(?P<name>[A-Za-z0-9._-]+)\.(?P<commit>[0-9a-f]{7,40})")


class SweSmithImporter:
    """Reads rows of SWE-smith."""

    name = "swe-smith"

    def read(self, path: Path) -> Iterator[ForeignTask | BadRow]:
        """The tasks of a ``.jsonl``, ``.json`` or ``.parquet`` file, or of a folder of such."""
        return read_tasks(path, self.parse)

    def parse(self, fields: Fields, place: Place) -> ForeignTask:
        """The task of a row. Raises :class:`FieldError`."""
        found = _MIRROR.fullmatch(fields.text("repo"))
        if found is None:
            raise FieldError("repo", f"{fields.text('repo')[:80]!r} is not owner__name.commit, as SWE-smith has it.")
        repo = f"{found['owner']}/{found['name']}"
        mirror = f"{found['owner']}__{found['name']}.{found['commit']}"
        return ForeignTask(
            instance_id=fields.instance_id(),
            format=self.name,
            place=place,
            repo=repo,
            urls=(f"https://github.com/{repo}", f"https://github.com/{MIRRORS}/{mirror}"),
            commit=found["commit"],
            bug_patch=fields.patch("patch"),
            problem_statement=fields.text("problem_statement", ""),
            fail_to_pass=fields.tests("FAIL_TO_PASS", required=True),
            pass_to_pass=fields.tests("PASS_TO_PASS", required=False),
            created_at=fields.date(),
            image_name=fields.text("image_name", ""),
            row=row_json(fields.row),
        )
