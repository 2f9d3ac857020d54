"""The program of one of several ranks: makes steps with the reference learner and writes a checkpoint.

Rank 0 also writes ``weights.pt`` and ``metrics.json``. Arguments: folder, number of steps, ``begin`` or ``go_on`` (from
the checkpoint in the folder), and the arguments of ``make_learner`` as JSON. Rank and number of ranks come from the
environment.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
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


def main() -> None:
    """Join the other ranks, and learn with them."""
    from excise.trainer.loop.checkpoints import Checkpoints
    from excise.trainer.loop.rank_commands import (
        RankZeroLearner,
        exit_rank,
        join_rank_group,
        leave_rank_group,
        run_follower,
    )

    torch.set_num_threads(1)
    assert join_rank_group(timeout_s=60)
    reference = import_reference_learner()
    folder, steps, resume = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "go_on"
    learner = reference.make_learner(**json.loads(sys.argv[4]))
    checkpoints = Checkpoints(folder / "checkpoints", ranks=learner.ranks)
    if isinstance(learner, RankZeroLearner):
        metrics = reference.learn(learner, checkpoints, steps, resume)
        (folder / "metrics.json").write_text(json.dumps(metrics))
        torch.save(dict(learner.weights()), folder / "weights.pt")
        learner.announce("over")
    else:
        run_follower(learner, checkpoints)
    leave_rank_group()
    exit_rank(0)


if __name__ == "__main__":
    main()
