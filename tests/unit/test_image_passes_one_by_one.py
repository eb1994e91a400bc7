"""Networks that mix the images of a batch are run on one image at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from recorded_passes import Counting, assert_as_alone, images, recorded, reducer
from torch import Tensor, nn

from fmapboard.image_passes import ImagePasses


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
        (over_the_batch, "2 differs when an image is run in a batch"),
        (Backwards, "convolution differs when an image is run in a batch"),
        (Loop, "returns [1, 4, 10, 10] for one image and [1, 4, 10, 10] for 5"),
        (Pieces, "returns [4, 4, 1, 10] for one image and [20, 4, 1, 10] for 5"),
        (Skipping, "different layers ran on 5 images than on one"),
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


@pytest.mark.parametrize("make", [lambda: nn.Sequential(nn.Conv2d(3, 4, 3)), Backwards])
def test_kernels_stand_at_step_0_alone(make: Callable[[], nn.Module]) -> None:
    steps, _ = recorded(make().eval(), images(3), kernels=True)
    assert [len(data.kernels) for data in steps] == [1, 0, 0]
