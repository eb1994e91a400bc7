"""Tensors of a pending step are exchanged in order; everything else stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fmapboard.capture.transfer import swapped
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


class Pair(NamedTuple):
    first: Any
    second: Any


def numbered(value: Any) -> tuple[Any, list[float]]:
    """The structure with 0, 1, 2, ... in place of its tensors, and the values that were in it."""
    seen: list[float] = []

    def swap(tensor: Tensor) -> Tensor:
        seen.append(tensor.item())
        return torch.tensor(len(seen) - 1)

    return swapped(value, swap), seen


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


def test_what_holds_no_tensor_is_not_copied() -> None:
    leaf, call, other = Leaf(None), LayerCall("conv", "Conv2d"), object()
    for value in (leaf, call, other, (1, 2), "text"):
        assert swapped(value, torch.clone) is value
