"""Forward passes of the policy: logits of chosen predictions, log-probabilities, entropies."""

from __future__ import annotations

import importlib.util
import shutil
import sysconfig
from pathlib import Path
from typing import Any, cast

import torch
from torch.utils.checkpoint import checkpoint

from excise.errors import TrainingError
from excise.trainer.objective.row_packing import PackedIds, pack_ids

CHUNK = 1024
"""Number of predictions that are converted to full precision at a time, to save memory."""
MAX_GRAPHS = 32
"""Maximum number of graphs of a layer: with and without gradient, teacher, shared prompts, …; torch stops at 8."""
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}
"""By number format: how much logits may change, relative to their standard deviation, when a sequence that they do
not depend on is replaced. They change a little: experts then process other numbers of tokens and round differently."""
OTHER_TOLERANCE = 2e-2
"""The same for all other number formats."""


def without_dropout(model: torch.nn.Module) -> torch.nn.Module:
    """Disable dropout in place and return the model: noise in its probabilities would look like off-policy data.

    ``eval()`` would also disable dropout, but activation checkpointing too.
    """
    for module in model.modules():
        names = ("p",) if isinstance(module, torch.nn.modules.dropout._DropoutNd) else tuple(vars(module))
        for name in names:
            if (name == "p" or "dropout" in name) and isinstance(getattr(module, name), float):
                setattr(module, name, 0.0)
    return model


def decoder_layers(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The layers of a Hugging Face model's decoder, in order. Raises :class:`TrainingError` if they are elsewhere."""
    try:
        return list(model.get_submodule("model.layers").children())
    except AttributeError:
        raise TrainingError(f"{type(model).__name__} has no model.layers, which sharding and compiling need.") from None


def experts_of(layer: torch.nn.Module) -> torch.nn.Module | None:
    """The module of all experts of a layer, if there is one."""
    found = (module for name, module in layer.named_modules() if name.rpartition(".")[2] == "experts")
    return next((module for module in found if not isinstance(module, torch.nn.ModuleList)), None)


def compile_layers(model: torch.nn.Module, backend: str = "inductor") -> None:
    """Compile a model's layers in place with ``torch.compile``; one compilation serves all layers and row lengths.

    ``backend``: the compiler's name in torch.
    """
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, MAX_GRAPHS)
    for layer in decoder_layers(model):
        layer.compile(dynamic=True, backend=backend)


def can_compile(model: torch.nn.Module, device: torch.device, world_size: int = 1) -> bool:
    """Whether layers compile and it was measured to be faster: one process, a GPU, Triton, a C compiler, no experts.

    Triton compiles a C program that includes ``Python.h``.
    """
    return (
        device.type == "cuda"
        and world_size == 1
        and hasattr(getattr(model, "model", None), "layers")
        and not any(map(experts_of, decoder_layers(model)))
        and importlib.util.find_spec("triton") is not None
        and any(map(shutil.which, ("cc", "gcc", "clang")))
        and (Path(sysconfig.get_path("include")) / "Python.h").is_file()
    )


@torch.no_grad()
def keeps_sequences_apart(model: torch.nn.Module, *, share: bool = False, blocks: bool = False) -> bool:
    """Whether the logits of a packed sequence are independent of the sequences before it; tested with a few tokens.

    They are not for layers that carry state along the row (convolutions, linear attention), nor for models without
    position ids (Bloom). With a process group, every rank has to call this.
    """
    config: Any = getattr(model, "config", None)
    if config is None:
        return False
    size = int(config.get_text_config().vocab_size)
    prompt, last = _test_tokens(3, 5, size), _test_tokens(11, 6, size)
    was_training = model.training
    model.eval()
    found = []
    for seed in (17, 23):
        both = [[*prompt, *_test_tokens(seed, 7, size)], [*prompt, *last]]
        targets = [range(len(prompt), len(ids)) for ids in both]
        packed = pack_ids(both, targets, _device_of(model), share=share, blocks=blocks)
        found.append(full_precision(predicted_logits(model, packed)[-len(last) :]))
    model.train(was_training)
    kind = next(model.parameters()).dtype
    change = (found[0] - found[1]).abs().max() / found[0].std()
    return bool(change <= TOLERANCE.get(kind, OTHER_TOLERANCE))


def _test_tokens(seed: int, number: int, size: int) -> list[int]:
    """Token ids that differ between seeds."""
    return [(seed * (index + 1) + index * index) % size for index in range(number)]


def _device_of(model: torch.nn.Module) -> torch.device:
    return next(model.parameters()).device


def predicted_logits(model: torch.nn.Module, packed: PackedIds) -> torch.Tensor:
    """``[P, V]``: the logits of the row's predictions; the output layer is applied to no other position."""
    mask = {} if packed.mask is None else {"attention_mask": packed.mask}
    answer = model(
        input_ids=packed.ids, position_ids=packed.positions, logits_to_keep=packed.predict, use_cache=False, **mask
    )
    return cast(torch.Tensor, answer.logits)[0]


def token_logprobs(logits: torch.Tensor, targets: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """``[P]``: log-probability of each target, in full precision.

    The logits are converted to float32 in chunks, and again in the backward pass, so that no second copy of ``[P, V]``
    is kept in memory.
    """
    parts = [
        checkpoint(_target_logprobs, part, target, temperature, use_reentrant=False)
        for part, target in zip(logits.split(CHUNK), targets.split(CHUNK), strict=True)
    ]
    return torch.cat(cast(list[torch.Tensor], parts))


def _target_logprobs(logits: torch.Tensor, targets: torch.Tensor, temperature: float) -> torch.Tensor:
    scaled = _scaled_logits(temperature, logits)
    return scaled.gather(-1, targets[:, None])[:, 0] - scaled.logsumexp(-1)


@torch.no_grad()
def entropies(logits: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """``[P]``: entropy of each prediction, in nats."""
    parts = []
    for part in logits.split(CHUNK):
        logprobs = _scaled_logits(temperature, part).log_softmax(-1)
        parts.append(-(logprobs.exp() * logprobs).sum(-1))
    return torch.cat(parts)


def _scaled_logits(temperature: float, logits: torch.Tensor) -> torch.Tensor:
    """Logits over temperature, in full precision, without an unnecessary copy."""
    exact = full_precision(logits)
    return exact if temperature == 1 else exact / temperature


def full_precision(logits: torch.Tensor) -> torch.Tensor:
    """The logits as float32, or float64 if they are that already."""
    return logits if logits.dtype == torch.float64 else logits.float()
