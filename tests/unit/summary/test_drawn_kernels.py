"""Kernels are drawn where they have changed; elsewhere the record names the earlier picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from composed_steps import CALL, compose, kernels_of, measured
from numpy.typing import NDArray
from torch import ones

from fmapboard.formats.tab_records import unpack
from fmapboard.summary.build import SummaryBuilder


def headers(weights: Iterable[NDArray[np.float32]], **options: Any) -> list[dict[str, Any]]:
    """Headers of the records of steps 0, 1, … of a layer whose weight is given for each step."""
    builder = SummaryBuilder(only_changed_kernels=True, **options)
    found = []
    for step, weight in enumerate(weights):
        kernels = replace(kernels_of(4, 2, 3, 3, layer_call=CALL), weight=weight)
        logged = compose(builder, step, measured=(measured(ones(1, 4, 8, 8)),), kernels=(kernels,))
        weight.fill(7)  # the memory is used again
        found.append(unpack(logged.records[0].blobs)[0])
    return found


def drawn(found: list[dict[str, Any]]) -> list[bool]:
    return [any(each["role"] == "kernels" for each in header["pictures"]) for header in found]


def weight(factor: float) -> NDArray[np.float32]:
    return factor * kernels_of(4, 2, 3, 3).weight


def test_kernels_are_drawn_again_once_they_have_changed_since_they_were_drawn() -> None:
    found = headers(weight(factor) for factor in (1.0, 1.02, 1.04, 1.06, 1.06))
    assert drawn(found) == [True, False, False, True, False]
    picture = next(each for each in found[0]["pictures"] if each["role"] == "kernels")
    assert picture["peak"] == 1
    assert found[2]["kernels"] == {**picture, "step": 0, "peak_now": pytest.approx(1.04)}
    assert found[4]["kernels"]["step"] == 3
    assert "kernels" not in found[3]


def test_kernels_of_zeros_or_nan_are_drawn_again_only_if_they_differ() -> None:
    zeros = [weight(0.0), weight(0.0), weight(1e-9)]
    assert drawn(headers(zeros)) == [True, False, True]
    lost = [weight(np.nan), weight(np.nan), weight(1.0)]
    assert drawn(headers(lost)) == [True, False, True]


def test_kernels_of_which_fewer_are_drawn_are_drawn_again() -> None:
    fewer = [weight(1.0), weight(1.0), weight(1.0)[:2]]
    assert drawn(headers(fewer)) == [True, False, True]
    assert drawn(headers([weight(1.0), weight(1.0)[:2]], max_kernels=2)) == [True, False]
