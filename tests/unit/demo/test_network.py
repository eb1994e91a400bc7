"""The demo network: its layers and its bundled weights."""

from __future__ import annotations

import torch
from torch import nn

from fmapboard.demo.bundled import bundled
from fmapboard.demo.network import CLASSES, DemoNetwork, load_trained
from fmapboard.demo.photographs import Photographs
from fmapboard.demo.training import accuracy


def test_the_network_has_six_convolutions_of_five_kernel_shapes() -> None:
    shapes = {
        name: tuple(module.weight.shape)
        for name, module in DemoNetwork().named_modules()
        if isinstance(module, nn.Conv2d)
    }
    assert shapes == {
        "conv1": (16, 3, 7, 7),
        "conv2": (32, 16, 5, 5),
        "block.conv1": (32, 32, 3, 3),
        "block.conv2": (32, 32, 3, 3),
        "conv3": (64, 32, 3, 3),
        "conv4": (96, 64, 1, 1),
    }


def test_every_rectifier_of_the_network_works_in_place() -> None:
    rectifiers = {
        name: module.inplace
        for name, module in DemoNetwork().named_modules()
        if isinstance(module, nn.ReLU)
    }
    assert rectifiers == dict.fromkeys(
        ["relu1", "relu2", "block.relu1", "block.relu2", "relu3", "relu4"], True
    )


def test_the_network_is_small() -> None:
    assert sum(parameter.numel() for parameter in DemoNetwork().parameters()) == 59480
    assert bundled("demo_network.pt").stat().st_size < 600_000


def test_the_network_takes_images_of_any_size_from_8_px() -> None:
    network = DemoNetwork().eval()
    assert network(torch.zeros(2, 3, 48, 48)).shape == (2, 8)
    assert network(torch.zeros(1, 3, 341, 512)).shape == (1, 8)
    assert network(torch.zeros(1, 3, 8, 8)).shape == (1, 8)


def test_the_first_weights_depend_on_the_seed_alone_and_disturb_no_random_numbers() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = DemoNetwork(seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(6)
    assert torch.equal(DemoNetwork(seed=1).conv1.weight, first.conv1.weight)
    assert not torch.equal(DemoNetwork(seed=2).conv1.weight, first.conv1.weight)


def test_the_bundled_network_classifies_held_out_crops_correctly() -> None:
    images, labels = Photographs.load().validation_crops()
    assert accuracy(load_trained(), images, labels) > 0.95


def test_the_bundled_network_is_in_eval_mode_with_float32_weights() -> None:
    network = load_trained()
    assert not any(module.training for module in network.modules())
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}
    assert network.head.out_features == len(CLASSES)
