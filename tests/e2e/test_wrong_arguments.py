"""Arguments of a wrong kind are refused at once, with the fix."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from watched_training import Net, hooks, train_step

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.writers.memory import MemoryWriter


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    with caplog.at_level(logging.WARNING, "fmapboard"):
        yield lambda: [record.getMessage() for record in caplog.records]


def optimizer_of(model: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Net, r"model=Net: expected an instance, not the class; pass Net\(...\)"),
        (lambda x: x, "model=<lambda>: expected a torch.nn.Module"),
        (Net().state_dict(), r"model.load_state_dict\(state\)"),
        (optimizer_of(Net()), "model=SGD: .* pass an optimizer as optimizer="),
        ("resnet18", "model='resnet18': expected"),
        (None, "model=None: expected"),
    ],
    ids=["class", "function", "state dict", "optimizer", "name", "None"],
)
def test_what_is_no_model_is_refused_with_the_fix(given: object, text: str) -> None:
    for take in (
        lambda: fmapboard.watch(given, writer=MemoryWriter()),  # type: ignore[arg-type]
        lambda: fmapboard.extract(given, torch.zeros(1, 3, 8, 8)),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigurationError, match=text):
            take()


NET = Net()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"layers": NET.stem}, "layers=Conv2d: expected .*; pass its name: layers='stem'"),
        ({"layers": [NET.head]}, "layers=Linear: expected .*; pass its name: layers='head'"),
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
def test_arguments_of_a_wrong_kind_are_refused_with_the_fix(
    options: dict[str, object], text: str
) -> None:
    with pytest.raises(ConfigurationError, match=text):
        fmapboard.watch(NET, **{"writer": MemoryWriter(), **options})  # type: ignore[arg-type]
    assert hooks(NET) == 0


def test_what_is_no_directory_is_refused_with_the_fix(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as writer:
        for given, text in (
            (writer, "log_dir=SummaryWriter: .*; pass it as writer="),
            (optimizer_of(NET), "log_dir=SGD: .*; pass it as optimizer="),
            (3, "log_dir=int: expected the path of a directory"),
        ):
            with pytest.raises(ConfigurationError, match=text):
                fmapboard.watch(NET, given)  # type: ignore[arg-type]
    for name in ("comment", "filename_suffix"):
        with pytest.raises(ConfigurationError, match=f"{name}=3: expected a string"):
            fmapboard.watch(NET, tmp_path, **{name: 3})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (np.zeros((1, 3, 8, 8)), r"x=ndarray: expected tensors; .* torch.from_numpy\(x\)"),
        ("cat.jpg", "x='cat.jpg': expected tensors; .* the visualize command"),
        (Net(), "x=Net: expected tensors, not a module; pass the model first"),
    ],
    ids=["array", "path", "module"],
)
def test_what_is_no_input_is_refused_with_the_fix(given: object, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        fmapboard.extract(NET, given)


@pytest.mark.parametrize("given", [np.zeros((1, 3, 8, 8)), NET, [1, 2], "maps"], ids=str)
def test_what_is_no_tensor_is_not_drawn(given: object) -> None:
    with pytest.raises(ConfigurationError, match=r"expected a tensor \[N, C, H, W\]"):
        fmapboard.draw(given)  # type: ignore[arg-type]


def test_a_normalization_that_does_not_fit_the_input_is_said(
    said: Callable[[], list[str]],
) -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = optimizer_of(model)
    pair = ([0.5, 0.5], [0.2, 0.2])
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, normalization=pair):
        for _ in range(2):
            train_step(model, optimizer)
    assert said() == [
        "fmapboard: normalization= has a mean and std for 2 channels, but the input has 3; the "
        "input is drawn as the network received it"
    ]
