"""Several ranks over Gloo: sharded, they learn what one process learns, and read each other's checkpoints."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import torch

from .batches import alone

SCRIPT = Path(__file__).parent / "one_of_ranks.py"


def together(world: int, *arguments: object) -> None:
    """Run all ranks to their end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1"
    }  # fmt: skip
    processes = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), *map(str, arguments)], env=os.environ | common | {"RANK": str(rank)},
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(world)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=180)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * world, said


def close(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.allclose(a[name], b[name], rtol=1e-4, atol=2e-5) for name in a)


def test_ranks_learn_what_one_process_learns(tmp_path: Path) -> None:
    """Two ranks do two steps; one process goes on from their checkpoint, and they from one of one process."""
    one = alone(tmp_path / "one", 2)
    (tmp_path / "ranks").mkdir()
    together(2, tmp_path / "ranks", 2, "begin")
    assert close(torch.load(tmp_path / "ranks" / "weights.pt"), one)
    assert not close(one, alone(tmp_path / "shorter", 1))
    whole = alone(tmp_path / "whole", 4)
    assert close(alone(tmp_path / "ranks", 4, resume=True), whole)
    shutil.rmtree(tmp_path / "one" / "checkpoints" / "step-00000004", ignore_errors=True)
    together(2, tmp_path / "one", 4, "go_on")
    assert close(torch.load(tmp_path / "one" / "weights.pt"), whole)
