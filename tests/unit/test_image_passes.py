"""A batch of images is recorded as if each had been run alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from module_hooks import hook_count
from recorded_passes import (
    Counting,
    assert_as_if_alone,
    assert_same_statistics,
    images,
    recorded,
    reducer,
)
from torch import Tensor, nn

import fmapboard.image_passes
from fmapboard.errors import CaptureError, ForwardError
from fmapboard.image_passes import ImagePasses
from fmapboard.imaging.visualize import batched


def network() -> Counting:
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 4, 3)]
    return Counting(nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(5))).eval()


def test_an_image_in_a_batch_is_recorded_as_if_run_alone() -> None:
    model, batch = network(), images()
    steps, reasons = recorded(model, batch)
    assert reasons == []
    assert model.passes == [1, 5]
    assert_as_if_alone(model, batch, steps)


def test_only_the_first_image_of_each_size_is_run_alone() -> None:
    model = Counting(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())).eval()
    record = ImagePasses(model, reducer())
    for first, batch in ((0, images(4)), (4, images(4)), (8, images(3, side=9)), (11, images(2))):
        steps = [image.step for image in record(batch, first)]
        assert steps == list(range(first, first + len(batch)))
    assert model.passes == [1, 4, 4, 1, 3, 2]


def test_non_finite_values_in_one_image_do_not_change_the_records_of_the_others() -> None:
    model, batch = network(), images()
    batch[2, 0, 5, 5] = torch.nan
    batch[3] = 0.25
    steps, reasons = recorded(model, batch)
    assert reasons == []
    assert_as_if_alone(model, batch, steps)
    planes = [data.measured[0].planes for data in steps]
    assert [p is not None and p.marks is not None for p in planes] == [
        False, False, True, False, False,
    ]  # fmt: skip
    assert [int(data.measured[0].statistics.nan.sum()) for data in steps] == [0, 0, 72, 0, 0]  # type: ignore[union-attr]


def test_a_layer_scale_is_computed_per_image() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3)).eval()
    batch = images(3) * torch.tensor([1.0, 10.0, 100.0])[:, None, None, None]
    record = ImagePasses(model, reducer(scale="layer"))
    for number, image in enumerate(record(batch, 0)):
        passes = ImagePasses(model, reducer(scale="layer"))
        (alone,) = passes(batch[number : number + 1], number)
        own = alone.to_host()
        here, there = image.to_host().measured[0].planes, own.measured[0].planes
        assert here is not None
        assert there is not None
        np.testing.assert_allclose(here.hi, there.hi, rtol=1e-5)
        assert np.abs(here.pixels.astype(int) - there.pixels.astype(int)).max() <= 1


class InPlace(nn.Module):
    """Overwrites its input."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x.mul_(2.0).sub_(1.0))  # type: ignore[no-any-return]


def test_a_network_that_overwrites_its_input_is_recorded_as_if_run_alone() -> None:
    model, batch = Counting(InPlace()).eval(), images()
    kept = batch.clone()
    steps, reasons = recorded(model, batch)
    assert reasons == []
    assert torch.equal(batch, kept)
    for number, data in enumerate(steps):
        (alone,) = ImagePasses(model, reducer())(kept[number : number + 1].clone(), number)
        own = alone.to_host()
        assert_same_statistics(data.measured[0].statistics, own.measured[0].statistics)
        assert np.array_equal(data.inputs[0].values, own.inputs[0].values)
        assert np.array_equal(data.inputs[0].values, kept[number].numpy())


def test_a_batch_is_split_to_stay_within_the_bytes_of_one_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Counting(nn.Sequential(nn.Conv2d(3, 4, 3))).eval()
    monkeypatch.setattr(fmapboard.image_passes, "MAX_PASS_BYTES", 3 * 4 * 4 * 10 * 10)
    record = ImagePasses(model, reducer())
    assert [image.step for image in record(images(8), 0)] == list(range(8))
    assert model.passes == [1, 3, 3, 2]


def test_the_bytes_of_an_image_are_those_of_its_maps_its_sums_its_sample_and_its_pixels() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3)).eval()
    _, second, _ = ImagePasses(model, reducer())(images(3), 0)
    values, sums = 4 * 10 * 10, 4 * 4  # four numbers of each of four channels
    assert second.nbytes == (2 * values + sums + 3 * 12 * 12) * 4


def test_a_model_that_cannot_run_at_all_raises_an_error_that_names_the_layer() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(1, 4, 3)).eval()
    with pytest.raises(ForwardError, match=r"^1 \(Conv2d\) raised RuntimeError") as raised:
        recorded(model, images())
    assert isinstance(raised.value, CaptureError)
    assert raised.value.layer == "1"
    assert len(raised.value.ran) == 1
    assert hook_count(model) == 0


def test_the_model_is_left_unchanged() -> None:
    model = network().train()
    model(images(2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    recorded(model, images())
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert hook_count(model) == 0


def test_consecutive_images_of_one_size_form_a_batch_and_keep_their_order() -> None:
    sizes = [4, 4, 4, 4, 4, 6, 4, 4]
    pictures = [torch.full((3, side, side), number) for number, side in enumerate(sizes)]
    found = list(batched(iter(pictures), 3))
    assert [batch[:, 0, 0, 0].tolist() for batch in found] == [[0, 1, 2], [3, 4], [5], [6, 7]]
    assert [tuple(batch.shape) for batch in found] == [
        (3, 3, 4, 4), (2, 3, 4, 4), (1, 3, 6, 6), (2, 3, 4, 4),
    ]  # fmt: skip
