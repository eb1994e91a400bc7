"""Statistics of a batch that is split over ranks, from one exchange per logged step."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fmapboard.errors import WarnOnce
from fmapboard.measure import merge_ranks
from fmapboard.measure.merge_ranks import RankExchange, Share
from fmapboard.measure.reducer import Reducer, joined
from fmapboard.records import LayerCall, LayerMeasurement, Statistics

Measured = tuple[LayerMeasurement, ...]


def measured(*tensors: torch.Tensor) -> Measured:
    """The measurements of the outputs of layers ``0``, ``1``, ..."""
    reduce, layer = Reducer(), nn.Conv2d(3, 3, 1)
    return joined(
        [
            reduce(LayerCall(str(number), "Conv2d", None), "feature_maps", tensor, layer)
            for number, tensor in enumerate(tensors)
        ],
        lambda label, error: pytest.fail(f"{label}: {error}"),
    )


class Others:
    """The other ranks: they share what a test gives them."""

    def __init__(self, *shares: Share) -> None:
        self.shares, self.received = shares, list[Share]()

    def __call__(self, own: Share) -> Sequence[Share]:
        self.received.append(own)
        return [own, *self.shares]


def share_of(step: int, parts: Measured) -> Share:
    others = Others()
    RankExchange(others, WarnOnce()).merged(step, parts)
    return others.received[0]


def test_the_statistics_are_those_of_the_batches_of_all_ranks() -> None:
    one, two = torch.randn(2, 3, 4, 4), torch.randn(3, 3, 4, 4) * 5 + 2
    exchange = RankExchange(Others(share_of(7, measured(two))), WarnOnce())
    (merged,) = exchange.merged(7, measured(one))
    (whole,) = measured(torch.cat([one, two]))
    for name in ("minimum", "maximum", "mean", "std", "nan"):
        found, expected = getattr(merged.statistics, name), getattr(whole.statistics, name)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_how_much_images_differ_is_that_of_this_ranks_batch() -> None:
    own, other = measured(torch.rand(4, 3, 4, 4)), measured(torch.zeros(4, 3, 4, 4))
    (merged,) = RankExchange(Others(share_of(7, other)), WarnOnce()).merged(7, own)
    assert merged.statistics.spread == own[0].statistics.spread > 0.3


def test_a_tensor_that_only_this_rank_measured_keeps_its_statistics() -> None:
    parts = measured(torch.rand(2, 3, 4, 4), torch.rand(2, 3, 2, 2))
    merged = RankExchange(Others((0, {})), WarnOnce()).merged(0, parts)
    for part, before in zip(merged, parts, strict=True):
        np.testing.assert_allclose(part.statistics.mean, before.statistics.mean)


def test_a_rank_with_nothing_to_share_takes_part_in_the_exchange() -> None:
    others = Others()
    assert RankExchange(others, WarnOnce()).merged(3, ()) == ()
    assert others.received == [(3, {})]


@pytest.mark.usefixtures("errors_are_only_logged")
def test_after_a_failed_exchange_later_steps_do_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    def fails(own: Share) -> Sequence[Share]:
        calls.append(own[0])
        raise RuntimeError("timed out")

    exchange, parts = RankExchange(fails, WarnOnce()), measured(torch.rand(2, 3, 4, 4))
    with caplog.at_level(logging.WARNING):
        assert exchange.merged(10, parts) == parts
        assert exchange.merged(20, parts) == parts
    assert calls == [10]
    assert [record.getMessage() for record in caplog.records] == [
        "fmapboard: reduce_statistics: RuntimeError: timed out; from step 10 on, statistics are "
        "those of this rank's batch"
    ]


@pytest.mark.usefixtures("errors_are_only_logged")
def test_different_steps_are_not_merged(caplog: pytest.LogCaptureFixture) -> None:
    others = Others((8, {}))
    exchange, parts = RankExchange(others, WarnOnce()), measured(torch.rand(2, 3, 4, 4))
    assert exchange.merged(7, parts) == parts
    assert exchange.merged(9, parts) == parts
    assert len(others.received) == 1
    assert "the ranks are at different steps: [7, 8]; give every rank the same " in caplog.text


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_rank_that_cannot_make_its_share_sends_an_empty_one_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    others, parts = Others(), measured(torch.rand(2, 3, 4, 4))
    exchange = RankExchange(others, WarnOnce())
    with monkeypatch.context() as broken:
        broken.setattr(merge_ranks, "_shared", lambda parts: 1 / 0)
        assert exchange.merged(0, parts) == parts
    assert others.received == [(0, {})]
    assert "one step has statistics without those of this rank" in caplog.text
    exchange.merged(1, parts)
    assert len(others.received[1][1]) == 1


@pytest.mark.usefixtures("errors_are_only_logged")
def test_what_cannot_be_merged_is_kept_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(merge_ranks, "_merged", lambda parts: 1 / 0)
    parts = measured(torch.rand(2, 3, 4, 4))
    assert RankExchange(Others(), WarnOnce()).merged(0, parts) == parts
    assert "ZeroDivisionError" in caplog.text


def test_a_single_process_exchanges_nothing() -> None:
    assert RankExchange.among_all(WarnOnce()) is None


def test_what_one_rank_only_flagged_is_not_known_of_the_whole_batch() -> None:
    (own,) = measured(torch.randn(2, 3, 4, 4))
    assert own.statistics is not None
    flagged = replace(
        own.statistics,
        minimum=np.array([np.nan, *own.statistics.minimum[1:]]),
        mean=np.array([np.nan, *own.statistics.mean[1:]]),
        std=np.array([np.nan, *own.statistics.std[1:]]),
        positive_infinity=np.array([1, 0, 0]),
        counted=False,
    )
    exchange = RankExchange(Others(share_of(7, (replace(own, statistics=flagged),))), WarnOnce())
    (merged,) = exchange.merged(7, (own,))
    assert merged.statistics is not None
    assert not merged.statistics.counted
    for name in ("minimum", "mean", "std"):
        found = getattr(merged.statistics, name)
        assert np.isnan(found).tolist() == [True, False, False], name
    np.testing.assert_allclose(merged.statistics.maximum, own.statistics.maximum)


# --- activations


def of_relu(outputs: torch.Tensor) -> Measured:
    """The measurement of a ReLU's output, of which neither mean nor std is read."""
    layer_call = LayerCall("relu", "ReLU", pictures=False, floor=0.0)
    part = Reducer()(layer_call, "feature_maps", outputs, nn.ReLU())
    return joined([part], lambda label, error: pytest.fail(f"{label}: {error}"))


def merged_and_whole(*outputs: torch.Tensor) -> tuple[Statistics, Statistics]:
    """The statistics of a ReLU as merged over ranks, and as read in one process."""
    first, *others = outputs
    shares = Others(*(share_of(0, of_relu(own)) for own in others))
    (merged,) = RankExchange(shares, WarnOnce()).merged(0, of_relu(first))
    (whole,) = of_relu(torch.cat(outputs))
    assert merged.statistics is not None
    assert whole.statistics is not None
    return merged.statistics, whole.statistics


@pytest.mark.parametrize("samples", [[1, 1], [1, 3], [3, 1], [1, 1, 1], [2, 2]])
def test_channels_that_are_dead_on_all_ranks_are_dead_though_a_rank_has_one_sample(
    samples: list[int],
) -> None:
    outputs = [torch.tensor([[0.0, 0.0, 1.0]]).repeat(count, 1) for count in samples]
    outputs[-1][-1, 1] = 2.0
    merged, whole = merged_and_whole(*outputs)
    assert merged.dead is not None
    assert whole.dead is not None
    assert merged.dead.tolist() == whole.dead.tolist() == [True, False, False]
    assert merged.constant.tolist() == whole.constant.tolist() == [True, False, True]
    assert (merged.minimum.tolist(), merged.maximum.tolist()) == ([0, 0, 1], [0, 2, 1])
    assert merged.floor == whole.floor == 0.0


def test_one_value_on_all_ranks_together_is_neither_constant_nor_dead() -> None:
    merged, whole = merged_and_whole(torch.zeros(1, 3))
    assert merged.dead is not None
    assert merged.dead.tolist() == merged.constant.tolist() == [False, False, False]
    assert whole.constant.tolist() == [False, False, False]


def test_a_mean_that_no_rank_has_read_is_not_known_of_the_whole_batch() -> None:
    merged, whole = merged_and_whole(torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 4))
    for found in (merged, whole):
        assert np.isnan(found.mean).all()
        assert np.isnan(found.std).all()


def test_a_mean_that_one_rank_does_not_know_is_not_known_of_the_whole_batch() -> None:
    (own,) = measured(torch.tensor([[1.0, 3.0]]).repeat(2, 1)[..., None, None])
    assert own.statistics is not None
    unknown = replace(own.statistics, mean=np.array([np.nan, 3.0]), std=np.array([np.nan, 0.0]))
    exchange = RankExchange(Others(share_of(7, (replace(own, statistics=unknown),))), WarnOnce())
    (merged,) = exchange.merged(7, (own,))
    assert merged.statistics is not None
    np.testing.assert_array_equal(merged.statistics.mean, [np.nan, 3.0])
    np.testing.assert_array_equal(merged.statistics.std, [np.nan, 0.0])


def test_a_rank_without_finite_values_leaves_the_mean_to_the_others() -> None:
    (own,) = measured(torch.full((2, 3, 1, 1), torch.nan))
    (other,) = measured(torch.tensor([1.0, 3.0]).view(2, 1, 1, 1).repeat(1, 3, 1, 1))
    (merged,) = RankExchange(Others(share_of(0, (other,))), WarnOnce()).merged(0, (own,))
    assert merged.statistics is not None
    assert merged.statistics.mean.tolist() == [2.0, 2.0, 2.0]
    assert merged.statistics.std.tolist() == [1.0, 1.0, 1.0]
    assert merged.statistics.nan.tolist() == [2, 2, 2]
