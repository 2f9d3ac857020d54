"""Training on several ranks over Gloo: the same weights as in one process, and checkpoints that both can load."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from excise.system.supervisor import descendants
from excise.trainer.loop.checkpoints import Checkpoints
from excise.trainer.reporting.metrics import read_metrics

from ..tiny_folder import make_folder, write_demonstrations
from .reference_learner import learn, learn_alone, make_learner

SCRIPT = Path(__file__).parent / "rank_program.py"


RunRanks = Callable[..., None]
"""``run_ranks(world, folder, steps, how="begin", **options)`` runs that many ranks until all have ended."""


@pytest.fixture(scope="module")
def run_ranks() -> Iterator[RunRanks]:
    """Runs the rank program, which loads torch once for all ranks of these tests."""
    program = subprocess.Popen(
        [sys.executable, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert program.stdin is not None
    assert program.stdout is not None
    to_program, from_program = program.stdin, program.stdout

    def run(world: int, folder: Path, steps: int, how: str = "begin", **options: Any) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        job = {"world": world, "folder": str(folder), "steps": steps, "how": how, "options": options,
               "environment": {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}}  # fmt: skip
        to_program.write(json.dumps(job) + "\n")
        to_program.flush()
        codes = json.loads(from_program.readline() or "[]")
        said = [path.read_text() for path in sorted(folder.glob("rank-*.log"))]
        assert codes == [0] * world, said

    watchdog = threading.Timer(900, os.killpg, (program.pid, signal.SIGKILL))
    watchdog.start()
    yield run
    watchdog.cancel()
    to_program.close()
    program.wait(timeout=10)


def close(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.allclose(a[name], b[name], rtol=1e-4, atol=2e-5) for name in a)


@pytest.mark.slow
def test_ranks_learn_what_one_process_learns(tmp_path: Path, run_ranks: RunRanks) -> None:
    """Two ranks and one process make the same steps, and each continues from the checkpoint of the other."""
    one = learn_alone(tmp_path / "one", 2)
    (tmp_path / "ranks").mkdir()
    run_ranks(2, tmp_path / "ranks", 2)
    assert close(torch.load(tmp_path / "ranks" / "weights.pt"), one)
    assert not close(one, learn_alone(tmp_path / "shorter", 1))
    whole = learn_alone(tmp_path / "whole", 4)
    assert close(learn_alone(tmp_path / "ranks", 4, resume=True), whole)
    shutil.rmtree(tmp_path / "one" / "checkpoints" / "step-00000004", ignore_errors=True)
    run_ranks(2, tmp_path / "one", 4, "go_on")
    assert close(torch.load(tmp_path / "one" / "weights.pt"), whole)


@pytest.mark.slow
def test_replicas_and_sharded_experts_learn_what_one_process_learns(tmp_path: Path, run_ranks: RunRanks) -> None:
    """Four ranks: two replicas of the model, experts sharded over all; one process continues from their checkpoint."""
    (tmp_path / "ranks").mkdir()
    run_ranks(4, tmp_path / "ranks", 2, mixture=True, replicas=2)
    assert close(torch.load(tmp_path / "ranks" / "weights.pt"), learn_alone(tmp_path / "one", 2, mixture=True))
    whole = learn_alone(tmp_path / "whole", 3, mixture=True)
    assert close(learn_alone(tmp_path / "ranks", 3, resume=True, mixture=True), whole)


@pytest.mark.slow
def test_a_number_of_ranks_that_replicas_do_not_divide_is_refused(tmp_path: Path, run_ranks: RunRanks) -> None:
    with pytest.raises(AssertionError, match=r"policy.replicas is 3, by which 2 ranks cannot be divided"):
        run_ranks(2, tmp_path, 2, replicas=3)


@pytest.mark.slow
def test_bf16_ranks_compute_nearly_the_gradient_of_one_process(tmp_path: Path, run_ranks: RunRanks) -> None:
    """Against float32 and autocast in one process; the weights stay in float32."""
    run_ranks(2, tmp_path, 1, bf16=True)
    (found,) = json.loads((tmp_path / "metrics.json").read_text())
    (exact,) = learn(make_learner(), Checkpoints(tmp_path / "exact"), 1, False)
    (alone_too,) = learn(make_learner(bf16=True), Checkpoints(tmp_path / "alone"), 1, False)
    for name in ("grad_norm", "loss_policy", "entropy", "hint_kl", "score"):
        assert found[name] == pytest.approx(exact[name], rel=0.05, abs=0.005)
        assert alone_too[name] == pytest.approx(exact[name], rel=0.05, abs=0.005)
    assert found["score"] != pytest.approx(exact["score"], rel=1e-6)
    assert {tensor.dtype for tensor in torch.load(tmp_path / "weights.pt").values()} == {torch.float32}


CONFIG = """
folder = "{run}"
method = "sdft"
[policy]
model = "model"
[sdft]
demonstrations = "shown.jsonl"
answer_tokens = 4
epochs = 100
[optimizer]
lr = 0.003
[loop]
steps = {steps}
checkpoint_every = 2
tensorboard = false
[loop.schedule]
batch = 3
group_size = 2
staleness = 0
"""


def torchrun(folder: Path, run: str, steps: int, *options: str) -> list[str]:
    """Write the settings of a run, and return the command that runs it on two ranks."""
    (folder / f"{run}.toml").write_text(CONFIG.format(run=run, steps=steps))
    ranks = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    return [*ranks, "-m", "excise.pipeline.cli", "train", str(folder / f"{run}.toml"), "--quiet", *options]


@pytest.mark.slow
def test_the_command_under_torchrun(tmp_path: Path) -> None:
    """Two ranks make the first step of one; a rank that is killed ends the run, and --resume finishes it."""
    make_folder(tmp_path / "model")
    write_demonstrations(tmp_path / "shown.jsonl", [("say", "zzz"), ("tell", "yyy"), ("speak", "xxx")])
    (tmp_path / "one.toml").write_text(CONFIG.format(run="one", steps=1))
    alone_too = [sys.executable, "-m", "excise.pipeline.cli", "train", str(tmp_path / "one.toml"), "--quiet"]
    subprocess.run(alone_too, check=True, timeout=2400)
    running = subprocess.Popen(torchrun(tmp_path, "two", 100_000), stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 240
        while len(list((tmp_path / "two" / "checkpoints").glob("step-*"))) < 1 and time.monotonic() < until:
            assert running.poll() is None
            time.sleep(0.1)
        ranks = [
            pid
            for pid in descendants(running.pid)
            if b"excise.pipeline.cli" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        os.kill(max(ranks), signal.SIGKILL)
        assert running.wait(timeout=120) != 0
    finally:
        running.kill()
    before = read_metrics(tmp_path / "two" / "metrics.jsonl")
    (single,) = read_metrics(tmp_path / "one" / "metrics.jsonl")
    assert before[0]["hint_kl"] == pytest.approx(single["hint_kl"], rel=1e-4)
    assert before[0]["grad_norm"] == pytest.approx(single["grad_norm"], rel=1e-3)
    steps = len(before) + 2
    subprocess.run(torchrun(tmp_path, "two", steps, "--resume"), check=True, timeout=2400)
    after = read_metrics(tmp_path / "two" / "metrics.jsonl")
    assert [row["step"] for row in after] == list(range(1, steps + 1))
    assert (tmp_path / "two" / "policy" / "model.safetensors").exists()
