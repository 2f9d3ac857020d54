"""What exports with a server have in common: checkouts, graders and images beside an index of the tasks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from excise.datasets.exports.checkout_script import CHECKOUT_SCRIPT
from excise.datasets.exports.grader_files import grader_files, packed
from excise.datasets.exports.image_folders import ImageFolders
from excise.protocols import ExportedSet
from excise.system.files import replace_file, replace_lines

TASK_PROMPT = """{statement}

The project is in /testbed, your working directory. Change its sources there; your changes are graded by tests that are
not in the checkout.
"""


def write_served_tasks(tasks: ExportedSet, into: Path) -> Iterator[dict[str, Any]]:
    """Write the files of each task and of its environment; yield its entry of ``index.jsonl``, with its ``prompt``.

    At the end, the index and the program that opens sandboxes are written.
    """
    for folder in ("checkouts", "graders"):
        shutil.rmtree(into / folder, ignore_errors=True)
    images = ImageFolders(tasks.materials, into / "images")
    entries: list[str] = []
    for task in tasks.tasks():
        record, instance_id = task.task, task.task.instance_id
        checkout, grading = tasks.materials.checkout(instance_id), tasks.materials.grading(instance_id)
        replace_file(into / "checkouts" / f"{instance_id}.tar.gz", checkout.archive)
        replace_file(into / "graders" / f"{instance_id}.tar.gz", packed(grader_files(grading)))
        entry = {
            "instance_id": instance_id,
            "repo": record.repo,
            "commit": checkout.commit,
            "environment": images.write(record.env_id),
            "solution_paths": list(grading.solution_paths),
            "timeout_s": grading.timeout_s,
            "prompt": TASK_PROMPT.format(statement=record.problem_statement),
        }
        entries.append(json.dumps(entry, ensure_ascii=False))
        yield entry
    replace_lines(into / "index.jsonl", entries)
    replace_file(into / "checkouts" / "checkout.sh", CHECKOUT_SCRIPT.encode())
    replace_file(into / "excise_tasks.py", tasks.materials.program("task_sessions.py"))
    images.finish()
