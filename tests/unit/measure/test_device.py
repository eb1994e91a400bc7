"""Statistics read on an accelerator agree with float64, or say that they are not known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from fmapboard.measure import device


def random_values(n: int, c: int, s: int) -> Tensor:
    return torch.randn(n, c, s, generator=torch.Generator().manual_seed(0))


def with_nonfinite(n: int, c: int, s: int) -> Tensor:
    planes = random_values(n, c, s)
    planes[0, 0, 0], planes[-1, 1, 0], planes[0, 2, -1] = torch.nan, torch.inf, -torch.inf
    planes[0, 1] = torch.nan  # a plane without finite values
    return planes


def different_magnitudes(n: int, c: int, s: int) -> Tensor:
    return random_values(n, c, s) * torch.logspace(-30, 30, n * c).view(n, c, 1)


def near_the_resolution(n: int, c: int, s: int) -> Tensor:
    """Around 1e4, where neighbours in float32 differ by 2**-10, spread over four of them."""
    steps = torch.randint(0, 4, (n, c, s), generator=torch.Generator().manual_seed(0))
    return 1e4 + steps * 2.0**-10


CASES = {
    "random": random_values,
    "non-finite": with_nonfinite,
    "mean 1e4, spread 1e-2": lambda n, c, s: random_values(n, c, s) * 1e-2 + 1e4,
    "mean 1e4, spread 1e-3": near_the_resolution,
    "constant": lambda n, c, s: torch.full((n, c, s), 0.1),
    "zero": torch.zeros,
    "large": lambda n, c, s: random_values(n, c, s).sign() * 3e38,
    "denormal": lambda n, c, s: random_values(n, c, s) * 1e-41,
    "magnitudes": different_magnitudes,
    "float64": lambda n, c, s: random_values(n, c, s).double() * 1e290,
}


def expected(planes: Tensor) -> np.ndarray:
    """Min, max, mean and std of the finite values of each channel, by NumPy in float64."""
    channels = planes.double().transpose(0, 1).flatten(1).numpy()
    found = []
    for values in channels:
        finite = values[np.isfinite(values)]
        unit = max(abs(finite).max(), 1e-300) if finite.size else 1.0
        scaled = finite / unit
        found.append(
            [finite.min(), finite.max(), scaled.mean() * unit, scaled.std() * unit]
            if finite.size
            else [np.nan] * 4
        )
    return np.array(found).T


def combined_exactly(planes: Tensor, **options: bool) -> device.Combined:
    parts = device.read_exactly(planes, **options)
    return device.combine_exactly(parts, planes.dtype)


def combined(planes: Tensor, **options: bool) -> device.Combined:
    parts = device.read(planes, **options)
    return device.combine(parts, planes.shape[0] * planes.shape[2])


def magnitude(planes: Tensor) -> float:
    values = planes.double().numpy()
    return float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))


@pytest.mark.parametrize("shape", [(4, 3, 1024), (1, 3, 101), (7, 3, 1)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_exact_sums_give_the_statistics_in_float64(case: str, shape: tuple[int, int, int]) -> None:
    planes = CASES[case](*shape)
    lo, hi, mean, std = combined_exactly(planes).numbers
    low, high, middle, spread = expected(planes)
    np.testing.assert_array_equal(lo, low)
    np.testing.assert_array_equal(hi, high)
    scale = magnitude(planes)
    np.testing.assert_allclose(mean, middle, rtol=1e-6, atol=1e-7 * scale)
    np.testing.assert_allclose(std, spread, rtol=1e-5, atol=1e-12 * scale)


def test_a_tensor_read_in_chunks_has_the_same_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    planes = with_nonfinite(5, 7, 64)
    whole = combined_exactly(planes)
    monkeypatch.setattr(device, "_CHUNK_BYTES", 3 * 64 * 4)  # three planes
    chunks: list[tuple[int, ...]] = []
    real = device._read_chunk

    def noted(chunk: Tensor, *, moments: bool) -> tuple[Tensor, Tensor, Tensor]:
        chunks.append(tuple(chunk.shape))
        return real(chunk, moments=moments)

    monkeypatch.setattr(device, "_read_chunk", noted)
    in_chunks = combined_exactly(planes)
    assert chunks == [(1, 3, 64), (1, 3, 64), (1, 1, 64)] * 5
    np.testing.assert_allclose(in_chunks.numbers, whole.numbers, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(in_chunks.nonfinite, whole.nonfinite)


def test_a_constant_channel_has_exactly_its_value_as_mean_and_no_spread() -> None:
    values = torch.rand(50, generator=torch.Generator().manual_seed(0))
    planes = values.view(1, 50, 1).expand(3, 50, 1009)
    for found in (combined_exactly(planes), combined(planes)):
        assert found.numbers[2].tolist() == values.tolist()
        assert found.numbers[3].tolist() == [0.0] * 50
        assert found.settled


def test_nonfinite_values_are_counted_per_channel_and_kind() -> None:
    found = combined_exactly(with_nonfinite(4, 3, 16))
    assert found.nonfinite.tolist() == [[1, 16, 0], [0, 1, 0], [0, 0, 1]]
    assert (found.counted, found.settled) == (True, False)


def test_a_channel_without_finite_values_has_no_extremes() -> None:
    found = combined_exactly(torch.full((2, 1, 8), torch.nan))
    assert np.isnan(found.numbers).all()
    assert found.nonfinite.tolist() == [[16], [0], [0]]


def test_without_moments_the_extremes_and_counts_are_there_and_the_mean_is_unknown() -> None:
    planes = random_values(2, 3, 8)
    for found in (combined_exactly(planes, moments=False), combined(planes, moments=False)):
        lo, hi, mean, std = found.numbers
        assert lo.tolist() == planes.amin((0, 2)).tolist()
        assert hi.tolist() == planes.amax((0, 2)).tolist()
        assert np.isnan([mean, std]).all()
        assert found.settled


def test_nothing_but_the_dtype_of_the_tensor_and_counts_is_computed() -> None:
    for dtype in (torch.float32, torch.float64):
        parts = device.read_exactly(random_values(2, 3, 8).to(dtype))
        assert [part.dtype for part in parts] == [dtype, dtype, torch.int32]
        quick = device.read(random_values(2, 3, 8).to(dtype))
        assert {part.dtype for part in quick} == {dtype}
    quick = device.read(random_values(2, 3, 8).half())
    assert {part.dtype for part in quick} == {torch.float16, torch.float32}


@pytest.mark.parametrize("shape", [(4, 3, 1024), (1, 3, 101), (70, 3, 1)], ids=str)
@pytest.mark.parametrize(
    ("dtype", "relative"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-4), (torch.float16, 1e-4)]
)
@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_one_quick_reading_gives_the_statistics_of_finite_values(
    shape: tuple[int, int, int], dtype: torch.dtype, relative: float, offset: float
) -> None:
    planes = (random_values(*shape) + offset).to(dtype)
    found = combined(planes)
    low, high, middle, spread = expected(planes)
    np.testing.assert_array_equal(found.numbers[:2], [low, high])
    np.testing.assert_allclose(found.numbers[2], middle, rtol=relative, atol=1e-6)
    np.testing.assert_allclose(found.numbers[3], spread, rtol=relative)
    assert (found.counted, found.settled) == (True, True)
    assert not found.nonfinite.any()


@pytest.mark.parametrize("strides", ["contiguous", "channels_last"])
def test_extremes_are_those_of_each_plane(strides: str) -> None:
    planes = random_values(3, 5, 8)
    if strides == "channels_last":
        planes = planes.transpose(1, 2).contiguous().transpose(1, 2)
    lo, hi, *_ = device.read(planes)
    assert torch.equal(lo, planes.amin(2))
    assert torch.equal(hi, planes.amax(2))


def test_a_quick_reading_flags_the_channels_with_nonfinite_values_without_counting() -> None:
    planes = random_values(4, 5, 16)
    planes[0, 0, 3], planes[1, 1, :4], planes[3, 2, 5] = torch.nan, torch.inf, -torch.inf
    planes[1, 3, 0], planes[2, 3, 1] = torch.inf, -torch.inf
    found = combined(planes)
    assert found.nonfinite.tolist() == [[1, 0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 1, 0]]
    assert (found.counted, found.settled) == (False, False)
    lo, hi, mean, std = found.numbers
    assert np.isnan(mean).tolist() == np.isnan(std).tolist() == [True] * 4 + [False]
    # The minimum is not affected by +Inf, nor the maximum by -Inf.
    assert np.isnan(lo).tolist() == [True, False, True, True, False]
    assert np.isnan(hi).tolist() == [True, True, False, True, False]
    assert lo[1] == planes[:, 1].min()


@pytest.mark.parametrize("values", [different_magnitudes, CASES["large"], CASES["denormal"]])
def test_moments_beyond_the_range_of_float32_are_unknown_and_read_exactly_next_time(
    values: Callable[[int, int, int], Tensor],
) -> None:
    planes = values(4, 3, 64)
    found = combined(planes)
    assert not found.settled
    assert found.counted
    spread = expected(planes)[3]
    is_known = ~np.isnan(found.numbers[3])
    np.testing.assert_allclose(found.numbers[3][is_known], spread[is_known], rtol=1e-4)
    assert not combined_exactly(planes).settled


def test_a_small_spread_around_a_large_mean_is_read_exactly_next_time() -> None:
    planes = near_the_resolution(4, 3, 64)
    assert not combined(planes).settled
    assert not combined_exactly(planes).settled
    assert combined(random_values(4, 3, 64) + 100).settled
    halves = (random_values(4, 3, 64) + 200).half()
    assert not combined(halves).settled
