"""A log directory with a run of `visualize`: four images, each brighter than the one before."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import nn

import fmapboard

NAMES = ("ant.png", "bee.png", "cow.png", "dog.png")


def half_dead() -> nn.Sequential:
    """A network of which half of the channels are off for any image."""
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 8, 3)
    with torch.no_grad():
        conv.weight.abs_()
        conv.weight[::2] *= -1
        conv.bias.zero_()
    return nn.Sequential(conv, nn.ReLU(), nn.Conv2d(8, 4, 3))


def much_brighter(image: Image.Image) -> torch.Tensor:
    """Noise [3, 40, 40], for each of the images 40 times as bright as for the one before."""
    return torch.rand(3, 40, 40) * 40 ** ((image.getpixel((0, 0))[0] - 20) / 50)


@pytest.fixture(scope="session")
def image_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with a run of four images."""
    folder = tmp_path_factory.mktemp("steps")
    for grey, name in enumerate(NAMES):
        Image.new("RGB", (40, 40), (50 * grey + 20,) * 3).save(folder / name)
    fmapboard.visualize(
        half_dead(),
        [folder / name for name in NAMES],
        log_dir=folder / "logs/images",
        transform=much_brighter,
    )
    return folder / "logs"
