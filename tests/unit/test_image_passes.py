"""Passes on several images: each is recorded as if it had gone through alone, or goes alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fmapboard.image_passes
from fmapboard.cli.visualize import batched
from fmapboard.errors import CaptureError
from fmapboard.image_passes import ImagePasses
from fmapboard.measure.reducer import Reducer
from fmapboard.records import StepData


def reducer(**options: object) -> Reducer:
    return Reducer(max_channels=None, max_tile=None, **options)  # type: ignore[arg-type]


class Counting(nn.Module):
    """Counts the images of each forward pass of a network."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.passes: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.passes.append(len(x))
        return self.inner(x)  # type: ignore[no-any-return]


def network() -> Counting:
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 4, 3)]
    return Counting(nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(5))).eval()


def recorded(
    model: nn.Module, images: Tensor, **options: object
) -> tuple[list[StepData], list[str]]:
    said: list[str] = []
    record = ImagePasses(model, reducer(), refused=said.append, **options)  # type: ignore[arg-type]
    return [image.to_host() for image in record(images, 0)], said


def images(count: int = 5, side: int = 12) -> Tensor:
    return torch.randn(count, 3, side, side)


def assert_as_alone(model: nn.Module, batch: Tensor, steps: list[StepData]) -> None:
    assert [data.step for data in steps] == list(range(len(batch)))
    for number, data in enumerate(steps):
        own = ImagePasses(model, reducer()).one(batch[number : number + 1], number)
        assert [m.site for m in data.measured] == [m.site for m in own.measured]
        assert [m.shape for m in data.measured] == [m.shape for m in own.measured]
        for here, there in zip(data.measured, own.measured, strict=True):
            assert_same_statistics(here.statistics, there.statistics, moments=here.site.pictures)
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


def test_an_image_in_a_batch_is_recorded_as_alone() -> None:
    model, batch = network(), images()
    steps, said = recorded(model, batch)
    assert said == []
    assert model.passes == [1, 5]
    assert_as_alone(model, batch, steps)


def test_only_the_first_image_of_a_size_goes_through_alone() -> None:
    model = Counting(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())).eval()
    record = ImagePasses(model, reducer())
    for first, batch in ((0, images(4)), (4, images(4)), (8, images(3, side=9)), (11, images(2))):
        steps = [image.step for image in record(batch, first)]
        assert steps == list(range(first, first + len(batch)))
    assert model.passes == [1, 4, 4, 1, 3, 2]


def test_one_bad_image_does_not_change_what_is_said_of_the_others() -> None:
    model, batch = network(), images()
    batch[2, 0, 5, 5] = torch.nan
    batch[3] = 0.25
    steps, said = recorded(model, batch)
    assert said == []
    assert_as_alone(model, batch, steps)
    planes = [data.measured[0].planes for data in steps]
    assert [p is not None and p.marks is not None for p in planes] == [
        False, False, True, False, False,
    ]  # fmt: skip
    assert [int(data.measured[0].statistics.nan.sum()) for data in steps] == [0, 0, 72, 0, 0]  # type: ignore[union-attr]


def test_scales_of_a_whole_layer_are_of_one_image() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3)).eval()
    batch = images(3) * torch.tensor([1.0, 10.0, 100.0])[:, None, None, None]
    record = ImagePasses(model, reducer(scale="layer"))
    for number, image in enumerate(record(batch, 0)):
        own = ImagePasses(model, reducer(scale="layer")).one(batch[number : number + 1], number)
        here, there = image.to_host().measured[0].planes, own.measured[0].planes
        assert here is not None
        assert there is not None
        np.testing.assert_allclose(here.hi, there.hi, rtol=1e-5)
        assert np.abs(here.pixels.astype(int) - there.pixels.astype(int)).max() <= 1


class Loop(nn.Module):
    """Calls its layer once an image."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.convolution(image[None]) for image in x])


class Fixed(nn.Module):
    """Works on one image at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x).view(1, 4, 100)  # type: ignore[no-any-return]


class InPlace(nn.Module):
    """Overwrites what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x.mul_(2.0).sub_(1.0))  # type: ignore[no-any-return]


def test_a_network_that_overwrites_its_input_is_recorded_as_alone() -> None:
    model, batch = Counting(InPlace()).eval(), images()
    kept = batch.clone()
    steps, said = recorded(model, batch)
    assert said == []
    assert torch.equal(batch, kept)
    for number, data in enumerate(steps):
        own = ImagePasses(model, reducer()).one(kept[number : number + 1].clone(), number)
        assert_same_statistics(data.measured[0].statistics, own.measured[0].statistics)
        assert np.array_equal(data.inputs[0].values, own.inputs[0].values)
        assert np.array_equal(data.inputs[0].values, kept[number].numpy())


class Pieces(nn.Module):
    """Cuts each image into four and lays the pieces along the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(torch.cat(x.chunk(4, 2)))  # type: ignore[no-any-return]


class Backwards(nn.Module):
    """Turns the batch round."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x.flip(0))  # type: ignore[no-any-return]


class Skipping(nn.Module):
    """Leaves a layer out where there are several images."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.first(x)
        return self.second(maps) if len(x) == 1 else maps  # type: ignore[no-any-return]


class Own(nn.Module):
    """Works on five pictures of its own, whatever it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.register_buffer("pictures", torch.randn(5, 3, 6, 6))

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(self.pictures).sum() + x  # type: ignore[no-any-return]


def over_the_batch() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.Conv2d(4, 4, 3)
    )


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (over_the_batch, "2 treats an image in a batch otherwise"),
        (Backwards, "convolution treats an image in a batch otherwise"),
        (Loop, "returns [1, 4, 10, 10] for one image and [1, 4, 10, 10] for 5"),
        (Pieces, "returns [4, 4, 1, 10] for one image and [20, 4, 1, 10] for 5"),
        (Skipping, "other layers ran on 5 images than on one"),
        (Own, "returns [5, 4, 4, 4] for one image and [5, 4, 4, 4] for 5"),
        (Fixed, "a pass on 5 images failed: shape '[1, 4, 100]' is invalid"),
    ],
)
def test_a_network_that_mixes_images_runs_one_by_one_and_says_why(
    make: Callable[[], nn.Module], reason: str
) -> None:
    model, batch = Counting(make()).eval(), images()
    steps, said = recorded(model, batch)
    assert len(said) == 1
    assert reason in said[0]
    assert model.passes[-4:] == [1, 1, 1, 1]
    assert_as_alone(model, batch, steps)


def test_after_a_refusal_no_further_batch_is_tried() -> None:
    model = Counting(Backwards()).eval()
    record = ImagePasses(model, reducer())
    assert len(list(record(images(3), 0))) == 3
    model.passes.clear()
    assert [image.step for image in record(images(3), 3)] == [3, 4, 5]
    assert model.passes == [1, 1, 1]


def test_a_batch_is_cut_to_the_bytes_that_one_pass_may_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Counting(nn.Sequential(nn.Conv2d(3, 4, 3))).eval()
    monkeypatch.setattr(fmapboard.image_passes, "MAX_PASS_BYTES", 3 * 4 * 4 * 10 * 10)
    record = ImagePasses(model, reducer())
    assert [image.step for image in record(images(8), 0)] == list(range(8))
    assert model.passes == [1, 3, 3, 2]


def test_what_one_image_holds_is_its_maps_its_sample_and_its_pixels() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3)).eval()
    _, second, _ = ImagePasses(model, reducer())(images(3), 0)
    assert second.nbytes == 4 * 10 * 10 * 4 * 2 + 3 * 12 * 12 * 4


def test_a_model_that_cannot_run_at_all_is_an_error_of_its_own() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3)).eval()
    with pytest.raises(CaptureError, match="the model cannot run on this input"):
        recorded(model, images())


@pytest.mark.parametrize("make", [lambda: nn.Sequential(nn.Conv2d(3, 4, 3)), Backwards])
def test_kernels_stand_at_step_0_alone(make: Callable[[], nn.Module]) -> None:
    steps, _ = recorded(make().eval(), images(3), kernels=True)
    assert [len(data.kernels) for data in steps] == [1, 0, 0]


def test_the_model_is_left_as_it_was() -> None:
    model = network().train()
    model(images(2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    recorded(model, images())
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_neighbours_of_one_size_stand_in_one_batch_and_the_order_is_kept() -> None:
    sizes = [4, 4, 4, 4, 4, 6, 4, 4]
    pictures = [torch.full((3, side, side), number) for number, side in enumerate(sizes)]
    found = list(batched(iter(pictures), 3))
    assert [batch[:, 0, 0, 0].tolist() for batch in found] == [[0, 1, 2], [3, 4], [5], [6, 7]]
    assert [tuple(batch.shape) for batch in found] == [
        (3, 3, 4, 4), (2, 3, 4, 4), (1, 3, 6, 6), (2, 3, 4, 4),
    ]  # fmt: skip
