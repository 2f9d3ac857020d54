"""Task sets as other tools write them, about a git repository that is made from ``tests/repos/shapes``.

The repository has three commits: in the first, ``ring_area`` minds the order of its arguments and there is no
``spiral``; the second mends ``ring_area``; the third adds ``spiral``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHAPES = Path(__file__).resolve().parent / "repos" / "shapes"
PROJECT = "planes/shapes"
GIT = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@localhost", "GIT_AUTHOR_DATE": "2024-01-01T00:00:00+0000",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@localhost", "GIT_COMMITTER_DATE": "2024-01-01T00:00:00+0000",
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "PATH": "/usr/bin:/bin",
}  # fmt: skip
RING = "tests/test_round.py::test_ring[1-2-3]"
"""The test that fails before the second commit."""
KEPT = ("tests/test_round.py::test_area", "tests/test_round.py::test_ring[2-1-3]", "tests/test_text.py::no_such_test")
"""Tests that a set lists as PASS_TO_PASS; the last one does not exist."""


@dataclass(frozen=True)
class History:
    """The repository, in ``folder/planes/shapes``."""

    folder: Path
    """What ``--repos`` names."""
    commits: tuple[str, str, str]
    """Ids of the commits."""

    def diff(self, old: int, new: int, *paths: str) -> str:
        """The diff between two commits, of some paths."""
        return git(self.folder / PROJECT, "diff", self.commits[old], self.commits[new], "--", *paths)


def git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=root, env=GIT, check=True, capture_output=True, text=True).stdout


def make_history(folder: Path) -> History:
    """Make the repository."""
    root = folder / PROJECT
    shutil.copytree(SHAPES, root)
    round_, init = root / "src/shapes/round.py", root / "src/shapes/__init__.py"
    walk, tests = root / "src/shapes/walk.py", root / "tests/test_walk.py"
    test_round = root / "tests/test_round.py"
    solved = {path: path.read_text() for path in (round_, init, walk, tests, test_round)}
    round_.write_text(
        re.sub(r"(?s)    larger = .*?_disc\(smaller\)\n", "    return _disc(outer) - _disc(inner)\n", solved[round_])
    )
    test_round.write_text(solved[test_round].replace("(2, 1, 3), (1, 2, 3), (1, 1, 0)", "(2, 1, 3), (1, 1, 0)"))
    init.write_text(re.sub(r".*\bspiral\b.*\n", "", solved[init]))
    walk.unlink()
    tests.unlink()
    git(root, "init", "--quiet", "--initial-branch=main")
    commits = [_commit(root, "Begin")]
    for path in (round_, test_round):
        path.write_text(solved[path])
    commits.append(_commit(root, "Ring area of any order"))
    for path in (init, walk, tests):
        path.write_text(solved[path])
    commits.append(_commit(root, "Spiral"))
    return History(folder, (commits[0], commits[1], commits[2]))


def _commit(root: Path, message: str) -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", message)
    return git(root, "rev-parse", "HEAD").strip()


def swebench_row(history: History, **changes: Any) -> dict[str, Any]:
    """A row of SWE-bench: mend ``ring_area``."""
    row = {
        "instance_id": "planes__shapes-1",
        "repo": PROJECT,
        "base_commit": history.commits[0],
        "patch": history.diff(0, 1, "src"),
        "test_patch": history.diff(0, 1, "tests"),
        "problem_statement": "ring_area(1, 2) is negative.\n\nThe order of the radii should not matter.\n",
        "hints_text": "",
        "created_at": "2024-01-01T00:00:00Z",
        "version": "1.2",
        "FAIL_TO_PASS": json.dumps([RING]),
        "PASS_TO_PASS": json.dumps(list(KEPT)),
        "environment_setup_commit": history.commits[0],
    }
    return row | changes


def feature_row(history: History, **changes: Any) -> dict[str, Any]:
    """Another row: add ``spiral``, which the statement gives away."""
    tests = ["tests/test_walk.py::test_start", "tests/test_walk.py::test_first_turn"]
    row = swebench_row(
        history,
        instance_id="planes__shapes-2",
        base_commit=history.commits[1],
        patch=history.diff(1, 2, "src"),
        test_patch=history.diff(1, 2, "tests"),
        problem_statement="Add `spiral(steps)`:\n\n" + (SHAPES / "src/shapes/walk.py").read_text(),
        FAIL_TO_PASS=tests,
        PASS_TO_PASS=["tests/test_round.py::test_area"],
    )
    return row | changes


def swe_smith_row(history: History, **changes: Any) -> dict[str, Any]:
    """A row of SWE-smith: its patch makes the bug."""
    bug = (
        "diff --git a/src/shapes/round.py b/src/shapes/round.py\n--- a/src/shapes/round.py\n+++ b/src/shapes/round.py\n"
        '@@ -20,5 +20,5 @@\n     def circumference(self):\n         """Length of the line around."""\n'
        "-        turns = 2\n+        turns = 3\n         length = turns * math.pi * self.radius\n"
        "         return length\n"
    )
    name = f"planes__shapes.{history.commits[2][:8]}"
    row = {
        "instance_id": f"{name}.func_pm_op_change__abc123",
        "repo": f"swesmith/{name}",
        "patch": bug,
        "FAIL_TO_PASS": ["tests/test_round.py::test_circumference"],
        "PASS_TO_PASS": ["tests/test_round.py::test_area", "tests/test_walk.py::test_start"],
        "image_name": f"swesmith.x86_64.planes_1776_shapes.{history.commits[2][:8]}",
        "problem_statement": "The circumference of a circle is too long.\n",
    }
    return row | changes


def r2e_row(history: History, **changes: Any) -> dict[str, Any]:
    """A row of R2E-Gym: the second commit, hunk by hunk, with its tests as a file."""
    test = "from shapes import ring_area\n\n\ndef test_order():\n    assert 9.4 < ring_area(1, 2) < 9.5\n\n\n"
    test += "def test_equal():\n    assert ring_area(1, 1) == 0\n"
    row = {
        "repo_name": PROJECT,
        "docker_image": f"namanjain12/shapes_final:{history.commits[1]}",
        "commit_hash": history.commits[1],
        "parsed_commit_content": json.dumps(
            {
                "file_diffs": [_parsed(history.diff(0, 1, path)) for path in ("src", "tests")],
                "old_commit_hash": history.commits[0],
                "new_commit_hash": history.commits[1],
                "commit_message": "Ring area of any order",
                "commit_date": "2024-01-01T00:00:00",
                "metadata": {},
            }
        ),
        "execution_result_content": json.dumps({"test_file_names": ["test_1.py"], "test_file_codes": [test]}),
        "expected_output_json": json.dumps({"test_order": "PASSED", "test_equal": "PASSED"}),
        "problem_statement": "[ISSUE]\nring_area(1, 2) is negative.\n[/ISSUE]",
    }
    return row | changes


def _parsed(diff: str) -> dict[str, Any]:
    """The diff of one file as R2E-Gym stores it."""
    head, *bodies = re.split(r"(?m)^(?=@@ )", diff)
    path = re.search(r"b/(\S+)$", head.splitlines()[0]).group(1)  # type: ignore[union-attr]
    kinds = {" ": "context", "+": "added", "-": "deleted"}
    hunks = []
    for body in bodies:
        first, *lines = body.splitlines()
        old, new = re.match(r"@@ -(\S+) \+(\S+) @@", first).groups()  # type: ignore[union-attr]
        sides = [tuple(map(int, side.split(","))) for side in (old, new)]
        hunks.append(
            {
                "descriptor": {
                    "old_range": {"start": sides[0][0], "length": sides[0][1]},
                    "new_range": {"start": sides[1][0], "length": sides[1][1]},
                    "section": "",
                },
                "line_group": {"all_lines": [{"content": line[1:], "type": kinds[line[0]]} for line in lines]},
            }
        )
    return {
        "header": {"file": {"path": path}, "misc_line": None},
        "minus_file": {"path": f"a/{path}"},
        "plus_file": {"path": f"b/{path}"},
        "hunks": hunks,
        "old_file_content": "",
        "new_file_content": "",
    }


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any] | str]) -> Path:
    """Write rows as JSON lines; a text is written as it is."""
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def harbor_task(folder: Path, history: History, **row: Any) -> Path:
    """A task folder as Harbor's adapters write it: the row in ``tests/config.json``."""
    found = swebench_row(history, **row)
    files = {
        "task.toml": '[metadata]\ndifficulty = "easy"\n[verifier]\ntimeout_sec = 60.0\n[environment]\ncpus = 1\n',
        "instruction.md": found["problem_statement"],
        "environment/Dockerfile": f"FROM swebench/sweb.eval.x86_64.{found['instance_id']}:latest\n",
        "solution/solve.sh": f"#!/bin/bash\ncd /testbed\ngit apply - <<'EOF'\n{found['patch']}EOF\n",
        "tests/test.sh": "#!/bin/bash\npytest\n",
        "tests/config.json": json.dumps(found),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
