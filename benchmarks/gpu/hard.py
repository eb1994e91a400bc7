"""Tensors that are hard to measure, in several dtypes and layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter
from gpu import compare
from gpu.device import Settings
from gpu.report import Check

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Returns(nn.Conv2d):
    """A convolution whose output is the tensor it is told to return."""

    tensor: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return self.tensor


def logged(tensor: Tensor, settings: Settings, *, steps: int) -> list[LoggedStep]:
    """Log a tensor as the output of a layer."""
    model, writer = Returns(3, 3, 1).to(settings.device.name), MemoryWriter()
    model.tensor = tensor
    wrapped = nn.Sequential(model)
    options: dict[str, Any] = {
        "max_channels": None,
        "max_tile": None,
        "samples": 2,
        "kernels": False,
    }
    with fmapboard.watch(wrapped, writer=writer, every=1, **options) as board:
        for number in range(steps):
            board.begin_step(number, training=False)
            wrapped.eval()(tensor)
            board.end_step()
            board.flush()  # what is counted next depends on what was found
    return writer.steps


def hard_tensors(dtype: torch.dtype, settings: Settings, check: Check) -> None:
    """The first record of each tensor has exact extremes and flags, the second all numbers."""
    wrong, count = [], 0
    for name, values in adversarial(dtype):
        for layout, tensor in laid_out(values.to(settings.device.name)):
            steps = logged(tensor, settings, steps=2)
            if len(steps) != 2:
                wrong.append(f"{name}, {layout}: {len(steps)} of 2 steps written")
                continue
            second = compare.of_step(steps[1], {("0", "feature_maps"): tensor})
            wrong += [f"{name}, {layout}: {text}" for text in second]
            (first,) = steps[0].statistics
            exact = [
                text
                for text in compare.of_tensor(first, tensor)
                if not text.startswith(("mean", "std"))
            ]
            wrong += [f"{name}, {layout}, first step: {text}" for text in exact]
            count += 1
    check.figures["tensors"] = count
    check.expect_none(wrong, "differences")
    check.said[:] = [text for text in check.said if "nonfinite: " not in text]
    check.expect_silence()


def adversarial(dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Tensors [N, C, H, W] by name; each channel of the last one is of another kind."""
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(3, 7, 31, 37, generator=generator)
    info = torch.finfo(dtype)
    yield "normal", normal.to(dtype)
    yield "one value", torch.full((1, 1, 1, 1), 2.5, dtype=dtype)
    yield "one pixel", torch.randn(5, 3, 1, 1, generator=generator).to(dtype)
    yield "prime sizes", torch.randn(1, 127, 13, 17, generator=generator).to(dtype)
    yield "constant", torch.full((2, 3, 9, 9), -0.1, dtype=dtype)
    yield "mean 1e4, spread 1e-3 of it", (1e4 + 10 * normal).to(dtype)
    if dtype == torch.float32:
        yield "mean 1e4, spread 1e-3", 1e4 + 1e-3 * normal
    yield "largest", (normal.clamp(-1, 1) * (0.9 * info.max)).to(dtype)
    yield "denormal", (normal * info.tiny / 4).to(dtype)
    mixed = normal.clone()
    mixed[0, 0, 3, 3] = torch.nan
    mixed[1, 1] = torch.inf
    mixed[2, 2, :, 1] = -torch.inf
    mixed[:, 3] = torch.nan
    mixed[0, 4, 0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    mixed[0, 5, 30, 36] = torch.inf
    yield "NaN and infinity", mixed.to(dtype)


def laid_out(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The tensor with several strides."""
    yield "contiguous", tensor
    yield "channels_last", tensor.contiguous(memory_format=torch.channels_last)
    n, c, h, w = tensor.shape
    wide = tensor.new_empty(n, c, h + 1, 2 * w)
    strided = wide[:, :, 1:, ::2]
    strided.copy_(tensor)
    yield "strided", strided
