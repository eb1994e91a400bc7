"""A mixture of experts: what its router has chosen is measured and drawn."""

from __future__ import annotations

import math

import pytest
import torch
from logged_step import log_pass, measurement
from torch import Tensor, nn

import fmapboard
from fmapboard.writers.folder import MemoryWriter


class Mixture(nn.Module):
    """Four experts of which one is chosen; the second and the fourth never are."""

    def __init__(self) -> None:
        super().__init__()
        self.top_k = 1
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(4)
        )
        with torch.no_grad():
            self.gate.weight.zero_()
            self.gate.weight[0, 0] = 1.0
            self.gate.weight[2, 0] = -1.0
            self.gate.bias.copy_(torch.tensor([0.0, -9.0, 0.0, -9.0]))

    def forward(self, x: Tensor) -> Tensor:
        weights = self.gate(x).softmax(-1)
        return sum(weights[..., k : k + 1] * expert(x) for k, expert in enumerate(self.experts))


class Attention(nn.MultiheadAttention):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x, x, x, need_weights=False)[0]


class Mixed(nn.Module):
    """A block whose attention leaves the tokens as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention(8, 2, batch_first=True)
        self.mixture = Mixture()

    def forward(self, x: Tensor) -> Tensor:
        return self.mixture(x + 0 * self.attention(x))


def tokens() -> Tensor:
    x = torch.rand(2, 6, 8) + 0.1
    x[:, 4:, 0] *= -1  # two of six tokens
    return x


def test_the_share_of_tokens_of_each_expert_is_measured() -> None:
    step = log_pass(nn.Sequential(nn.Sequential(Mixed())), tokens())
    numbers = measurement(step, "0.0.mixture.gate").statistics

    assert numbers is not None
    assert numbers.mean.tolist() == pytest.approx([4 / 6, 0, 2 / 6, 0])
    assert numbers.dead is not None
    assert numbers.dead.tolist() == [False, True, False, True]


def test_the_picture_shows_which_token_went_to_which_expert() -> None:
    step = log_pass(nn.Sequential(nn.Sequential(Mixed())), tokens())
    (picture,) = [p for p in step.pictures if p.tag.endswith("/0.0.mixture.gate")]

    assert picture.tag == "feature_maps_Experts 4, top 1/0.0.mixture.gate"


def test_the_balance_of_the_experts_is_logged() -> None:
    model = nn.Sequential(nn.Sequential(Mixed()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    writer = MemoryWriter()
    with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1):
        model(tokens()).square().mean().backward()
        optimizer.step()

    (step,) = writer.steps
    entropy = -(4 / 6 * math.log(4 / 6) + 2 / 6 * math.log(2 / 6)) / math.log(4)
    assert step.scalars["expert_balance/0.0.mixture.gate"] == pytest.approx(entropy)
    assert step.scalars["dead_channels/0.0.mixture.gate"] == 0.5


class Hidden(nn.Module):
    """A gate of two layers, in no block, and nothing that says how many experts it chooses."""

    def __init__(self) -> None:
        super().__init__()
        mixture = Mixture()
        self.choose = nn.Sequential(nn.Identity(), mixture.gate)
        self.experts = mixture.experts

    def forward(self, x: Tensor) -> Tensor:
        weights = self.choose(x).softmax(-1)
        return sum(weights[..., k : k + 1] * expert(x) for k, expert in enumerate(self.experts))


@pytest.mark.parametrize("probe", [None, tokens()])
def test_a_router_that_the_user_names_is_measured_and_drawn_as_one(probe: Tensor | None) -> None:
    step = log_pass(Hidden(), tokens(), routers={"choose": 1}, layers="experts.*", probe=probe)
    router = measurement(step, "choose")

    assert router.statistics is not None
    assert router.statistics.mean.tolist() == pytest.approx([4 / 6, 0, 2 / 6, 0])
    assert router.layer_call.unit == "expert"
    assert router.planes is not None
    assert (router.planes.lo.min(), router.planes.hi.max()) == (0.0, 1.0)  # not scores
    assert "feature_maps_Experts 4, top 1/choose" in {p.tag for p in step.pictures}
