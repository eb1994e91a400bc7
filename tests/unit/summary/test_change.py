"""Each record says how much its channels changed since an earlier step: maps, or weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from composed_steps import CALL, compose, measured
from reduced_maps import random_maps
from torch import Tensor

from fmapboard.formats.tab_records import unpack
from fmapboard.records import (
    InputImage,
    KernelShape,
    LayerCall,
    LoggedStep,
    Parameter,
    Sample,
    TransposedShape,
)
from fmapboard.summary.build import SummaryBuilder

IMAGES = (InputImage(0, np.zeros((3, 4, 4), np.float32)),)


def found(step: LoggedStep, label: str = "conv1") -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """The steps compared with, and the changes, of a layer."""
    (record,) = (r for r in step.records if r.tag == f"fmapboard/{label}")
    header, arrays = unpack(record.blobs)
    changes = {name: array for name, array in arrays.items() if name.endswith(".change")}
    since = header.get("change_since", {})
    assert {f"{name}.change" for name in since} == set(changes)
    return since, changes


@dataclass
class Run:
    """Composes the steps 0, 10, 20 … of one layer."""

    builder: SummaryBuilder = field(default_factory=lambda: SummaryBuilder(has_probe=True))
    step: int = -10

    def maps(self, *maps: Tensor, inputs: Any = IMAGES, **options: Any) -> LoggedStep:
        parts = tuple(measured(each, samples=None, **options) for each in maps)
        return self.log(measured=parts, inputs=inputs)

    def weights(
        self, values: Any, call: LayerCall = CALL, total: int = 0, norm: float = 1.0
    ) -> LoggedStep:
        sample = Sample(np.asarray(values, np.float32), total or len(values))
        maps = random_maps(1, 4, 6, 6)
        return self.log(
            measured=(measured(maps, call),),
            parameters=(Parameter(f"{call.layer}.weight", sample, norm=norm),),
        )

    def log(self, **content: Any) -> LoggedStep:
        self.step += 10
        return compose(self.builder, self.step, **content)


def conv(shape: tuple[int, ...] = (4, 3, 1, 1), kind: type = KernelShape) -> LayerCall:
    return LayerCall("conv1", "Conv2d", kind(shape))


def test_maps_of_the_same_images_are_compared_in_standard_deviations_of_the_earlier_ones() -> None:
    run, maps = Run(), random_maps(2, 3, 12, 10) + 5
    assert found(run.maps(maps)) == ({}, {})
    later = (
        maps * torch.tensor([1.0, 1.5, -1.0])[:, None, None]
        + torch.tensor([0.0, 0.0, 2.0])[:, None, None]
    )
    since, changes = found(run.maps(later))
    assert since == {"feature_maps": 0}
    expected = (later - maps).pow(2).mean((0, 2, 3)).sqrt() / maps.std((0, 2, 3), correction=0)
    assert changes["feature_maps.change"] == pytest.approx(expected.numpy(), abs=0.01)
    assert changes["feature_maps.change"][0] == 0
    assert found(run.maps(later))[0] == {"feature_maps": 10}
    assert not found(run.maps(later))[1]["feature_maps.change"].any()


def test_rounding_to_one_byte_shows_as_a_change_below_a_hundredth() -> None:
    run = Run()
    maps = random_maps(1, 8, 24, 24)
    run.maps(maps)
    _, changes = found(run.maps(maps * 1.003))
    assert changes["feature_maps.change"] == pytest.approx(np.full(8, 0.003), abs=0.01)


def test_a_softmax_layer_whose_mean_never_moves_changes() -> None:
    run, scores = Run(), random_maps(2, 5, 8, 8)
    run.maps(scores.softmax(1))
    _, changes = found(run.maps((scores * 3).softmax(1)))
    assert (changes["feature_maps.change"] > 0.3).all()


def test_a_normalized_layer_whose_mean_and_std_never_move_changes() -> None:
    run = Run()
    batch_norm = torch.nn.BatchNorm2d(4, affine=False)
    run.maps(batch_norm(random_maps(2, 4, 8, 8)))
    _, changes = found(run.maps(batch_norm(random_maps(2, 4, 8, 8).flip(3))))
    assert (changes["feature_maps.change"] > 0.3).all()


def test_maps_of_other_images_are_not_compared() -> None:
    other = (InputImage(0, np.ones((3, 4, 4), np.float32)),)
    maps = random_maps(1, 4, 8, 8)
    replaced = Run()
    replaced.maps(maps)
    assert found(replaced.maps(maps, inputs=other)) == ({}, {})
    assert found(replaced.maps(maps, inputs=other))[0] == {"feature_maps": 10}
    batches = Run(SummaryBuilder())
    batches.maps(maps)
    assert found(batches.maps(maps)) == ({}, {})


def test_maps_of_another_size_or_resolution_are_not_compared() -> None:
    run, maps = Run(), random_maps(1, 4, 8, 8)
    run.maps(maps)
    assert found(run.maps(maps[..., :4])) == ({}, {})
    assert found(run.maps(maps[..., :4], max_tile=4)) == ({}, {})
    assert found(run.maps(maps[..., :4], max_tile=4))[0] == {"feature_maps": 20}


def test_values_that_are_not_finite_are_left_out() -> None:
    run, maps = Run(), random_maps(1, 3, 8, 8)
    run.maps(maps)
    later = maps.clone()
    later[0, 0, 0, 0] = math.inf
    later[0, 1] = math.nan
    change = found(run.maps(later))[1]["feature_maps.change"]
    assert change[0] == pytest.approx(0.0, abs=0.01)
    assert np.isnan(change[1])
    assert change[2] == 0
    change = found(run.maps(2 * maps))[1]["feature_maps.change"]
    then = maps[0, 0].flatten()[1:]
    expected = then.pow(2).mean().sqrt() / then.std(correction=0)
    assert change[0] == pytest.approx(expected.item(), abs=0.01)


def test_a_constant_map_is_compared_with_its_magnitude() -> None:
    run = Run()
    run.maps(torch.tensor([4.0, 0.0, 0.0])[None, :, None, None].expand(1, 3, 8, 8).clone())
    later = torch.tensor([5.0, 1.0, 0.0])[None, :, None, None].expand(1, 3, 8, 8).clone()
    assert found(run.maps(later))[1]["feature_maps.change"].tolist() == [0.25, math.inf, 0.0]


def test_inputs_of_a_layer_are_compared_too() -> None:
    run = Run()
    for scale in (1.0, 2.0):
        parts = tuple(
            measured(scale * torch.eye(8)[None, None], kind=kind)
            for kind in ("feature_maps", "inputs", "gradients_of_maps")
        )
        last = run.log(measured=parts, inputs=IMAGES)
    assert found(last)[0] == {"feature_maps": 0, "inputs": 0}


def test_weights_are_compared_per_output_channel_relative_to_their_norm() -> None:
    run, weights = Run(SummaryBuilder()), np.arange(1.0, 13.0)
    assert found(run.weights(weights, conv())) == ({}, {})
    later = weights * np.repeat([1.0, 1.5, 0.0, -1.0], 3)
    since, changes = found(run.weights(later, conv()))
    assert since == {"weights": 0}
    assert changes["weights.change"] == pytest.approx([0.0, 0.5, 1.0, 2.0])
    assert found(run.weights(weights, conv()))[1]["weights.change"][2] == math.inf


def test_sampled_weights_are_attributed_to_their_output_channels() -> None:
    shape, stride = (4, 8, 5, 5), 7
    weights = np.random.default_rng(0).normal(size=shape)
    later = weights * (1 + np.array([0.1, 0.2, 0.0, 0.4]))[:, None, None, None]
    run = Run(SummaryBuilder())
    run.weights(weights.ravel()[::stride], conv(shape), total=weights.size)
    since, changes = found(run.weights(later.ravel()[::stride], conv(shape), total=weights.size))
    assert since == {"weights": 0}
    assert changes["weights.change"] == pytest.approx([0.1, 0.2, 0.0, 0.4], rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(conv((4, 12, 1, 1)), id="fewer than eight sampled values per channel"),
        pytest.param(conv((4, 8, 5, 5), TransposedShape), id="transposed"),
        pytest.param(conv((4, 8, 9, 9)), id="one shard of a weight"),
        pytest.param(LayerCall("conv1", "Linear"), id="no convolution"),
    ],
)
def test_the_change_is_of_the_whole_layer_where_channels_are_not_known(call: LayerCall) -> None:
    total, stride = (48, 7) if call.kernel_shape == (4, 12, 1, 1) else (800, 7)
    weights = np.ones(total)[::stride]
    run = Run(SummaryBuilder())
    run.weights(weights, call, total=total)
    changes = found(run.weights(weights * 1.25, call, total=total))[1]
    assert changes["weights.change"].tolist() == [0.25]


def test_a_step_whose_update_may_have_been_skipped_is_not_compared_with() -> None:
    run, weights = Run(SummaryBuilder()), np.ones(12)
    run.weights(weights, conv())
    run.weights(weights * 2, conv(), norm=math.inf)
    since, changes = found(run.weights(weights * 2, conv()))
    assert (since, changes["weights.change"].tolist()) == ({"weights": 0}, [1.0] * 4)
    assert found(run.weights(weights * 2, conv()))[0] == {"weights": 20}


def test_a_layer_that_was_missing_is_compared_with_its_last_step() -> None:
    run, maps = Run(), random_maps(1, 4, 8, 8)
    run.maps(maps)
    run.log(inputs=IMAGES)
    assert found(run.maps(maps))[0] == {"feature_maps": 0}


def test_a_step_that_was_not_stored_is_not_compared_with() -> None:
    run, maps = Run(), random_maps(1, 4, 8, 8)
    run.maps(maps)
    stored = run.builder.state
    run.maps(maps + 1)
    run.builder.state = stored
    since, changes = found(run.maps(maps))
    assert since == {"feature_maps": 0}
    assert not changes["feature_maps.change"].any()


def test_what_is_kept_of_a_layer_is_bounded() -> None:
    run = Run()
    run.maps(random_maps(3, 16, 64, 64))
    run.maps(random_maps(3, 16, 64, 64))
    (kept,) = run.builder.state.maps.values()
    assert kept.pixels.shape[:2] == (3, 16)
    assert 16 * 200 < kept.pixels.size <= 16 * 256
    assert kept.pixels.base is None
    assert kept.marks is None
