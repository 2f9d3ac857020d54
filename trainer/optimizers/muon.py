"""The Muon optimizer for attention heads, experts and other matrices, with AdamW for all other parameters.

The update of a matrix block is its momentum, orthogonalised and scaled by ``0.2 √max(rows, columns)`` so that its root
mean square equals that of AdamW's update (Liu et al., "Muon is scalable for LLM training", 2025). For sharded
parameters, the pieces of each block are sent to the rank that owns the block (``block_exchange.py``). Up to three
batches of blocks are in flight, so each rank runs Newton-Schulz on its share of the matrices while the next pieces are
sent. The momentum is sharded like its parameter, so checkpoints are exact on any number of ranks.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.optim.adamw import adamw

from excise.trainer.optimizers.block_exchange import Exchange, Route, batches, plan_exchange
from excise.trainer.optimizers.matrix_blocks import Blocks
from excise.trainer.optimizers.sharding_layout import Layout, group_of, layout_of, local_of

MAX_IN_FLIGHT = 3
"""Maximum number of batches that are exchanged at the same time."""
BATCH_ELEMENTS = 1 << 25
"""Maximum number of elements of a batch per rank, unless a single block is larger."""
RMS = 0.2
"""Root mean square of an update, before the learning rate is applied."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Parameters that are updated together: their blocks have the same shape."""

    parameters: tuple[torch.Tensor, ...]
    shape: tuple[int, int]
    """Rows and columns of a block."""
    exchange: Exchange
    group: dist.ProcessGroup | None
    """Process group of the ranks that hold the parameters; ``None`` if each process has them completely."""
    settings: int
    """Index of the parameters' group in ``param_groups``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MuonSettings:
    """Hyperparameters of :class:`Muon`. A parameter group may override all but ``compute``."""

    lr: float
    """Learning rate of both algorithms."""
    weight_decay: float = 0.0
    """Decoupled weight decay, a factor on the learning rate."""
    momentum: float = 0.95
    """Momentum factor of Muon."""
    nesterov: bool = True
    """Whether Muon uses Nesterov momentum."""
    steps: int = 5
    """Number of Newton-Schulz iterations."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Coefficients of AdamW's running averages of the gradient and its square."""
    eps: float = 1e-8
    """Added to the denominator of AdamW's update."""
    compute: torch.dtype = torch.bfloat16
    """Number format of Newton-Schulz and of the exchange between ranks."""


class Muon(torch.optim.Optimizer):
    """Muon for parameters with matrix blocks, AdamW for others.

    ``parameters`` are parameter groups. A group with ``algorithm = "muon"`` contains parameters of ``blocks``
    (parameter to its blocks), one with ``"adamw"`` all others. A missing gradient counts as 0 for Muon, so that all
    ranks exchange the same pieces. All ranks of a parameter's mesh have to construct the optimizer and call
    :meth:`step` together.
    """

    def __init__(
        self,
        parameters: Iterable[dict[str, Any]],
        blocks: Mapping[nn.Parameter, Blocks],
        settings: MuonSettings,
    ) -> None:
        defaults = asdict(settings)
        self.compute: torch.dtype = defaults.pop("compute")
        super().__init__(list(parameters), {**defaults, "algorithm": "adamw"})
        self._batches = _batches(self.param_groups, blocks)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update all parameters that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group["algorithm"] == "adamw":
                _adamw(group, self.state)
        in_flight: deque[Iterator[None]] = deque()
        for batch in self._batches:
            while len(in_flight) == MAX_IN_FLIGHT:
                _advance(in_flight)
            in_flight.append(self._update(batch))
            next(in_flight[-1])
        while in_flight:
            _advance(in_flight)
        return loss

    def _update(self, batch: _Batch) -> Iterator[None]:
        """The update of one batch, as a generator that yields where it has to wait for an exchange."""
        settings = self.param_groups[batch.settings]
        updates = [self._direction(parameter, settings) for parameter in batch.parameters]
        gather, scatter, owned = batch.exchange.gather, batch.exchange.scatter, batch.exchange.owned
        arrived, wait = self._send(gather, [updates[p.parameter][p.local] for p in gather.sent], batch)
        yield
        wait()
        matrices = arrived.new_empty(len(owned), *batch.shape)
        block_of = dict(zip(owned, matrices, strict=True))
        _copy([block_of[p.block][p.inside] for p in gather.received], _split(arrived, gather))
        block_of = dict(zip(owned, orthogonalise(matrices, steps=settings["steps"]), strict=True))
        arrived, wait = self._send(scatter, [block_of[p.block][p.inside] for p in scatter.sent], batch)
        yield
        wait()
        _copy([updates[p.parameter][p.local] for p in scatter.received], _split(arrived, scatter))
        lr = settings["lr"]
        for parameter, update in zip(batch.parameters, updates, strict=True):
            here = local_of(parameter)
            here.mul_(1 - lr * settings["weight_decay"])
            here.add_(update, alpha=-lr * RMS * math.sqrt(max(batch.shape)))

    def _send(
        self, route: Route, pieces: Sequence[torch.Tensor], batch: _Batch
    ) -> tuple[torch.Tensor, Callable[[], object]]:
        """Start an all-to-all; returns its receive buffer and a function that waits for it.

        Nothing is sent if all pieces stay on their rank.
        """
        empty = torch.empty(0, dtype=self.compute, device=local_of(batch.parameters[0]).device)
        buffer = torch.cat([empty, *(piece.reshape(-1) for piece in pieces)])
        if batch.exchange.is_local:
            return buffer, lambda: None
        into = buffer.new_empty(sum(route.received_sizes))
        sizes = list(route.received_sizes), list(route.sent_sizes)
        work = dist.all_to_all_single(into, buffer, *sizes, group=batch.group, async_op=True)
        return into, partial(_wait, work, buffer)

    def _direction(self, parameter: torch.Tensor, settings: Mapping[str, Any]) -> torch.Tensor:
        """Update this rank's part of the momentum with the gradient; returns it, with Nesterov's look-ahead if set.

        The momentum is a running mean instead of a sum: orthogonalisation ignores the scale.
        """
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        buffer = local_of(state["momentum_buffer"])
        gradient = torch.zeros_like(buffer) if parameter.grad is None else local_of(parameter.grad)
        buffer.lerp_(gradient, 1 - settings["momentum"])
        ahead = gradient.lerp(buffer, settings["momentum"]) if settings["nesterov"] else buffer.clone()
        return ahead.to(self.compute)


def _advance(in_flight: deque[Iterator[None]]) -> None:
    """Advance the oldest batch by one stage and move it to the end of the queue; drop it when it is done."""
    oldest = in_flight.popleft()
    if not next(oldest, True):
        in_flight.append(oldest)


def _wait(work: Any, buffer: torch.Tensor) -> None:
    """Wait for an exchange, up to the timeout of its process group. ``buffer`` has to stay alive until then."""
    work.wait()
    del buffer


def _split(arrived: torch.Tensor, route: Route) -> list[torch.Tensor]:
    """The received pieces in a buffer."""
    flat = torch.split(arrived, [piece.size for piece in route.received])
    return [part.view(piece.shape) for part, piece in zip(flat, route.received, strict=True)]


def _copy(into: list[torch.Tensor], pieces: list[torch.Tensor]) -> None:
    if into:
        torch._foreach_copy_(into, pieces)


def _batches(groups: Sequence[dict[str, Any]], blocks: Mapping[nn.Parameter, Blocks]) -> tuple[_Batch, ...]:
    """All batches, in the same order on every rank."""
    found: list[_Batch] = []
    process_groups: dict[DeviceMesh, dist.ProcessGroup] = {}
    load: dict[DeviceMesh | None, list[int]] = {}
    for number, group in enumerate(groups):
        same_kind: dict[object, list[tuple[torch.Tensor, Layout, Blocks]]] = defaultdict(list)
        for parameter in group["params"] if group["algorithm"] == "muon" else ():
            layout, cut = layout_of("a parameter", parameter), blocks[parameter]
            key = layout.mesh, layout.placements, parameter.dtype, parameter.device, parameter.ndim, cut.shape
            same_kind[key].append((parameter, layout, cut))
        for members in same_kind.values():
            mesh = members[0][1].mesh
            if mesh is not None and mesh not in process_groups:
                process_groups[mesh] = group_of(mesh)
            rank = dist.get_rank(process_groups[mesh]) if mesh is not None else 0
            work = load.setdefault(mesh, [0] * len(members[0][1].boxes))
            plans = [(layout, cut) for _, layout, cut in members]
            for chosen in batches(plans, [parameter.numel() for parameter, *_ in members], BATCH_ELEMENTS):
                found.append(
                    _Batch(
                        parameters=tuple(members[n][0] for n in chosen),
                        shape=members[0][2].shape,
                        exchange=plan_exchange([plans[n] for n in chosen], rank, work),
                        group=process_groups[mesh] if mesh is not None else None,
                        settings=number,
                    )
                )
    return tuple(found)


def _adamw(group: Mapping[str, Any], states: Mapping[torch.Tensor, dict[str, Any]]) -> None:
    """One AdamW step with torch's implementation, separately for each mesh."""
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


COEFFICIENTS = (3.4445, -4.775, 2.0315)
"""Coefficients a, b, c of the Newton-Schulz iteration."""
EPS = 1e-7
"""Lower limit of the norm that a matrix is divided by, so that the zero matrix stays zero."""


def orthogonalise(matrices: torch.Tensor, *, steps: int = 5) -> torch.Tensor:
    """Move the singular values of each matrix (count, rows, columns) near 1, by ``steps`` Newton-Schulz iterations.

    ``X = M / ‖M‖`` (transposed if it has more rows than columns), then repeatedly ``A = X Xᵀ``,
    ``X = aX + (bA + cA²) X``. Computes in the number format of ``matrices``.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.size(1) > matrices.size(2)
    x = matrices.mT if tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=EPS)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
