"""Several images reduced in one go: of each, to the bit, what it leaves alone."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fmapboard.image_passes import ImagePasses
from fmapboard.measure import per_image
from fmapboard.measure.channel_stats import statistics, statistics_per_sample
from fmapboard.measure.per_image import reduce_images
from fmapboard.measure.reducer import PendingMeasurement, Reducer
from fmapboard.records import KernelShape, LayerCall, LayerMeasurement, Statistics
from fmapboard.render.extremes import finite_extremes
from fmapboard.render.quantize import Quantizer

CONV = LayerCall("conv", "Conv2d", KernelShape((6, 3, 3, 3)))
RELU = LayerCall("relu", "ReLU", pictures=False, floor=0.0)


def reducer(**options: object) -> Reducer:
    return Reducer(max_channels=None, max_tile=None, **options)  # type: ignore[arg-type]


def maps(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def assert_equal(here: object, there: object) -> None:
    """Dataclasses of numbers, equal to the bit, types included."""
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
    assert found is not None
    each = [pending.to_host() for pending in found.split()]
    alone = [
        reduce(layer_call, "feature_maps", tensor[n : n + 1], module).to_host()
        for n in range(len(tensor))
    ]
    return each, alone


def odd_maps(kind: str, *shape: int) -> Tensor:
    found = maps(*shape)
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


KINDS = ["plain", "nan", "infinite", "far from zero", "constant", "huge", "faint"]


@pytest.mark.parametrize("size", [(9, 9), (1, 1), (40, 30), (3,), ()])
@pytest.mark.parametrize("kind", KINDS)
def test_a_convolutions_maps(kind: str, size: tuple[int, ...]) -> None:
    module = {2: nn.Conv2d, 1: nn.Conv1d, 0: nn.Conv2d}[len(size)](3, 6, 1)
    tensor = odd_maps(kind, 4, 6, *(size or (1, 1)))
    each, alone = together_and_alone(tensor, CONV, module)
    for here, there in zip(each, alone, strict=True):
        assert here.planes is not None
        assert here.sample is not None
        assert_equal(here, there)


@pytest.mark.parametrize("size", [(9, 9), (1, 1), ()])
@pytest.mark.parametrize("kind", KINDS)
def test_an_activations_numbers(kind: str, size: tuple[int, ...]) -> None:
    tensor = odd_maps(kind, 4, 6, *size).clamp(min=0.0)
    tensor[3, 4] = 0.0
    each, alone = together_and_alone(tensor, RELU, nn.ReLU())
    for here, there in zip(each, alone, strict=True):
        assert here.planes is None
        assert here.sample is None
        assert_equal(here, there)
    assert each[3].statistics is not None
    assert each[3].statistics.dead is not None
    assert each[3].statistics.dead[4] == (size == (9, 9))  # one value alone says nothing


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex64])
def test_other_types_of_number(dtype: torch.dtype) -> None:
    each, alone = together_and_alone(maps(4, 6, 9, 9).to(dtype), CONV, nn.Conv2d(3, 6, 1))
    for here, there in zip(each, alone, strict=True):
        assert_equal(here, there)


def test_a_long_sample_is_the_one_of_the_image_alone() -> None:
    tensor = maps(3, 6, 99, 98)
    each, alone = together_and_alone(tensor, CONV, nn.Conv2d(3, 6, 1))
    for here, there in zip(each, alone, strict=True):
        assert here.sample is not None
        assert here.sample.values.size < 20_000 < here.sample.total
        assert_equal(here, there)


@pytest.mark.parametrize("moments", [True, False])
def test_only_the_images_with_odd_values_are_read_once_more(moments: bool) -> None:
    tensor = maps(5, 6, 9, 9)
    tensor[1, 2, 0, 0], tensor[4, 0, 3, 3] = torch.nan, -torch.inf
    found = statistics_per_sample(tensor, moments=moments)
    assert list(found.fallbacks) == [1, 4]
    for n, here in enumerate(found.to_host()):
        there: Statistics = statistics(tensor[n : n + 1], moments=moments).to_host()
        assert_equal(here, there)


@pytest.mark.parametrize("side", [9, 99])
def test_nothing_that_is_kept_shares_memory_with_the_live_tensor(side: int) -> None:
    tensor = maps(4, 6, side, side)
    _, alone = together_and_alone(tensor.clone(), CONV, nn.Conv2d(3, 6, 1))
    found = reduce_images(reducer(), CONV, "feature_maps", tensor, nn.Conv2d(3, 6, 1))
    assert found is not None
    tensor.fill_(torch.nan)
    for here, there in zip(found.split(), alone, strict=True):
        assert_equal(here.to_host(), there)


def test_limits_on_channels_hold_and_all_images_are_drawn() -> None:
    few = Reducer(samples=1, max_channels=2, max_tile=4)
    each, alone = together_and_alone(maps(4, 6, 9, 9), CONV, nn.Conv2d(3, 6, 1), few)
    for here, there in zip(each, alone, strict=True):
        assert here.planes is not None
        assert here.planes.pixels.shape == (1, 2, 3, 3)
        assert_equal(here, there)


@pytest.mark.parametrize(
    "tensor",
    [
        maps(4, 6, 9, 9).to(memory_format=torch.channels_last),
        maps(4, 6, 9, 18)[..., ::2],
        maps(2, 64, 128, 129),
    ],
    ids=["channels last", "strided", "large"],
)
def test_what_is_better_read_one_by_one_is_left_to_it(tensor: Tensor) -> None:
    assert reduce_images(reducer(), CONV, "feature_maps", tensor, nn.Conv2d(3, 6, 1)) is None


def test_tokens_lie_in_another_order_and_are_read_one_by_one() -> None:
    layer_call = LayerCall("norm", "LayerNorm")
    assert (
        reduce_images(reducer(), layer_call, "feature_maps", maps(4, 9, 6), nn.LayerNorm(6)) is None
    )


@pytest.mark.parametrize("max_bytes", [0, per_image.MAX_BYTES])
def test_a_network_leaves_the_same_either_way(
    max_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 4, 3)]
    model, batch = nn.Sequential(*layers).eval(), maps(5, 3, 12, 12)
    usual = [image.to_host() for image in ImagePasses(model, reducer())(batch, 0)]
    monkeypatch.setattr(per_image, "MAX_BYTES", max_bytes)
    calls: list[LayerCall] = []
    reduce = Reducer.__call__

    def noted(
        self: Reducer, layer_call: LayerCall, *args: Any, **options: Any
    ) -> PendingMeasurement:
        calls.append(layer_call)
        return reduce(self, layer_call, *args, **options)

    monkeypatch.setattr(Reducer, "__call__", noted)
    for here, there in zip(ImagePasses(model, reducer())(batch, 0), usual, strict=True):
        for one, other in zip(here.to_host().measured, there.measured, strict=True):
            assert_equal(one, other)
    alone = 3  # layers of the first image
    assert len(calls) == (alone if max_bytes else alone + 3 * len(batch))


def test_what_is_no_picture_is_counted_and_not_drawn() -> None:
    layer_call = LayerCall("odd", "Identity")
    each, alone = together_and_alone(maps(3, 2, 2, 2, 2, 2), layer_call, nn.Identity())
    for here, there in zip(each, alone, strict=True):
        assert here.planes is None
        assert_equal(here, there)


def test_no_image_is_read_again_for_extremes_that_its_numbers_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, ...]] = []

    def counting(planes: Any, axes: tuple[int, ...]) -> Any:
        asked.append(planes.shape)
        return finite_extremes(planes, axes)

    monkeypatch.setattr("fmapboard.render.quantize.finite_extremes", counting)
    tensor = maps(3, 6, 12, 12)
    tensor[1, 2, 0, 0] = torch.nan
    found = reduce_images(reducer(), CONV, "feature_maps", tensor, nn.Conv2d(3, 6, 3))
    assert found is not None
    planes = [pending.to_host().planes for pending in found.split()]
    assert asked == [(1, 6, 12, 12)]  # of the one with a NaN
    assert [one.marks is None for one in planes if one is not None] == [True, False, True]
