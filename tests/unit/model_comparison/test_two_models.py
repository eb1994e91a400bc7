"""The first layer in which two models differ: parameters, buffers, modes, dtypes, numbers."""

from __future__ import annotations

import copy
import json
import math

import pytest
import torch
from model_state import assert_unchanged, state_of
from torch import Tensor, nn

import fmapboard
from fmapboard import ConfigurationError


class Block(nn.Module):
    """A residual block whose ReLUs work in place and are one module."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x
        result: Tensor = self.relu(out)
        return result


def network() -> nn.Module:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), Block(8), Block(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(8, 5),
    )  # fmt: skip
    for name, buffer in net.named_buffers():
        if "running_var" in name:
            buffer.uniform_(0.5, 2.0)
    return net.eval()


IMAGES = torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(1))


def first(changed: nn.Module, original: nn.Module | None = None) -> str | None:
    torch.manual_seed(0)
    return fmapboard.diff(original or network(), changed, IMAGES).first


def fresh() -> nn.Module:
    torch.manual_seed(0)
    return network()


def test_a_copy_does_not_differ_and_adds_exactly_nothing() -> None:
    net = fresh()
    found = fmapboard.diff(net, copy.deepcopy(net), IMAGES)
    assert found.first is None
    assert not found
    assert {row.added for row in found.layers} == {0.0}
    assert [row.name for row in found.layers[:4]] == ["0", "1.conv1", "1.bn1", "1.relu"]
    assert found.layers[6].name == "1.relu.call2"


@pytest.mark.parametrize("layer", ["0", "1.conv1", "2.conv2", "6"])
def test_a_changed_weight_is_found_at_its_layer(layer: str) -> None:
    net = fresh()
    other = copy.deepcopy(net)
    other.get_submodule(layer).weight.data[0] *= 1.001
    found = fmapboard.diff(net, other, IMAGES)
    assert found.first == layer
    assert [row.name for row in found.different] == [layer]
    (row,) = found.different
    assert "relative error of weight " in row.note


def test_the_note_lists_the_options_that_differ() -> None:
    net = fresh()
    other = copy.deepcopy(net)
    other[1].bn1.eps = 0.1
    found = fmapboard.diff(net, other, IMAGES)
    assert found.summary == "first difference: `1.bn1` (eps=1e-05 in A, eps=0.1 in B)"
    other = copy.deepcopy(net)
    other[0] = nn.Conv2d(3, 8, (3, 1), padding=(0, 1))
    (row, *_) = fmapboard.diff(net, other, IMAGES).different
    assert row.note.startswith(
        "kernel_size=(3, 3) in A, kernel_size=(3, 1), padding=(0, 1) in B; eval mode in A, train"
    )


def test_only_the_layer_itself_adds_the_error_that_later_layers_pass_on() -> None:
    net = fresh()
    other = copy.deepcopy(net)
    other[1].bn1.running_mean += 0.5
    found = {row.name: row for row in fmapboard.diff(net, other, IMAGES).layers}
    assert found["1.bn1"].error_in == 0.0
    assert found["1.bn1"].error_out == found["1.bn1"].added > 0.01
    assert found["1.conv2"].error_in > 0.01
    assert found["1.conv2"].added == 0.0


def test_eval_and_train_mode_differ() -> None:
    net = fresh()
    other = copy.deepcopy(net)
    other[5].train()
    found = fmapboard.diff(net, other, IMAGES)
    assert found.first == "5"
    assert "eval mode in A, train mode in B" in found.summary


def test_both_models_in_train_mode_draw_the_same_random_numbers() -> None:
    net = fresh().train()
    assert fmapboard.diff(net, copy.deepcopy(net), IMAGES).first is None


def test_a_model_that_draws_more_random_numbers_differs_only_where_it_does() -> None:
    net = nn.Sequential(nn.Dropout(0.0), nn.Conv2d(3, 4, 3), nn.Dropout(0.5), nn.Conv2d(4, 4, 3))
    other = copy.deepcopy(net)
    other[0].p = 0.3
    found = fmapboard.diff(net.train(), other.train(), IMAGES)
    assert [row.name for row in found.different] == ["0"]


def test_functional_dropout_after_such_a_layer_draws_the_same_numbers() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.conv = nn.Dropout(0.0), nn.Conv2d(3, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.conv(nn.functional.dropout(self.drop(x), 0.5))
            return result

    net = Net()
    other = copy.deepcopy(net)
    other.drop.p = 0.3
    found = fmapboard.diff(net, other, IMAGES)
    assert [row.name for row in found.different] == ["drop"]


def test_one_layer_in_another_dtype_is_found() -> None:
    class Half(nn.Conv2d):
        def forward(self, x: Tensor) -> Tensor:
            weight = self.weight.bfloat16()
            return nn.functional.conv2d(x.bfloat16(), weight, padding=1).float()

    net = fresh()
    other = copy.deepcopy(net)
    other[1].conv1.__class__ = Half
    assert first(other, net) == "1.conv1"


def test_a_whole_model_in_bfloat16_differs_only_where_more_than_rounding_does() -> None:
    net = fresh()
    half = copy.deepcopy(net).bfloat16()
    equal = fmapboard.diff(net, half, IMAGES)
    assert equal.first is None
    assert equal.dtypes == ("float32", "bfloat16")
    assert equal.tolerance == 4e-3
    assert {row.added for row in equal.layers} == {0.0}
    assert max(row.error_out for row in equal.layers) > 1e-3
    half[2].bn1.weight.data *= 1.1
    assert fmapboard.diff(net, half, IMAGES).first == "2.bn1"
    assert fmapboard.diff(half, net, IMAGES).first == "2.bn1"


def test_nan_in_one_model_is_a_difference_and_nan_in_both_is_reported() -> None:
    net = fresh()
    other = copy.deepcopy(net)
    other[1].conv2.weight.data[0] = math.nan
    found = fmapboard.diff(net, other, IMAGES)
    assert found.first == "1.conv2"
    assert found.different[0].added == math.inf
    assert "NaN or infinite values: 0 in A, 200 in B" in found.summary
    assert json.loads(json.dumps(found.as_json()))["layers"][4]["added"] is None
    both = fmapboard.diff(other, copy.deepcopy(other), IMAGES)
    assert both.first is None
    assert both.layers[4].nonfinite == (200, 200)
    assert "NaN or infinite values first in `1.conv2`" in both.summary


def test_a_layer_of_another_shape_is_found() -> None:
    net = fresh()
    other = copy.deepcopy(net)
    other[6] = nn.Linear(8, 4)
    found = fmapboard.diff(net, other, IMAGES)
    assert found.first == "6"
    assert "shape [2, 5] in A, [2, 4] in B" in found.summary


def test_layers_behind_one_of_another_width_are_not_compared() -> None:
    def net(width: int) -> nn.Sequential:
        torch.manual_seed(0)
        middle = nn.Conv2d(width, width, 3)
        return nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), middle, nn.Conv2d(width, 2, 3))

    found = fmapboard.diff(net(4), net(6), IMAGES)
    assert [row.name for row in found.layers] == ["0", "1", "2", "3"]  # none between layers
    assert found.layers[0].note.startswith(
        "Conv2d(3, 4) in A, Conv2d(3, 6) in B; output shape [2, 4, "
    )
    for row in found.layers[1:3]:
        assert (row.added, row.note) == (None, "not compared: its input has another shape in B")
        assert row.error_in == row.error_out == math.inf
    assert found.layers[3].note.startswith(
        "Conv2d(4, 2) in A, Conv2d(6, 2) in B; relative error of"
    )
    assert [row.name for row in found.different] == ["0", "3"]
    assert found.summary.endswith("; 1 more differs")


def test_a_tolerance_decides_what_differs() -> None:
    net = fresh()
    other = copy.deepcopy(net)
    other[6].weight.data *= 1.001
    assert fmapboard.diff(net, other, IMAGES, tolerance=0.01).first is None
    assert fmapboard.diff(net, other, IMAGES, tolerance=0.0).first == "6"
    with pytest.raises(ConfigurationError, match=r"tolerance=-1: expected a number of at least 0"):
        fmapboard.diff(net, other, IMAGES, tolerance=-1)


def test_models_images_and_random_states_are_left_as_they_were() -> None:
    net = nn.Sequential(nn.ReLU(inplace=True), *fresh()).train()
    other = copy.deepcopy(net)
    other[7].weight.data *= 2
    images = IMAGES.clone()
    before = state_of(net) + state_of(other)
    fmapboard.diff(net, other, images)
    assert_unchanged(before, state_of(net) + state_of(other))
    assert torch.equal(images, IMAGES)
    for model in (net, other):
        for module in model.modules():
            assert not module._forward_hooks
            assert not module._forward_pre_hooks


def test_a_model_that_cannot_run_is_named_and_keeps_no_hook() -> None:
    net = fresh()
    other = nn.Sequential(nn.Conv2d(4, 8, 3))
    with pytest.raises(ConfigurationError, match=r"model_b cannot run on the images: .*4 channels"):
        fmapboard.diff(net, other, IMAGES)
    assert not any(module._forward_hooks for module in other.modules())


def test_invalid_arguments_are_rejected() -> None:
    net = fresh()
    with pytest.raises(ConfigurationError, match=r"model=dict: expected a torch.nn.Module"):
        fmapboard.diff(net, {}, IMAGES)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"images='photo.jpg': expected tensors"):
        fmapboard.diff(net, net, "photo.jpg")
    with pytest.raises(
        ConfigurationError, match=r"no layer of model_a .7 run. can be paired.*own arch"
    ):
        fmapboard.diff(nn.Sequential(*[nn.Tanh() for _ in range(7)]), nn.Conv2d(3, 4, 3), IMAGES)
