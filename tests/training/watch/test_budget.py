"""`max_bytes_per_step` bounds the bytes on disk of every logged step."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from logged_step import log_pass
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2
from torchvision.models import resnet18

import fmapboard
from fmapboard.formats.tab_records import unpack
from fmapboard.records import LayerCall, LayerMeasurement, PixelMark, Planes, StepData
from fmapboard.summary.byte_limit import SIDES, with_smaller_tiles

FRAMING = 16  # bytes of an event's length and checksums


def sizes(run: Path) -> list[int]:
    """Bytes on disk of each logged step."""
    (file,) = run.glob("*tfevents*")
    raw = list(RawEventFileLoader(str(file)).Load())
    return [len(r) + FRAMING for r in raw if event_pb2.Event.FromString(r).HasField("summary")]


def log(run: Path, budget: int | None) -> list[int]:
    """Bytes on disk of each of three logged training steps of a ResNet-18, and of the verdict."""
    model = resnet18(num_classes=10)
    board = fmapboard.watch(model, run, every=1, max_bytes_per_step=budget)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(3):
        with board.step(number):
            optimizer.zero_grad()
            model(torch.randn(2, 3, 96, 96)).sum().backward()
            optimizer.step()
    board.close()
    return sizes(run)


def test_no_step_is_larger_than_its_budget(tmp_path: Path) -> None:
    assert max(log(tmp_path / "free", None)) > 700_000
    for budget in (600_000, 300_000):
        kept = log(tmp_path / str(budget), budget)
        assert max(kept) <= budget
        assert len(kept) == 5  # the last ones are the verdict and the kernels drawn at the end


def test_a_budget_that_the_numbers_alone_exceed_omits_pictures_and_warns_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "fmapboard"):
        kept = log(tmp_path, 10_000)
    assert max(kept) < 120_000
    (said,) = (r.message for r in caplog.records)
    assert said.startswith(
        "fmapboard: max_bytes_per_step=10000: even without pictures a step takes "
    )
    assert said.endswith(" bytes; raise the limit, or watch fewer layers (layers=)")


def planes(side: int, channels: int) -> Planes:
    pixels = np.arange(channels * side * side, dtype=np.int64).reshape(1, channels, side, side)
    marks = np.zeros((1, channels, side, side), np.uint8)
    marks[0, 0, 0, 0] = PixelMark.NAN
    flat = np.zeros((1, channels), bool)
    limits = np.zeros((1, channels)), np.ones((1, channels))
    shape = (1, channels, side, side)
    return Planes((pixels % 251).astype(np.uint8), marks, flat, *limits, shape, channels)


def test_tiles_shrink_to_a_half_each_time_before_pictures_are_left_out() -> None:
    layer_call = LayerCall("conv", "Conv2d")
    data = StepData(
        0, 0.0, measured=(LayerMeasurement(layer_call, "feature_maps", planes(64, 40)),)
    )
    found = []
    for side in SIDES:
        shown = with_smaller_tiles(data, side).measured[0].planes
        found.append(None if shown is None else (shown.pixels.shape[1], shown.pixels.shape[2]))
    assert found == [(40, 32), (40, 16), (40, 8), (40, 4), None]


def test_a_shrunken_tile_is_the_mean_of_its_blocks_and_keeps_its_marks() -> None:
    layer_call = LayerCall("conv", "Conv2d")
    whole = replace(planes(64, 2), block=3)
    data = StepData(0, 0.0, measured=(LayerMeasurement(layer_call, "feature_maps", whole),))
    shown = with_smaller_tiles(data, 32).measured[0].planes
    assert shown is not None
    assert shown.block == 6
    assert shown.pixels[0, 1, 5, 7] == int(whole.pixels[0, 1, 10:12, 14:16].mean())
    assert shown.marks is not None
    assert np.argwhere(shown.marks).tolist() == [[0, 0, 0, 0]]


def test_the_header_says_what_was_left_out() -> None:
    model, x = resnet18(num_classes=10), torch.randn(2, 3, 96, 96)
    step = log_pass(model, x, every=1, max_bytes_per_step=300_000)
    header, arrays = unpack(next(r for r in step.records if r.tag.endswith("/conv1")).blobs)
    (maps,) = (p for p in header["pictures"] if p["role"] == "feature_maps")
    assert maps["block"] > 1
    assert max(maps["tile"]) <= 48 // maps["block"] * 2
    assert arrays["feature_maps.lo"].shape == (1, maps["drawn"])
