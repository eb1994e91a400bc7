"""Corrects the estimated size of an update by the norm of the gradient, which is known exactly.

An update is often nearly a multiple of the gradient. Where the rows that were read hold less or
more than their share of the gradient, they probably hold less or more of the update too. That is
the regression estimator of survey sampling (W. G. Cochran, Sampling Techniques, 3rd edition, 1977,
chapter 7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

_ROUNDING = 1e-3
"""Relative tolerance: norms are summed partly in float32."""

_MOST_ERRORS = 4.0
"""Largest deviation from the expected share, in standard errors, that is corrected. A larger one is
not chance: one unread row may hold nearly all of the gradient (an embedding's padding token), and
an optimizer that normalizes, as Adam does, does not change that row by as much."""


@dataclass(frozen=True, slots=True)
class GradientRows:
    """Rows of gradients on the CPU, at the places where the parameters were read.

    Attributes:
        rows: the rows [..., n] of each gradient, by parameter name.
        shares: fraction of the gradient's values that was read, 0 to 1.
        all: the memory of all rows.
    """

    rows: Mapping[str, Tensor]
    shares: Mapping[str, float]
    all: Tensor

    def norm(self, name: str, change: Tensor, gradient_norm: float) -> float:
        """2-norm of rows [..., n] of an update, corrected by how typical the rows are.

        Args:
            name: name of the parameter, one of those in ``rows``.
            change: the rows of its update.
            gradient_norm: 2-norm of its whole gradient.
        """
        own, gradient = _squares(change), _squares(self.rows[name])
        return math.sqrt(_typical(own, gradient, gradient_norm**2, self.shares[name]))


def _typical(update: Tensor, gradient: Tensor, whole_gradient: float, share: float) -> float:
    """Estimate ``share`` times the sum of squares of a whole update, by regression on the gradient.

    Args:
        update: of each row [R] that was read the sum of its squares, f64.
        gradient: the same of the gradient.
        whole_gradient: sum of the squares of the whole gradient.
        share: fraction of all values that was read, 0 to 1.
    """
    own, read = float(update.sum()), float(gradient.sum())
    around = gradient - gradient.mean()
    variance = float(around.square().sum())
    if not (0 < variance < math.inf) or not read * (1 - _ROUNDING) <= whole_gradient < math.inf:
        return own
    missing = share * whole_gradient - read
    rows = len(gradient)
    if abs(missing) > _MOST_ERRORS * math.sqrt(variance * rows / (rows - 1)):
        return own
    typical = own + missing * float((around * (update - update.mean())).sum()) / variance
    # The whole update is at least as large as that of its rows.
    return max(typical, share * own) if math.isfinite(typical) else own


def _squares(rows: Tensor) -> Tensor:
    """Sum of the squares of each row, [R] f64."""
    norms: Tensor = torch.linalg.vector_norm(rows.flatten(0, -2), dim=1, dtype=torch.float64)
    return norms.square()
