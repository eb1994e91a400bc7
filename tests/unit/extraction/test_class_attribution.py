"""Attribution of a class score: LayerCAM in eval mode, exactly as torch.autograd gives it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from attributed_training import batch, reference, residual_network
from torch import Tensor, nn

import fmapboard
from fmapboard.errors import ConfigurationError, LayerNotFound
from fmapboard.extraction.class_attribution import class_attributions


def expected(model: nn.Module, layer: str, classes: list[int], call: int = 1) -> np.ndarray:
    def loss(logits: Tensor, _: Tensor) -> Tensor:
        return -logits[torch.arange(len(classes)), torch.tensor(classes)].sum()

    heat, _ = reference(copy.deepcopy(model).eval(), layer, call=call, loss=loss)
    return np.maximum(heat, 0)


def test_the_maps_are_layercam_of_the_class_in_eval_mode() -> None:
    model = residual_network()
    images, _ = batch()
    found = fmapboard.attribution(model, images, target=[0, 1, 2, 3, 0])
    assert list(found) == ["1", "3.relu.call2"]
    heat = expected(model, "3.relu", [0, 1, 2, 3, 0], call=2)
    np.testing.assert_allclose(found["3.relu.call2"].numpy(), heat, rtol=1e-4, atol=1e-7)


def test_without_a_target_it_is_the_class_with_the_highest_score() -> None:
    model = residual_network()
    images, _ = batch()
    with torch.no_grad():
        classes = copy.deepcopy(model).eval()(images).argmax(1).tolist()
    found = fmapboard.attribution(model, images, layers="1")
    np.testing.assert_allclose(
        found["1"].numpy(), expected(model, "1", classes), rtol=1e-4, atol=1e-7
    )


def test_a_function_of_the_output_may_be_the_target() -> None:
    model = residual_network()
    images, _ = batch()
    one = fmapboard.attribution(model, images, target=lambda logits: logits[:, 2])
    other = fmapboard.attribution(model, images, target=2)
    assert all(torch.equal(one[name], other[name]) for name in other)


@pytest.mark.parametrize("frozen", [False, True])
def test_the_model_is_left_as_it_was_also_with_frozen_parameters(frozen: bool) -> None:
    model = residual_network().train().requires_grad_(not frozen)
    before = copy.deepcopy(model.state_dict())
    images, _ = batch()
    kept = images.clone()
    with torch.inference_mode():
        found = fmapboard.attribution(model, images, target=1)
    assert found["1"].any()
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(images, kept)
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": 7}, "class 7 does not exist: the model has 0…3"),
        ({"target": lambda logits: logits}, r"target returned tensor \[5, 4\]: expected scores"),
        ({"images": torch.rand(2, 7, 16, 12)}, r"expected \[N, 1 or 3, H, W\]"),
    ],
)
def test_an_invalid_argument_is_refused(arguments: dict[str, Any], message: str) -> None:
    images, _ = batch()
    with pytest.raises(ConfigurationError, match=message):
        fmapboard.attribution(residual_network(), **{"images": images, **arguments})


def test_a_model_without_scores_needs_a_function() -> None:
    images, _ = batch()
    with pytest.raises(ConfigurationError, match="pass a function of the output"):
        fmapboard.attribution(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), images)


def test_a_glob_that_matches_nothing_is_refused() -> None:
    images, _ = batch()
    with pytest.raises(LayerNotFound, match="attribution='block"):
        fmapboard.attribution(residual_network(), images, layers="block*")


class Tokens(nn.Module):
    """A vision transformer whose class token alone is read."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        blocks = [nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True)]
        self.blocks = nn.Sequential(*blocks, copy.deepcopy(blocks[0]))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(x), -1, -1), tokens], 1)
        found: Tensor = self.head(self.norm(self.blocks(tokens))[:, 0])
        return found


def test_behind_the_last_attention_the_patches_have_no_gradient_and_a_glob_names_a_layer() -> None:
    model = Tokens()
    images = torch.rand(2, 3, 16, 16)
    (last,) = fmapboard.attribution(model, images, target=0).values()
    assert last.shape == (2, 4, 4)
    assert not last.any()
    found = fmapboard.attribution(model, images, target=0, layers="blocks.0")
    assert list(found) == ["blocks.0"]
    assert found["blocks.0"].any()


class Stages(nn.Module):
    """Tokens of two resolutions, and a norm of [N, H, W, C] behind the second, as in Swin."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.merge = nn.Conv2d(3, 16, 2, 2), nn.Linear(64, 16)
        block = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True)
        self.first, self.second = block, nn.Sequential(*(copy.deepcopy(block) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.first(self.patches(x).flatten(2).transpose(1, 2))  # [N, 64, 16]
        parts = tokens.reshape(-1, 4, 2, 4, 2, 16).transpose(2, 3).reshape(len(x), 16, 64)
        maps = self.second(self.merge(parts)).reshape(-1, 4, 4, 16)
        found: Tensor = self.head(self.norm(maps).square().mean((1, 2)))
        return found


def test_of_tokens_each_resolution_is_shown_and_a_norm_of_maps_behind_them_instead() -> None:
    model, images = Stages(), torch.rand(2, 3, 16, 16)
    found = fmapboard.attribution(model, images, target=0)
    assert {n: tuple(heat.shape) for n, heat in found.items()} == {
        "first": (2, 8, 8),
        "norm": (2, 4, 4),
    }
    assert {one.layer_call.label for one in class_attributions(model, images, 0)} == set(found)


class ChannelsLast(nn.Module):
    """Maps [N, H, W, C] inside, as in Swin."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 6, 2, 2), nn.LayerNorm(6)
        self.wide, self.act, self.head = nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 4)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.norm(self.stem(x).permute(0, 2, 3, 1))
        found: Tensor = self.head(self.act(self.wide(maps)).mean((1, 2)))
        return found


def test_maps_with_the_channels_last_are_read_as_such_behind_an_activation_too() -> None:
    model = ChannelsLast()
    found = fmapboard.attribution(model, torch.rand(2, 3, 16, 12), target=0)
    assert {name: tuple(heat.shape) for name, heat in found.items()} == {"act": (2, 8, 6)}
