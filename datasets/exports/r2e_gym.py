"""Export as rows of R2E-Gym: the commit that solves a task as JSON, its tests as whole files, expected statuses.

R2E-Gym has no FAIL_TO_PASS: a solution counts if every test of ``/r2e_tests`` has the status that the row expects.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from excise.datasets.exports.checkout_script import WORKDIR
from excise.datasets.exports.image_folders import ImageFolders
from excise.datasets.exports.instance_images import CHECKOUT_LAYER, InstanceImages
from excise.datasets.exports.mirror_streams import FOLDER, MirrorStreams, mirror_name
from excise.protocols import Checkout, ExportedSet, ExportedTask, ExportReport
from excise.system.files import replace_lines
from excise.types import dotted_name, path_of

TESTS = "r2e_tests"
"""Folder of the tests in an image."""
KINDS = {" ": "context", "+": "added", "-": "deleted", "\\": "note"}
"""First character of a line of a hunk to R2E-Gym's name of it."""

NOT_CARRIED = (
    "FAIL_TO_PASS and PASS_TO_PASS as such: R2E-Gym has one list of expected statuses. It holds the tests of the files "
    "that have FAIL_TO_PASS tests; tests of other files are not run.",
    "Settings of tests (`conftest.py`) outside these files, if tests need them in another folder.",
    "Entities and relevant files beside the changed ones, which R2E-Gym extracts with a tool of its own.",
    "Limits, the grading kit, the gates' verdicts: only the files in `set/` have them.",
)

DOCKERFILE = f"""{CHECKOUT_LAYER}COPY {TESTS} /{TESTS}
COPY run_tests.sh {WORKDIR}/run_tests.sh
RUN mkdir -p {WORKDIR}/.venv/bin && ln -sf /opt/env/bin/* {WORKDIR}/.venv/bin/
"""
RUN_TESTS = f"""#!/bin/sh
cd {WORKDIR} && /opt/env/bin/python -m pytest -rA -p no:cacheprovider {TESTS}
"""


class R2eGymExporter:
    """Exports tasks as rows of R2E-Gym."""

    name = "r2e-gym"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``tasks.jsonl``, ``instances/``, ``mirrors/`` and ``images/``."""
        images, mirrors = ImageFolders(tasks.materials, into / "images"), MirrorStreams(into / FOLDER)
        instances = InstanceImages(into / "instances")
        count = 0

        def lines() -> Iterator[str]:
            nonlocal count
            for task in tasks.tasks():
                count += 1
                instance_id, mirror = task.task.instance_id, mirror_name(task.task.repo)
                shipped, solved = tasks.materials.checkout(instance_id), tasks.materials.solved(instance_id)
                mirrors.add(mirror, instance_id, shipped)
                mirrors.add(mirror, f"solved-{solved.commit[:12]}", solved)
                row = _row(task, (shipped.commit, solved.commit), _tests(task, solved))
                _write_instance(instances, row, shipped, images.write(task.task.env_id))
                yield json.dumps(row, ensure_ascii=False)

        replace_lines(into / "tasks.jsonl", lines())
        instances.finish()
        images.finish()
        mirrors.finish()
        run = (
            "python -c \"from datasets import load_dataset; print(load_dataset('json', data_files='tasks.jsonl'))\"",
            "sh images/build.sh && sh instances/build.sh",
            "# proves the rows from the mirrors",
            "sh mirrors/build.sh && excise import r2e-gym tasks.jsonl --repos mirrors --out SET",
        )
        return ExportReport(num_tasks=count, not_carried=NOT_CARRIED, run=run)


def _row(task: ExportedTask, commits: tuple[str, str], tests: Mapping[str, str]) -> dict[str, Any]:
    """The row of a task with its unsolved and its solved commit."""
    record, (old, new) = task.task, commits
    diffs = [_file_diff(part) for part in re.split(r"(?m)^(?=diff --git )", record.patch) if part]
    changed = [diff["header"]["file"]["path"] for diff in diffs]
    lines = [line for diff in diffs for hunk in diff["hunks"] for line in hunk["line_group"]["all_lines"]]
    commit = {
        "file_diffs": diffs,
        "old_commit_hash": old,
        "new_commit_hash": new,
        "commit_message": record.problem_statement.partition("\n")[0],
        "commit_date": record.created_at or "2000-01-01T00:00:00Z",
        "metadata": {},
    }
    result = {
        "repo_name": record.repo,
        "new_commit_hash": new,
        "test_file_codes": list(tests.values()),
        "test_file_names": list(tests),
        "setup_res_code": 0,
        "setup_res_stdout": "",
        "setup_res_stderr": "",
    }
    return {
        "instance_id": record.instance_id,
        "repo_name": record.repo if "/" in record.repo else f"excise/{record.repo}",
        "docker_image": f"excise/{record.instance_id}:{old[:12]}".lower(),
        "commit_hash": new,
        "parsed_commit_content": json.dumps(commit, ensure_ascii=False),
        "execution_result_content": json.dumps(result, ensure_ascii=False),
        "modified_files": changed,
        "modified_entity_summaries": [],
        "relevant_files": changed,
        "num_non_test_files": len(changed),
        "num_non_test_func_methods": record.difficulty.num_symbols,
        "num_non_test_lines": sum(line["type"] in {"added", "deleted"} for line in lines),
        "prompt": "",
        "problem_statement": f"[ISSUE]\n{record.problem_statement}\n[/ISSUE]",
        "expected_output_json": json.dumps(_expected(task, tests), ensure_ascii=False),
    }


def _expected(task: ExportedTask, tests: Mapping[str, str]) -> dict[str, str]:
    """Test, as R2E-Gym reads its name from pytest's log, to its status with the solution."""
    files = _names(task)
    listed = (*task.task.fail_to_pass, *task.task.pass_to_pass)
    return {dotted_name(test): "PASSED" for test in listed if files.get(path_of(test)) in tests}


def _names(task: ExportedTask) -> dict[str, str]:
    """Path of each file with FAIL_TO_PASS tests to its name in the folder of tests: ``test_1.py`` and so on, since
    pytest refuses two modules of one name."""
    paths = sorted({path_of(test) for test in task.task.fail_to_pass})
    return {path: f"test_{number}.py" for number, path in enumerate(paths, 1)}


def _tests(task: ExportedTask, solved: Checkout) -> dict[str, str]:
    """Name to text of the test files."""
    names, found = _names(task), {}
    with tarfile.open(fileobj=io.BytesIO(solved.archive)) as files:
        for path, name in names.items():
            stream = files.extractfile(path)
            if stream is not None:
                found[name] = stream.read().decode("utf-8", "replace")
    return found


def _file_diff(part: str) -> dict[str, Any]:
    """The patch of one file, hunk by hunk."""
    head, *bodies = re.split(r"(?m)^(?=@@ )", part)
    path = head.splitlines()[0].rpartition(" b/")[2]
    sides = dict(re.findall(r"(?m)^(---|\+\+\+) (.*)$", head))
    misc = [line for line in head.splitlines() if line.startswith(("new file mode", "deleted file mode"))]
    return {
        "old_file_content": "",
        "new_file_content": "",
        "header": {"file": {"path": path}, "misc_line": misc[0] if misc else None},
        "index_line": None,
        "is_binary_file": False,
        "binary_line": None,
        "minus_file": {"path": sides.get("---", f"a/{path}")},
        "plus_file": {"path": sides.get("+++", f"b/{path}")},
        "hunks": [_hunk(body) for body in bodies],
    }


def _hunk(body: str) -> dict[str, Any]:
    first, *lines = body.removesuffix("\n").split("\n")
    ranges = re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", first)
    assert ranges is not None, "excise's patches have ranges"
    old, old_length, new, new_length, section = ranges.groups()
    return {
        "descriptor": {
            "old_range": {"start": int(old), "length": None if old_length is None else int(old_length)},
            "new_range": {"start": int(new), "length": None if new_length is None else int(new_length)},
            "section": section,
        },
        "line_group": {
            "all_lines": [
                {"content": line[2:] if line[:1] == "\\" else line[1:], "type": KINDS[line[:1]]} for line in lines
            ]
        },
        "modified_entities": [],
        "added_entities": [],
        "deleted_entities": [],
    }


def _write_instance(instances: InstanceImages, row: Mapping[str, Any], shipped: Checkout, image: str) -> None:
    """Write the build context of a row's image, with its tests."""
    result = json.loads(row["execution_result_content"])
    tests = zip(result["test_file_names"], result["test_file_codes"], strict=True)
    instances.write(
        row["instance_id"],
        shipped,
        tag=row["docker_image"],
        dockerfile=DOCKERFILE.format(image=image),
        more={"run_tests.sh": RUN_TESTS, **{f"{TESTS}/{name}": text for name, text in tests}},
    )
