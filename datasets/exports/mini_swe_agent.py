"""Export as input of mini-swe-agent's batch run: a Parquet folder, checkouts, and configuration files.

The rows have SWE-bench's columns and ``image_name``, the image of the environment. A start-up command lays the
instance's checkout into the container before the agent begins.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from excise.datasets.exports.checkout_script import ARCHIVE, CHECKOUT_SCRIPT, SCRIPT, WORKDIR
from excise.datasets.exports.image_folders import ImageFolders
from excise.protocols import ExportedSet, ExportReport
from excise.system.files import replace_file, sync

TEXTS = (
    "instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement", "hints_text", "created_at",
    "version", "environment_setup_commit", "image_name", "language", "interface", "deleter", "certificate_id",
)  # fmt: skip
"""Columns of text, in this order."""
LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
"""Columns of lists."""

NOT_CARRIED = (
    "Grading: mini-swe-agent writes `preds.json`; `excise grade ID --diff FILE` or the export `swebench` grade it.",
    "Its prompt asks for changes in source files only, which fits; limits of memory and processes are Docker's "
    "(`run_args` in docker.yaml).",
)

DOCKER = f"""# In Docker, without network: add -c docker.yaml
environment:
  environment_class: docker
  cwd: {WORKDIR}
  run_args: ["--rm", "--network", "none", "-v", "./checkouts:/excise-checkouts:ro"]
  env: {{BASH_ENV: /dev/null}}
run:
  env_startup_command: |-
    cp /excise-checkouts/{{{{instance_id}}}}.tar.gz {WORKDIR}/{ARCHIVE} &&
    cp /excise-checkouts/checkout.sh {WORKDIR}/{SCRIPT} && sh {WORKDIR}/{SCRIPT}
"""

BUBBLEWRAP = f"""# In excise's sandboxes, without network: add -c bubblewrap.yaml, with this folder on PYTHONPATH
environment:
  environment_class: excise_mini.BubblewrapEnvironment
  cwd: {WORKDIR}
  env: {{BASH_ENV: /dev/null}}
run:
  env_startup_command: excise-start {{{{image_name}}}} {{{{instance_id}}}}
"""


class MiniSweAgentExporter:
    """Exports tasks for ``mini-extra swebench``."""

    name = "mini-swe-agent"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``tasks/``, ``checkouts/``, ``images/``, and a configuration for Docker and for excise's sandboxes."""
        import pyarrow as pa
        from pyarrow import parquet

        for folder in ("tasks", "checkouts"):
            shutil.rmtree(into / folder, ignore_errors=True)
        (into / "tasks").mkdir()
        schema = pa.schema([*((name, pa.string()) for name in TEXTS), *((n, pa.list_(pa.string())) for n in LISTS)])
        target, count = into / "tasks" / "train-00000-of-00001.parquet", 0
        images = ImageFolders(tasks.materials, into / "images")
        with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
            for row in _rows(tasks, images, into / "checkouts"):
                writer.write_table(pa.Table.from_pylist([row], schema=schema))
                count += 1
        sync(target)
        images.finish()
        replace_file(into / "checkouts" / "checkout.sh", CHECKOUT_SCRIPT.encode())
        replace_file(into / "docker.yaml", DOCKER.encode())
        replace_file(into / "bubblewrap.yaml", BUBBLEWRAP.encode())
        replace_file(into / "excise_mini.py", tasks.materials.program("mini_environment.py"))
        command = "mini-extra swebench --subset tasks --split train -o runs -m MODEL"
        run = (
            "# without Docker (`excise` must be on PATH, or EXCISE its command)",
            f"PYTHONPATH=$PWD {command} -c swebench.yaml -c bubblewrap.yaml",
            "# with Docker: build one image for each environment, once",
            "sh images/build.sh",
            f"{command} -c swebench.yaml -c docker.yaml",
        )
        return ExportReport(num_tasks=count, not_carried=NOT_CARRIED, run=run)


def _rows(tasks: ExportedSet, images: ImageFolders, checkouts: Path) -> Iterator[dict[str, Any]]:
    """The row of each task; its checkout is written on the way."""
    for task in tasks.tasks():
        checkout = tasks.materials.checkout(task.task.instance_id)
        replace_file(checkouts / f"{task.task.instance_id}.tar.gz", checkout.archive)
        row = {name: task.row[name] for name in (*TEXTS, *LISTS)}
        yield row | {
            "image_name": images.write(task.task.env_id),
            "base_commit": checkout.commit,
            "environment_setup_commit": checkout.commit,
        }
