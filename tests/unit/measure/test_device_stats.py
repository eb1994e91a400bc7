"""Statistics from sums on an accelerator agree with float64, for any values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from fmapboard.measure import device_stats


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


@pytest.mark.parametrize("shape", [(4, 3, 1024), (1, 3, 101), (7, 3, 1)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_combined_sums_are_the_statistics_in_float64(
    case: str, shape: tuple[int, int, int]
) -> None:
    planes = CASES[case](*shape)
    parts = [part.numpy() for part in device_stats.read(planes)]
    (lo, hi, mean, std), _ = device_stats.combine(parts, shape[2])
    low, high, middle, spread = expected(planes)
    np.testing.assert_array_equal(lo, low)
    np.testing.assert_array_equal(hi, high)
    scale = np.nanmax(
        np.abs(planes.double().numpy()), initial=0.0, where=np.isfinite(planes.numpy())
    )
    np.testing.assert_allclose(mean, middle, rtol=1e-6, atol=1e-8 * scale)
    np.testing.assert_allclose(std, spread, rtol=1e-5, atol=1e-12 * scale)


def test_a_constant_channel_has_exactly_its_value_as_mean_and_no_spread() -> None:
    values = torch.rand(50, generator=torch.Generator().manual_seed(0))
    planes = values.view(1, 50, 1).expand(3, 50, 1009)
    parts = [part.numpy() for part in device_stats.read(planes)]
    (_, _, mean, std), _ = device_stats.combine(parts, 1009)
    assert mean.tolist() == values.tolist()
    assert std.tolist() == [0.0] * 50


def test_nonfinite_values_are_counted_per_channel_and_kind() -> None:
    planes = with_nonfinite(4, 3, 16)
    parts = [part.numpy() for part in device_stats.read(planes)]
    _, nonfinite = device_stats.combine(parts, 16)
    assert nonfinite.tolist() == [[1, 16, 0], [0, 1, 0], [0, 0, 1]]


def test_a_channel_without_finite_values_has_no_extremes() -> None:
    parts = [part.numpy() for part in device_stats.read(torch.full((2, 1, 8), torch.nan))]
    numbers, nonfinite = device_stats.combine(parts, 8)
    assert np.isnan(numbers).all()
    assert nonfinite.tolist() == [[16], [0], [0]]


def test_without_moments_the_extremes_and_counts_are_there_and_the_mean_is_unknown() -> None:
    planes = random_values(2, 3, 8)
    parts = device_stats.read(planes, moments=False)
    assert parts[1].numel() == 0
    (lo, hi, mean, std), _ = device_stats.combine([part.numpy() for part in parts], 8)
    assert lo.tolist() == planes.amin((0, 2)).tolist()
    assert hi.tolist() == planes.amax((0, 2)).tolist()
    assert np.isnan(mean).all()
    assert np.isnan(std).all()


def test_nothing_but_the_dtype_of_the_tensor_and_counts_is_computed() -> None:
    for dtype in (torch.float32, torch.float64):
        parts = device_stats.read(random_values(2, 3, 8).to(dtype))
        assert [part.dtype for part in parts] == [dtype, dtype, torch.int32]
