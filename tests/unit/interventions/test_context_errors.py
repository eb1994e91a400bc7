"""Errors of `intervene` name what was given and what would be right."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from module_hooks import hook_count
from networks import NestedNet
from torch import nn

from fmapboard import ConfigurationError, LayerNotFound, NoConvolution, add, intervene, silence

X = torch.ones(2, 3, 8, 8)


def test_an_unknown_layer_is_refused_with_the_closest_name() -> None:
    with pytest.raises(
        LayerNotFound, match=r"no layer matches 'inner\.0\.2' among 8; closest: inn"
    ):
        intervene(NestedNet(), {"inner.0.2": silence()})
    with pytest.raises(NoConvolution, match="no layer is a Conv2d"):
        intervene(nn.Sequential(nn.ReLU()), {nn.Conv2d: silence()})


@pytest.mark.parametrize(
    ("outputs", "inputs", "said"),
    [
        ({"stem": silence([3, 17])}, None, "silence([3, 17]) of 'stem': no channel 17: there are 8 "
         "channels, 0…7 (outputs of Conv2d)"),
        (None, {"stem": silence(3)}, "silence([3]) of 'stem': no channel 3: there are 3 channels, "
         "0…2 (inputs of Conv2d)"),
        ({"head": silence(4)}, None, "0…3 (outputs of Linear)"),
        (None, {"head": silence(16)}, "0…15 (inputs of Linear)"),
        ({"inner.0.1": silence(16)}, None, "0…15 (outputs of BatchNorm2d)"),
    ],
)  # fmt: skip
def test_a_channel_that_a_layer_does_not_have_is_refused_at_once(
    outputs: Any, inputs: Any, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        intervene(NestedNet(), outputs, inputs=inputs)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"relu": silence(8)}, "silence([8]) of outputs of 'relu': no channel 8: there are 8 "),
        ({"stem": add(torch.ones(7))}, "add(tensor [7]) of outputs of 'stem': a value of shape ["),
        ({"stem": silence(9, channel_axis=2)}, "there are 8 channels, 0…7 (shape [2, 8, 8, 8], ax"),
        ({"stem": lambda maps: maps[:1]}, "the function for outputs of 'stem' returned shape [1, 8,"
         " 8, 8]: expected a tensor of shape [2, 8, 8, 8], as it received"),
        ({"stem": lambda maps: None}, "the function for outputs of 'stem' returned NoneType: "),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_tensor_is_raised_in_the_forward_pass(
    changes: Any, said: str
) -> None:
    model = NestedNet()
    with pytest.raises(ConfigurationError) as error, intervene(model, changes):
        model(X)
    assert said in str(error.value)
    assert hook_count(model) == 0


def test_a_gradient_that_does_not_fit_is_raised_in_the_backward_pass() -> None:
    model = NestedNet()
    with intervene(model, gradients={"stem": lambda gradient: gradient[:1]}):
        out = model(X).sum()
        with pytest.raises(ConfigurationError, match="the function for gradients of 'stem'"):
            out.backward()


def test_a_layer_without_a_tensor_is_refused() -> None:
    class Nothing(nn.Module):
        def forward(self) -> None:
            return None

    model = Nothing()
    with (
        pytest.raises(ConfigurationError, match="'Nothing' returned no tensor"),
        intervene(model, {"Nothing": silence()}),
    ):
        model()
    with (
        pytest.raises(ConfigurationError, match="'Nothing' receives no tensor"),
        intervene(model, inputs={"Nothing": silence()}),
    ):
        model()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([3, 17], "outputs=list: expected a dict from layers to changes, such as {"),
        (silence(3), "outputs=ChannelChange: expected a dict from layers to changes"),
        ({"stem": [3, 17]}, "outputs['stem']=3: expected silence(...), scale(...), replace(...)"),
        ({"stem": None}, "outputs['stem']=None: expected silence(...)"),
        ({"stem": nn.ReLU}, "outputs['stem']=ReLU: expected silence(...)"),
        ({"!stem": silence()}, "outputs has the key '!stem': expected a layer's name, a glob, a "),
        (
            {3: silence()},
            "outputs has the key 3: expected a layer's name, a glob, a compiled regex",
        ),
    ],
)
def test_other_invalid_changes_are_refused(changes: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        intervene(NestedNet(), changes)


def test_what_is_no_model_and_what_is_scripted_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"expected a torch\.nn\.Module"):
        intervene({"stem": silence()}, {"stem": silence()})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="expected an instance, not the class"):
        intervene(NestedNet, {"stem": silence()})  # type: ignore[arg-type]
