"""A program of four ranks on the CPU, processes connected by Gloo, which trains in each scenario and stores the result.

Run as a program with a folder: it holds ``single/`` (a checkpoint of one process) and gets ``result.pt`` (full tensors
of each scenario) and ``sharded/`` (a checkpoint of four ranks). Gradients are made up, the same for all, so that what
is compared is the optimizer; one scenario takes those of a real backward pass.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import muon_models
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from excise.trainer.optimizers import muon
from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings, build_optimizer, clip_gradients

WORLD = 4
STEPS = 3
LR = 0.02
DECAY = 0.1
MAX_NORM = 0.5
LOST_DEADLINE_S = 10
SETTINGS = OptimizerSettings(name="muon", lr=LR, weight_decay=DECAY)
ADAMW = OptimizerSettings(name="adamw", lr=LR, weight_decay=DECAY)
FLAT = StateDictOptions(flatten_optimizer_state_dict=True)

State = dict[str, torch.Tensor]


def flat(model: nn.Module) -> None:
    """Shard with FSDP2 over all ranks, each layer a unit."""
    mesh = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("shard",))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def hybrid(model: nn.Module) -> None:
    """Shard with HSDP: two replicas of two shards."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def dual(model: nn.Module) -> None:
    """Shard the experts over all four ranks, the rest over two with two replicas."""
    wide = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("experts",))
    narrow = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    for layer in model.model.layers:
        fully_shard(layer.mlp.experts, mesh=wide)
        fully_shard(layer, mesh=narrow)
    fully_shard(model, mesh=narrow)


def across(model: nn.Module) -> None:
    """Shard the experts by their rows instead of by their number."""
    mesh = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("shard",))
    for layer in model.model.layers:
        fully_shard(layer.mlp.experts, mesh=mesh, shard_placement_fn=lambda _: Shard(1))
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def part_of_a_mesh(model: nn.Module) -> None:
    """Shard with HSDP over two of the four ranks, as in pipeline parallelism."""
    mesh = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("stage", "replicate", "shard"))["replicate", "shard"]
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


SCENARIOS: dict[str, tuple[str, Callable[[nn.Module], None]]] = {
    "dense": ("dense", flat),
    "dense-many": ("dense", flat),
    "dense-part": ("dense", part_of_a_mesh),
    "dense-hybrid": ("dense", hybrid),
    "fused": ("fused", flat),
    "moe": ("moe", flat),
    "moe-dual": ("moe", dual),
    "moe-many": ("moe", dual),
    "moe-across": ("moe", across),
}
"""By name, the model and the function that shards it."""


def gradient(name: str, step: int, shape: torch.Size) -> torch.Tensor:
    """A made-up gradient, the same in every process."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{name}/{step}".encode()))
    return torch.randn(shape, generator=generator)


def set_gradients(model: nn.Module, step: int) -> None:
    """Give every parameter its gradient, sharded like the parameter."""
    for name, parameter in model.named_parameters():
        whole = gradient(name, step, parameter.shape)
        sharded = isinstance(parameter, DTensor)
        parameter.grad = distribute_tensor(whole, parameter.device_mesh, parameter.placements) if sharded else whole


def full(values: Iterator[tuple[str, Any]] | Any) -> State:
    """Copies of the complete tensors."""
    return {
        name: (value.full_tensor() if isinstance(value, DTensor) else value).detach().clone()
        for name, value in values
        if isinstance(value, torch.Tensor)
    }


def backward(model: nn.Module) -> None:
    """Compute the gradients of a batch that is the same on all ranks."""
    ids = torch.randint(3, muon_models.VOCABULARY, (2, 24), generator=torch.Generator().manual_seed(7))
    model(input_ids=ids, labels=ids).loss.backward()


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Any], dict[str, Any]]:
    """State for a checkpoint, flattened, so that any number of ranks can load it."""
    return get_state_dict(model, optimizer, options=FLAT)


def save(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
    """Save a checkpoint with torch DCP."""
    weights, state = state_of(model, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder)


def restore(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
    """Load a checkpoint."""
    weights, state = state_of(model, optimizer)
    held = {"model": weights, "optimizer": state}
    dcp.load(held, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=held["model"], optim_state_dict=held["optimizer"], options=FLAT)


def trained(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    """Make steps with made-up gradients."""
    for step in steps:
        set_gradients(model, step)
        optimizer.step()


def everything(model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Complete weights and optimizer state."""
    weights, state = state_of(model, optimizer)
    return full(weights.items()) | full(state.items())


def prepare(name: str, optimizer: torch.optim.Optimizer) -> None:
    """Use float32 where batches differ from those in one process, since bfloat16 would be rounded differently."""
    if name.endswith("-many"):
        optimizer.compute = torch.float32


def scenarios(folder: Path) -> dict[str, State]:
    """Run every scenario, and return the results by name."""
    results: dict[str, State] = {}
    for name, (kind, shard) in SCENARIOS.items():
        model = muon_models.MODELS[kind]()
        shard(model)
        muon.BATCH_ELEMENTS = 1 if name.endswith("-many") else 1 << 25  # many batches, three of them under way
        optimizer = build_optimizer(model, SETTINGS)
        prepare(name, optimizer)
        assert len(optimizer._batches) > 6 or not name.endswith("-many")
        trained(model, optimizer, range(STEPS - 1))
        if name in {"dense", "moe-dual"}:
            results[f"{name}/saved"] = everything(model, optimizer)
            save(model, optimizer, folder / "sharded" / name)
        trained(model, optimizer, range(STEPS - 1, STEPS))
        results[name] = full(model.named_parameters())
        for parameter, state in optimizer.state.items():
            for held in (value for key, value in state.items() if key != "step"):
                assert held.placements == parameter.placements, "state must be sharded like its parameter"
    for name in ("dense", "moe-dual"):
        kind, shard = SCENARIOS[name]
        model = muon_models.MODELS[kind]()
        shard(model)
        optimizer = build_optimizer(model, SETTINGS)
        restore(model, optimizer, folder / "single" / name)
        results[f"{name}/restored"] = everything(model, optimizer)
        trained(model, optimizer, range(STEPS - 1, STEPS))
        results[f"{name}/went-on"] = full(model.named_parameters())
    for name, settings in (("real", SETTINGS), ("real-adamw", ADAMW)):
        model = muon_models.moe()
        dual(model)
        optimizer = build_optimizer(model, settings)
        backward(model)
        norm = clip_gradients(model.parameters(), MAX_NORM)
        optimizer.step()
        results[name] = full(model.named_parameters()) | {"norm": norm}
    return results


def rank_main(rank: int, folder: Path) -> None:
    """The main function of one rank."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD, timeout=timedelta(seconds=60)
    )
    results = scenarios(folder)
    if rank == 0:
        torch.save(results, folder / "result.pt")
    dist.barrier()
    dist.destroy_process_group()


def lost_main(rank: int, folder: Path) -> None:
    """One rank of four, of which the last one exits early; the others print after how long they get an error."""
    torch.set_num_threads(1)
    deadline = timedelta(seconds=LOST_DEADLINE_S)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD, timeout=deadline)
    model = muon_models.dense()
    flat(model)
    optimizer = build_optimizer(model, SETTINGS)
    trained(model, optimizer, range(1))
    if rank == WORLD - 1:
        os._exit(0)
    set_gradients_alone(model)
    began = time.monotonic()
    try:
        optimizer.step()
    except RuntimeError:
        os.write(1, f"told {time.monotonic() - began:.2f}\n".encode())  # at once: others write there, too
    os._exit(0)


def set_gradients_alone(model: nn.Module) -> None:
    """Set gradients without communication."""
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main = lost_main if "lost" in sys.argv else rank_main
    mp.start_processes(main, (Path(sys.argv[1]),), nprocs=WORLD, start_method="fork")
