"""Where a network that does not learn makes its inputs alike is said, and of others nothing is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import fmapboard
from fmapboard.formats.checks import LostSpread
from fmapboard.health.read_runs import read_runs

Operation = Callable[[Tensor], Tensor]


class Network(nn.Module):
    """Four convolutions and a head, with an operation between the second one and the third."""

    def __init__(self, between: Operation, norm: Callable[[int], nn.Module] = nn.Identity) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), norm(8), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1), norm(8), nn.ReLU())
        self.third = nn.Sequential(nn.Conv2d(8, 8, 3, 2, 1), norm(8), nn.ReLU())
        self.fourth = nn.Sequential(nn.Conv2d(8, 8, 3, 2, 1), norm(8), nn.ReLU())
        self.head = nn.Linear(8, 4)
        self.between = between

    def forward(self, images: Tensor) -> Tensor:
        x = self.between(self.second(self.first(images)))
        return self.head(self.fourth(self.third(x)).mean((2, 3)))


def lost_by(network: nn.Module, run: Path) -> LostSpread | None:
    """What is stored of a training over twelve steps, in which brightness tells the label."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(network.parameters(), 0.01)
    with fmapboard.watch(network, run, optimizer=optimizer, every=2):
        for _ in range(12):
            labels = torch.randint(4, (16,))
            images = torch.randn(16, 3, 32, 32) + labels[:, None, None, None] - 1.5
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images), labels).backward()
            optimizer.step()
    (read,) = read_runs(run)
    seen = read.stored[""].seen
    assert seen is not None
    return seen.lost_spread


def softmax_over_places(maps: Tensor) -> Tensor:
    return maps.flatten(2).softmax(2).view(maps.shape)


@pytest.mark.parametrize(
    "between",
    [
        lambda x: torch.tanh(x + 50),
        lambda x: x * 1e-4,
        lambda x: x.mean(0, keepdim=True).expand_as(x),
        softmax_over_places,
    ],
    ids=["saturated", "too small", "mean over the batch", "softmax"],
)
def test_the_layers_around_an_operation_that_makes_inputs_alike_are_named(
    between: Operation, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    lost = lost_by(Network(between), tmp_path)
    assert lost is not None
    assert (lost.last, lost.first) == ("second.0", "third.0")
    assert lost.before > 0.2 > 0.006 > lost.behind


def test_a_frozen_layer_of_zeros_is_named(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = Network(nn.Identity())
    weight = network.get_parameter("third.0.weight").requires_grad_(False)
    nn.init.zeros_(weight)
    lost = lost_by(network, tmp_path)
    assert lost is not None
    assert (lost.last, lost.first, lost.behind) == ("second.0", "third.0", 0.0)


@pytest.mark.parametrize("norm", [nn.Identity, nn.BatchNorm2d, nn.InstanceNorm2d])
@pytest.mark.parametrize(
    "between",
    [nn.Identity(), nn.ReLU(), lambda x: x.detach(), nn.Dropout(0.5)],
    ids=["nothing", "ReLU", "detach", "Dropout"],
)
def test_of_networks_that_pass_their_inputs_on_nothing_is_said(
    between: Operation, norm: Callable[[int], nn.Module], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    assert lost_by(Network(between, norm), tmp_path) is None
