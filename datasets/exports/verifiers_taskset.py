"""Export as a taskset package of verifiers 0.4: ``vf-validate`` and ``vf-eval`` run it, and trainers install it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from excise.datasets.exports.checkout_script import CHECKOUT_SCRIPT
from excise.datasets.exports.grader_files import grader_files, packed
from excise.datasets.exports.image_folders import ImageFolders
from excise.datasets.exports.toml_text import toml_text
from excise.protocols import ExportedSet, ExportedTask, ExportReport, GradingFiles
from excise.system.files import replace_file, replace_lines

NOT_CARRIED = (
    "The grading kit (recorded calls, lifted and mirrored tests, canaries): the grader `sandbox` believes the report "
    "of the tests, which a solution can forge. `--taskset.grader excise` grades with excise, from the task set.",
    "The limit on processes: it is the runtime's.",
    "The gates' verdicts and the columns that have no use in training.",
)


class VerifiersExporter:
    """Exports tasks as a Python package with a taskset."""

    name = "verifiers"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``pyproject.toml`` and the package."""
        module = module_name(tasks.name)
        package = into / module
        shutil.rmtree(package, ignore_errors=True)
        images = ImageFolders(tasks.materials, package / "images")
        count = 0

        def lines() -> Iterator[str]:
            nonlocal count
            for task in tasks.tasks():
                count += 1
                yield json.dumps(_task(task, tasks, package, images), ensure_ascii=False)

        replace_lines(package / "tasks.jsonl", lines())
        images.finish()
        replace_file(package / "checkouts" / "checkout.sh", CHECKOUT_SCRIPT.encode())
        replace_file(package / "__init__.py", tasks.materials.program("verifiers_taskset.py"))
        replace_file(into / "pyproject.toml", toml_text(_project(module)).encode())
        run = (
            "# `excise` must be on PATH, or EXCISE its command",
            f"PYTHONPATH=$PWD vf-validate {module} --taskset.containers false --runtime.type subprocess",
            f"pip install -e . && vf-eval {module}",
            f"# agents in containers: sh {module}/images/build.sh, then --runtime.type docker",
            "# graded by excise: --taskset.grader excise --taskset.task-set PATH-OF-THE-SET",
        )
        return ExportReport(num_tasks=count, not_carried=NOT_CARRIED, run=run)


def module_name(name: str) -> str:
    """The name of the package of a set."""
    return f"excise_{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')}"


def _project(module: str) -> dict[str, Any]:
    """The content of ``pyproject.toml``."""
    return {
        "project": {
            "name": module.replace("_", "-"),
            "version": "1.0",
            "description": "Coding tasks made by excise, as a taskset of verifiers.",
            "requires-python": ">=3.11",
            "dependencies": ["verifiers>=0.4"],
        },
        "build-system": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
        "tool": {"hatch": {"build": {"targets": {"wheel": {"packages": [module]}}}}},
    }


def _task(task: ExportedTask, tasks: ExportedSet, package: Path, images: ImageFolders) -> dict[str, Any]:
    """The fields of a task; its files are written into the package."""
    record, instance_id = task.task, task.task.instance_id
    checkout = tasks.materials.checkout(instance_id)
    grading: GradingFiles = tasks.materials.grading(instance_id)
    replace_file(package / "checkouts" / f"{instance_id}.tar.gz", checkout.archive)
    replace_file(package / "graders" / f"{instance_id}.tar.gz", packed(grader_files(grading)))
    replace_file(package / "gold" / f"{instance_id}.patch", record.patch.encode())
    memory = task.certificate.settings.get("memory_mb")
    return {
        "id": instance_id,
        "name": instance_id,
        "description": record.problem_statement.partition("\n")[0].lstrip("# "),
        "prompt": record.problem_statement,
        "environment": images.write(record.env_id),
        "resources": {"memory": float(memory) / 1024 if memory else None, "cpu": task.certificate.settings.get("cpus")},
        "timeout": {"scoring": grading.timeout_s + 120.0},
        "commit": checkout.commit,
        "solution_paths": list(grading.solution_paths),
        "timeout_s": grading.timeout_s,
    }
