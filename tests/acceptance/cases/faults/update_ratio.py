"""Planted faults that ``update_ratio`` names.

"large_epsilon" still changes weights by up to 4e-6 of their norm per step.
"""

from __future__ import annotations

from data import P
from faults import bare, normed
from loops import Task, seen, sixty
from nets.classifiers import with_norm
from optimizers import by
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import StepLR


def rates_upside_down(model: nn.Module) -> optim.Optimizer:
    """Discriminative rates whose exponent has the wrong sign: 0.01 × 4 per layer to the input."""
    parts = [part for part in (list(layer.parameters()) for layer in model) if part]
    groups = [{"params": p, "lr": 0.01 * 4 ** (len(parts) - n)} for n, p in enumerate(parts)]
    return optim.SGD(groups, momentum=0.9)


def summed(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy that is summed over the batch; the rate was chosen for a mean."""
    return functional.cross_entropy(model(images), labels, reduction="sum")


def each_step_a_tenth(optimizer: optim.Optimizer, steps: int) -> StepLR:
    """A schedule meant for epochs that is stepped after each batch."""
    return StepLR(optimizer, 3, 0.1)


def sgd(rate: float, **options: float) -> object:
    return by(optim.SGD, lr=rate, **({"momentum": 0.9} | options))


CASES = seen(
    "2026-11-23T07:48",
    normed(
        rate_100=sixty("SGD, rate 2", sgd(2.0)),
        rate_adam=sixty("Adam 0.1, BatchNorm", by(optim.Adam, lr=0.1)),
    ),
    bare(rate_tiny=sixty("Adam 1e-7", by(optim.Adam, lr=1e-7))),
    expected="update_ratio",
)
CASES += seen(
    "2026-11-23T07:48",
    bare(decay=sixty("SGD, decay 10", by(optim.SGD, lr=0.02, weight_decay=10.0))),
    expected="update_ratio,unchanged_weights,dead,vanishing",
)
CASES += seen(
    "2026-11-23T08:43",
    normed(upside_down=sixty("rates grow to the input", rates_upside_down)),
    bare(large_epsilon=sixty("Adam 1e-4, eps 1", by(optim.Adam, lr=1e-4, eps=1.0))),
    expected="update_ratio",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("encoder CNN", with_norm, P, summed).cases(
        summed_error=sixty("cross-entropy summed over 64 examples", sgd(0.05), batch=64)
    ),
    expected="update_ratio",
)
CASES += seen(
    "2026-11-23T10:59",
    bare(tenth_per_step=sixty("StepLR stepped per batch", schedule=each_step_a_tenth)),
    expected="update_ratio,unchanged_weights",
)
