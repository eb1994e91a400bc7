"""Launch every kernel once, so that it is compiled and loaded, and check what it computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from fmapboard.measure.fused.launch import reduce
from fmapboard.measure.fused.plan import plan
from fmapboard.measure.fused.rows import combine
from fmapboard.measure.fused.tiles import PendingTiles, quantized
from fmapboard.render.quantize import Quantizer

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def examples(device: torch.device, dtype: torch.dtype) -> Iterator[Tensor]:
    """One small tensor for each of ``plan.VARIANTS``, in their order, of values from -9 to 9."""
    values = (torch.arange(1024, device=device) * 7 % 19 - 9).to(dtype)
    yield values.view(1, 1, 1, 1024)
    yield values[:90].view(5, 2, 3, 3)
    yield values[:24].view(2, 1, 3, 4)[:, :, :2, :3]
    yield values[:64].view(2, 32)
    yield values[:66].view(2, 33)


def planes_of(device: torch.device, dtype: torch.dtype) -> Tensor:
    """Small planes [2, 3, 2, 2] to copy and to draw."""
    return (torch.arange(24, device=device) * 5 % 11 - 5).to(dtype).view(2, 3, 2, 2)


def launched(
    device: torch.device,
) -> list[tuple[Tensor, tuple[Tensor, Tensor | None, Tensor | None], PendingTiles]]:
    """Launch every kernel for every dtype; the tensors, and what was read of each."""
    found = []
    for dtype in _DTYPES:
        for maps in examples(device, dtype):
            planned = plan(tuple(maps.shape), maps.stride(), True)
            assert planned is not None
            planes = planes_of(device, dtype)
            tiles = quantized(planes, 2, centered=False, channels=3, view="")
            found.append((maps, reduce(maps, planned, planes, (maps.numel(), 1)), tiles))
    return found


def check(device: torch.device) -> None:
    """Launch every kernel, wait, and compare the results with NumPy's.

    Raises:
        ArithmeticError: a kernel computes wrong values.
    """
    for maps, (rows, copy, sampled), tiles in launched(device):
        values = maps.cpu().double().transpose(0, 1).flatten(1).numpy()
        (lo, hi, mean, std), _ = combine(rows.cpu().numpy())
        planes = planes_of(torch.device("cpu"), maps.dtype)
        expected = Quantizer(2)("", planes.float().numpy(), (), 3, "")
        assert copy is not None
        assert sampled is not None
        is_right = (
            np.array_equal(lo, values.min(1))
            and np.array_equal(hi, values.max(1))
            and np.allclose(mean, values.mean(1), atol=1e-5)
            and np.allclose(std, values.std(1), atol=1e-5)
            and torch.equal(copy.cpu(), planes)
            and torch.equal(sampled.cpu().sort()[0], maps.cpu().float().flatten().sort()[0])
            and np.abs(tiles.planes(()).pixels.astype(int) - expected.pixels).max() <= 1
        )
        if not is_right:
            raise ArithmeticError(f"wrong values of a {maps.dtype} tensor {tuple(maps.shape)}")
