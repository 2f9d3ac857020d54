"""Training on several ranks: rank 0 runs the controller and broadcasts commands, which all ranks execute together.

Each rank holds a shard of weights, gradients and optimizer state (FSDP2), and the rows of a batch are distributed over
the ranks. Only rank 0 samples, chooses tasks and stores rollouts; each rank writes its own shard of a checkpoint. If a
rank dies, the next collective operation fails on all others, at the latest after the timeout of the process group. The
run can then be resumed from its checkpoint and journal, on any number of ranks.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from excise.errors import TrainingError
from excise.trainer.loop.checkpoints import Checkpoints
from excise.trainer.loop.learner import Learner
from excise.trainer.objective.policy_forward import decoder_layers, experts_of
from excise.trainer.rollout_types import Group


def join_rank_group(timeout_s: float) -> bool:
    """Join the process group if ``WORLD_SIZE`` (set by ``torchrun``) is above 1; whether there are several ranks.

    ``timeout_s`` limits each collective operation, including the wait for rank 0's next command.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        return False
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=timedelta(seconds=timeout_s))
    return True


def leave_rank_group() -> None:
    """Destroy the process group after a barrier: a rank that left earlier would make the others fail."""
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def exit_rank(code: int) -> NoReturn:
    """Exit the process of a rank that has left its group, without Python's finalization.

    Gloo's threads outlive their group (torch 2.13 keeps it in its caches). If one of them releases a tensor during
    finalization, the process ends with SIGABRT, and ``torchrun`` would report a failure of a finished run.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def shard_model(model: torch.nn.Module, device: torch.device, replicas: int = 1, *, bf16: bool = False) -> None:
    """Shard the weights of a Hugging Face model over all ranks, layer by layer; this rank's shards move to ``device``.

    Each layer is moved when it is sharded, so no device ever holds the whole model. With ``replicas`` above 1, each
    group of neighbouring ranks holds one copy of the model (HSDP): weights are gathered within a node and only
    gradients cross nodes. Experts, the largest part of a mixture, are sharded over all ranks even then.

    ``bf16``: weights are gathered and multiplied in bfloat16, gradients summed in float32. Autocast is numerically
    close, but would keep a copy of all weights from the forward to the backward pass.

    Raises :class:`TrainingError` if the number of ranks is not divisible by ``replicas``.
    """
    world = dist.get_world_size()
    if world % replicas:
        raise TrainingError(f"policy.replicas is {replicas}, by which {world} ranks cannot be divided.")
    mesh = all_ranks = init_device_mesh(device.type, (world,))
    if replicas > 1:
        mesh = init_device_mesh(device.type, (replicas, world // replicas), mesh_dim_names=("replicate", "shard"))
    exact = MixedPrecisionPolicy()
    precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if bf16 else exact
    for layer in decoder_layers(model):
        if replicas > 1 and (experts := experts_of(layer)) is not None:
            fully_shard(experts, mesh=all_ranks, mp_policy=precision)
        fully_shard(layer, mesh=mesh, mp_policy=precision)
    # Without resharding, the root module keeps full weights after a pass without gradient.
    fully_shard(model, mesh=mesh, mp_policy=precision, reshard_after_forward=True)


class RankZeroLearner(Learner):
    """The learner of rank 0: broadcasts each operation before taking part in it."""

    def announce(self, command: str, *arguments: object) -> None:
        """Broadcast a command to the ranks in :func:`run_follower`."""
        self.ranks.broadcast((command, arguments))

    def step(self, groups: Sequence[Group], version: int) -> dict[str, float]:
        """See :meth:`Learner.step`."""
        self.announce("step", groups, version)
        return super().step(groups, version)

    def score(self, token_ids: Sequence[Sequence[int]], temperature: float = 1.0) -> list[list[float]]:
        """See :meth:`Learner.score`."""
        self.announce("score", token_ids, temperature)
        return super().score(token_ids, temperature)

    def lesson_kl(self, groups: Sequence[Group]) -> float:
        """See :meth:`Learner.lesson_kl`."""
        self.announce("lesson_kl", groups)
        return super().lesson_kl(groups)

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """See :meth:`Learner.weights`; the iterator must be exhausted."""
        self.announce("weights")
        yield from super().weights()


def run_follower(learner: Learner, checkpoints: Checkpoints) -> None:
    """Execute rank 0's commands on another rank until the command ``over``. Raises after the group's timeout.

    Signals are ignored: ``torchrun`` sends them to all ranks, but rank 0 decides about them and needs the others until
    the end.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    while True:
        command, arguments = _next_command(learner)
        if command == "over":
            return
        if command == "save":
            checkpoints.save(learner, arguments[0])
        elif command == "load":
            checkpoints.load(arguments[0], learner)
        elif command == "weights":
            for _ in learner.weights():
                pass
        else:
            getattr(learner, command)(*arguments)


def _next_command(learner: Learner) -> tuple[str, tuple[Any, ...]]:
    received: tuple[str, tuple[Any, ...]] = learner.ranks.broadcast(None)
    return received
