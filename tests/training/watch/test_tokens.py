"""Tokens of a vision transformer in a real training: a series of colours per layer, and norms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from simulated_device import move, moved, simulated_device
from torch import Tensor, nn

import fmapboard
from fmapboard.model.layers import WatchedLayers
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


class Small(nn.Module):
    """Patches of 8×8 px, a class token, and two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 16, 8, stride=8)
        self.cls = nn.Parameter(torch.zeros(1, 1, 16))
        block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        self.blocks = nn.TransformerEncoder(block, 2)
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embed(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), tokens], 1)
        return self.head(self.blocks(tokens)[:, 0])  # type: ignore[no-any-return]


IMAGES = torch.rand(3, 3, 24, 40, generator=torch.Generator().manual_seed(0))


def train(model: nn.Module, steps: int = 2, lr: float = 0.1, **options: Any) -> list[LoggedStep]:
    kept = MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr)
    with fmapboard.watch(model, writer=kept, every=1, **options) as board:
        for number in range(steps):
            with board.step(number):
                model(IMAGES + number).square().sum().backward()
                optimizer.step()
                optimizer.zero_grad()
    return kept.steps


def colours(step: LoggedStep) -> dict[str, Any]:
    return {p.tag: p.samples[0].pixels for p in step.pictures if p.kind == "tokens_as_colours"}


def test_each_block_and_its_attention_have_a_picture_with_one_pixel_per_patch() -> None:
    torch.manual_seed(0)
    for step in train(Small()):
        found = colours(step)
        assert sorted(found) == [
            "tokens_as_colours_Attention 2×8/blocks.layers.0.self_attn",
            "tokens_as_colours_Attention 2×8/blocks.layers.1.self_attn",
            "tokens_as_colours_Block 16/blocks.layers.0",
            "tokens_as_colours_Block 16/blocks.layers.1",
        ]
        assert {pixels.shape for pixels in found.values()} == {(3, 5, 3)}


def test_the_images_of_probe_are_the_ones_that_are_coloured() -> None:
    torch.manual_seed(0)
    first, second = map(colours, train(Small(), lr=0.0, probe=IMAGES[1:2]))
    assert len(first) == 4
    for tag, pixels in first.items():  # the training batch is another one in each step
        assert np.array_equal(pixels, second[tag]), tag


def test_norms_are_those_of_the_tokens_of_the_batch() -> None:
    torch.manual_seed(0)
    model = Small()
    names = ["blocks.layers.1", "blocks.layers.1.self_attn", "blocks.layers.1.linear2"]
    true = fmapboard.extract(model, IMAGES, layers=names)
    block, attention, mlp = true[names[0]], true[names[1]][0], true[names[2]]
    norms = block.norm(dim=-1)
    (step,) = train(model, steps=1)
    expected = {
        "token_norm_max/blocks.layers.1": norms.max().item(),
        "token_norm_median/blocks.layers.1": norms.median().item(),
        "branch_share/blocks.layers.1.self_attn": (attention.norm() / block.norm()).item(),
        "branch_share/blocks.layers.1.linear2": (mlp.norm() / block.norm()).item(),
    }
    found = {tag: step.scalars[tag] for tag in expected}
    assert found == pytest.approx(expected, rel=1e-4)
    assert "token_norm_max/blocks.layers.1.linear2" not in step.scalars
    assert "blocks.layers.1.linear2" not in {
        p.layer_call.label for p in step.pictures if p.layer_call
    }


def test_an_mlp_has_no_share_without_its_block_and_is_drawn_where_it_is_chosen() -> None:
    model = Small()
    name = "blocks.layers.1.linear2"
    also = {name: model.get_submodule(name)}
    assert WatchedLayers(model, "embed", also=also).numbers_only == {}
    assert WatchedLayers(model, "blocks.layers.1", also=also).numbers_only == also
    (step,) = train(Small(), steps=1, layers=["blocks.layers.1", name])
    (chosen,) = (m for m in step.statistics if m.layer_call.label == name)
    assert chosen.statistics is not None
    assert chosen.statistics.minimum.shape == (16,)


def test_without_pictures_there_are_no_colours() -> None:
    torch.manual_seed(0)
    (step,) = train(Small(), steps=1, max_bytes_per_step=1)
    assert colours(step) == {}
    assert "token_norm_max/blocks.layers.1" in step.scalars


def test_a_convolutional_network_has_neither() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    model(IMAGES)
    (step,) = train(model, steps=1)
    assert colours(step) == {}
    assert not [tag for tag in step.scalars if "token" in tag or "branch" in tag]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mlp(x)  # type: ignore[no-any-return]


class Mixing(nn.Module):
    """Patches and two blocks without attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 16, 8, stride=8)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.blocks(self.embed(x).flatten(2).transpose(1, 2))
        return self.norm(tokens).mean(1)  # type: ignore[no-any-return]


def logged_on(device: str) -> list[LoggedStep]:
    torch.manual_seed(0)
    model, images, kept = Mixing(), IMAGES, MemoryWriter()
    if device != "cpu":
        move(model, device)
        images = moved(images, device)
    with fmapboard.watch(model, writer=kept, every=1) as board:
        for number in range(2):
            with board.step(number):
                model(images).square().sum().backward()
            board.flush()
    return kept.steps


def test_tokens_of_an_accelerator_are_those_of_the_cpu_and_nothing_waits_for_it() -> None:
    with simulated_device() as machine:
        found = logged_on("cuda")
    assert machine.waits_on("MainThread") == []
    for step, other in zip(found, logged_on("cpu"), strict=True):
        expected = colours(other)
        assert sorted(expected) == [
            "tokens_as_colours_Block 16/blocks.0",
            "tokens_as_colours_Block 16/blocks.1",
        ]
        for tag, pixels in colours(step).items():
            assert abs(pixels.astype(int) - expected[tag]).max() <= 1
        for tag in ("token_norm_max/blocks.1", "token_norm_median/blocks.0"):
            assert step.scalars[tag] == pytest.approx(other.scalars[tag])


def test_training_is_bitwise_the_same() -> None:
    torch.manual_seed(0)
    watched, plain = Small(), Small()
    plain.load_state_dict(watched.state_dict())
    steps = train(watched, steps=3)
    assert len(colours(steps[-1])) == 4
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)
    for number in range(3):
        plain(IMAGES + number).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    for one, other in zip(watched.parameters(), plain.parameters(), strict=True):
        assert torch.equal(one, other)
