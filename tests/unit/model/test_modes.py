"""Which networks count as being in eval mode by mistake."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.model.modes import depends_on_mode, eval_modules


class Functional(nn.Module):
    """Calls a function whose result depends on the mode."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(x, 0.5, self.training)


class Checkpointed(nn.Module):
    """Looks at the mode, and computes the same in both."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 0 if self.training else x


def net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten())


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.BatchNorm2d(2), True),
        (nn.SyncBatchNorm(2), True),
        (nn.BatchNorm2d(2, track_running_stats=False), False),
        (nn.InstanceNorm2d(2), False),
        (nn.GroupNorm(1, 2), False),
        (nn.Dropout(0.1), True),
        (nn.Dropout2d(0.1), True),
        (nn.Dropout(0.0), False),
        (nn.RReLU(), True),
        (nn.MultiheadAttention(4, 2, dropout=0.1), True),
        (nn.MultiheadAttention(4, 2), False),
        (nn.TransformerEncoderLayer(4, 2, dropout=0.0), False),
        (nn.Conv2d(3, 4, 3), False),
        (Functional(), True),
        (Checkpointed(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_is_known_which_modules_depend_on_the_mode(module: nn.Module, expected: bool) -> None:
    assert depends_on_mode(module) is expected


def test_a_whole_network_in_eval_mode_names_the_modules_that_differ() -> None:
    assert eval_modules(net()) == ()
    assert eval_modules(net().eval()) == ("1", "2")


def test_some_layers_in_eval_mode_were_put_there_on_purpose() -> None:
    model = net()
    model[1].eval()
    model[2].eval()
    assert eval_modules(model) == ()
    model.eval()
    model[0].train()
    assert eval_modules(model) == ()


def test_a_network_that_computes_the_same_in_both_modes_is_never_named() -> None:
    assert eval_modules(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), Checkpointed()).eval()) == ()


def test_beside_frozen_parameters_only_modules_that_train_count() -> None:
    model = net().eval()
    model[0].requires_grad_(requires_grad=False)
    assert eval_modules(model) == ("1",)
    model[1].requires_grad_(requires_grad=False)
    assert eval_modules(model) == ()


def test_the_mode_of_a_module_without_parameters_does_not_matter() -> None:
    model = nn.Sequential(net().eval(), nn.Identity())
    assert model.training
    assert eval_modules(model) == ("0.1", "0.2")
    assert torch.is_grad_enabled()
