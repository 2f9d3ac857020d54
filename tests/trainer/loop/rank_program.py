"""A program that runs ranks: each makes steps with the reference learner and writes a checkpoint.

Ranks are forked from this process, which has loaded torch already. A line of input is JSON: ``world`` (number of
ranks), ``folder``, ``steps``, ``how`` (``begin``, or ``go_on`` from the checkpoint in the folder), ``options``
(arguments of ``make_learner``), and ``environment``. The answer is a line with the exit codes of the ranks; rank N
writes its standard error to ``rank-N.log`` in the folder. Rank 0 also writes ``weights.pt`` and ``metrics.json``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

TRAINER_TESTS = Path(__file__).parents[1]


def import_reference_learner() -> Any:
    """The module beside this one, which has relative imports: as a member of a package that is made here."""
    spec = importlib.util.spec_from_loader("trainer_tests", loader=None, is_package=True)
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    package.__path__ = [str(TRAINER_TESTS)]
    sys.modules["trainer_tests"] = package
    return importlib.import_module("trainer_tests.loop.reference_learner")


def run_rank(reference: Any, job: dict[str, Any]) -> None:
    """Join the other ranks, and learn with them."""
    from excise.trainer.loop.checkpoints import Checkpoints
    from excise.trainer.loop.rank_commands import (
        RankZeroLearner,
        exit_rank,
        join_rank_group,
        leave_rank_group,
        run_follower,
    )

    assert join_rank_group(timeout_s=60)
    folder = Path(job["folder"])
    learner = reference.make_learner(**job["options"])
    checkpoints = Checkpoints(folder / "checkpoints", ranks=learner.ranks)
    if isinstance(learner, RankZeroLearner):
        metrics = reference.learn(learner, checkpoints, job["steps"], job["how"] == "go_on")
        (folder / "metrics.json").write_text(json.dumps(metrics))
        torch.save(dict(learner.weights()), folder / "weights.pt")
        learner.announce("over")
    else:
        run_follower(learner, checkpoints)
    leave_rank_group()
    exit_rank(0)


def fork_rank(reference: Any, job: dict[str, Any], rank: int) -> int:
    """Start one rank; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(Path(job["folder"], f"rank-{rank}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.environ.update(job["environment"], WORLD_SIZE=str(job["world"]), RANK=str(rank))
        run_rank(reference, job)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def main() -> None:
    """Run the ranks of each line of input."""
    torch.set_num_threads(1)
    reference = import_reference_learner()
    for module in ("excise.trainer.loop.rank_commands", "transformers.models.qwen3.modeling_qwen3",
                   "torch.distributed.checkpoint"):  # fmt: skip
        importlib.import_module(module)
    for line in sys.stdin:
        job = json.loads(line)
        pids = [fork_rank(reference, job, rank) for rank in range(job["world"])]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        print(json.dumps(codes), flush=True)


if __name__ == "__main__":
    main()
