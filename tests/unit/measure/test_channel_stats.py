"""Per-channel statistics against float64 references in numpy."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fmapboard.measure.channel_stats
from fmapboard.measure import plane_sums
from fmapboard.measure.channel_stats import PendingStatistics, statistics, work_out
from fmapboard.measure.reducer import Reducer, joined
from fmapboard.model.activations import activations, floor_of, is_bounded
from fmapboard.records import Site, Statistics

torch.set_num_threads(1)


def _measure(maps: Tensor, floor: float | None = None) -> Statistics:
    return statistics(maps, floor).to_host()


def _assert_right(maps: Tensor, *, relative: float = 2e-6) -> Statistics:
    """Extremes and counts exact; mean and spread near numpy's in float64, on the spread's scale."""
    found = _measure(maps)
    planes = maps.double().numpy().reshape(maps.shape[0], maps.shape[1], -1).swapaxes(0, 1)
    for channel, values in enumerate(planes.reshape(maps.shape[1], -1)):
        known = values[np.isfinite(values)]
        assert found.nan[channel] == np.isnan(values).sum()
        assert found.positive_infinity[channel] == np.isposinf(values).sum()
        assert found.negative_infinity[channel] == np.isneginf(values).sum()
        if not known.size:
            lone = (found.minimum, found.maximum, found.mean, found.std)
            assert all(np.isnan(row[channel]) for row in lone)
            continue
        assert found.minimum[channel] == known.min()
        assert found.maximum[channel] == known.max()
        size = np.abs(known).max()
        assert abs(found.mean[channel] - known.mean()) <= relative * size
        assert found.std[channel] == pytest.approx(known.std(), rel=relative * 10, abs=0.0)
    return found


def test_ordinary_maps_have_numpys_statistics() -> None:
    found = _assert_right(torch.randn(4, 8, 13, 17))
    assert not found.constant.any()
    assert not found.nonfinite.any()
    assert found.dead is None


def test_samples_of_different_level_count_into_the_spread() -> None:
    maps = torch.randn(4, 3, 8, 8) + torch.tensor([0.0, 100.0, -50.0, 7.0])[:, None, None, None]
    _assert_right(maps)


def test_one_nan_leaves_the_rest_of_its_channel_and_all_others_exact() -> None:
    maps = torch.randn(2, 3, 5, 5)
    maps[1, 1, 2, 3] = torch.nan
    found = _assert_right(maps)
    assert found.nan.tolist() == [0, 1, 0]
    assert found.nonfinite.tolist() == [False, True, False]


def test_infinities_of_both_signs_are_counted_and_left_out_of_the_numbers() -> None:
    maps = torch.randn(2, 3, 5, 5)
    maps[0, 0, 0, :3] = torch.inf
    maps[1, 2, 1, :2] = -torch.inf
    found = _assert_right(maps)
    assert found.positive_infinity.tolist() == [3, 0, 0]
    assert found.negative_infinity.tolist() == [0, 0, 2]
    assert found.nonfinite.tolist() == [True, False, True]


def test_a_channel_without_a_finite_value_has_nan_for_all_its_numbers() -> None:
    maps = torch.ones(2, 2, 3, 3)
    maps[:, 0] = torch.nan
    found = _assert_right(maps)
    assert found.nan.tolist() == [18, 0]
    assert found.constant.tolist() == [False, True]


def test_values_of_3e38_do_not_overflow() -> None:
    maps = torch.full((2, 2, 4, 4), 3e38)
    maps[:, 1, ::2] = -3e38
    found = _assert_right(maps)
    assert found.std[0] == 0.0
    assert found.std[1] == pytest.approx(3e38)


def test_denormals_do_not_vanish() -> None:
    found = _assert_right(torch.randn(2, 3, 8, 8) * 1e-40, relative=1e-4)
    assert (found.std > 5e-41).all()


@pytest.mark.parametrize("size", [1e-25, 1e20])
def test_a_faint_or_a_loud_channel_beside_ordinary_ones_keeps_its_spread(size: float) -> None:
    maps = torch.randn(3, 4, 8, 8)
    maps[:, 1] *= size
    _assert_right(maps)


@pytest.mark.parametrize("side", [7, 64, 112, 300])
def test_many_like_values_are_summed_without_drift(side: int) -> None:
    maps = torch.full((1, 2, side, side), 60000.0)
    maps[:, :, ::2] = 40000.0
    _assert_right(maps)
    _assert_right(maps.to(memory_format=torch.channels_last))


@pytest.mark.parametrize("batch", [1, 4])
def test_a_small_spread_around_a_large_mean_is_exact(batch: int) -> None:
    found = _assert_right(1e4 + 1e-2 * torch.randn(batch, 4, 56, 56))
    assert found.std == pytest.approx([0.01] * 4, rel=0.1)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.3, 1e4, 1e-41, 3e38])
def test_a_constant_channel_has_exactly_its_value_and_no_spread(value: float) -> None:
    found = _measure(torch.full((3, 1, 7, 9), value))
    stored = torch.tensor(value, dtype=torch.float32).item()
    assert found.minimum.tolist() == found.maximum.tolist() == [stored]
    assert found.mean.tolist() == [pytest.approx(stored, rel=1e-15)]
    assert found.std.tolist() == [0.0]
    assert found.constant.tolist() == [True]


def test_a_channel_that_differs_between_samples_alone_is_not_constant() -> None:
    maps = torch.stack([torch.zeros(1, 4, 4), torch.ones(1, 4, 4)])
    found = _assert_right(maps)
    assert found.constant.tolist() == [False]
    assert found.std.tolist() == [0.5]


@pytest.mark.parametrize("size", [(7, 7), (1, 2), (16, 16)])
def test_planes_that_are_constant_each_spread_by_their_levels_alone(size: tuple[int, int]) -> None:
    levels = 1000.0 + torch.arange(8.0) * 1e-3
    maps = levels.reshape(8, 1, 1, 1).expand(8, 1, *size)
    found = _measure(maps)
    assert found.std.tolist() == [pytest.approx(levels.double().std(correction=0).item(), rel=1e-6)]
    assert found.mean.tolist() == [pytest.approx(levels.double().mean().item(), rel=1e-9)]


def test_a_constant_channel_with_one_nan_is_not_constant() -> None:
    maps = torch.ones(1, 1, 4, 4)
    maps[0, 0, 0, 0] = torch.nan
    assert _measure(maps).constant.tolist() == [False]


def test_one_pixel_of_one_sample_is_neither_constant_nor_dead() -> None:
    found = _measure(torch.zeros(1, 3, 1, 1), floor=0.0)
    assert found.constant.tolist() == [False] * 3
    assert found.dead is not None
    assert found.dead.tolist() == [False] * 3
    assert found.std.tolist() == [0.0] * 3


def test_one_pixel_planes_are_constant_and_dead_by_their_batch() -> None:
    maps = torch.zeros(4, 3, 1, 1)
    maps[:, 1] = 2.0
    maps[1, 2] = 1.0
    found = _measure(maps, floor=0.0)
    assert found.constant.tolist() == [True, True, False]
    assert found.dead is not None
    assert found.dead.tolist() == [True, False, False]


@pytest.mark.parametrize(
    "shape", [(2, 1, 6, 6), (1, 2048, 3, 3), (5, 7), (3, 4, 11), (2, 3, 2, 4, 5)]
)
def test_any_number_of_channels_and_axes_is_reduced(shape: tuple[int, ...]) -> None:
    found = _assert_right(torch.randn(shape))
    assert found.mean.shape == (shape[1],)


def test_float64_keeps_its_digits() -> None:
    maps = 1e4 + 1e-6 * torch.randn(2, 3, 8, 8, dtype=torch.float64)
    _assert_right(maps)
    assert _measure(maps).std == pytest.approx([1e-6] * 3, rel=0.3)


def test_channels_last_and_transposed_maps_have_the_same_statistics() -> None:
    maps = torch.randn(2, 5, 6, 7)
    _assert_right(maps.to(memory_format=torch.channels_last))
    _assert_right(torch.randn(2, 9, 4).transpose(1, 2))


# --- how much is read at once changes nothing


@pytest.mark.parametrize(("nbytes", "samples"), [(1, [1] * 5), (2400, [2, 2, 1]), (1 << 30, [5])])
def test_the_samples_of_a_large_batch_are_read_in_parts(
    nbytes: int, samples: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = torch.randn(5, 3, 9, 11)
    whole = statistics(maps).parts
    monkeypatch.setattr(plane_sums, "_CACHED", nbytes)
    read = count_calls(monkeypatch, "_read_part")
    parts = statistics(maps).parts
    assert read == samples
    for part, known in zip(parts, whole, strict=True):
        assert torch.equal(part, known)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf, 7.0])
def test_small_planes_are_read_across_samples(value: float) -> None:
    maps = torch.randn(6, 4, 7, 7)
    assert [part.shape[0] for part in statistics(maps).parts] == [49] * 4
    assert [part.shape[0] for part in statistics(maps[:2]).parts] == [2] * 4
    _assert_right(maps)
    maps[4, 2, 6, 6] = value
    _assert_right(maps)
    _assert_right(maps.to(memory_format=torch.channels_last))


def test_no_large_batch_of_small_planes_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    across = count_calls(monkeypatch, "read_across")
    maps = torch.randn(16, 4, 5, 5)
    statistics(maps)
    monkeypatch.setattr(plane_sums, "_CACHED", maps.nbytes // 2 - 1)
    _assert_right(maps)
    assert across == [16]


@pytest.mark.parametrize("shape", [(8, 3, 7, 7), (40, 5, 1, 1), (5, 2, 2, 3), (1025, 2, 2, 2)])
@pytest.mark.parametrize("mean", [0.0, 1e4, -3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_planes_around_any_mean_have_numpys_statistics(
    shape: tuple[int, ...], mean: float, dtype: torch.dtype
) -> None:
    maps = torch.randn(shape, dtype=dtype) * 0.02 + mean
    maps[:, 1] += torch.arange(shape[0])[:, None, None]  # each plane varies little, the batch much
    _assert_right(maps)
    maps[:, 0] = 0.5
    assert _assert_right(maps).constant.tolist()[:2] == [True, False]


def test_any_number_of_threads_reads_the_same_bits() -> None:
    maps = torch.randn(8, 16, 96, 96)
    alone = statistics(maps).parts
    torch.set_num_threads(2)
    try:
        together = statistics(maps).parts
    finally:
        torch.set_num_threads(1)
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


def test_layers_whose_planes_vary_are_judged_by_one_quick_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = count_calls(monkeypatch, "_cancels")
    for shape in ((8, 4, 7, 7), (2, 4, 100, 90), (1, 3, 5, 5)):
        statistics(torch.randn(shape))
    assert looks == []
    statistics(torch.zeros(8, 4, 7, 7))
    assert looks == [49]


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """The first side of what a function of the module is called with, in order."""
    sides: list[int] = []
    real = getattr(plane_sums, name)

    def counted(first: Any, *others: Any) -> Any:
        sides.append(first.shape[0])
        return real(first, *others)

    monkeypatch.setattr(plane_sums, name, counted)
    return sides


# --- activations that clamp are read less often


def _of_clamped(maps: Tensor, floor: float = 0.0) -> Statistics:
    return statistics(maps, floor, moments=False, bounded=True).to_host()


@pytest.mark.parametrize("size", [(5, 5), (12, 12)])
@pytest.mark.parametrize("raised", [0, 1, 5, 9])
def test_a_clamped_activation_has_its_extremes_wherever_they_are(
    raised: int, size: tuple[int, int]
) -> None:
    maps = torch.randn(5, 10, *size).relu()
    maps[0, :raised] += 0.5  # the first sample alone does not touch the floor there
    maps[1:, 2] += 0.25
    maps[:, 9] = 0.0
    found = _of_clamped(maps)
    assert found.minimum.tolist() == maps.amin((0, 2, 3)).tolist()
    assert found.maximum.tolist() == maps.amax((0, 2, 3)).tolist()
    assert found.dead is not None
    assert found.dead.tolist() == [False] * 9 + [True]


@pytest.mark.parametrize(("raised", "reads"), [(0, []), (3, []), (8, [5])])
def test_most_smallest_values_of_a_clamped_activation_are_known_from_its_first_sample(
    raised: int, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = torch.randn(5, 10, 12, 12).relu()
    maps[0, :raised] += 0.5
    whole = count_calls(monkeypatch, "_smallest")
    _of_clamped(maps)
    assert whole == reads


def test_a_channel_that_is_dead_in_the_first_sample_alone_is_not_dead() -> None:
    maps = torch.zeros(3, 2, 4, 4)
    maps[2, 1, 3, 3] = 1.0
    found = _of_clamped(maps)
    assert found.dead is not None
    assert found.dead.tolist() == [True, False]
    assert found.constant.tolist() == [True, False]


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("sample", [0, 4])
def test_a_clamped_activation_hides_nothing_that_is_not_finite(value: float, sample: int) -> None:
    maps = torch.randn(5, 3, 6, 6).relu()
    maps[sample, 1, 2, 2] = value
    found = _of_clamped(maps)
    assert found.nonfinite.tolist() == [False, True, False]
    assert np.isfinite(found.maximum).all()


def test_only_modules_that_clamp_are_trusted_to_stay_above_their_floor() -> None:
    class Below(nn.ReLU6):
        def forward(self, x: Tensor) -> Tensor:
            return x

    clamping = [m for m, _ in _ACTIVATIONS if is_bounded(m)]
    assert [type(m) for m in clamping] == [nn.ReLU, nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Hardsigmoid]
    assert not is_bounded(Below())
    maps = torch.zeros(2, 1, 3, 3)
    maps[1] = -4.0
    site = Site("act", "Below", floor=0.0, pictures=False)
    pending = Reducer()(site, "feature_maps", maps, Below())
    assert pending.statistics is not None
    assert pending.statistics.to_host().minimum.tolist() == [-4.0]


# --- constant and dead, per activation


_ACTIVATIONS: list[tuple[nn.Module, float]] = [
    (nn.ReLU(), 0.0),
    (nn.ReLU(inplace=True), 0.0),
    (nn.ReLU6(), 0.0),
    (nn.Hardtanh(-0.3, 2.0), -0.3),
    (nn.Threshold(0.1, -0.7), -0.7),
    (nn.Hardsigmoid(), 0.0),
    (nn.Hardswish(), 0.0),
    (nn.ELU(1.3), -1.3),
    (nn.CELU(0.7), -0.7),
    (nn.SELU(), -1.7580993408473766),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("module", "floor"), _ACTIVATIONS, ids=lambda value: str(value))
def test_a_channel_at_the_floor_of_its_activation_is_dead_in_every_type(
    module: nn.Module, floor: float, dtype: torch.dtype
) -> None:
    x = torch.full((2, 3, 4, 4), -1e4, dtype=dtype)
    x[:, 1] = 1.0
    x[0, 2, 0, 0] = 1.0
    out = module(x)
    assert floor_of(module) == pytest.approx(floor, rel=1e-12)
    site = Site("act", type(module).__name__, floor=floor_of(module), pictures=False)
    pending = Reducer()(site, "feature_maps", out, module)
    assert pending.statistics is not None
    found = pending.statistics.to_host()
    assert found.dead is not None
    assert found.dead.tolist() == [True, False, False]
    assert found.constant.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("module", "x"),
    [(nn.Hardswish(), -1.0), (nn.Threshold(1.0, 5.0), 2.0), (nn.ELU(), -1.0)],
    ids=["Hardswish", "Threshold", "ELU"],
)
def test_a_constant_channel_beside_the_floor_is_not_dead(module: nn.Module, x: float) -> None:
    found = _measure(module(torch.full((2, 1, 3, 3), x)), floor_of(module))
    assert found.constant.tolist() == [True]
    assert found.dead is not None
    assert found.dead.tolist() == [False]


@pytest.mark.parametrize(
    "module", [nn.LeakyReLU(), nn.PReLU(), nn.GELU(), nn.SiLU(), nn.Sigmoid(), nn.Conv2d(1, 1, 1)]
)
def test_a_module_that_passes_something_on_everywhere_has_no_floor(module: nn.Module) -> None:
    assert floor_of(module) is None


def test_activation_modules_with_a_floor_are_found_at_any_depth() -> None:
    inner = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU(), nn.GELU())
    assert list(activations(nn.Sequential(inner, nn.ELU()))) == ["0.1", "1"]


def _of_every_kind() -> list[PendingStatistics]:
    torch.manual_seed(0)
    odd = torch.randn(4, 3, 8, 9)
    odd[1, 2, 0, 0], odd[3, 1, 2, 2] = torch.nan, -torch.inf
    level = torch.randn(4, 5, 8, 9)
    level[2] += 1000.0
    level[:, 1] = 7.0
    relu = torch.randn(4, 6, 8, 9).relu()
    relu[:, 3:5] = 0.0
    single = torch.full((1, 2, 1, 1), 3.0)
    maps = [level, odd, torch.randn(4, 2, 40, 40), torch.randn(16, 7, 3, 3), single, level + 1e4]
    read = [statistics(one) for one in (*maps, torch.randn(4, 3, 8, 8, dtype=torch.float64) * 1e9)]
    few = relu[:2]
    read += [statistics(one, 0.0, moments=False, bounded=True) for one in (relu, few)]
    read += [statistics(one, 0.0, moments=False) for one in (relu, few)]
    return [*read, statistics(single, 3.0), statistics(relu[:1], 0.0), statistics(odd, 0.0)]


@pytest.mark.parametrize("seed", range(4))
def test_the_numbers_of_many_tensors_at_once_are_those_of_each_alone(seed: int) -> None:
    pending = _of_every_kind()
    assert {len(one.parts) for one in pending} == {1, 2, 4, 7}
    order = np.random.default_rng(seed).permutation(len(pending))
    together = work_out([pending[n] for n in order])
    for n, found in zip(order, together, strict=True):
        alone = pending[n].to_host()
        for name in (field.name for field in fields(Statistics)):
            here, there = getattr(found, name), getattr(alone, name)
            np.testing.assert_array_equal(here, there, err_msg=f"{name} of {n}", strict=True)
            assert (here is None) == (there is None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tensors were worked out in each go."""
    counts: list[int] = []
    real = fmapboard.measure.channel_stats._of_planes

    def counting(read: Any, sizes: Any) -> Any:
        counts.append(len(read))
        return real(read, sizes)

    monkeypatch.setattr(fmapboard.measure.channel_stats, "_of_planes", counting)
    return counts


def test_tensors_that_were_read_alike_are_worked_out_in_one_go(asked: list[int]) -> None:
    shapes = [(4, 3, 8, 9), (4, 5, 16, 16), (4, 1, 80, 80)]
    site, module = Site("conv", "Conv2d"), nn.Conv2d(1, 1, 1)
    levels = (0.0, 1e4, 0.0)
    convs = [
        Reducer()(site, "feature_maps", torch.randn(shape) + level, module)
        for shape, level in zip(shapes, levels, strict=True)
    ]
    relu = Site("relu", "ReLU", pictures=False, floor=0.0)
    relus = [
        Reducer()(relu, "feature_maps", torch.randn(shape).relu(), nn.ReLU()) for shape in shapes
    ]
    found = joined([*convs, *relus], pytest.fail)  # type: ignore[arg-type]
    assert asked == [3, 3]
    assert len(found) == 2  # of each site the last


@pytest.mark.parametrize(("most", "wanted"), [(59, [1] * 5), (60, [2, 2, 1]), (90, [3, 2])])
def test_no_more_planes_are_worked_out_in_one_go_than_the_bound_says(
    most: int, wanted: list[int], asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fmapboard.measure.channel_stats, "MAX_PLANES", most)
    many = [statistics(torch.randn(10, 3, 9, 9)) for _ in range(5)]
    together = work_out(many)
    assert asked == wanted
    for found, one in zip(together, many, strict=True):
        np.testing.assert_array_equal(found.mean, one.to_host().mean)


def test_extremes_alone_leave_mean_and_spread_unknown() -> None:
    found = statistics(torch.zeros(2, 3, 4, 4), 0.0, moments=False).to_host()
    assert np.isnan([found.mean, found.std]).all()
    assert found.dead is not None
    assert found.dead.all()
