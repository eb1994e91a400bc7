"""Networks that mix the images of a batch are run on one image at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from recorded_passes import Counting, assert_as_if_alone, images, recorded, reducer
from torch import Tensor, nn

from fmapboard.image_passes import ImagePasses


class Loop(nn.Module):
    """Calls its layer once per image."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.convolution(image[None]) for image in x])


class Fixed(nn.Module):
    """Accepts one image at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x).view(1, 4, 100)  # type: ignore[no-any-return]


class Pieces(nn.Module):
    """Cuts each image into four and stacks the pieces along the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(torch.cat(x.chunk(4, 2)))  # type: ignore[no-any-return]


class Backwards(nn.Module):
    """Reverses the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x.flip(0))  # type: ignore[no-any-return]


class Skipping(nn.Module):
    """Skips a layer if there are several images."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.first(x)
        return self.second(maps) if len(x) == 1 else maps  # type: ignore[no-any-return]


class Own(nn.Module):
    """Runs its layer on five images of its own, whatever its input is."""

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
        (over_the_batch, "2 differs when an image is run in a batch"),
        (Backwards, "convolution differs when an image is run in a batch"),
        (Loop, "returns [1, 4, 10, 10] for one image and [1, 4, 10, 10] for 5"),
        (Pieces, "returns [4, 4, 1, 10] for one image and [20, 4, 1, 10] for 5"),
        (Skipping, "different layers ran on 5 images than on one"),
        (Own, "returns [5, 4, 4, 4] for one image and [5, 4, 4, 4] for 5"),
        (Fixed, "a pass on 5 images failed: shape '[1, 4, 100]' is invalid"),
    ],
)
def test_a_network_that_mixes_images_runs_on_one_at_a_time_and_the_reason_is_reported(
    make: Callable[[], nn.Module], reason: str
) -> None:
    model, batch = Counting(make()).eval(), images()
    steps, reasons = recorded(model, batch)
    assert len(reasons) == 1
    assert reason in reasons[0]
    assert model.passes[-4:] == [1, 1, 1, 1]
    assert_as_if_alone(model, batch, steps)


def test_after_one_failed_batch_no_further_batch_is_tried() -> None:
    model = Counting(Backwards()).eval()
    record = ImagePasses(model, reducer())
    assert len(list(record(images(3), 0))) == 3
    model.passes.clear()
    assert [image.step for image in record(images(3), 3)] == [3, 4, 5]
    assert model.passes == [1, 1, 1]


@pytest.mark.parametrize("make", [lambda: nn.Sequential(nn.Conv2d(3, 4, 3)), Backwards])
def test_kernels_are_recorded_only_at_step_0(make: Callable[[], nn.Module]) -> None:
    steps, _ = recorded(make().eval(), images(3), kernels=True)
    assert [len(data.kernels) for data in steps] == [1, 0, 0]
