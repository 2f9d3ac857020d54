"""One of several ranks: learns the batches in a file, writes a checkpoint, and rank 0 the weights.

Arguments: folder, number of steps, ``begin`` or ``go_on`` (from the checkpoint in the folder), and what the learner is
made with, as JSON. Rank and world come from the environment.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent


def load_tiny() -> Any:
    """The modules beside this one, as members of a package that is made here."""
    spec = importlib.util.spec_from_loader("tiny", loader=None, is_package=True)
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    package.__path__ = [str(HERE)]
    sys.modules["tiny"] = package
    return importlib.import_module("tiny.batches")


def main() -> None:
    """Learn."""
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
    batches = load_tiny()
    folder, steps, resume = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "go_on"
    learner = batches.make_learner(**json.loads(sys.argv[4]))
    checkpoints = Checkpoints(folder / "checkpoints", ranks=learner.ranks)
    if isinstance(learner, RankZeroLearner):
        metrics = batches.learn(learner, checkpoints, steps, resume)
        (folder / "metrics.json").write_text(json.dumps(metrics))
        torch.save(dict(learner.weights()), folder / "weights.pt")
        learner.announce("over")
    else:
        run_follower(learner, checkpoints)
    leave_rank_group()
    exit_rank(0)


if __name__ == "__main__":
    main()
