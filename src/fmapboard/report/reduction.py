"""Which maps are drawn smaller, and which layers are left out, to stay below a size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fmapboard.report.answers import Answer
from fmapboard.report.routes import opened

_SMALLEST = 16
"""Side in px of the smallest maps that are still halved."""


@dataclass(frozen=True, slots=True)
class LayerSize:
    """What the maps of a layer take in a report.

    Attributes:
        maps: bytes of the pictures that can be drawn smaller.
        others: bytes of all other pictures, such as kernels.
        side: longer side of a map in px, 0 if there is none that can be drawn smaller.
    """

    maps: int = 0
    others: int = 0
    side: int = 0


def layer_sizes(answers: Iterable[Answer]) -> dict[str, LayerSize]:
    """Key of a layer -> what its answers take together."""
    found: dict[str, LayerSize] = {}
    for answer in answers:
        if answer.layer is not None and answer.parts:
            facts, _ = opened(answer.parts[0])
            now = found.get(answer.layer, LayerSize())
            found[answer.layer] = _with(now, facts)
    return found


def _with(now: LayerSize, facts: Mapping[str, Any]) -> LayerSize:
    sides = {
        picture["role"]: max(picture["tile"])
        for picture in facts["header"]["pictures"]
        if picture["role"] != "kernels" and picture.get("layout") != "rows"
    }
    maps = sum(part["length"] for part in facts["parts"] if part.get("role") in sides)
    whole = sum(part["length"] for part in facts["parts"])
    side = max(now.side, *sides.values(), 0) if sides else now.side
    return LayerSize(now.maps + maps, now.others + whole - maps, side)


def halved(sizes: Mapping[str, LayerSize], excess: int) -> set[str]:
    """Keys of the layers to draw at half their side: the largest, until enough bytes are saved.

    Args:
        sizes: by key of the layer.
        excess: bytes to save; half the side takes about a quarter of the bytes.

    Returns:
        At least one layer if any can be drawn smaller.
    """
    chosen: set[str] = set()
    for key in sorted(sizes, key=lambda key: -sizes[key].maps):
        if excess <= 0:
            break
        if sizes[key].side >= _SMALLEST:
            chosen.add(key)
            excess -= sizes[key].maps * 3 // 4
    return chosen


def left_out(sizes: Mapping[str, LayerSize], excess: int) -> set[str]:
    """Keys of the layers to leave out: those that take most bytes, and never all of them."""
    chosen: set[str] = set()
    for key in sorted(sizes, key=lambda key: -sizes[key].maps - sizes[key].others)[:-1]:
        if excess <= 0:
            break
        chosen.add(key)
        excess -= sizes[key].maps + sizes[key].others
    return chosen
