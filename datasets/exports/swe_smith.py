"""Export as rows of SWE-smith: **their ``patch`` makes the bug**, and its reverse is the gold patch.

``repo`` names a mirror, ``OWNER__NAME.COMMIT``: a git repository with the solved sources in its default branch and a
branch for each task, as SWE-smith publishes them. ``mirrors/build.sh`` makes these repositories.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from excise.datasets.exports.image_folders import ImageFolders
from excise.datasets.exports.mirror_streams import FOLDER, MAIN, MirrorStreams, mirror_name
from excise.protocols import ExportedSet, ExportedTask, ExportReport
from excise.system.files import replace_lines

OWNER = "swesmith"
"""Owner of the mirrors in the rows."""

NOT_CARRIED = (
    "Hidden tests: SWE-smith's tests are in the solved sources. The branches of tasks in `mirrors/` lack the hidden "
    "ones, as its own branches do.",
    "What hides tests: `patch` only takes the feature out, so that its reverse is the gold patch.",
    "Images with sources: `image_name` is the image of the environment; SWE-smith's have a clone of the mirror, which "
    "`git clone mirrors/NAME.git /testbed` makes.",
    "Limits, the grading kit, the gates' verdicts: only the files in `set/` have them.",
)


class SweSmithExporter:
    """Exports tasks as rows of SWE-smith."""

    name = "swe-smith"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``tasks.jsonl``, ``mirrors/`` and ``images/``."""
        images, mirrors = ImageFolders(tasks.materials, into / "images"), MirrorStreams(into / FOLDER)
        count = 0

        def lines() -> Iterator[str]:
            nonlocal count
            for task in tasks.tasks():
                count += 1
                yield json.dumps(_row(task, tasks, images, mirrors), ensure_ascii=False)

        replace_lines(into / "tasks.jsonl", lines())
        images.finish()
        mirrors.finish()
        run = (
            "python -c \"from datasets import load_dataset; print(load_dataset('json', data_files='tasks.jsonl'))\"",
            "sh mirrors/build.sh  # bare git repositories, one for each project",
            "sh images/build.sh   # images, one for each environment",
            "excise import swe-smith tasks.jsonl --repos mirrors --out SET  # proves the rows from the mirrors",
        )
        return ExportReport(num_tasks=count, not_carried=NOT_CARRIED, run=run)


def _row(task: ExportedTask, tasks: ExportedSet, images: ImageFolders, mirrors: MirrorStreams) -> dict[str, Any]:
    """The row of a task; its branch is added to the project's mirror."""
    record, materials = task.task, tasks.materials
    solved, shipped = materials.solved(record.instance_id), materials.checkout(record.instance_id)
    mirror = f"{mirror_name(record.repo)}.{solved.commit[:8]}"
    mirrors.add(mirror, MAIN, solved)
    mirrors.add(mirror, record.instance_id, shipped)
    return {
        "instance_id": record.instance_id,
        "repo": f"{OWNER}/{mirror}",
        "patch": materials.bug_patch(record.instance_id),
        "FAIL_TO_PASS": list(record.fail_to_pass),
        "PASS_TO_PASS": list(record.pass_to_pass),
        "created_at": record.created_at,
        "image_name": images.write(record.env_id),
        "base_commit": shipped.commit,
        "problem_statement": record.problem_statement,
    }
