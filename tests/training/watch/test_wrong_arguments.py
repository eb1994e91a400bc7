"""Arguments of a wrong type are refused at once, with the fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from module_hooks import hook_count
from networks import NestedNet
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from watched_training import sgd, train_step

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.writers.folder import MemoryWriter


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: NestedNet,
            r"model=NestedNet: expected an instance, not the class; pass NestedNet\(...\)",
        ),
        (lambda: lambda x: x, "model=<lambda>: expected a torch.nn.Module"),
        (lambda: NestedNet().state_dict(), r"model.load_state_dict\(state\)"),
        (lambda: sgd(NestedNet()), "model=SGD: .* pass an optimizer as optimizer="),
        (lambda: "resnet18", "model='resnet18': expected"),
        (lambda: None, "model=None: expected"),
    ],
    ids=["class", "function", "state dict", "optimizer", "name", "None"],
)
def test_anything_but_a_model_is_refused_with_a_fix(make: Callable[[], object], text: str) -> None:
    given = make()
    for take in (
        lambda: fmapboard.watch(given, writer=MemoryWriter()),  # type: ignore[arg-type]
        lambda: fmapboard.extract(given, torch.zeros(1, 3, 8, 8)),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigurationError, match=text):
            take()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"layers": nn.ReLU()}, "layers=ReLU: .* not a module; this one is not part"),
        ({"probe": [torch.zeros(3, 12, 12)] * 2}, r"probe=list: .*torch.stack\(images\)"),
        ({"normalization": 0.5}, r"normalization=0.5: expected \(mean, std\)"),
        ({"normalization": ([0.5], [0.0])}, "std above 0"),
        ({"normalization": ([0.5], [float("nan")])}, "std above 0"),
        ({"inputs": torch.zeros(2, 3)}, "inputs=Tensor: expected True or False"),
        ({"activation_gradients": 3}, "activation_gradients=int: expected True or False"),
        ({"kernels": "all"}, "kernels='all': expected True, False, or a number"),
        ({"kernels": -1}, "kernels=-1"),
        ({"samples": None}, "samples=None: expected a whole number"),
        ({"samples": True}, "samples=True: expected a whole number"),
        ({"name": 3}, "name=3: expected a non-empty string"),
        ({"colormap": None}, "no palette None"),
        ({"scaler": 1.0}, "scaler=float: expected a torch.amp.GradScaler"),
        ({"start_step": 2.5}, "start_step=2.5: expected the number of completed optimizer steps"),
        ({"every": "10"}, "every='10': expected a whole number of steps"),
        ({"writer": "runs/x"}, "writer='runs/x': pass a directory as log_dir="),
        ({"writer": MemoryWriter}, r"writer=MemoryWriter: .* not the class; pass MemoryWriter"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_invalid_arguments_are_refused_with_a_fix(options: dict[str, object], text: str) -> None:
    model = NestedNet()
    with pytest.raises(ConfigurationError, match=text):
        fmapboard.watch(model, **{"writer": MemoryWriter(), **options})  # type: ignore[arg-type]
    assert hook_count(model) == 0


@pytest.mark.parametrize(
    ("layers_of", "text"),
    [
        (lambda net: net.stem, "layers=Conv2d: expected .*; pass its name: layers='stem'"),
        (lambda net: [net.head], "layers=Linear: expected .*; pass its name: layers='head'"),
    ],
    ids=["module", "list of modules"],
)
def test_a_module_in_place_of_a_layer_name_is_refused_with_that_name(
    layers_of: Callable[[NestedNet], object], text: str
) -> None:
    model = NestedNet()
    with pytest.raises(ConfigurationError, match=text):
        fmapboard.watch(model, writer=MemoryWriter(), layers=layers_of(model))  # type: ignore[arg-type]
    assert hook_count(model) == 0


def test_anything_but_a_directory_is_refused_with_a_fix(tmp_path: Path) -> None:
    model = NestedNet()
    with SummaryWriter(str(tmp_path)) as writer:
        for given, text in (
            (writer, "log_dir=SummaryWriter: .*; pass it as writer="),
            (sgd(model), "log_dir=SGD: .*; pass it as optimizer="),
            (3, "log_dir=int: expected the path of a directory"),
        ):
            with pytest.raises(ConfigurationError, match=text):
                fmapboard.watch(model, given)  # type: ignore[arg-type]
    for name in ("comment", "filename_suffix"):
        with pytest.raises(ConfigurationError, match=f"{name}=3: expected a string"):
            fmapboard.watch(model, tmp_path, **{name: 3})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: np.zeros((1, 3, 8, 8)), r"x=ndarray: expected tensors; .* torch.from_numpy\(x\)"),
        (lambda: "cat.jpg", "x='cat.jpg': expected tensors; .* the visualize command"),
        (NestedNet, "x=NestedNet: expected tensors, not a module; pass the model first"),
    ],
    ids=["array", "path", "module"],
)
def test_anything_but_an_input_is_refused_with_a_fix(make: Callable[[], object], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        fmapboard.extract(NestedNet(), make())


@pytest.mark.parametrize(
    "make",
    [lambda: np.zeros((1, 3, 8, 8)), NestedNet, lambda: [1, 2], lambda: "maps"],
    ids=["array", "module", "list", "string"],
)
def test_draw_refuses_anything_but_a_tensor(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError, match=r"expected a tensor \[N, C, H, W\]"):
        fmapboard.draw(make())  # type: ignore[arg-type]


def test_a_normalization_that_does_not_fit_the_input_is_reported_once(
    said: Callable[[], list[str]],
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = sgd(model)
    pair = ([0.5, 0.5], [0.2, 0.2])
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, normalization=pair):
        for _ in range(2):
            train_step(model, optimizer)
    assert said() == [
        "fmapboard: normalization= has a mean and std for 2 channels, but the input has 3; the "
        "input is drawn as the network received it. Give one mean and one std per channel"
    ]
