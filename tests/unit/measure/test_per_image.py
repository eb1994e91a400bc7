"""Several images reduced together give bitwise what each gives alone."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from recorded_passes import reducer
from reduced_maps import random_maps, record_extremes
from reducers import reducer_of
from torch import Tensor, nn

from fmapboard import image_passes as per_image
from fmapboard.image_passes import ImagePasses, reduce_images
from fmapboard.measure.reducer import PendingMeasurement, Reducer
from fmapboard.records import KernelShape, LayerCall, LayerMeasurement
from fmapboard.render.quantize import Quantizer

CONV = LayerCall("conv", "Conv2d", KernelShape((6, 3, 3, 3)))
RELU = LayerCall("relu", "ReLU", pictures=False, floor=0.0)


def assert_equal(here: object, there: object) -> None:
    """Assert that two dataclasses of numbers are bitwise equal, dtypes included."""
    assert type(here) is type(there)
    for field in fields(here):  # type: ignore[arg-type]
        one, other = getattr(here, field.name), getattr(there, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other, err_msg=field.name)
        elif hasattr(one, "__dataclass_fields__"):
            assert_equal(one, other)
        elif not isinstance(one, Quantizer):
            assert one == other or (one != one and other != other), field.name


def together_and_alone(
    tensor: Tensor, layer_call: LayerCall, module: nn.Module, reduce: Reducer | None = None
) -> tuple[list[LayerMeasurement], list[LayerMeasurement]]:
    reduce = reduce or reducer()
    found = reduce_images(reduce, layer_call, "feature_maps", tensor, module)
    assert found is not None, "reduced one by one"
    each = [pending.to_host() for pending in found]
    alone = [
        reduce(layer_call, "feature_maps", tensor[n : n + 1], module).to_host()
        for n in range(len(tensor))
    ]
    return each, alone


def unusual_maps(kind: str, *shape: int) -> Tensor:
    found = random_maps(*shape)
    match kind:
        case "nan":
            found[1, 2].view(-1)[0] = torch.nan
        case "infinite":
            found[1, 0], found[2, 1].view(-1)[0] = torch.inf, -torch.inf
        case "far from zero":
            found[2] += 1e4
        case "constant":
            found[0], found[3, 1] = 7.0, -0.1
        case "huge":
            found[3] *= 1e30
        case "faint":
            found[1, 1] *= 1e-25
    return found


KINDS = ["plain", "far from zero", "constant"]


@pytest.mark.parametrize("size", [(9, 9), (1, 1), (40, 30), (3,), ()])
@pytest.mark.parametrize("kind", KINDS)
def test_maps_of_a_convolution_reduced_together_equal_those_reduced_alone(
    kind: str, size: tuple[int, ...]
) -> None:
    module = {2: nn.Conv2d, 1: nn.Conv1d, 0: nn.Conv2d}[len(size)](3, 6, 1)
    tensor = unusual_maps(kind, 4, 6, *(size or (1, 1)))
    each, alone = together_and_alone(tensor, CONV, module)
    for here, there in zip(each, alone, strict=True):
        assert here.planes is not None
        assert here.sample is not None
        assert_equal(here, there)


@pytest.mark.parametrize("size", [(9, 9), (1, 1), ()])
@pytest.mark.parametrize("kind", KINDS)
def test_statistics_of_an_activation_reduced_together_equal_those_reduced_alone(
    kind: str, size: tuple[int, ...]
) -> None:
    tensor = unusual_maps(kind, 4, 6, *size).clamp(min=0.0)
    tensor[3, 4] = 0.0
    each, alone = together_and_alone(tensor, RELU, nn.ReLU())
    for here, there in zip(each, alone, strict=True):
        assert here.planes is None
        assert here.sample is None
        assert_equal(here, there)
    assert each[3].statistics is not None
    assert each[3].statistics.dead is not None
    assert each[3].statistics.dead[4] == (size == (9, 9))  # a single value is never dead


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex64])
def test_maps_of_other_dtypes_reduced_together_equal_those_reduced_alone(
    dtype: torch.dtype,
) -> None:
    each, alone = together_and_alone(random_maps(4, 6, 9, 9).to(dtype), CONV, nn.Conv2d(3, 6, 1))
    for here, there in zip(each, alone, strict=True):
        assert_equal(here, there)


def test_the_histogram_sample_of_a_large_image_is_the_one_it_has_alone() -> None:
    tensor = random_maps(3, 6, 99, 98)
    each, alone = together_and_alone(tensor, CONV, nn.Conv2d(3, 6, 1))
    for here, there in zip(each, alone, strict=True):
        assert here.sample is not None
        assert here.sample.values.size < 20_000 < here.sample.total
        assert_equal(here, there)


@pytest.mark.parametrize("kind", ["nan", "infinite", "huge", "faint"])
def test_images_with_values_that_are_read_in_another_way_are_reduced_one_by_one(kind: str) -> None:
    tensor = unusual_maps(kind, 4, 6, 9, 9)
    assert reduce_images(reducer(), CONV, "feature_maps", tensor, nn.Conv2d(3, 6, 1)) is None
    finite = unusual_maps("plain", 4, 6, 9, 9)
    assert reduce_images(reducer(), CONV, "feature_maps", finite, nn.Conv2d(3, 6, 1)) is not None


@pytest.mark.parametrize("side", [9, 99])
def test_nothing_that_is_kept_shares_memory_with_the_live_tensor(side: int) -> None:
    tensor = random_maps(4, 6, side, side)
    _, alone = together_and_alone(tensor.clone(), CONV, nn.Conv2d(3, 6, 1))
    found = reduce_images(reducer(), CONV, "feature_maps", tensor, nn.Conv2d(3, 6, 1))
    assert found is not None
    tensor.fill_(torch.nan)
    for here, there in zip(found, alone, strict=True):
        assert_equal(here.to_host(), there)


def test_limits_on_channels_apply_and_all_images_are_drawn() -> None:
    few = reducer_of(samples=1, max_channels=2, max_tile=4)
    each, alone = together_and_alone(random_maps(4, 6, 9, 9), CONV, nn.Conv2d(3, 6, 1), few)
    for here, there in zip(each, alone, strict=True):
        assert here.planes is not None
        assert here.planes.pixels.shape == (1, 2, 3, 3)
        assert_equal(here, there)


@pytest.mark.parametrize(
    "tensor",
    [
        random_maps(4, 6, 9, 9).to(memory_format=torch.channels_last),
        random_maps(4, 6, 9, 18)[..., ::2],
        random_maps(2, 64, 128, 129),
    ],
    ids=["channels last", "strided", "large"],
)
def test_maps_that_are_faster_to_read_one_by_one_are_not_reduced_together(tensor: Tensor) -> None:
    assert reduce_images(reducer(), CONV, "feature_maps", tensor, nn.Conv2d(3, 6, 1)) is None


def test_tokens_are_read_one_by_one() -> None:
    layer_call = LayerCall("norm", "LayerNorm")
    assert (
        reduce_images(reducer(), layer_call, "feature_maps", random_maps(4, 9, 6), nn.LayerNorm(6))
        is None
    )


@pytest.mark.parametrize("max_bytes", [0, per_image.MAX_BYTES])
def test_a_network_records_the_same_whether_or_not_images_are_reduced_together(
    max_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 4, 3)]
    model, batch = nn.Sequential(*layers).eval(), random_maps(5, 3, 12, 12)
    expected = [image.to_host() for image in ImagePasses(model, reducer())(batch, 0)]
    monkeypatch.setattr(per_image, "MAX_BYTES", max_bytes)
    calls: list[LayerCall] = []
    reduce = Reducer.__call__

    def noted(
        self: Reducer, layer_call: LayerCall, *args: Any, **options: Any
    ) -> PendingMeasurement:
        calls.append(layer_call)
        return reduce(self, layer_call, *args, **options)

    monkeypatch.setattr(Reducer, "__call__", noted)
    for here, there in zip(ImagePasses(model, reducer())(batch, 0), expected, strict=True):
        for one, other in zip(here.to_host().measured, there.measured, strict=True):
            assert_equal(one, other)
    alone = 3  # layers of the first image
    assert len(calls) == (alone if max_bytes else alone + 3 * len(batch))


def test_maps_that_cannot_be_drawn_have_statistics_and_no_picture() -> None:
    layer_call = LayerCall("identity", "Identity")
    each, alone = together_and_alone(random_maps(3, 2, 2, 2, 2, 2), layer_call, nn.Identity())
    for here, there in zip(each, alone, strict=True):
        assert here.planes is None
        assert_equal(here, there)


def test_extremes_that_the_statistics_hold_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = record_extremes(monkeypatch)
    tensor = random_maps(3, 6, 12, 12)
    found = reduce_images(reducer(), CONV, "feature_maps", tensor, nn.Conv2d(3, 6, 3))
    assert found is not None
    assert all(pending.to_host().planes is not None for pending in found)
    assert read == []
