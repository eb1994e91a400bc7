"""`extract` on repeated calls, and on outputs and inputs that are not a single tensor."""

from __future__ import annotations

from collections import UserDict, defaultdict
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from extracted_maps import assert_same_maps, random_images
from torch import Tensor, nn

from fmapboard import extract
from fmapboard.model.tensors import tensors


def test_a_layer_called_twice_is_listed_under_two_names() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 2, 1)
            self.alias = self.conv

        def forward(self, x: Tensor) -> Tensor:
            return self.alias(self.conv(x))  # type: ignore[no-any-return]

    model, x = Twice(), torch.rand(1, 2, 4, 4)
    maps = extract(model, x)
    with torch.no_grad():
        once = model.conv(x)
        twice = model.conv(once)
    assert_same_maps(maps, {"conv": once, "conv.call2": twice})
    assert_same_maps(extract(model, x, side="input"), {"conv": x, "conv.call2": once})


@dataclass(frozen=True)
class _Pair:
    maps: Tensor
    scale: float


class _Returns(nn.Module):
    def __init__(self, build: Any) -> None:
        super().__init__()
        self.build = build

    def forward(self, x: Tensor) -> Any:
        return self.build(x + 1)


class _Head(nn.Module):
    """Calls `inner`, then overwrites every tensor that it returned."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        for tensor in tensors(self.inner(x)):
            tensor.zero_()
        return x


@pytest.mark.parametrize(
    "build",
    [
        lambda t: (t, [t * 2, None, "text"]),
        lambda t: {"a": t, "b": (t, 3)},
        lambda t: defaultdict(list, a=t),
        lambda t: UserDict(a=t),
        lambda t: _Pair(t, 2.0),
        lambda t: torch.max(t, dim=0),
        lambda t: nn.utils.rnn.pack_sequence([t[0], t[1]]),
    ],
    ids=["tuple", "dict", "defaultdict", "userdict", "dataclass", "structseq", "packed"],
)
def test_structures_of_any_kind_are_returned_with_clones_of_their_tensors(build: Any) -> None:
    x = torch.rand(2, 3)
    out = extract(_Head(_Returns(build)), x, layers=_Returns)["inner"]
    expected = build(x + 1)
    assert isinstance(out, (type(expected), dict))
    pairs = list(zip(tensors(out), tensors(expected), strict=True))
    assert pairs
    assert all(torch.equal(found, expected) for found, expected in pairs)


def test_recurrent_and_attention_layers_give_their_whole_output() -> None:
    lstm, x = nn.LSTM(3, 5), torch.rand(7, 2, 3)
    out, (h, c) = extract(nn.Sequential(lstm), x, layers=nn.LSTM)["0"]
    with torch.no_grad():
        expected, (expected_h, expected_c) = lstm(x)
    assert all(torch.equal(a, b) for a, b in ((out, expected), (h, expected_h), (c, expected_c)))

    attention, q = nn.MultiheadAttention(4, 2), torch.rand(5, 1, 4)
    out, weights = extract(attention, (q, q, q), layers=nn.MultiheadAttention)["MultiheadAttention"]
    with torch.no_grad():
        expected, expected_weights = attention(q, q, q)
    assert torch.equal(out, expected)
    assert torch.equal(weights, expected_weights)
    inputs = extract(attention, (q, q, q), layers=nn.MultiheadAttention, side="input")
    assert [tuple(value.shape) for value in inputs["MultiheadAttention"]] == [(5, 1, 4)] * 3


def test_keyword_arguments_of_a_layer_are_part_of_its_input() -> None:
    class Calls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 1)

        def forward(self, *, image: Tensor) -> Tensor:
            return self.conv(input=image)  # type: ignore[no-any-return]

    x = random_images(4)
    found = extract(Calls(), (), side="input", forward_kwargs={"image": x})
    assert_same_maps(found, {"conv": x})
