"""Faults S1 to S9 of the classic way to log feature maps, none of which fmapboard has."""

from __future__ import annotations

import gc
import io
import threading
import weakref
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import torchvision
from controlled_writers import HeldWriter
from logged_step import log_pass
from module_hooks import hook_count
from PIL import Image
from reducers import reducer_of
from torch import Tensor, nn
from torch.optim import optimizer as torch_optimizer
from torch.utils._python_dispatch import TorchDispatchMode

import fmapboard
from fmapboard.capture.side_pass import run_side_pass
from fmapboard.measure.reducer import Reducer
from fmapboard.records import (
    LayerCall,
    LayerMeasurement,
    LoggedStep,
    Picture,
    PixelMark,
    TaggedPictures,
)
from fmapboard.render import png
from fmapboard.render.grid import draw_maps
from fmapboard.render.palettes import palette
from fmapboard.writers.folder import MemoryWriter


def _maps(step: LoggedStep) -> dict[str, LayerMeasurement]:
    return {
        part.layer_call.label: part
        for part in step.statistics
        if part.kind == "feature_maps" and part.planes is not None
    }


def _pictures(step: LoggedStep) -> dict[str, TaggedPictures]:
    return {
        p.layer_call.label: p for p in step.pictures if p.layer_call and p.kind == "feature_maps"
    }


@pytest.fixture(scope="module")
def alexnet() -> nn.Module:
    """The convolutional part, where the fault is visible."""
    features: nn.Module = torchvision.models.alexnet(num_classes=1).features
    return features


def test_s1_maps_are_those_of_the_convolution_not_of_the_inplace_relu_behind_it(
    alexnet: nn.Module,
) -> None:
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        true = alexnet[0](x)
    found = _maps(log_pass(alexnet, x))
    assert len(found) == 5
    assert all(part.statistics.minimum.min() < 0 for part in found.values())
    assert found["0"].statistics.minimum.tolist() == true.amin((0, 2, 3)).double().tolist()
    assert float(fmapboard.extract(alexnet, x)["0"].min()) == float(true.min()) < 0.0


def test_s2_every_convolution_of_a_kernel_shape_is_drawn() -> None:
    model = torchvision.models.resnet50().eval()
    pictures = _pictures(log_pass(model, torch.rand(1, 3, 32, 32), kernels=False))
    assert len(pictures) == 53
    assert len({picture.tag.split("/")[0] for picture in pictures.values()}) == 20


def test_s3_tags_hold_layer_names_of_any_depth_in_full() -> None:
    model = torchvision.models.mobilenet_v3_small().eval()
    pictures = _pictures(log_pass(model, torch.rand(1, 3, 32, 32), kernels=False))
    assert len(pictures) == 52
    assert pictures["features.4.block.2.fc1"].tag == (
        "feature_maps_24x96x1x1/features.4.block.2.fc1"
    )


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5])
def test_s4_a_batch_is_never_read_as_colour(batch: int) -> None:
    model = nn.Sequential(nn.Conv2d(3, 9, 3))
    x = torch.rand(batch, 3, 8, 8)
    picture = _pictures(log_pass(model, x, samples=batch))["0"]
    assert [raster.pixels.shape for raster in picture.samples] == [(26, 26)] * batch
    assert all(raster.palette is None for raster in picture.samples)
    alone = [_pictures(log_pass(model, x[[i]]))["0"].samples[0] for i in range(batch)]
    for raster, own in zip(picture.samples, alone, strict=True):
        assert np.abs(raster.pixels.astype(int) - own.pixels).max() <= 1


def _drawn(maps: Tensor, floor: float | None = None) -> Picture:
    layer_call = LayerCall("relu", "ReLU", floor=floor)
    measured = Reducer()(layer_call, "feature_maps", maps, nn.Conv2d(1, 1, 1)).to_host()
    assert measured.planes is not None
    assert measured.statistics is not None
    return draw_maps(measured.planes, 0, palette("grey"), measured.statistics.dead)


def test_s5_nan_infinities_constant_and_dead_look_different_and_leave_the_rest_unchanged() -> None:
    clean = torch.rand(1, 9, 6, 6) + 1.0
    spoiled = clean.clone()
    spoiled[0, 0, 0, 0] = torch.nan
    spoiled[0, 1, 2, 3] = torch.inf
    spoiled[0, 2, 5, 5] = -torch.inf
    spoiled[0, 3] = 0.5
    spoiled[0, 4] = 0.0
    raster, plain = _drawn(spoiled, floor=0.0), _drawn(clean)
    assert raster.palette is not None
    assert plain.palette is None
    tiles = [raster.pixels[2 + 8 * (i // 3) :, 2 + 8 * (i % 3) :][:6, :6] for i in range(9)]
    assert tiles[0][0, 0] == PixelMark.NAN
    assert tiles[1][2, 3] == PixelMark.POSITIVE_INFINITY
    assert tiles[2][5, 5] == PixelMark.NEGATIVE_INFINITY
    assert (tiles[3] == PixelMark.CONSTANT).all()
    assert (tiles[4] == PixelMark.DEAD).all()
    marks = [raster.palette[mark].tolist() for mark in PixelMark]
    assert len({tuple(colour) for colour in marks}) == 6
    assert not any(colour in raster.palette[:250].tolist() for colour in marks)
    untouched = [5, 6, 7, 8]
    for i in untouched:
        own = plain.pixels[2 + 8 * (i // 3) :, 2 + 8 * (i % 3) :][:6, :6]
        shown = raster.palette[tiles[i]][..., 0]
        assert np.abs(shown.astype(int) - own).max() <= 1
    for i in (0, 1, 2):
        values = tiles[i][tiles[i] < PixelMark.PADDING]
        assert values.size == 35
        assert len(np.unique(values)) > 20
        assert (values.min(), values.max()) == (0, 249)


class _Syncs(TorchDispatchMode):
    """Counts `.item()`, `float(tensor)` and `bool(tensor)`, which all wait for the device."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.mark.each_once
@pytest.mark.parametrize("scale", ["channel", "layer", "locked"])
@pytest.mark.parametrize("numbers", ["finite", "spoiled"])
def test_s6_host_syncs_do_not_grow_with_the_channels(scale: Any, numbers: str) -> None:
    counts = []
    for channels in (2, 64, 512):
        maps = torch.randn(1, channels, 7, 7)
        if numbers == "spoiled":
            maps[0, 1, 0, 0] = torch.nan
        reducer = reducer_of(max_channels=None, max_tile=4, scale=scale)
        with _Syncs() as syncs:
            reducer(LayerCall("conv", "Conv2d"), "feature_maps", maps, nn.Conv2d(1, 1, 1)).to_host()
        counts.append(syncs.count)
    assert counts[0] == counts[1] == counts[2] <= 8


def test_s7_drawing_and_writing_happen_off_the_training_thread_with_one_byte_per_pixel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawing: list[str] = []
    original = fmapboard.summary.pictures.draw_maps  # type: ignore[attr-defined]

    def noted(*args: Any) -> Picture:
        drawing.append(threading.current_thread().name)
        raster: Picture = original(*args)
        return raster

    monkeypatch.setattr("fmapboard.summary.pictures.draw_maps", noted)
    writer, model = HeldWriter(), nn.Sequential(nn.Conv2d(3, 9, 3))
    with fmapboard.watch(model, writer=writer) as board:
        with board.step(0):
            model(torch.rand(1, 3, 8, 8))
        assert writer.steps == []  # training does not wait for the writer
        writer.go_on.set()
    assert set(writer.threads) == {"fmapboard"}
    assert set(drawing) == {"fmapboard"}
    raster = _pictures(writer.steps[0])["0"].samples[0]
    stored = Image.open(io.BytesIO(png.encode(raster)))
    assert (stored.mode, stored.size) == ("L", (26, 26))


def test_s7_a_picture_with_marks_is_also_stored_as_one_byte_per_pixel() -> None:
    maps = torch.rand(1, 4, 5, 5)
    maps[0, 0, 0, 0] = torch.nan
    stored = Image.open(io.BytesIO(png.encode(_drawn(maps))))
    assert stored.mode == "P"


def test_s8_a_faint_channel_differs_from_a_strong_one_in_its_range_and_on_a_common_scale() -> None:
    maps = torch.rand(1, 2, 6, 6)
    maps[0, 0] *= 1e-4
    module = nn.Conv2d(1, 1, 1)
    layer_call = LayerCall("conv", "Conv2d")
    planes = Reducer()(layer_call, "feature_maps", maps, module).to_host().planes
    assert planes is not None
    assert planes.hi[0].tolist() == maps.amax((2, 3)).double()[0].tolist()
    assert planes.hi[0, 0] < 1e-4 < 0.9 < planes.hi[0, 1]
    reduce = reducer_of(scale="layer")
    one_scale = reduce(layer_call, "feature_maps", maps, module).to_host().planes
    assert one_scale is not None
    assert one_scale.pixels[0, 0].max() == 0
    assert one_scale.pixels[0, 1].max() == 255


def test_s8_ranges_below_1e_5_are_visible_and_the_description_names_the_scale() -> None:
    maps = torch.linspace(-4e-7, 5e-7, 36).view(1, 1, 6, 6)
    raster = _drawn(maps)
    assert (raster.pixels.min(), raster.pixels.max()) == (0, 255)
    assert len(np.unique(raster.pixels)) == 36
    picture = _pictures(log_pass(nn.Sequential(nn.Conv2d(3, 2, 3)), torch.rand(1, 3, 8, 8)))
    assert "each channel scaled between its own extremes" in picture["0"].description


class _Remembers(nn.Module):
    """Keeps weak references to its outputs, and notes the modes of each pass, of copies too."""

    seen: ClassVar[list[Any]]
    modes: ClassVar[list[tuple[bool, bool]]]

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        type(self).seen = []
        type(self).modes = []

    def forward(self, x: Tensor) -> Tensor:
        maps = self.conv(x)
        out: Tensor = self.norm(maps)
        self.seen.extend([weakref.ref(maps), weakref.ref(out)])
        self.modes.append((self.training, torch.is_grad_enabled()))
        return out


def test_s9_extracting_and_probing_keep_no_graph_and_no_hook() -> None:
    model, x = _Remembers(), torch.rand(1, 3, 8, 8)
    maps = fmapboard.extract(model, x)
    gradients = fmapboard.extract_gradients(model, x, loss=Tensor.sum)
    run_side_pass(model, x)
    gc.collect()
    assert [reference() for reference in model.seen] == [None] * 6
    assert maps["conv"].grad_fn is None
    assert not maps["conv"].requires_grad
    assert gradients["conv"].grad_output[0] is not None
    assert gradients["conv"].grad_output[0].grad_fn is None
    assert model.modes == [(True, False), (True, True), (False, False)]
    assert model.training
    assert hook_count(model) == 0


def test_s9_a_logged_step_keeps_no_output_alive_and_leaves_no_hook() -> None:
    model, writer = _Remembers(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options: dict[str, Any] = {"inputs": True, "activation_gradients": True}
    with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=2, **options):
        for _ in range(4):
            model(torch.rand(2, 3, 8, 8)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    gc.collect()
    assert [step.step for step in writer.steps] == [0, 2]
    assert [reference() for reference in model.seen] == [None] * 8
    assert hook_count(model) == 0
    assert not torch_optimizer._global_optimizer_pre_hooks
    assert not optimizer._optimizer_step_post_hooks
