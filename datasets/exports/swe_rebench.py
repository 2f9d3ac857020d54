"""Export as rows of SWE-rebench V2: SWE-bench's columns, ``install_config`` and an image for each instance.

Its evaluation starts the instance's image in the folder ``/NAME`` of the project, applies the two patches with git,
runs ``test_cmd`` and reads the log. Such an image is one layer over that of the environment: the checkout.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from excise.datasets.exports.checkout_script import WORKDIR
from excise.datasets.exports.image_folders import ImageFolders
from excise.datasets.exports.instance_images import CHECKOUT_LAYER, InstanceImages
from excise.datasets.exports.mirror_streams import FOLDER, MirrorStreams, mirror_name
from excise.protocols import ExportedSet, ExportedTask, ExportReport
from excise.system.files import replace_lines
from excise.types import path_of

LOG_PARSER = "parse_log_pytest"
"""Its name of the format of pytest's output."""

NOT_CARRIED = (
    "The grading kit: its evaluation believes what the tests print, which a solution can forge.",
    "Limits of single tests, memory and processes; the network: its containers have it.",
    "Annotations by a model (`meta`): they are empty. `pr_description` repeats the statement, since there is no pull "
    "request.",
    "White space in ids of tests that pytest prints otherwise; the gates' verdicts. The files in `set/` have all.",
)

DOCKERFILE = f"""{CHECKOUT_LAYER}RUN [ -e {{folder}} ] || ln -s {WORKDIR} {{folder}}
"""


class SweRebenchExporter:
    """Exports tasks as rows of SWE-rebench V2."""

    name = "swe-rebench"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``tasks.jsonl``, ``instances/``, ``mirrors/`` and ``images/``."""
        images, mirrors = ImageFolders(tasks.materials, into / "images"), MirrorStreams(into / FOLDER)
        instances = InstanceImages(into / "instances")
        count = 0

        def lines() -> Iterator[str]:
            nonlocal count
            for task in tasks.tasks():
                count += 1
                tag = images.write(task.task.env_id)
                yield json.dumps(_row(task, tasks, instances, tag, mirrors), ensure_ascii=False)

        replace_lines(into / "tasks.jsonl", lines())
        instances.finish()
        images.finish()
        mirrors.finish()
        run = (
            "python -c \"from datasets import load_dataset; print(load_dataset('json', data_files='tasks.jsonl'))\"",
            "sh images/build.sh && sh instances/build.sh",
            "# in a checkout of SWE-rebench-V2",
            "python scripts/eval.py --json tasks.json --golden-eval --report-json report.json  # jq -s . tasks.jsonl",
            "# proves the rows from the mirrors",
            "sh mirrors/build.sh && excise import swe-rebench tasks.jsonl --repos mirrors --out SET",
        )
        return ExportReport(num_tasks=count, not_carried=NOT_CARRIED, run=run)


def folder_of(repo: str) -> str:
    """The folder of the checkout in an instance's image."""
    return f"/{repo.rpartition('/')[2]}"


def repo_of(repo: str) -> str:
    """``owner/name``, as the format needs it."""
    return repo if "/" in repo else f"excise/{repo}"


def _row(
    task: ExportedTask, tasks: ExportedSet, instances: InstanceImages, tag: str, mirrors: MirrorStreams
) -> dict[str, Any]:
    """The row of a task; the files of its image are written, and its branch is added to the project's mirror."""
    record, materials = task.task, tasks.materials
    shipped = materials.checkout(record.instance_id)
    mirrors.add(mirror_name(record.repo), record.instance_id, shipped)
    image = f"excise/{record.instance_id}:latest".lower()
    dockerfile = DOCKERFILE.format(image=tag, folder=folder_of(record.repo))
    instances.write(record.instance_id, shipped, tag=image, dockerfile=dockerfile)
    return {
        "instance_id": record.instance_id,
        "repo": repo_of(record.repo),
        "base_commit": shipped.commit,
        "created_at": milliseconds(record.created_at),
        "patch": record.patch,
        "test_patch": record.test_patch,
        "problem_statement": record.problem_statement,
        "pr_description": record.problem_statement,
        "interface": record.interface,
        "language": record.language,
        "license": task.repo.license,
        "FAIL_TO_PASS": list(record.fail_to_pass),
        "PASS_TO_PASS": list(record.pass_to_pass),
        "image_name": image,
        "meta": {"llm_metadata": [], "num_modified_files": record.difficulty.num_files, "pr_url": None},
        "install_config": {
            "base_image_name": tag,
            "docker_specs": {"python_version": ".".join(task.environment.recipe.python.split(".")[:2])},
            "install": [],
            "log_parser": LOG_PARSER,
            "test_cmd": [_test_command(task)],
        },
    }


def _test_command(task: ExportedTask) -> str:
    recipe = task.environment.recipe
    files = sorted({path_of(test) for test in (*task.task.fail_to_pass, *task.task.pass_to_pass)})
    command = ["/opt/env/bin/python", "-m", "pytest", "-rA", "--tb=no", "-p", "no:cacheprovider"]
    return shlex.join([*command, *recipe.test_args, *files])


def milliseconds(date: str) -> int:
    """An ISO date as milliseconds since 1970; 0 for an empty one."""
    return int(datetime.fromisoformat(date.replace("Z", "+00:00")).timestamp() * 1000) if date else 0
