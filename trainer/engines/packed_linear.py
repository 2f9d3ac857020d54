"""Linear layers of a model on a CPU, with their weights kept in the order in which oneDNN reads them.

Sampling multiplies few rows by each weight, again and again. PyTorch hands such products in 32 bits to MKL, which reads
a weight in its plain order; oneDNN's kernels on packed weights took a third to two thirds of the time for 1 to 64 rows
(docs/lab-notes.md). The packed copy costs the weight's memory a second time.
"""

from __future__ import annotations

import functools

import torch


def pack_linears(model: torch.nn.Module) -> None:
    """Have each linear layer on the CPU use a packed copy of its weight. To be called again when weights change.

    Does nothing where oneDNN is missing. What is changed this way has no gradients.
    """
    if not torch.backends.mkldnn.is_available():
        return
    for module in model.modules():
        if type(module) is torch.nn.Linear and _is_slow(module.weight):
            packed = torch.ops.mkldnn._reorder_linear_weight(module.weight.detach())
            module.forward = functools.partial(_product, packed, module.bias)  # type: ignore[method-assign]


def _is_slow(weight: torch.Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32


def _product(packed: torch.Tensor, bias: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor:
    """``x Wᵀ + b``, ``[..., out]``."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return product
