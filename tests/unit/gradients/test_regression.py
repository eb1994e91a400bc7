"""A squared error is read from its value and its gradient, and from those of no other loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from fmapboard.gradients.regression import SquaredError, squared_error
from fmapboard.gradients.rounding import in_float64

Loss = Callable[[Tensor, Tensor], Tensor]
OUTPUT = torch.randn(16, 3, 4, generator=torch.Generator().manual_seed(0))
TARGET = torch.randn(16, 3, 4, generator=torch.Generator().manual_seed(1))


def read(
    loss: Loss, *, scale: float = 1.0, dtype: torch.dtype = torch.float32
) -> SquaredError | None:
    output = (scale * OUTPUT).to(dtype).requires_grad_()
    value = loss(output.float(), TARGET)
    value.backward()
    assert output.grad is not None
    gradient = in_float64(output.grad)
    rounding = torch.finfo(dtype).eps
    return squared_error(in_float64(output.detach()), gradient, value.item(), rounding)


@pytest.mark.parametrize(
    ("loss", "factor"),
    [
        (functional.mse_loss, 1.0),
        (lambda output, target: (output - target).square().sum(), 192.0),
        (lambda output, target: (output - target).square().sum((1, 2)).mean() / 2, 6.0),
        (lambda output, target: functional.smooth_l1_loss(output, target, beta=20.0) * 20, 0.5),
    ],
)
def test_the_targets_of_a_squared_error_are_read(loss: Loss, factor: float) -> None:
    found = read(loss)
    assert found is not None
    assert found.factor == pytest.approx(factor, rel=1e-4)
    assert np.allclose(found.targets, TARGET.numpy(), atol=1e-4)


@pytest.mark.parametrize(
    "loss",
    [
        functional.l1_loss,
        functional.smooth_l1_loss,
        lambda output, target: functional.mse_loss(output, target) + 0.01,
        lambda output, target: 0.9 * functional.mse_loss(output, target),
        lambda output, target: -functional.mse_loss(output, target),
        lambda output, target: functional.mse_loss(output, target).sqrt(),
        lambda output, target: 1 - functional.cosine_similarity(output, target).mean(),
        lambda output, target: output.mean(),
    ],
)
def test_other_losses_are_no_squared_error(loss: Loss) -> None:
    assert read(loss) is None


def test_targets_that_are_lost_in_the_rounding_of_large_outputs_are_not_known() -> None:
    assert read(functional.mse_loss, dtype=torch.bfloat16) is not None
    assert read(functional.mse_loss, scale=1e4, dtype=torch.bfloat16) is None
