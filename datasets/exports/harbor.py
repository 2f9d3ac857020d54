"""Export as a Harbor dataset: task folders, ``dataset.toml`` with digests, a registry file, images of environments.

A task's ``environment`` folder holds its checkout as an archive. Harbor uploads it into a container of the project's
image, and the health check unpacks it. After the agent, a hook writes its changes as a patch, and Harbor hands this to
the verifier in a container of its own, where the tests are.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from excise.datasets.exports.checkout_script import ARCHIVE, CHECKOUT_SCRIPT, SCRIPT, UNPACK, WORKDIR, diff_command
from excise.datasets.exports.grader_files import grader_files
from excise.datasets.exports.image_folders import ImageFolders
from excise.datasets.exports.toml_text import toml_text
from excise.protocols import ExportedSet, ExportedTask, ExportMaterials, ExportReport, GradingFiles
from excise.system.files import replace_file

ORGANISATION = "excise"
"""First part of the names of tasks and datasets."""
SOLUTION = "/logs/artifacts/solution.patch"
"""The agent's changes, in the agent's container and then in the verifier's."""
PROGRAM = "excise_harbor.py"
"""Module for Harbor's process with the environment class and the verifier class."""
AGENT_TIMEOUT_S = 1800.0
"""Seconds for an agent."""
GRACE_S = 120.0
"""Seconds for a verifier beside its run of the tests."""

SOLVE = f"""#!/bin/sh
set -eu
cd {WORKDIR}
git apply --whitespace=nowarn /solution/gold.patch
"""

TEST = f"""#!/bin/sh
# Grades /logs/artifacts/solution.patch in a fresh checkout.
set -u
{UNPACK} || exit 1
cd {WORKDIR} || exit 1
work=$(mktemp -d)
/opt/env/bin/python /tests/plain_grader.py /tests {SOLUTION} "$work" "$(cat /tests/timeout)" >/logs/verifier/report.json
[ $? -eq 0 ] && reward=1 || reward=0
echo "{{\\"reward\\": $reward}}" >/logs/verifier/reward.json
cat /logs/verifier/report.json
"""

FILES = frozenset(
    {"patch", "test_patch", "deletion_patch", "problem_statement", "FAIL_TO_PASS", "PASS_TO_PASS", "certificate"}
)
"""Columns that are files of a task."""

NOT_CARRIED = (
    "The grading kit (recorded calls, lifted and mirrored tests, canaries): the plain grader in `tests/` believes the "
    "report of the tests, which a solution can forge. `--verifier excise_harbor:ExciseVerifier` grades with excise.",
    "The limit on processes (`pids`), and the filter of system calls: what the container engine has applies.",
    "The gates' verdicts, except for the certificate in `tests/certificate.json`.",
)


class HarborExporter:
    """Exports tasks as folders for Harbor."""

    name = "harbor"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``tasks/``, ``images/``, ``dataset.toml``, ``registry.json`` and the module for Harbor's process."""
        shutil.rmtree(into / "tasks", ignore_errors=True)
        images = ImageFolders(tasks.materials, into / "images")
        digests: dict[str, str] = {}
        for task in tasks.tasks():
            tag = images.write(task.task.env_id)
            folder = into / "tasks" / task.task.instance_id
            for name, data in task_files(task, tag, tasks.materials):
                replace_file(folder / name, data)
                if name.endswith(".sh"):
                    (folder / name).chmod(0o755)
            digests[task.task.instance_id] = content_digest(folder)
        images.finish()
        replace_file(into / PROGRAM, tasks.materials.program("harbor_environment.py"))
        replace_file(into / "dataset.toml", dataset_toml(tasks.name, digests).encode())
        replace_file(into / "registry.json", registry_json(tasks.name, digests).encode())
        return ExportReport(num_tasks=len(digests), not_carried=NOT_CARRIED, run=_commands(tasks.name))


def _commands(name: str) -> tuple[str, ...]:
    return (
        "export PYTHONPATH=$PWD LITELLM_LOCAL_MODEL_COST_MAP=True",
        "# without Docker, in excise's sandboxes (`excise` must be on PATH, or EXCISE its command)",
        "harbor run -p tasks -a oracle -e excise_harbor:BubblewrapEnvironment -y",
        "# with Docker: build one image for each environment, once",
        "sh images/build.sh",
        "harbor run -p tasks -a oracle -e excise_harbor:PlainDockerEnvironment -y",
        "# the same with Docker Compose and Harbor's own environment: harbor run -p tasks -a oracle -y",
        "# graded by excise, from the task set",
        "EXCISE_SET=PATH-OF-THE-SET harbor run -p tasks -a oracle -e excise_harbor:BubblewrapEnvironment "
        "--verifier excise_harbor:ExciseVerifier -y",
        "# by name",
        f"harbor run --registry-path registry.json -d {name}@1.0 -a oracle -e excise_harbor:BubblewrapEnvironment -y",
    )


def task_files(task: ExportedTask, tag: str, materials: ExportMaterials) -> Iterator[tuple[str, bytes]]:
    """(path, content) of each file of a task's folder."""
    instance_id, row = task.task.instance_id, task.row
    checkout, grading = materials.checkout(instance_id), materials.grading(instance_id)
    yield "task.toml", toml_text(task_config(task, tag, checkout.commit, grading)).encode()
    yield "instruction.md", task.task.problem_statement.encode()
    yield f"environment/{ARCHIVE}", checkout.archive
    yield f"environment/{SCRIPT}", CHECKOUT_SCRIPT.encode()
    yield "solution/gold.patch", task.task.patch.encode()
    yield "solution/solve.sh", SOLVE.encode()
    yield "tests/test.sh", TEST.encode()
    yield "tests/timeout", str(grading.timeout_s).encode()
    for name, content in grader_files(grading).items():
        yield f"tests/{name}", content
    yield "tests/test.patch", task.task.test_patch.encode()
    yield "tests/deletion.patch", task.task.deletion_patch.encode()
    yield "tests/tests.json", _json({name: row[name] for name in ("FAIL_TO_PASS", "PASS_TO_PASS")})
    yield "tests/certificate.json", str(row["certificate"]).encode()


def task_config(task: ExportedTask, tag: str, commit: str, grading: GradingFiles) -> dict[str, Any]:
    """The content of ``task.toml``."""
    settings, record = task.certificate.settings, task.task
    first = record.problem_statement.partition("\n")[0].lstrip("# ")
    environment = {
        "docker_image": tag,
        "workdir": WORKDIR,
        "network_mode": "no-network",
        "memory_mb": settings.get("memory_mb"),
        "cpus": settings.get("cpus"),
        "healthcheck": {"command": UNPACK, "timeout_sec": 120.0, "retries": 3},
    }
    return {
        "schema_version": "1.4",
        "task": {
            "name": qualified(record.instance_id),
            "version": record.version or None,
            "description": first,
            "keywords": ["excise", record.language, record.deleter],
        },
        "metadata": {name: value for name, value in task.row.items() if name not in FILES and value is not None}
        | {"license": task.repo.license, "source": task.repo.source, "shipped_commit": commit},
        "agent": {"timeout_sec": AGENT_TIMEOUT_S},
        "verifier": {
            "timeout_sec": grading.timeout_s + GRACE_S,
            "environment_mode": "separate",
            "collect": [{"command": diff_command(commit, grading.solution_paths, SOLUTION), "timeout_sec": 120.0}],
        },
        "environment": environment,
    }


def qualified(name: str) -> str:
    """A name for Harbor: ``organisation/name`` of letters, digits, dots, hyphens and underscores."""
    plain = re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9._-]+", "-", name)).lstrip("._-")
    return f"{ORGANISATION}/{plain}"


def dataset_toml(name: str, digests: Mapping[str, str]) -> str:
    """The text of ``dataset.toml``: every task with the digest of its content."""
    return toml_text(
        {
            "schema_version": "1.0",
            "dataset": {"name": qualified(name), "version": "1.0", "description": f"{len(digests)} tasks by excise"},
            "tasks": [{"name": qualified(task), "digest": f"sha256:{digest}"} for task, digest in digests.items()],
        }
    )


def registry_json(name: str, digests: Mapping[str, str]) -> str:
    """The text of ``registry.json``, which names the dataset and the folder of each task."""
    found = [{"name": qualified(task), "path": f"tasks/{task}"} for task in digests]
    text = f"{len(digests)} tasks by excise"
    return json.dumps([{"name": name, "version": "1.0", "description": text, "tasks": found}], indent=1) + "\n"


def content_digest(folder: Path) -> str:
    """The digest of a task's folder as Harbor computes it: of the paths and hashes of its files, sorted by path."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    outer = hashlib.sha256()
    for name in names:
        outer.update(f"{name}\0{hashlib.sha256((folder / name).read_bytes()).hexdigest()}\n".encode())
    return outer.hexdigest()


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
