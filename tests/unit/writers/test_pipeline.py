"""The slow half of a logged step, in the worker thread."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import fmapboard
from fmapboard.records import Picture
from fmapboard.render import png


@pytest.mark.parametrize("max_bytes", [10**7, 9_000])
def test_a_bound_on_bytes_compresses_each_picture_once(
    max_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compressed: list[Picture] = []
    compress = png._compressed

    def counting(picture: Picture, factor: int) -> list[bytes]:
        compressed.append(picture)
        return compress(picture, factor)

    monkeypatch.setattr(png, "_compressed", counting)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3))
    board = fmapboard.watch(model, tmp_path, every=1, max_bytes_per_step=max_bytes)
    for number in range(3):
        with board.step(number):
            model(torch.rand(1, 3, 24, 24)).sum().backward()
            torch.optim.SGD(model.parameters(), lr=0.0).step()
    board.close()
    sizes = [picture.pixels.shape for picture in compressed]
    kernels, inputs = 2, 3
    if max_bytes == 10**7:
        assert len(sizes) == 2 * 3 + kernels + inputs
    assert len({id(picture.pixels) for picture in compressed}) == len(compressed)
