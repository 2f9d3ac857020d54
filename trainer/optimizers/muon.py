"""Muon for attention heads, experts and other matrices; AdamW for the rest; both for whole and for sharded parameters.

The update of a matrix block is its momentum, orthogonalised and scaled by ``0.2 √max(rows, columns)`` so that its root
mean square is that of AdamW's (Liu et al., "Muon is scalable for LLM training", 2025). Sharded parameters send the
pieces of their blocks to the blocks' owners (``block_exchange.py``), in batches of equal blocks, up to three of them
under way at once, so that Newton-Schulz runs on a share of the matrices on every rank while the next pieces travel.
Momentum stays sharded like its parameter; checkpoints are exact on any number of ranks.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.optim.adamw import adamw

from excise.trainer.optimizers.block_exchange import Exchange, Route, batches, plan_exchange
from excise.trainer.optimizers.matrix_blocks import Blocks
from excise.trainer.optimizers.newton_schulz import orthogonalised
from excise.trainer.optimizers.sharding_layout import Layout, group_of, layout_of, local_of

IN_FLIGHT = 3
"""Batches that are under way at once."""
BATCH_ELEMENTS = 1 << 25
"""Elements of one batch on one rank, where that is more than a block."""
RMS = 0.2
"""Root mean square of an update before the learning rate."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Parameters whose blocks go together."""

    parameters: tuple[torch.Tensor, ...]
    shape: tuple[int, int]
    """Rows and columns of their blocks."""
    exchange: Exchange
    group: dist.ProcessGroup | None
    """The ranks that hold them; ``None`` where each process has the whole."""
    settings: int
    """Number of the parameters' group in ``param_groups``."""


class Muon(torch.optim.Optimizer):
    """Muon where there are blocks, AdamW where there are none.

    ``parameters`` are groups as of any optimizer; a group with ``algorithm = "muon"`` holds parameters of ``blocks``
    (parameter to its blocks), one with ``"adamw"`` all others. Of a parameter that has no gradient the gradient is 0,
    so that all ranks exchange the same. ``compute`` is the dtype of Newton-Schulz and of what is sent. Every rank of a
    parameter's mesh has to make the optimizer, and to call :meth:`step`, at the same point.
    """

    def __init__(
        self,
        parameters: Iterable[dict[str, Any]],
        blocks: Mapping[nn.Parameter, Blocks],
        *,
        lr: float,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        nesterov: bool = True,
        steps: int = 5,
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-8,
        compute: torch.dtype = torch.bfloat16,
    ) -> None:
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "steps": steps,
            "betas": betas,
            "eps": eps,
            "algorithm": "adamw",
        }
        super().__init__(list(parameters), defaults)
        self.compute = compute
        self._batches = _batches(self.param_groups, blocks)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update of everything that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group["algorithm"] == "adamw":
                _adamw(group, self.state)
        under_way: deque[Iterator[None]] = deque()
        for batch in self._batches:
            while len(under_way) == IN_FLIGHT:
                _advance(under_way)
            under_way.append(self._update(batch))
            next(under_way[-1])
        while under_way:
            _advance(under_way)
        return loss

    def _update(self, batch: _Batch) -> Iterator[None]:
        """The update of one batch; stops wherever it has to wait for others."""
        settings = self.param_groups[batch.settings]
        updates = [self._direction(parameter, settings) for parameter in batch.parameters]
        there, back, owned = batch.exchange.there, batch.exchange.back, batch.exchange.owned
        arrived, wait = self._send(there, [updates[p.parameter][p.local] for p in there.sent], batch)
        yield
        wait()
        matrices = arrived.new_empty(len(owned), *batch.shape)
        place = dict(zip(owned, matrices, strict=True))
        _copy([place[p.block][p.inside] for p in there.received], _split(arrived, there))
        place = dict(zip(owned, orthogonalised(matrices, steps=settings["steps"]), strict=True))
        arrived, wait = self._send(back, [place[p.block][p.inside] for p in back.sent], batch)
        yield
        wait()
        _copy([updates[p.parameter][p.local] for p in back.received], _split(arrived, back))
        lr = settings["lr"]
        for parameter, update in zip(batch.parameters, updates, strict=True):
            here = local_of(parameter)
            here.mul_(1 - lr * settings["weight_decay"])
            here.add_(update, alpha=-lr * RMS * math.sqrt(max(batch.shape)))

    def _send(
        self, route: Route, pieces: Sequence[torch.Tensor], batch: _Batch
    ) -> tuple[torch.Tensor, Callable[[], object]]:
        """Start an all-to-all: the buffer that it fills, and what waits for it. Nothing is sent if all stay at home."""
        nothing = torch.empty(0, dtype=self.compute, device=local_of(batch.parameters[0]).device)
        buffer = torch.cat([nothing, *(piece.reshape(-1) for piece in pieces)])
        if batch.exchange.is_local:
            return buffer, lambda: None
        into = buffer.new_empty(sum(route.received_sizes))
        sizes = list(route.received_sizes), list(route.sent_sizes)
        work = dist.all_to_all_single(into, buffer, *sizes, group=batch.group, async_op=True)
        return into, partial(_wait, work, buffer)

    def _direction(self, parameter: torch.Tensor, settings: Mapping[str, Any]) -> torch.Tensor:
        """This rank's part of the momentum, after this step's gradient, looking ahead as Nesterov does.

        The momentum is a running mean, not a sum: a factor is of no matter to what is orthogonalised.
        """
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        buffer = local_of(state["momentum_buffer"])
        gradient = torch.zeros_like(buffer) if parameter.grad is None else local_of(parameter.grad)
        buffer.lerp_(gradient, 1 - settings["momentum"])
        ahead = gradient.lerp(buffer, settings["momentum"]) if settings["nesterov"] else buffer.clone()
        return ahead.to(self.compute)


def _advance(under_way: deque[Iterator[None]]) -> None:
    """Take the oldest batch one step on; it goes to the end of the queue, or out of it when it is done."""
    oldest = under_way.popleft()
    if not next(oldest, True):
        under_way.append(oldest)


def _wait(work: Any, buffer: torch.Tensor) -> None:
    """Wait for an exchange, with the deadline of its process group; what is sent must live so long."""
    work.wait()
    del buffer


def _split(arrived: torch.Tensor, route: Route) -> list[torch.Tensor]:
    """The pieces in a buffer."""
    flat = torch.split(arrived, [piece.size for piece in route.received])
    return [part.view(piece.shape) for part, piece in zip(flat, route.received, strict=True)]


def _copy(into: list[torch.Tensor], pieces: list[torch.Tensor]) -> None:
    if into:
        torch._foreach_copy_(into, pieces)


def _batches(groups: Sequence[dict[str, Any]], blocks: Mapping[nn.Parameter, Blocks]) -> tuple[_Batch, ...]:
    """All batches in an order that is the same on every rank."""
    made: list[_Batch] = []
    process_groups: dict[DeviceMesh, dist.ProcessGroup] = {}
    load: dict[DeviceMesh | None, list[int]] = {}
    for number, group in enumerate(groups):
        alike: dict[object, list[tuple[torch.Tensor, Layout, Blocks]]] = defaultdict(list)
        for parameter in group["params"] if group["algorithm"] == "muon" else ():
            layout, cut = layout_of("a parameter", parameter), blocks[parameter]
            key = layout.mesh, layout.placements, parameter.dtype, parameter.device, parameter.ndim, cut.shape
            alike[key].append((parameter, layout, cut))
        for members in alike.values():
            mesh = members[0][1].mesh
            if mesh is not None and mesh not in process_groups:
                process_groups[mesh] = group_of(mesh)
            rank = dist.get_rank(process_groups[mesh]) if mesh is not None else 0
            work = load.setdefault(mesh, [0] * len(members[0][1].boxes))
            plans = [(layout, cut) for _, layout, cut in members]
            for chosen in batches(plans, [parameter.numel() for parameter, *_ in members], BATCH_ELEMENTS):
                made.append(
                    _Batch(
                        parameters=tuple(members[n][0] for n in chosen),
                        shape=members[0][2].shape,
                        exchange=plan_exchange([plans[n] for n in chosen], rank, work),
                        group=process_groups[mesh] if mesh is not None else None,
                        settings=number,
                    )
                )
    return tuple(made)


def _adamw(group: Mapping[str, Any], states: Mapping[torch.Tensor, dict[str, Any]]) -> None:
    """One step of AdamW as torch's own does it, for each mesh by itself."""
    by_mesh: dict[object, list[torch.Tensor]] = defaultdict(list)
    for parameter in group["params"]:
        if parameter.grad is not None:
            by_mesh[getattr(parameter, "device_mesh", None)].append(parameter)
    for parameters in by_mesh.values():
        for parameter in parameters:
            state = states[parameter]
            if not state:
                state["step"] = torch.tensor(0.0)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
        adamw(
            [local_of(p) for p in parameters],
            [local_of(p.grad) for p in parameters if p.grad is not None],
            [local_of(states[p]["exp_avg"]) for p in parameters],
            [local_of(states[p]["exp_avg_sq"]) for p in parameters],
            [],
            [states[p]["step"] for p in parameters],
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )
