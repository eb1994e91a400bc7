"""The line of a run in which nothing was found."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from fmapboard.health.verdict import Update, is_update_of_weights, nothing_found


def table(layers: int = 9, steps: int = 10, *, of_images: bool = False) -> Any:
    rows, columns = (None,) * layers, tuple(range(steps))
    return SimpleNamespace(rows=rows, steps=columns, is_of_images=of_images)


def test_only_ratios_of_weights_count() -> None:
    assert is_update_of_weights("update_ratio/stem.weight")
    assert is_update_of_weights("net.update_ratio/weight")
    for tag in ("update_ratio/stem.bias", "gradient_norm/stem.weight", "loss"):
        assert not is_update_of_weights(tag)


@pytest.mark.parametrize(
    ("most", "said", "expected"),
    [
        (0.027, "2.7 %", "well"),
        (0.2, "20 %", "well"),
        (0.571, "57 %", "large_updates"),
        (13.3, "1,300 %", "large_updates"),
    ],
)
def test_the_median_and_the_largest_update_are_named(most: float, said: str, expected: str) -> None:
    updates: list[Update] = [
        ("update_ratio/head.weight", 25, most),
        ("update_ratio/stem.weight", 25, 0.0084),
        ("update_ratio/stem.weight", 50, 0.0042),
        ("update_ratio/stem.weight", 75, math.nan),
    ]
    class_, text = nothing_found(table(), updates)
    figures = f"median update 0.84 %, largest {said} (`head.weight`, step 25)"
    assert (class_, text) == (expected, f"Nothing found in 9 layers × 10 steps: {figures}")


def test_without_updates_only_the_extent_is_told() -> None:
    assert nothing_found(table(1, 1), []) == ("well", "Nothing found in 1 layer × 1 step")
    images = table(1200, 6, of_images=True)
    assert nothing_found(images, [])[1] == "Nothing found in 1,200 layers × 6 images"


def test_the_model_of_a_named_run_is_told() -> None:
    class_, text = nothing_found(table(), [("net.update_ratio/a.weight", 3, 1e-7)])
    assert (class_, text.partition(": ")[2]) == (
        "well", "median update 1.0e-05 %, largest 1.0e-05 % (`net: a.weight`, step 3)",
    )  # fmt: skip
