"""What hooks report of each layer: call number, position, side, value and floor."""

from __future__ import annotations

import pytest
from hooked_model import RecordingSink, X
from networks import two_convolutions
from torch import Tensor, nn

from fmapboard import HookRegistry, KernelShape, LayerNotFound


def test_a_forward_reports_each_layer_once_in_call_order() -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(sink, sides=("output", "input"))
    model(X)
    registry.disarm()
    assert sink.reported == [("input", "0"), ("output", "0"), ("input", "2"), ("output", "2")]
    assert [
        (layer_call.call, layer_call.position, str(layer_call.kernel_shape))
        for layer_call in sink.layer_calls
    ] == [
        (1, 0, "2x1x3x3"),
        (1, 0, "2x1x3x3"),
        (1, 1, "2x2x3x3"),
        (1, 1, "2x2x3x3"),
    ]


def test_a_layer_called_again_in_one_forward_is_numbered() -> None:
    class Thrice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 1, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.conv(self.conv(self.conv(x)))  # type: ignore[no-any-return]

    model, sink = Thrice(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(sink, sides=("output", "input"))
    model(X)
    registry.disarm()
    assert [label for side, label in sink.reported if side == "output"] == [
        "conv",
        "conv.call2",
        "conv.call3",
    ]
    assert [layer_call.position for layer_call in sink.layer_calls] == [0, 0, 1, 1, 2, 2]


def test_hooks_report_the_arguments_and_the_result_of_forward_itself() -> None:
    model, sink = nn.Sequential(nn.Conv2d(1, 1, 1, bias=False)), RecordingSink()
    nn.init.ones_(model[0].weight)
    model[0].register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    model[0].register_forward_hook(lambda module, args, out: out * 5)
    registry = HookRegistry(model)
    registry.arm(sink, sides=("output", "input"))
    out = model(X)
    registry.disarm()
    (args, kwargs), own = sink.values
    assert (args[0].max().item(), kwargs, own.max().item()) == (3.0, {}, 3.0)
    assert out.max().item() == 15.0


def test_groups_hold_the_watched_convolutions_by_kernel_shape() -> None:
    model = two_convolutions()
    registry = HookRegistry(model, also={"1": model[1]})
    assert registry.groups == {KernelShape((2, 1, 3, 3)): ["0"], KernelShape((2, 2, 3, 3)): ["2"]}
    assert HookRegistry(model, nn.ReLU).groups == {}
    with pytest.raises(LayerNotFound):
        HookRegistry(model, "conv1")


def test_additional_layers_are_reported_for_numbers_only_and_without_their_input() -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry = HookRegistry(model, "0", also={"0": model[0], "1": model[1]})
    registry.arm(sink, sides=("output", "input"))
    model(X)
    registry.disarm()
    assert sink.reported == [("input", "0"), ("output", "0"), ("output", "1")]
    assert [layer_call.pictures for layer_call in sink.layer_calls] == [True, True, False]


def test_a_layer_that_moves_between_passes_is_reported_at_its_new_position() -> None:
    class Turning(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(1, 1, 1), nn.Conv2d(1, 1, 1)

        def forward(self, x: Tensor, turned: bool) -> Tensor:
            first, second = (self.b, self.a) if turned else (self.a, self.b)
            return second(first(x))  # type: ignore[no-any-return]

    model, sink = Turning(), RecordingSink()
    registry = HookRegistry(model)
    places = []
    for turned in (False, True, False):
        registry.arm(sink)
        model(X, turned)
        places.append({layer_call.layer: layer_call.position for layer_call in sink.layer_calls})
    registry.disarm()
    assert places == [{"a": 0, "b": 1}, {"a": 1, "b": 0}, {"a": 0, "b": 1}]


def test_only_the_output_of_an_activation_has_a_floor() -> None:
    model, sink = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), RecordingSink()
    registry = HookRegistry(model, (nn.Conv2d, nn.ReLU))
    registry.arm(sink, sides=("input", "output"))
    model(X)
    registry.disarm()
    sides = [side for side, _ in sink.reported]
    floors = [(side, s.layer, s.floor) for side, s in zip(sides, sink.layer_calls, strict=True)]
    assert floors == [
        ("input", "0", None),
        ("output", "0", None),
        ("input", "1", None),
        ("output", "1", 0.0),
    ]
