"""Newton-Schulz iteration: the nearest matrix with orthonormal rows or columns, by matrix products alone.

The quintic iteration and its coefficients are those of Muon (Keller Jordan, 2024): singular values end up between about
0.7 and 1.2, which is as good as 1 for training and takes five rounds in bfloat16.
"""

from __future__ import annotations

import torch

COEFFICIENTS = (3.4445, -4.775, 2.0315)
EPS = 1e-7
"""Least norm that is divided by: the zero matrix stays zero."""


def orthogonalised(matrices: torch.Tensor, *, steps: int = 5) -> torch.Tensor:
    """Each of ``matrices`` (count, rows, columns) with its singular values moved near 1, in the dtype given.

    ``X = M / ‖M‖`` (transposed if it has more rows than columns), then ``steps`` times ``A = X Xᵀ``,
    ``X = aX + (bA + cA²) X``.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.size(1) > matrices.size(2)
    x = matrices.mT if tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=EPS)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
