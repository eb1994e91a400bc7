"""`layers` lists every module of a model, and after a pass the shapes that they return."""

from __future__ import annotations

import pytest
import torch
from extracted_maps import random_images, untrained
from model_state import assert_unchanged, state_of
from module_hooks import hook_count
from torch import Tensor, nn

import fmapboard
from fmapboard import ForwardError, KernelShape, LayerNotFound


def test_every_module_of_a_resnet_is_listed_with_its_shapes() -> None:
    model = untrained("resnet18")
    before = state_of(model)
    table = fmapboard.layers(model, torch.zeros(1, 3, 64, 64))
    assert len(table) == len(list(model.modules())) == 68
    assert (table[0].name, table[0].output_shapes) == ("ResNet", ((1, 1000),))
    assert table[0].parameters == sum(p.numel() for p in model.parameters()) == 11_689_512
    conv = table["layer1.0.conv1"]
    assert (conv.type, conv.kernel_shape) == ("Conv2d", KernelShape((64, 64, 3, 3)))
    assert (conv.parameters, conv.output_shapes, conv.calls) == (36_864, ((1, 64, 16, 16),), 1)
    assert (table["layer1.0.relu"].calls, table["layer4"].parameters) == (2, 8_393_728)
    assert_unchanged(before, state_of(model))
    assert hook_count(model) == 0


def test_without_an_input_the_model_does_not_run_and_there_are_no_output_shapes() -> None:
    class Net(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            raise AssertionError

    table = fmapboard.layers(Net(nn.Conv2d(3, 8, 3), nn.LazyLinear(4)))
    assert repr(table) == (
        "layer  type        kernel shape  parameters\n"
        "Net    Net                              224\n"
        "0      Conv2d      8x3x3x3              224\n"
        "1      LazyLinear"
    )
    assert str(table) == repr(table)


def test_the_table_says_how_often_a_layer_ran_and_lists_tapped_tensors_last() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 1)
            self.lstm, self.unused = nn.LSTM(4, 5, batch_first=True), nn.Linear(2, 2)

        def forward(self, image: Tensor) -> Tensor:
            again = fmapboard.tap("sum", self.conv(self.conv(image)) + image)
            return self.lstm(again.mean(2))[0]  # type: ignore[no-any-return]

    table = fmapboard.layers(Net(), forward_kwargs={"image": random_images(4)})
    assert repr(table).splitlines()[1:] == [
        "Net     Net                          238  [2, 3, 5]",
        "conv    Conv2d  3x3x1x1               12  [2, 3, 4, 4] (2 calls)",
        "lstm    LSTM                         220  [2, 3, 5], [1, 2, 5], [1, 2, 5]",
        "unused  Linear                         6",
        "sum     Tap                               [2, 3, 4, 4]",
    ]


def test_a_part_of_the_layers_can_be_listed() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 1))
    table = fmapboard.layers(model, random_images(8), only=nn.Conv2d)
    assert [row.name for row in table] == ["0", "2"]
    assert [row.name for row in table[1:]] == ["2"]
    assert (
        repr(table[1:]).splitlines()[1] == "2      Conv2d  8x8x1x1               72  [2, 8, 6, 6]"
    )
    with pytest.raises(LayerNotFound, match="no layer '3'; there are: "):
        table["3"]
    with pytest.raises(LayerNotFound, match="no layer 'xyz'; print the table for the names"):
        fmapboard.layers(nn.Sequential(*[nn.ReLU() for _ in range(9)]))["xyz"]
    with pytest.raises(LayerNotFound, match="no layer matches 'x'"):
        fmapboard.layers(model, only="x")


def test_the_table_runs_in_eval_mode_and_a_failing_pass_names_the_layer() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(4)).train()
    assert fmapboard.layers(model, torch.zeros(1, 3, 4, 4))["2"].output_shapes == ((1, 4, 1, 1),)
    assert model.training
    with pytest.raises(ForwardError, match=r"^0 \(Conv2d\) raised RuntimeError"):
        fmapboard.layers(model, torch.zeros(1, 5, 4, 4))
