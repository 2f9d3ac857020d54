"""Several processes, one policy: rank 0 runs the loop and says what is to be done, the others do it along with it.

Each rank holds a shard of weights, gradients and optimizer (FSDP2); rows of a batch are dealt out among them. Only
rank 0 samples, chooses and writes rollouts; all write their shard of a checkpoint. A rank that is gone ends the group's
next operation with an error in all others, after the group's deadline at the latest, and the run goes on from its
checkpoint and journal with ``--resume``, on any number of ranks.
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
from excise.trainer.rollout_types import Group


def join(deadline_s: float) -> bool:
    """Become one of several ranks, if ``torchrun`` (or whoever) says so by ``WORLD_SIZE``; whether this is one.

    ``deadline_s`` is for every operation of the group, the wait for rank 0's next word among them.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        return False
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=timedelta(seconds=deadline_s))
    return True


def leave() -> None:
    """End the group, all ranks at once: who goes while others still talk to it takes them down."""
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def end(code: int) -> NoReturn:
    """End the process of a rank that has left its group, without Python's own end.

    Gloo's threads outlive their group (torch 2.13 keeps it in its caches), and one of them that lets go of a tensor
    while Python takes itself apart ends the process by SIGABRT: ``torchrun`` would say that a run failed which is done.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def shard(model: torch.nn.Module, device: torch.device, replicas: int = 1, *, bf16: bool = False) -> None:
    """Deal the weights of a Hugging Face model out among all ranks, layer by layer; what is kept goes to ``device``.

    Each layer is moved when it is cut, so that no device ever has the whole model. With ``replicas``, neighbouring
    ranks have the whole model between them, that many times over (HSDP): weights are put together within a node, and
    only gradients cross nodes. Experts, most of the weights where there are any, are dealt out among all ranks even so.

    ``bf16``: weights are put together and multiplied in bfloat16, gradients added up in float32. Autocast would come to
    nearly the same, but keeps a copy of all weights from the forward to the backward pass.

    Raises :class:`TrainingError` where the ranks cannot be divided like that.
    """
    world = dist.get_world_size()
    if world % replicas:
        raise TrainingError(f"policy.replicas is {replicas}, by which {world} ranks cannot be divided.")
    mesh = wide = init_device_mesh(device.type, (world,))
    if replicas > 1:
        mesh = init_device_mesh(device.type, (replicas, world // replicas), mesh_dim_names=("replicate", "shard"))
    exact = MixedPrecisionPolicy()
    precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if bf16 else exact
    for layer in model.get_submodule("model.layers").children():
        if replicas > 1 and (experts := _experts_of(layer)) is not None:
            fully_shard(experts, mesh=wide, mp_policy=precision)
        fully_shard(layer, mesh=mesh, mp_policy=precision)
    # Without resharding, the root keeps whole weights after a pass without gradient.
    fully_shard(model, mesh=mesh, mp_policy=precision, reshard_after_forward=True)


def _experts_of(layer: torch.nn.Module) -> torch.nn.Module | None:
    """All experts of a layer, where they are one module."""
    found = (module for name, module in layer.named_modules() if name.rpartition(".")[2] == "experts")
    return next((module for module in found if not isinstance(module, torch.nn.ModuleList)), None)


class LeadingLearner(Learner):
    """The learner of rank 0."""

    def say(self, what: str, *arguments: object) -> None:
        """Tell all others; :func:`follow` is what they do."""
        self.ranks.told((what, arguments))

    def step(self, groups: Sequence[Group], version: int) -> dict[str, float]:
        """See :meth:`Learner.step`."""
        self.say("step", groups, version)
        return super().step(groups, version)

    def score(self, token_ids: Sequence[Sequence[int]], temperature: float = 1.0) -> list[list[float]]:
        """See :meth:`Learner.score`."""
        self.say("score", token_ids, temperature)
        return super().score(token_ids, temperature)

    def lesson_kl(self, groups: Sequence[Group]) -> float:
        """See :meth:`Learner.lesson_kl`."""
        self.say("lesson_kl", groups)
        return super().lesson_kl(groups)

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """See :meth:`Learner.weights`; whoever begins has to go through to the end."""
        self.say("weights")
        yield from super().weights()


def follow(learner: Learner, checkpoints: Checkpoints) -> None:
    """What every other rank does until rank 0 says that it is over. Raises after the group's deadline.

    Rank 0 decides what a signal means, too, and needs the others to the end: ``torchrun`` sends it to all.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    while True:
        what, arguments = _next(learner)
        if what == "over":
            return
        if what == "save":
            checkpoints.save(learner, arguments[0])
        elif what == "load":
            checkpoints.load(arguments[0], learner)
        elif what == "weights":
            for _ in learner.weights():
                pass
        else:
            getattr(learner, what)(*arguments)


def _next(learner: Learner) -> tuple[str, tuple[Any, ...]]:
    found: tuple[str, tuple[Any, ...]] = learner.ranks.told(None)
    return found
