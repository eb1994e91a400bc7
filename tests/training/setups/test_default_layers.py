"""The layers that `watch` selects by default in common kinds of models, and their pictures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


class UNet(nn.Module):
    """One level down and up again, in two or three dimensions."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        conv, up, pool = {
            2: (nn.Conv2d, nn.ConvTranspose2d, nn.MaxPool2d),
            3: (nn.Conv3d, nn.ConvTranspose3d, nn.MaxPool3d),
        }[dimensions]
        self.down, self.pool = conv(1, 4, 3, padding=1), pool(2)
        self.deep, self.up = conv(4, 8, 3, padding=1), up(8, 4, 2, 2)
        self.out = conv(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        fine = self.down(x).relu()
        coarse = self.deep(self.pool(fine)).relu()
        return self.out(torch.cat([fine, self.up(coarse)], 1))  # type: ignore[no-any-return]


class Sentences(nn.Module):
    """An embedding, a recurrent layer and a head; no convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(20, 6), nn.LSTM(6, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(self.embed(x))[0][-1])  # type: ignore[no-any-return]


def generator() -> nn.Module:
    return nn.Sequential(nn.ConvTranspose2d(5, 4, 4), nn.ReLU(), nn.ConvTranspose2d(4, 3, 4, 2, 1))


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(9, 4), nn.ReLU(), nn.Linear(4, 9))


def one_step(model: nn.Module, x: Tensor, **options: object) -> LoggedStep:
    kept, optimizer = MemoryWriter(), torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, kernels=1, **options) as board, board.step(0):  # type: ignore[arg-type]
        model(x).square().mean().backward()
        optimizer.step()
    return kept.steps[0]


@pytest.mark.parametrize(
    ("make", "shape", "pictures"),
    [
        (generator, (2, 5, 1, 1), {"5x4x4x4/0": (14, 14), "4x3x4x4/2": (32, 12)}),
        (
            lambda: UNet(2), (2, 1, 8, 8),
            {"4x1x3x3/down": (22, 22), "8x4x3x3/deep": (26, 14), "8x4x2x2/up": (22, 22),
             "1x8x1x1/out": (8, 8)},
        ),
        (
            lambda: UNet(3), (2, 1, 8, 8, 8),
            {"4x1x3x3x3/down": (22, 22), "8x4x3x3x3/deep": (26, 14), "8x4x2x2x2/up": (22, 22),
             "1x8x1x1x1/out": (8, 8)},
        ),
        (
            lambda: nn.Sequential(nn.Conv1d(1, 4, 8, 4), nn.ReLU(), nn.ConvTranspose1d(4, 2, 4)),
            (2, 1, 80), {"4x1x8/0": (4, 19), "4x2x4/2": (2, 22)},
        ),
        (linear, (2, 9), {"Linear/0": (8, 8), "Linear/2": (11, 11)}),
    ],
    ids=["generator", "unet", "unet3d", "audio", "linear"],
)  # fmt: skip
def test_every_layer_of_the_model_is_drawn(
    make: Callable[[], nn.Module], shape: tuple[int, ...], pictures: dict[str, tuple[int, int]]
) -> None:
    step = one_step(make(), torch.rand(shape))
    found = {
        picture.tag.removeprefix("feature_maps_"): picture.samples[0].pixels.shape
        for picture in step.pictures
        if picture.kind == "feature_maps"
    }
    assert found == pictures
    kernels = {p.tag.removeprefix("kernels_") for p in step.pictures if p.kind == "kernels"}
    assert kernels == {tag for tag in pictures if not tag.startswith("Linear")}
    weights = [h.tag for h in step.histograms if h.tag.endswith(".weight")]
    assert len(weights) == 2 * len(pictures)  # the weights and the gradients of each layer


def test_a_recurrent_model_is_drawn_as_rows_and_its_head_as_one_pixel_per_channel() -> None:
    step = one_step(Sentences(), torch.randint(0, 20, (7, 3)), activation_gradients=True)
    found = {p.tag: p.samples[0].pixels.shape for p in step.pictures}
    assert found == {
        "feature_maps_Embedding/embed": (6, 3),  # its axes are ambiguous: read as [N, L, C]
        "gradients_of_maps_Embedding/embed": (6, 3),
        "feature_maps_LSTM/lstm": (8, 7),
        "gradients_of_maps_LSTM/lstm": (8, 7),
        "feature_maps_Linear/head": (8, 5),
        "gradients_of_maps_Linear/head": (8, 5),
    }


def test_a_batch_of_sequences_is_not_drawn_as_the_networks_input_image() -> None:
    model = nn.LSTM(4, 5, batch_first=True)
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept) as board:
        board.begin_step(0, training=True)
        model(torch.rand(3, 7, 4))[0].sum().backward()
        board.end_step()
    assert [picture.tag for picture in kept.steps[0].pictures] == ["feature_maps_LSTM/LSTM"]


def test_depth_chooses_the_slice_of_every_volume() -> None:
    step = one_step(UNet(3), torch.rand(2, 1, 8, 8, 8), depth=1)
    said = {p.tag: p.description for p in step.pictures if p.kind == "feature_maps"}
    assert "; depth slice 1 of 0…7; " in said["feature_maps_4x1x3x3x3/down"]
    assert "; depth slice 1 of 0…3; " in said["feature_maps_8x4x3x3x3/deep"]
