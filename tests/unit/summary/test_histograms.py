"""Histograms count every finite value, between the tensor's own extremes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fmapboard.measure.sample import SAMPLE_SIZE, sample
from fmapboard.records import Histogram, Sample
from fmapboard.summary.histograms import BUCKETS, histogram

NAN, INF = math.nan, math.inf


def of(*values: float, dtype: type = np.float32) -> Histogram:
    return histogram("activations/conv", Sample(np.array(values, dtype), len(values)))


def test_thirty_buckets_of_equal_width_span_the_extremes() -> None:
    counted = histogram("a", Sample(np.arange(31, dtype=np.float32), 31))
    assert counted.tag == "a"
    assert counted.edges.tolist() == pytest.approx(list(range(31)))
    assert counted.counts.tolist() == [1.0] * 29 + [2.0]
    assert counted.nonfinite == 0
    assert BUCKETS == 30


def test_counts_equal_numpys_on_real_numbers() -> None:
    values = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    counted = histogram("a", Sample(values, values.size))
    expected, edges = np.histogram(values.astype(np.float64), BUCKETS)
    assert np.allclose(counted.edges, edges)
    difference = np.abs(counted.counts - expected).sum()
    assert difference <= 2, "a value on an edge may fall on either side"
    assert counted.counts.sum() == 10_000


def test_non_finite_values_are_left_out_and_counted() -> None:
    counted = of(0.0, NAN, 1.0, INF, -INF, NAN)
    assert counted.counts.sum() == 2
    assert counted.nonfinite == 4
    assert (counted.edges[0], counted.edges[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("values", [(NAN,), (INF, -INF), ()])
def test_a_tensor_without_finite_values_has_no_buckets_and_raises_no_error(
    values: tuple[float, ...],
) -> None:
    counted = of(*values)
    assert (counted.edges.size, counted.counts.size) == (0, 0)
    assert counted.nonfinite == len(values)


@pytest.mark.parametrize("value", [0.0, 3.0, -7.5])
def test_one_single_value_gets_one_bucket_of_width_1_around_it(value: float) -> None:
    counted = of(value, value, value)
    assert counted.edges.tolist() == [value - 0.5, value + 0.5]
    assert counted.counts.tolist() == [3.0]


@pytest.mark.parametrize("value", [1e16, -1e30, 3.4e38, -3.4e38])
def test_one_single_huge_value_gets_one_bucket_that_holds_it(value: float) -> None:
    counted = of(value, value)
    assert counted.counts.tolist() == [2.0]
    assert counted.edges[0] < np.float32(value) < counted.edges[1]
    assert np.isfinite(counted.edges).all()


@pytest.mark.parametrize(
    ("lo", "hi"),
    [(-3.4e38, 3.4e38), (0.0, 1e-45), (1e-40, 3e-40), (1.0, 1.0000001), (1e6, 1e6 + 0.0625)],
)
def test_extreme_ranges_of_float32_are_counted(lo: float, hi: float) -> None:
    counted = of(lo, hi, hi)
    assert counted.counts[[0, -1]].tolist() == [1.0, 2.0]
    assert (np.diff(counted.edges) > 0).all()
    assert counted.edges[[0, -1]].tolist() == np.array([lo, hi], np.float32).tolist()


@pytest.mark.parametrize(("lo", "hi"), [(-1.7e308, 1.7e308), (0.0, 5e-324), (1.0, 1 + 2**-52)])
def test_extreme_ranges_of_float64_are_counted(lo: float, hi: float) -> None:
    counted = of(lo, hi, hi, dtype=np.float64)
    assert counted.counts.sum() == 3
    assert (np.diff(counted.edges) >= 0).all()
    assert counted.edges[[0, -1]].tolist() == [lo, hi]


def test_the_counts_of_a_sample_are_scaled_up_to_the_whole_tensor() -> None:
    counted = histogram("a", Sample(np.array([0.0, 1.0, NAN, 1.0], np.float32), 4000))
    assert counted.counts.sum() == 3000
    assert counted.nonfinite == 1000


def test_known_extremes_of_the_tensor_bound_the_buckets() -> None:
    counted = histogram("a", Sample(np.array([0.0, 1.0], np.float32), 200, lo=-5.0, hi=7.0))
    assert counted.edges[[0, -1]].tolist() == [-5.0, 7.0]
    assert counted.counts.sum() == 200


def test_extremes_that_are_narrower_than_the_sample_cut_nothing_off() -> None:
    counted = histogram("a", Sample(np.array([0.0, 1.0], np.float32), 2, lo=0.25, hi=0.5))
    assert counted.edges[[0, -1]].tolist() == [0.0, 1.0]


def test_the_shares_of_a_large_tensors_buckets_are_within_the_stated_error() -> None:
    values = torch.randn(64, 32, 32, 20, generator=torch.Generator().manual_seed(0))
    pending = sample(values)
    assert pending.values.numel() <= SAMPLE_SIZE < values.numel()
    counted = histogram("a", pending.to_host())
    assert counted.counts.sum() == pytest.approx(values.numel())
    edges = counted.edges
    true = np.histogram(values.double().numpy(), edges)[0] / values.numel()
    found = counted.counts / counted.counts.sum()
    likely = true > 1e-3
    error = np.sqrt((1 - true[likely]) / (pending.values.numel() * true[likely]))
    assert (np.abs(found - true)[likely] / true[likely] < 5 * error).all()
