"""`visualize` interprets the tensors of a model as `watch` does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fmapboard
from fmapboard.demo.bundled import bundled
from fmapboard.imaging.images import find_images
from fmapboard.imaging.models.preprocessing import Preprocessing
from fmapboard.imaging.read_images import ReadImages
from fmapboard.imaging.visualize import Drawing, draw_folder
from fmapboard.records import Statistics
from fmapboard.writers.folder import MemoryWriter

LENGTH, CHANNELS = 36, 5


class Rows(nn.Module):
    """Treats an image as a sequence: [N, 3, 6, 6] -> [N, 5, 36]."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(3, CHANNELS, 1)
        self.norm = nn.GroupNorm(1, CHANNELS)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.convolution(x.flatten(2)))  # type: ignore[no-any-return]


def photograph(prepare: Preprocessing) -> ReadImages:
    return ReadImages.of(find_images([bundled("photographs") / "chelsea.jpg"]), prepare)


def draw(model: nn.Module, drawing: Drawing, prepare: Preprocessing, folder: Path) -> None:
    draw_folder(
        drawing, model.eval(), photograph(prepare), logdir=folder / "run", out=None,
        say=print, each=lambda name, written: None,
    )  # fmt: skip


def watched(model: nn.Module, image: Tensor) -> MemoryWriter:
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, layers=[nn.GroupNorm], kernels=False) as board:
        board.begin_step(0, training=False)
        model.eval()(image)
        board.end_step()
    return kept


def found(kept: MemoryWriter) -> Statistics:
    (measured,) = kept.steps[0].statistics
    assert measured.statistics is not None
    return measured.statistics


def test_visualize_and_watch_take_the_same_axis_of_a_sequence_for_its_channels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model, kept, images = Rows(), MemoryWriter(), []
    model.register_forward_pre_hook(lambda module, args: images.append(args[0].clone()))
    monkeypatch.setattr("fmapboard.imaging.visualize.TensorBoardWriter", lambda *_, **__: kept)
    prepare = Preprocessing((6, 6), 6, (0.5,) * 3, (0.5,) * 3, source="the test")
    draw(model, Drawing(layers=["norm"]), prepare, tmp_path)
    watched_steps = watched(model, images[0])
    drawn, live = found(kept), found(watched_steps)
    assert (drawn.mean.size, live.mean.size) == (CHANNELS, CHANNELS)
    assert drawn.mean.tolist() == live.mean.tolist()
    assert drawn.maximum.tolist() == live.maximum.tolist()
    pictures = [
        {p.tag: p.samples[0].pixels.tolist() for p in steps.steps[0].pictures}
        for steps in (kept, watched_steps)
    ]
    tag = "feature_maps_GroupNorm/norm"
    assert pictures[0][tag] == pictures[1][tag]
    assert np.shape(pictures[0][tag]) == (CHANNELS, LENGTH)


class Volume(nn.Module):
    """Stacks an image and darker copies of it: [N, 3, H, W] -> [N, 2, 4, H, W]."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv3d(3, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(torch.stack([x / n for n in (1, 2, 3, 4)], 2))  # type: ignore[no-any-return]


@pytest.mark.parametrize(("depth", "said"), [(None, "slice 2 of 0…3"), (0, "slice 0 of 0…3")])
def test_visualize_draws_the_depth_slice_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int | None, said: str
) -> None:
    kept = MemoryWriter()
    monkeypatch.setattr("fmapboard.imaging.visualize.TensorBoardWriter", lambda *_, **__: kept)
    prepare = Preprocessing((6, 6), 6, (0.5,) * 3, (0.5,) * 3, source="the test")
    draw(Volume(), Drawing(depth=depth), prepare, tmp_path)
    described = [picture.description for picture in kept.steps[0].pictures]
    assert f"; depth {said}; " in described[0]
