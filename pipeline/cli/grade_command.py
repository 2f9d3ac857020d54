"""``excise grade``: grades one solution."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from excise.errors import ConfigError
from excise.pipeline.cli.options import (
    AsOf,
    Cache,
    Config,
    Json,
    Out,
    Set,
    exit_codes_for_errors,
    require_sandbox,
    settings_of,
)
from excise.pipeline.exit_codes import FAILED, INFRA, OK
from excise.types import to_dict


class Solution(StrEnum):
    """Solutions that every task has."""

    GOLD = "gold"
    NOOP = "noop"


GRADE_CODES = "Exit code: 0 reward 1; 1 reward 0; 2 usage; 4 not graded, the infrastructure failed."


def grade(
    instance_id: Annotated[str, typer.Argument(help="Task.")],
    diff: Annotated[Path | None, typer.Option(help="The solution, as `git diff` writes it; - for stdin.")] = None,
    solution: Annotated[Solution | None, typer.Option(help="A known solution instead of a diff.")] = None,
    out: Out = None,
    as_of: AsOf = "",
    cache: Cache = None,
    config: Config = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Grade a solution in a fresh sandbox: hidden tests, tests that must fail, recorded calls."""
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.task_grader import Grader, grade_text

    with exit_codes_for_errors():
        settings = settings_of(config, set_, as_of, out=out, cache=cache)
        if (diff is None) == (solution is None):
            raise ConfigError("Give --diff FILE (- for stdin), or --solution gold or noop.")
        grader = Grader(TaskSet.open(settings.out, as_of), settings)
        grader.taskset.task(instance_id)
        if diff is None:
            text = grader.solution(instance_id, str(solution))
        else:
            data = sys.stdin.buffer.read() if str(diff) == "-" else diff.read_bytes()
            text = data.decode("utf-8", "surrogateescape")
        require_sandbox(settings)
        found = grader.grade(instance_id, text)
        print(json.dumps(to_dict(found), indent=2) if as_json else grade_text(found))
        raise typer.Exit(INFRA if not found.decided else OK if found.reward == 1 else FAILED)
