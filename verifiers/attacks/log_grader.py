"""A grader of the usual kind, for comparison: runs pytest in the solution's checkout and reads what it prints.

SWE-bench and sets like it decide so. Solutions can forge the log, which ``excise import`` shows on each task.
"""

from __future__ import annotations

import re

from excise.deleters.patches.git_patches import touched
from excise.envs.sandbox.mount_points import ENV, REPO
from excise.types import Task, path_of
from excise.verifiers.agent_workspace import workspace
from excise.verifiers.workbench import Workbench

GRACE_S = 60.0
"""Seconds beside ten times those of the tests."""
_LINE = re.compile(r"(?m)^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (.+?)(?: - .*)?$")


def log_reward(bench: Workbench, task: Task, diff: str) -> bool:
    """Whether the log of a solution says that all tests of the task pass, as far as they are in the files that have
    FAIL_TO_PASS tests. Raises :class:`SandboxError`."""
    files = sorted({path_of(test) for test in task.fail_to_pass})
    wanted = [test for test in (*task.fail_to_pass, *task.pass_to_pass) if path_of(test) in files]
    restored = bench.read(sorted({*files, *touched(task.test_patch)}))
    command = [f"{ENV}/bin/python", "-m", "pytest", "-rA", "--tb=no", "-p", "no:cacheprovider"]
    with workspace(bench, bench.edits_of(task.deletion_patch)) as space, space.open() as session:
        if diff:
            data = diff.encode("utf-8", "surrogateescape")
            applied = session.exec(["git", "apply", "--whitespace=nowarn", "-"], timeout_s=GRACE_S, stdin=data)
            if applied.rc != 0:
                return False
        for path, content in restored.items():
            session.put(f"{REPO}/{path}", content)
        timeout_s = min(bench.settings.suite_timeout_s, GRACE_S + 10 * bench.expected_s(wanted))
        done = session.exec([*command, *bench.recipe.test_args, *files], timeout_s=timeout_s)
    bench.spent = bench.spent.plus(done.cpu_s, done.wall_s)
    statuses = {name: status for status, name in _LINE.findall(done.stdout.decode("utf-8", "replace"))}
    return all(statuses.get(test) == "PASSED" for test in wanted)
