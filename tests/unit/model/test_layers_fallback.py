"""Models without convolutions: the layers watched instead, and the messages about it."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import nn

from fmapboard import LayerNotFound, NoConvolution, kernel_groups
from fmapboard.model.layers import select


class LowRank(nn.Module):
    """A parametrization with parameters of its own, which no forward pass calls."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.zeros(4, 1))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight + self.down @ self.down.T


class Attending(nn.Module):
    """Tokens through attention; its parameters are at every level."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.bias = nn.ParameterList([nn.Parameter(torch.zeros(4))])
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)
        self.adapted = nn.Linear(4, 4)
        nn.utils.parametrize.register_parametrization(self.adapted, "weight", LowRank())
        self.act = nn.ReLU()
        self.start = nn.Parameter(torch.zeros(4))


def test_without_convolutions_the_leaf_modules_with_parameters_are_watched() -> None:
    model = nn.Sequential(
        nn.Sequential(nn.Linear(4, 3), nn.ReLU()), nn.BatchNorm1d(3), nn.LSTM(3, 2)
    )
    assert list(select(model)) == ["0.0", "1", "2"]


def test_every_layer_of_the_fallback_is_one_that_a_forward_pass_calls() -> None:
    model, called = Attending(), []
    chosen = select(model)
    for name, module in chosen.items():
        module.register_forward_hook(lambda *_, name=name: called.append(name))
    embedded = model.embed(torch.tensor([[1, 2, 3]]))
    model.act(model.adapted(model.attend(embedded, embedded, embedded)[0]))
    assert list(chosen) == called == ["embed", "attend", "adapted"]


def test_the_fallback_is_logged_once_per_model_at_info_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="fmapboard")
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    for _ in range(2):
        select(model)
    select(nn.Sequential(nn.Conv1d(1, 1, 1), nn.Linear(2, 2)))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "INFO",
            "fmapboard: Sequential has no convolution: watching its leaf layers with parameters "
            "instead (1: Linear); use layers= to select others",
        )
    ]


def test_exclusions_apply_to_the_fallback_too() -> None:
    assert list(select(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), "!0")) == ["1"]


def test_a_model_without_parameters_is_refused_and_its_layer_types_are_listed() -> None:
    said = "no convolution and no other layer with parameters to watch; its modules are ReLU"
    with pytest.raises(NoConvolution, match=said):
        select(nn.Sequential(nn.ReLU(), nn.ReLU()))


class Fourier(nn.Module):
    """A layer whose weights are its own and are used by a function."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.act = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x * self.weight)


def test_without_any_leaf_with_parameters_all_modules_are_watched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="fmapboard")
    model = nn.Sequential(Fourier(), Fourier())
    assert list(select(model)) == list(select(model, "*"))
    assert list(select(model)) == ["Sequential", "0", "0.act", "1", "1.act"]
    assert [record.getMessage() for record in caplog.records] == [
        'fmapboard: Sequential has no convolution: watching all of its modules, as layers="*" '
        "does, instead (5: ReLU); use layers= to select others"
    ]


def test_of_a_keras_model_a_warning_says_that_its_layers_cannot_be_watched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # As in Keras 3.15 on torch: the layers are no submodules, and one dictionary has all variables.
    keras_model = type("Sequential", (nn.Module,), {"__module__": "keras.src.models.sequential"})
    model = keras_model()
    model._torch_params = nn.ParameterDict({"sequential/conv/kernel": torch.ones(3, 3, 3, 8)})
    assert list(select(model)) == ["Sequential"]
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "fmapboard: Sequential is a Keras model, whose layers are no torch.nn.Module: its "
            "input, output, loss and gradients are logged, but no feature maps of its layers",
        )
    ]


def test_selecting_convolutions_of_a_model_without_any_lists_its_layer_types() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    said = "no layer is a Conv2d: the model has no convolution; its modules are Linear, ReLU"
    with pytest.raises(NoConvolution, match=said):
        select(model, nn.Conv2d)
    with pytest.raises(LayerNotFound):  # NoConvolution is a LayerNotFound
        select(model, ["0", nn.ConvTranspose3d])


def test_a_model_without_convolutions_has_no_kernel_groups() -> None:
    assert kernel_groups(nn.Sequential(nn.Linear(2, 2))) == {}
