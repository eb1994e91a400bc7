"""Preprocessing of the demo network and of models without their own, at any input size."""

from __future__ import annotations

import pytest
import torch
from loaded_model import input_image
from PIL import Image
from torch import nn

from fmapboard.demo import network
from fmapboard.imaging.models import load
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.preprocessing import Preprocessing
from fmapboard.imaging.models.request import ModelRequest

# -- the bundled network -------------------------------------------------------------------------


def test_the_demo_network_gets_images_of_128_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "load_trained", lambda: nn.Conv2d(3, 4, 3))
    loaded = load_model(ModelRequest("demo"))
    assert loaded.preprocessing(input_image()).shape == (3, 128, 128)
    assert loaded.preprocessing.mean == network.MEAN
    assert loaded.preprocessing.source == "the demo network's own"


def test_the_demo_network_can_be_loaded_untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = nn.Conv2d(3, 4, 3)
    nn.init.constant_(trained.weight, 9)
    monkeypatch.setattr(load, "load_trained", lambda: trained)
    assert load_model(ModelRequest("demo")).model.weight.min() == 9
    untrained = load_model(ModelRequest("demo", weights="none")).model
    assert torch.equal(untrained.conv1.weight, network.DemoNetwork().conv1.weight)


# -- preprocessing -------------------------------------------------------------------------------


def test_the_image_can_be_recovered_from_the_input() -> None:
    recipe = Preprocessing.assumed(nn.Conv2d(3, 4, 3))
    red = recipe(Image.new("RGB", (300, 300), (255, 0, 51)))
    back = red[:, 0, 0] * torch.tensor(recipe.std) + torch.tensor(recipe.mean)
    assert back.tolist() == pytest.approx([1, 0, 0.2], abs=1e-6)


def test_another_input_size_crops_the_same_share() -> None:
    recipe = Preprocessing.assumed(nn.Conv2d(3, 4, 3)).with_input_size(112)
    assert (recipe.size, recipe.resize) == ((112, 112), 128)


def test_a_squashed_input_stays_squashed_at_another_size() -> None:
    recipe = Preprocessing((8, 8), (8, 8), (0.0,) * 3, (1.0,) * 3, source="x").with_input_size(5)
    assert (recipe.size, recipe.resize) == ((5, 5), (5, 5))


def test_a_strip_of_one_pixel_does_not_fill_the_memory() -> None:
    recipe = Preprocessing(None, 10, (0.0,) * 3, (1.0,) * 3, source="x")
    assert recipe(Image.new("RGB", (1, 3000))).shape == (3, 200, 10)
    strip = Image.new("RGB", (100, 1), "black")
    strip.paste("white", (40, 0, 60, 1))
    assert recipe(strip).unique().tolist() == [1]


def test_lazy_convolutions_are_assumed_to_take_colour_images() -> None:
    assert Preprocessing.assumed(nn.LazyConv2d(4, 3)).channels == 3


def test_a_model_without_convolutions_gets_colour_images() -> None:
    assert Preprocessing.assumed(nn.Linear(2, 2)).channels == 3
