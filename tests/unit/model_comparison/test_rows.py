"""Where a difference in functional code is placed, and how the layers of two models are paired."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fmapboard
from fmapboard import ModelDifference

IMAGES = torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(1))


class Net(nn.Module):
    """Convolutions with functional code between them; ``change`` selects a variant of it."""

    def __init__(self, change: str = "") -> None:
        super().__init__()
        self.change = change
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.conv3 = nn.Conv2d(8, 8, 3, padding=1)
        self.conv4 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        if self.change == "input":
            x = x * 1.01
        x = F.relu(self.conv1(x))
        out = self.conv2(x)
        if self.change != "relu":
            out = F.relu(out)
        out = self.conv3(out)
        out += 0.99 * x if self.change == "sum" else x
        pool = F.avg_pool2d if self.change == "pool" else F.max_pool2d
        out = self.conv4(pool(F.relu(out), 2))
        out = self.fc(out.mean((2, 3)))
        return out * 2 if self.change == "output" else out


def differ(first: nn.Module, second: nn.Module, **options: Any) -> ModelDifference:
    second.load_state_dict(first.state_dict(), strict=False)
    return fmapboard.diff(first, second, IMAGES, **options)


@pytest.mark.parametrize(
    ("change", "place", "functions"),
    [
        ("input", "between the input and `conv1`", "no function in A; mul in B"),
        ("relu", "between `conv2` and `conv3`", "relu in A; no function in B"),
        ("sum", "between `conv3` and `conv4`", "add, relu, max_pool2d in A; mul, "),
        (
            "pool",
            "between `conv3` and `conv4`",
            "add, relu, max_pool2d in A; add, relu, avg_pool2d",
        ),
        ("output", "between `fc` and the output", "no function in A; mul in B"),
    ],
)
def test_a_change_of_functional_code_is_placed_between_two_layers(
    change: str, place: str, functions: str
) -> None:
    found = differ(Net(), Net(change))
    assert found.first == place
    assert [row.name for row in found.different] == [place]
    assert found.summary.startswith(f"first difference: {place} ({functions}")


class Inplace(nn.Module):
    """Uses the tensor that an in-place layer changed by its old name."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1)
        self.relu, self.scale = nn.ReLU(inplace=True), scale

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x) * self.scale
        self.relu(x)
        result: Tensor = self.conv2(x) + x
        return result


def test_the_copies_that_we_make_of_buffers_are_no_functions_of_the_model() -> None:
    class Scaled(nn.Sequential):
        factor = 1.0

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x * self.factor)

    first, second = (Scaled(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)) for _ in range(2))
    second.factor = 2.0
    assert differ(first, second).layers[0].note == "mul in both"


def test_a_change_before_an_in_place_layer_is_not_repeated_behind_it() -> None:
    found = differ(Inplace(), Inplace(scale=1.1))
    assert [row.name for row in found.different] == ["between `conv1` and `relu`"]


class Shared(nn.Module):
    """Calls one activation several times; ``leave_out`` leaves out a call."""

    def __init__(self, leave_out: int = -1) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 3, 3, padding=1) for _ in range(4)])
        self.act, self.leave_out = nn.ReLU(), leave_out

    def forward(self, x: Tensor) -> Tensor:
        for number, conv in enumerate(self.convs):
            x = conv(x)
            x = x if number == self.leave_out else self.act(x)
        return x


@pytest.mark.parametrize(("number", "name"), [(0, "act"), (1, "act.call2"), (3, "act.call4")])
def test_a_call_that_one_model_leaves_out_is_the_difference(number: int, name: str) -> None:
    found = differ(Shared(), Shared(number))
    assert found.first == name
    assert [row.name for row in found.different] == [name]
    assert found.different[0].note == "only A runs it"


def test_an_identity_that_one_model_leaves_out_is_no_difference() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(0.5), nn.Conv2d(4, 4, 3)).eval()
    other = nn.Sequential(net[0], net[2]).eval()
    found = fmapboard.diff(net, other, IMAGES)
    assert found.first is None
    assert [(row.name, row.note) for row in found.layers] == [
        ("0", ""),
        ("1", "only A runs it"),
        ("2", "`1` in B"),
    ]


def test_an_identity_that_one_model_leaves_out_is_not_blamed_for_the_code_after_it() -> None:
    class Net(nn.Module):
        def __init__(self, drop: bool) -> None:
            super().__init__()
            self.one, self.two, self.same = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1), nn.Identity()
            self.drop = drop

        def forward(self, x: Tensor) -> Tensor:
            out = self.one(x)
            result: Tensor = self.two(out if self.drop else out + self.same(x))
            return result

    assert differ(Net(False), Net(True)).first == "between `one` and `two`"
    assert differ(Net(True), Net(False)).first == "between `one` and `two`"


def test_renamed_layers_are_paired_by_order() -> None:
    names = ("stem", "act", "body", "last")
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3))
    other = nn.Sequential()
    for name, module in zip(names, copy.deepcopy(net), strict=True):
        other.add_module(name, module)
    assert fmapboard.diff(net, other, IMAGES).first is None
    other.body.bias.data += 1
    found = fmapboard.diff(net, other, IMAGES)
    assert found.first == "2"
    assert found.different[0].note.startswith("`body` in B; relative error of bias ")


def test_branches_in_another_order_are_paired_by_name() -> None:
    class Branches(nn.Module):
        def __init__(self, reverse: bool) -> None:
            super().__init__()
            self.left, self.right = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)
            self.last, self.reverse = nn.Conv2d(8, 4, 1), reverse

        def forward(self, x: Tensor) -> Tensor:
            if self.reverse:
                right, left = self.right(x), self.left(x)
            else:
                left, right = self.left(x), self.right(x)
            result: Tensor = self.last(torch.cat([left, right], 1))
            return result

    assert differ(Branches(False), Branches(True)).first is None


def test_a_layer_with_several_inputs_is_compared_on_all_of_them() -> None:
    class Add(nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.scale = scale

        def forward(self, x: Tensor, *, other: Tensor) -> Tensor:
            return x + self.scale * other

    class Two(nn.Module):
        def __init__(self, inside: float = 1.0, outside: float = 1.0) -> None:
            super().__init__()
            self.conv, self.add, self.outside = nn.Conv2d(3, 3, 1), Add(inside), outside

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.add(self.conv(x), other=x * self.outside)
            return result

    assert differ(Two(), Two()).first is None
    assert differ(Two(), Two(inside=1.1)).first == "add"
    assert differ(Two(), Two(outside=1.1)).first == "between `conv` and `add`"


def test_a_module_whose_children_are_not_called_is_compared_as_one_layer() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 12), nn.Flatten(2), nn.Identity())
    net.add_module("attention", Attention())
    other = copy.deepcopy(net)
    assert fmapboard.diff(net, other, IMAGES).first is None
    other.attention.inner.out_proj.weight.data *= 1.1
    assert fmapboard.diff(net, other, IMAGES).first == "attention.inner"


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        tokens = torch.cat([x, x.flip(0)], 2).transpose(1, 2)
        result: Tensor = self.inner(tokens, tokens, tokens)[0]
        return result


def test_a_layer_made_of_others_in_one_model_only_is_compared_as_a_whole() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    other = nn.Sequential(nn.Sequential(copy.deepcopy(net[0]), nn.Identity()), nn.ReLU())
    found = fmapboard.diff(net, other, IMAGES)
    assert found.first is None
    assert [(row.name, row.added) for row in found.layers] == [("0", 0.0), ("1", 0.0)]
    other[0][0].weight.data *= 1.1
    assert fmapboard.diff(net, other, IMAGES).first == "0"


def test_a_tapped_tensor_does_not_make_a_layer_of_the_module_around_it() -> None:
    class Tapped(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = super().forward(fmapboard.tap("input", x))
            return y

    model = nn.Sequential(Tapped(nn.Conv2d(3, 4, 1)), nn.ReLU())
    found = fmapboard.diff(model, copy.deepcopy(model), IMAGES)
    assert [row.name for row in found.layers] == ["0.0", "1"]


def test_parametrizations_do_not_count_as_layers() -> None:
    net = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3)), nn.ReLU())
    other = copy.deepcopy(net)
    assert fmapboard.diff(net, other, IMAGES).first is None
    other[0].parametrizations.weight.original0.data *= 1.1
    found = fmapboard.diff(net, other, IMAGES)
    assert [row.name for row in found.layers] == ["0", "1"]
    assert found.first == "0"


def test_outputs_in_nested_structures_are_compared() -> None:
    class Pair(nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.scale = scale

        def forward(self, x: Tensor) -> dict[str, Any]:
            return {"one": x, "two": (x * self.scale, None)}

    class Net(nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.pair, self.conv = Pair(scale), nn.Conv2d(3, 2, 1)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.conv(self.pair(x)["two"][0])
            return result

    assert differ(Net(1.0), Net(1.0)).first is None
    found = differ(Net(1.0), Net(1.1))
    assert [row.name for row in found.different] == ["pair"]
