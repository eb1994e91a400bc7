"""`extract` gives the exact inputs and outputs of each layer and leaves the model unchanged."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest
import torch
from extracted_maps import assert_same_maps, random_images, untrained
from model_state import assert_unchanged, state_of
from module_hooks import hook_count
from torch import Tensor, nn

from fmapboard import ConfigurationError, LayerNotFound, extract, extract_gradients


def _record_forwards(model: nn.Module, x: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Outputs and inputs of each Conv2d by wrapping its `forward`, cloned at once; no hooks."""
    outputs: dict[str, Tensor] = {}
    inputs: dict[str, Tensor] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):

            def wrapped(value: Tensor, name: str = name, forward: Any = module.forward) -> Tensor:
                inputs[name] = value.detach().clone()
                out: Tensor = forward(value)
                outputs[name] = out.detach().clone()
                return out

            module.forward = wrapped  # type: ignore[method-assign]
    with torch.no_grad():
        model(x)
    for module in model.modules():
        module.__dict__.pop("forward", None)
    return outputs, inputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "convolutions"),
    [
        ("alexnet", 64, 5),
        ("vgg11", 32, 8),
        ("squeezenet1_1", 64, 26),
        ("resnet18", 64, 20),
        ("mobilenet_v3_small", 64, 52),
        ("densenet121", 64, 120),
        ("googlenet", 64, 57),
    ],
)
def test_outputs_and_inputs_are_bitwise_those_of_each_forward(
    name: str, size: int, convolutions: int
) -> None:
    model, x = untrained(name), random_images(size)
    outputs, inputs = _record_forwards(model, x)
    assert len(outputs) == convolutions
    assert_same_maps(extract(model, x), outputs)
    assert_same_maps(extract(model, x, side="input"), inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "googlenet"])
def test_in_train_mode_the_outputs_are_those_of_a_training_forward(name: str) -> None:
    model, x = untrained(name).train(), random_images()
    twin = copy.deepcopy(model)  # its BatchNorm statistics may move
    torch.manual_seed(5)
    outputs, _ = _record_forwards(twin, x)
    torch.manual_seed(5)
    assert_same_maps(extract(model, x), outputs)


def test_an_inplace_relu_after_a_convolution_does_not_change_its_output() -> None:
    model = untrained("alexnet")
    maps = extract(model, random_images())
    assert all(float(value.min()) < 0.0 for value in maps.values())
    rectified = extract(model, random_images(), layers="features.1")
    assert float(rectified["features.1"].min()) == 0.0


def test_a_second_call_changes_nothing_that_the_first_returned() -> None:
    model = untrained("squeezenet1_1")
    first = extract(model, torch.zeros(1, 3, 64, 64))
    kept = {name: value.clone() for name, value in first.items()}
    second = extract(model, torch.ones(1, 3, 64, 64))
    assert len(first) == len(second) == 26
    assert_same_maps(first, kept)
    assert not torch.equal(first["features.0"], second["features.0"])


def test_a_returned_map_is_a_clone_that_shares_no_memory_with_the_model() -> None:
    same = nn.Identity()
    x = torch.ones(1, 2, 3, 3)
    out = extract(nn.Sequential(same), x, layers=nn.Identity)["0"]
    out.add_(1.0)
    assert torch.equal(x, torch.ones(1, 2, 3, 3))
    assert not out.requires_grad


class _Stateful(nn.Module):
    """BatchNorm, Dropout, a buffer that is replaced, and draws from all random generators."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.frozen = nn.BatchNorm2d(4).eval()
        self.drop = nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.seen = self.seen + 1
        random.random()
        np.random.rand()
        out: Tensor = self.drop(self.frozen(self.norm(self.conv(x))))
        return out.sum()


@pytest.mark.parametrize("what", ["extract", "extract_gradients"])
def test_model_random_numbers_and_gradients_stay_bitwise_the_same(what: str) -> None:
    model = _Stateful()
    model.frozen.train(False)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    x, seen, versions = random_images(8), model.seen, [p._version for p in model.parameters()]
    before = state_of(model)
    if what == "extract":
        extract(model, x)
    else:
        extract_gradients(model, x, loss=lambda out: out)
    assert_unchanged(before, state_of(model))
    assert model.seen is seen
    assert [p._version for p in model.parameters()] == versions
    assert hook_count(model) == 0


def test_extracting_leaves_no_hook_behind_when_the_forward_raises() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(1, 1))
    for run in (extract, lambda m, x: extract_gradients(m, x, loss=Tensor.sum)):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            run(model, random_images(8))
        assert hook_count(model) == 0


def test_weights_cast_by_autocast_inside_do_not_stay_in_the_users_cache() -> None:
    cache: list[bool] = []
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    model.register_forward_hook(lambda *_: cache.append(torch.is_autocast_cache_enabled()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = extract(model, random_images(8))["0"]
        assert torch.is_autocast_cache_enabled()
        model(random_images(8)).sum().backward()
    assert cache == [False, True]
    assert out.dtype == torch.bfloat16
    assert model[0].weight.grad is not None


def test_an_unknown_side_and_an_unknown_layer_are_refused_before_anything_runs() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1))
    with pytest.raises(ConfigurationError, match="side='out': expected 'output', 'input'"):
        extract(model, random_images(4), side="out")  # type: ignore[arg-type]
    with pytest.raises(LayerNotFound, match="no layer matches 'conv1' among 2"):
        extract(model, random_images(4), layers="conv1")


def test_a_lazy_network_is_extracted_as_its_first_forward_pass() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d())
    own = hook_count(model)  # torch's, which wait for the first pass
    maps = extract(model, random_images(8))
    assert maps["0"].shape == (2, 4, 6, 6)
    assert hook_count(model) == own
    assert model[0].has_uninitialized_params()
