"""Tensors in nested values are found and exchanged in order; many are packed into few."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from fmapboard.model.tensors import map_tensors, packed, tensors
from fmapboard.records import LayerCall


@dataclass(frozen=True, slots=True)
class Leaf:
    values: Tensor | None
    total: int = 3


@dataclass
class Tree:
    name: str
    leaves: tuple[Leaf, ...] = ()
    by_name: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Label:
    name: str


class Pair(NamedTuple):
    first: Any
    second: Any


def numbered(value: Any) -> tuple[Any, list[float]]:
    """The structure with 0, 1, 2, ... in place of its tensors, and the values that were in it."""
    seen: list[float] = []

    def swap(tensor: Tensor) -> Tensor:
        seen.append(tensor.item())
        return torch.tensor(len(seen) - 1)

    return map_tensors(value, swap), seen


def test_every_tensor_is_exchanged_in_order() -> None:
    def leaf(value: float) -> Leaf:
        return Leaf(torch.tensor(value))

    tree = Tree("a", (leaf(5.0), leaf(6.0)), {"b": (leaf(7.0), None), "c": torch.tensor(8.0)})
    (changed, pair), seen = numbered([tree, Pair(torch.tensor(9.0), "d")])
    assert seen == [5, 6, 7, 8, 9]
    assert [one.values.item() for one in changed.leaves] == [0, 1]
    assert changed.by_name["b"][0].values.item() == 2
    assert changed.by_name["b"][1] is None
    assert changed.by_name["c"].item() == 3
    assert (type(pair), pair.first.item(), pair.second) == (Pair, 4, "d")
    assert (changed.name, changed.leaves[0].total) == ("a", 3)
    assert tree.leaves[0].values is not None
    assert tree.leaves[0].values.item() == 5  # the original is not changed


def test_frozen_data_without_tensors_is_not_copied() -> None:
    leaf, call, other = Leaf(None), LayerCall("conv", "Conv2d"), object()
    for value in (leaf, call, other, "text"):
        assert map_tensors(value, torch.clone) is value


@pytest.mark.parametrize("value", [[], {}, Tree("a"), Label("a"), [[1], {"b": 2}]])
def test_what_a_layer_could_change_is_copied(value: Any) -> None:
    copied = map_tensors(value, torch.clone)
    assert copied == value
    assert copied is not value


def test_a_tuple_of_constants_is_not_copied() -> None:
    names = ("conv1", 3, None)
    found = map_tensors((names, torch.ones(2)), torch.neg)
    assert found[0] is names
    assert found[1].tolist() == [-1.0, -1.0]


def test_tensors_are_found_in_order() -> None:
    first, second, third, fourth = torch.arange(4.0).unbind()
    tree = Tree("a", (Leaf(first), Leaf(None)), {"b": [second, {"c": (third,)}]})
    found = tensors((Pair(1, tree), LayerCall("conv", "Conv2d"), fourth, "text", None))
    assert [one.item() for one in found] == [0, 1, 2, 3]


def test_a_value_that_contains_itself_is_searched_once() -> None:
    value: list[Any] = [torch.zeros(1)]
    value.append(value)
    assert tensors(value) == [value[0]]


def test_packed_tensors_share_one_piece_per_dtype_and_return_in_order() -> None:
    parts = [
        torch.tensor([1.0, 2.0]),
        torch.tensor([3], dtype=torch.int64),
        torch.tensor([4.0]),
        torch.tensor([], dtype=torch.int64),
    ]
    copies = packed(parts, lambda piece: piece * 2)
    assert [piece.tolist() for piece in copies.pieces] == [[2, 4, 8], [6]]
    parts[0].zero_()
    assert [one.tolist() for one in copies.split()] == [[2, 4], [6], [8], []]
    assert packed([]).split() == []


def test_packed_rows_keep_their_shape() -> None:
    first, second = torch.rand(3, 2), torch.rand(1, 2)
    copies = packed([first, second]).split()
    assert torch.equal(copies[0], first)
    assert torch.equal(copies[1], second)
