"""Makes the planted shortcut of docs/reading_the_pictures.md.

    python assets/make_attribution_picture.py

The demonstration's network is trained twice on crops of the bundled photographs that have a
coloured square. In the first run the label is drawn independently of the photograph and told by the
colour alone; in the second, the control, the label is that of the photograph and the colour is
random. Both look at the same probe, and the picture is what ``attribution_loss`` shows of it at the
first layer with attribution. Takes about a minute on two cores.

Rows: the images; the first run at its first step, and at its last; the control at its last step.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

import fmapboard
from fmapboard.demo.network import MEAN, STD, DemoNetwork
from fmapboard.demo.photographs import Photographs
from fmapboard.records import LoggedStep
from fmapboard.render.heat import dimmed, heat_over
from fmapboard.writers.folder import MemoryWriter

FILE = Path(__file__).parents[1] / "docs" / "pictures" / "attribution_shortcut.png"
PHOTOGRAPHS = Photographs.load()
COLOURS = torch.tensor([[2.5, -2.0, -2.0], [-2.0, 2.5, -2.0], [-2.0, -2.0, 2.5], [2.5, 2.5, -2.0]])
SQUARE, SIDE, STEPS, LAYER = 8, 48, 300, "relu1"
ENLARGED, GAP = 2, 6


def with_squares(images: Tensor, colours: Tensor, made: torch.Generator) -> None:
    """Draw a square at a random place into each image."""
    places = torch.randint(SIDE - SQUARE + 1, (len(images), 2), generator=made).tolist()
    for image, colour, (top, left) in zip(images, colours, places, strict=True):
        image[:, top : top + SQUARE, left : left + SQUARE] = COLOURS[colour][:, None, None]


def probe() -> tuple[Tensor, Tensor, Tensor]:
    """A held-out crop of each photograph with its square; colours and photographs."""
    images, made = PHOTOGRAPHS.probe(), torch.Generator().manual_seed(3)
    number = torch.arange(len(images))
    colours = (number + number // len(COLOURS) + 1) % len(COLOURS)  # not that of the photograph
    with_squares(images, colours, made)
    return images, colours, number % len(COLOURS)


def train(*, is_shortcut: bool) -> list[LoggedStep]:
    """Train a network; its first and its last step, with the attribution of the probe."""
    images, colours, kinds = probe()
    labels_of_probe = colours if is_shortcut else kinds
    made, kept, model = torch.Generator().manual_seed(0), MemoryWriter(), DemoNetwork()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, every=STEPS, kernels=False, probe=images,
        normalization=(MEAN, STD), attribution=LAYER,
        attribution_loss=lambda output: functional.cross_entropy(output, labels_of_probe),
    ):  # fmt: skip
        for _ in range(STEPS + 1):
            batch, labels = PHOTOGRAPHS.training_batch(32, made)
            squares = torch.randint(len(COLOURS), (len(batch),), generator=made)
            with_squares(batch, squares, made)
            labels = squares if is_shortcut else labels % len(COLOURS)
            optimizer.zero_grad()
            functional.cross_entropy(model(batch), labels).backward()
            optimizer.step()
    return kept.steps


def heats(step: LoggedStep) -> list[np.ndarray]:
    """What fmapboard draws of each image, u8 [H, W, 3]."""
    found = []
    for one in step.attributions:
        assert one.image is not None  # the probe's
        found.append(heat_over(dimmed(one.image, SIDE), one.heat).pixels)
    return found


def main() -> None:
    """Write the picture."""
    torch.set_num_threads(1)
    shortcut, control = train(is_shortcut=True), train(is_shortcut=False)
    mean, std = torch.tensor([MEAN, STD]).view(2, 3, 1, 1)
    pixels = ((probe()[0] * std + mean).clamp(0, 1) * 255).round().byte()
    rows = [
        list(pixels.permute(0, 2, 3, 1).numpy()),
        *(heats(step) for step in (shortcut[0], shortcut[-1], control[-1])),
    ]
    cell = SIDE * ENLARGED + GAP
    sheet = Image.new("RGB", (cell * len(rows[0]) - GAP, cell * len(rows) - GAP), "white")
    for down, row in enumerate(rows):
        for across, tile in enumerate(row):
            large = np.ascontiguousarray(tile).repeat(ENLARGED, 0).repeat(ENLARGED, 1)
            sheet.paste(Image.fromarray(large), (across * cell, down * cell))
    sheet.save(FILE, optimize=True)
    print(FILE.name, FILE.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
