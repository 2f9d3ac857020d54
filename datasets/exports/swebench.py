"""Export as a task repository of SWE-bench 5: ``swebench dataset check``, ``build`` and ``eval`` work on it.

SWE-bench has an image for each instance, whose name it derives from the instance's id. Here such an image is one layer
over the image of the environment: the checkout. The script that grades has the tests in it, as SWE-bench's scripts do.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from excise.datasets.exports.checkout_script import ARCHIVE, CHECKOUT_SCRIPT, SCRIPT, WORKDIR
from excise.datasets.exports.grader_files import grader_files, packed_text
from excise.datasets.exports.image_folders import ImageFolders
from excise.protocols import Checkout, ExportedSet, ExportedTask, ExportReport, GradingFiles
from excise.system.files import replace_file

SPLIT = "test"
LOG_PARSER, EVAL_TYPE = "parse_log_pytest", "pass_and_fail"
"""SWE-bench's names of the format of our test output, and of the rule that every listed test must pass."""

NOT_CARRIED = (
    "The grading kit (recorded calls, lifted and mirrored tests, canaries): SWE-bench believes what the tests print, "
    "which a solution can forge. Grade with `excise grade` where that matters.",
    "Limits of time for single tests are in the script; those of memory and processes are Docker's.",
    "The network: SWE-bench's containers have it.",
    "White space in ids of tests: it is %20 in `tests.json`, since SWE-bench's logs are split at white space.",
    "The gates' verdicts: `task.yaml` has the certificate's id.",
)

DOCKERFILE = f"""FROM {{image}}
COPY --chown=1000:1000 checkout.tar.gz {WORKDIR}/{ARCHIVE}
COPY --chown=1000:1000 checkout.sh {WORKDIR}/{SCRIPT}
RUN sh {WORKDIR}/{SCRIPT}
"""

EVAL = f"""#!/bin/bash
set -uxo pipefail
cd {WORKDIR}
git status
{{ set +x; }} 2>/dev/null
work=$(mktemp -d)
base64 -d <<'EXCISE_FILES' | tar -xzf - -C "$work"
@FILES@
EXCISE_FILES
user=""
if [ "$(id -u)" = 0 ]; then # tests were proven to pass for an ordinary user
    chown -R 1000:1000 {WORKDIR} "$work"
    user="setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/agent"
fi
set -x
: '>>>>> Start Test Output'
$user /opt/env/bin/python "$work/plain_grader.py" "$work" - "$work" @TIMEOUT@
: '>>>>> End Test Output'
rm -rf "$work"
"""


class SweBenchExporter:
    """Exports tasks as a task repository of SWE-bench."""

    name = "swebench"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``sweb.yaml``, ``tasks/``, ``images/`` and ``gold.jsonl``, predictions with the gold patches."""
        import yaml

        shutil.rmtree(into / "tasks", ignore_errors=True)
        images = ImageFolders(tasks.materials, into / "images")
        dataset = f"excise/{tasks.name}"
        predictions = []
        for task in tasks.tasks():
            folder = into / "tasks" / task.task.instance_id
            tag = images.write(task.task.env_id)
            checkout = tasks.materials.checkout(task.task.instance_id)
            for name, data in instance_files(
                task, tasks.materials.grading(task.task.instance_id), checkout, tag
            ).items():
                replace_file(folder / name, data)
            meta = yaml.safe_dump(instance_fields(task, dataset, checkout), sort_keys=True, allow_unicode=True)
            replace_file(folder / "task.yaml", meta.encode())
            predictions.append(
                {
                    "instance_id": task.task.instance_id,
                    "model_name_or_path": "gold",
                    "model_patch": task.task.patch,
                }
            )
        images.finish()
        replace_file(into / "gold.jsonl", "".join(f"{json.dumps(found)}\n" for found in predictions).encode())
        config = {"datasets": [dataset], "splits": [SPLIT]}
        replace_file(into / "sweb.yaml", yaml.safe_dump(config).encode())
        run = (
            "swebench dataset check .",
            "swebench dataset build . --out data  # Parquet",
            "sh images/build.sh && swebench images build . --namespace swebench",
            f"swebench eval data/{tasks.name}/{SPLIT}.parquet --predictions gold.jsonl --run-id gold",
        )
        return ExportReport(num_tasks=len(predictions), not_carried=NOT_CARRIED, run=run)


def image_of(instance_id: str) -> str:
    """The name of an instance's image, as SWE-bench derives it."""
    return f"swebench/sweb.eval.x86_64.{instance_id}:latest".lower().replace("__", "_1776_")


def plain_id(test_id: str) -> str:
    """A test's id without white space."""
    return "%20".join(test_id.split())


def instance_fields(task: ExportedTask, dataset: str, checkout: Checkout) -> dict[str, Any]:
    """The content of ``task.yaml``."""
    record = task.task
    return {
        "instance_id": record.instance_id,
        "repo": record.repo,
        "version": record.version or "0",
        "base_commit": checkout.commit,
        "environment_setup_commit": checkout.commit,
        "split": SPLIT,
        "datasets": [dataset],
        "image": image_of(record.instance_id),
        "log_parser": LOG_PARSER,
        "eval_type": EVAL_TYPE,
        "created_at": record.created_at,
        "language": record.language,
        "interface": record.interface,
        "license": task.repo.license,
        "upstream_commit": record.base_commit,
        "source": task.repo.source,
        "certificate_id": task.certificate.certificate_id,
    }


def instance_files(task: ExportedTask, grading: GradingFiles, checkout: Checkout, tag: str) -> dict[str, bytes]:
    """File name to content of an instance's folder, without ``task.yaml``."""
    record = task.task
    tests = {
        "FAIL_TO_PASS": [plain_id(test) for test in record.fail_to_pass],
        "PASS_TO_PASS": [plain_id(test) for test in record.pass_to_pass],
    }
    script = EVAL.replace("@FILES@", packed_text(grader_files(grading))).replace("@TIMEOUT@", str(grading.timeout_s))
    return {
        "tests.json": (json.dumps(tests, indent=2, ensure_ascii=False) + "\n").encode(),
        "problem_statement.md": record.problem_statement.encode(),
        "gold.patch": record.patch.encode(),
        "test.patch": record.test_patch.encode(),
        "eval.sh": script.encode(),
        "Dockerfile": DOCKERFILE.format(image=tag).encode(),
        "checkout.tar.gz": checkout.archive,
        "checkout.sh": CHECKOUT_SCRIPT.encode(),
    }
