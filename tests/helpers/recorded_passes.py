"""Recorded passes of images, compared with passes of each image alone."""

from __future__ import annotations

import numpy as np
import torch
from reducers import reducer_of
from torch import Tensor, nn

from fmapboard.image_passes import ImagePasses
from fmapboard.measure.reducer import Reducer
from fmapboard.records import StepData


def reducer(**options: object) -> Reducer:
    """A reducer without limits on channels and tiles."""
    return reducer_of(max_channels=None, max_tile=None, **options)


class Shared(list[int]):
    """A list that a twin of a model shares with it."""

    def __deepcopy__(self, memo: object) -> Shared:
        return self


class Counting(nn.Module):
    """Records the number of images in each forward pass of a network."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.passes = Shared()

    def forward(self, x: Tensor) -> Tensor:
        self.passes.append(len(x))
        return self.inner(x)  # type: ignore[no-any-return]


def recorded(
    model: nn.Module, images: Tensor, **options: object
) -> tuple[list[StepData], list[str]]:
    """The recorded steps of a batch, and the reasons given for running images one by one."""
    reasons: list[str] = []
    record = ImagePasses(model, reducer(), refused=reasons.append, **options)  # type: ignore[arg-type]
    return [image.to_host() for image in record(images, 0)], reasons


def images(count: int = 5, side: int = 12) -> Tensor:
    """Random images [count, 3, side, side]."""
    return torch.randn(count, 3, side, side)


def assert_as_if_alone(model: nn.Module, batch: Tensor, steps: list[StepData]) -> None:
    """Assert that each step holds what a pass on its image alone records, up to rounding."""
    assert [data.step for data in steps] == list(range(len(batch)))
    for number, data in enumerate(steps):
        (alone,) = ImagePasses(model, reducer())(batch[number : number + 1], number)
        own = alone.to_host()
        assert [m.layer_call for m in data.measured] == [m.layer_call for m in own.measured]
        assert [m.shape for m in data.measured] == [m.shape for m in own.measured]
        for here, there in zip(data.measured, own.measured, strict=True):
            assert_same_statistics(
                here.statistics, there.statistics, moments=here.layer_call.pictures
            )
            if there.planes is None:
                assert here.planes is None
                assert here.sample is None
                continue
            assert here.planes is not None
            difference = here.planes.pixels.astype(int) - there.planes.pixels.astype(int)
            assert here.planes.pixels.shape == there.planes.pixels.shape
            assert np.abs(difference).max() <= 1
            assert (difference != 0).mean() < 1e-2
            for name in ("channels", "shape", "block", "view"):
                assert getattr(here.planes, name) == getattr(there.planes, name)
            for name in ("lo", "hi"):
                np.testing.assert_allclose(
                    getattr(here.planes, name), getattr(there.planes, name), atol=1e-5
                )
            assert here.sample is not None
            assert there.sample is not None
            assert here.sample.total == there.sample.total
            np.testing.assert_allclose(here.sample.values, there.sample.values, atol=1e-5)
            np.testing.assert_allclose(
                [here.sample.lo, here.sample.hi], [there.sample.lo, there.sample.hi], atol=1e-5
            )
        (picture,), (own_picture,) = data.inputs, own.inputs
        assert picture.sample == 0
        assert np.array_equal(picture.values, own_picture.values, equal_nan=True)


def assert_same_statistics(here: object, there: object, *, moments: bool = True) -> None:
    for name in ("minimum", "maximum", "mean", "std")[: 4 if moments else 2]:
        np.testing.assert_allclose(getattr(here, name), getattr(there, name), atol=1e-5)
    for name in ("nan", "positive_infinity", "negative_infinity", "constant", "dead"):
        assert np.array_equal(getattr(here, name), getattr(there, name))
