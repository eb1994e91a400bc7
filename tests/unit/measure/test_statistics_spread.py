"""How much the images of a batch differ in the output of a layer, against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy_statistics import measure
from torch import Tensor

from fmapboard.measure.statistics import finalize, statistics, statistics_on_device


def spread_of(maps: Tensor) -> float:
    """Standard deviation between the images, relative to the root mean square of all values."""
    values = maps.double().numpy()
    return float(np.sqrt(values.var(0).mean() / np.square(values).mean()))


def unlike() -> Tensor:
    """Images that have less in common in some places than in others, [6, 3, 5, 5]."""
    torch.manual_seed(0)
    return torch.randn(3, 5, 5) + torch.rand(3, 5, 5) * torch.randn(6, 3, 5, 5)


@pytest.mark.parametrize(
    "maps",
    [unlike(), unlike().flatten(1), unlike().flatten(1)[:2]],
    ids=["short maps", "vectors", "two vectors"],
)
def test_of_short_planes_it_is_that_of_numpy(maps: Tensor) -> None:
    assert measure(maps).spread == pytest.approx(spread_of(maps), rel=1e-5)


def test_of_long_planes_it_is_that_of_numpy_if_images_differ_in_brightness() -> None:
    torch.manual_seed(0)
    maps = torch.rand(3, 9, 9) * torch.tensor([1.0, 0.5, 2.0, 1.2])[:, None, None, None]
    assert measure(maps).spread == pytest.approx(spread_of(maps), rel=1e-4)


def test_normalized_planes_of_different_images_differ_and_those_of_one_image_do_not() -> None:
    torch.manual_seed(0)
    maps = torch.nn.functional.instance_norm(torch.rand(4, 3, 9, 9) ** 3)
    assert measure(maps).spread > 0.05
    assert measure(maps[:1].repeat(4, 1, 1, 1)).spread < 1e-6


def test_values_that_are_0_everywhere_do_not_differ() -> None:
    assert measure(torch.zeros(4, 3, 9, 9)).spread == 0.0


@pytest.mark.parametrize(
    "maps",
    [
        torch.rand(1, 3, 9, 9),
        torch.rand(4, 9, 9, 3).permute(0, 3, 1, 2),
        torch.rand(4, 3, 9, 9).index_fill(0, torch.tensor([1]), torch.nan),
    ],
    ids=["one image", "channels side by side", "NaN"],
)
def test_it_is_not_known(maps: Tensor) -> None:
    assert math.isnan(measure(maps).spread)


def test_on_an_accelerator_it_is_known_of_vectors_only() -> None:
    def on_device(maps: Tensor) -> float:
        read = statistics_on_device(maps, None, moments=True, unsettled=None)
        return read.to_host().spread

    vectors = unlike().flatten(1)
    assert on_device(vectors) == pytest.approx(spread_of(vectors), rel=1e-5)
    assert math.isnan(on_device(torch.rand(4, 3, 9, 9)))


def test_tensors_that_are_finalized_together_keep_their_own() -> None:
    torch.manual_seed(0)
    tensors = [torch.rand(4, 3, 9, 9), unlike()[:4], torch.rand(4, 5), torch.rand(4, 2, 9, 9)]
    pending = [statistics(tensor) for tensor in tensors]
    alone = [measure(tensor).spread for tensor in tensors]
    assert [each.spread for each in finalize(pending)] == alone
    assert len(set(alone)) == 4
