"""Batches for the acceptance trainings: crops of the bundled photographs, and made-up signals.

Each function takes a generator and a number of examples N, and returns tensors. Nothing is
downloaded.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Generator, Tensor
from torch.nn import functional

from fmapboard.demo.network import MEAN, STD
from fmapboard.demo.photographs import Photographs

Draw = Callable[[Generator, int], tuple[Tensor, ...]]

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@functools.cache
def photographs() -> Photographs:
    return Photographs.load()


def pixels(generator: Generator, count: int, size: int) -> tuple[Tensor, Tensor]:
    """Crops on a scale of 0 to 1, [N, 3, size, size], and labels 0 to 7."""
    images, labels = photographs().training_batch(count, generator)
    mean, std = torch.tensor([MEAN, STD]).view(2, 1, 3, 1, 1)
    images = (images * std + mean).clamp(0, 1)
    if size != images.shape[-1]:
        images = functional.interpolate(images, (size, size), mode="bilinear", antialias=True)
    return images, labels


def scaled(images: Tensor, scale: str) -> Tensor:
    """Images from [0, 1] to the range that a recipe uses."""
    if scale in ("imagenet", "own"):  # "own": as the bundled network was trained
        chosen = IMAGENET if scale == "imagenet" else (MEAN, STD)
        mean, std = torch.tensor(chosen).view(2, 1, 3, 1, 1)
        return (images - mean) / std
    if scale == "half":
        return images * 2 - 1
    if scale == "each":  # each image on its own mean and deviation
        flat = images.flatten(1)
        return ((flat - flat.mean(1, True)) / (flat.std(1, keepdim=True) + 1e-3)).view_as(images)
    return images


def photos(size: int = 32, scale: str = "imagenet", channels: int = 3) -> Draw:
    """Labelled crops. 1 channel is grey; 4 adds brightness; 6 adds the horizontal difference."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels = pixels(generator, count, size)
        grey = images.mean(1, keepdim=True)
        if channels == 1:
            return (grey - 0.45) / 0.25 if scale == "imagenet" else scaled(grey, scale), labels
        images = scaled(images, scale)
        if channels == 4:
            images = torch.cat([images, scaled(grey, "half")], 1)
        if channels == 6:
            images = torch.cat([images, images.roll(1, 3) - images], 1)
        return images, labels

    return draw


def pictures(size: int = 32, scale: str = "half") -> Draw:
    """Crops without labels."""
    labelled = photos(size, scale)
    return lambda generator, count: labelled(generator, count)[:1]


def fixed(draw: Draw, examples: int) -> Draw:
    """The same examples in a new order each epoch, as a DataLoader gives them."""
    kept: list[tuple[Tensor, ...]] = []
    order: list[int] = []

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        if not kept:
            kept.append(draw(generator, examples))
        if len(order) < count:  # drop_last=True
            order[:] = torch.randperm(examples, generator=generator).tolist()
        chosen, order[:count] = order[:count], []
        return tuple(part[chosen] for part in kept[0])

    return again


@functools.cache
def glyphs() -> Tensor:
    """The digits 0 to 9 in three sizes, [3, 10, 28, 28], 0 to 1."""
    drawn = []
    for size in (18, 21, 24):
        font = ImageFont.load_default(size)
        for digit in range(10):
            image = Image.new("L", (28, 28))
            ImageDraw.Draw(image).text((14, 14), str(digit), 255, font, anchor="mm")
            drawn.append(torch.tensor(list(image.tobytes()), dtype=torch.float32).view(28, 28))
    return torch.stack(drawn).view(3, 10, 28, 28) / 255


def digits(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Printed digits, turned and shifted, white on black, [N, 1, 28, 28], and labels 0 to 9."""
    labels = torch.randint(10, (count,), generator=generator)
    size = torch.randint(3, (count,), generator=generator)
    angle, zoom, right, down = torch.rand(4, count, generator=generator) - 0.5
    cos, sin = (angle * 0.8).cos() * (1 + zoom * 0.3), (angle * 0.8).sin()
    rows = torch.stack([cos, -sin, right * 0.4, sin, cos, down * 0.4], 1).view(count, 2, 3)
    grid = functional.affine_grid(rows, [count, 1, 28, 28], align_corners=False)
    images = functional.grid_sample(glyphs()[size, labels][:, None], grid, align_corners=False)
    return (images + 0.05 * torch.randn(images.shape, generator=generator)).clamp(0, 1), labels


def tones(length: int = 512) -> Draw:
    """Sounds at 8 kHz, [N, 1, length], in six classes: sine, square, two chirps, AM, noise."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        time = torch.arange(length) / 8000
        labels = torch.randint(6, (count,), generator=generator)
        pitch, phase, gain = torch.rand(3, count, 1, generator=generator)
        pitch, phase = 200 + 800 * pitch, 2 * math.pi * phase
        angle = 2 * math.pi * pitch * time + phase
        bend = 2 * math.pi * 400 * time.square() * (1 / time[-1])
        noise = torch.randn(count, length, generator=generator)
        kinds = [angle.sin(), angle.sin().sign(), (angle + bend).sin(), (angle - bend).sin()]
        kinds += [angle.sin() * (1 + (2 * math.pi * 60 * time).sin()) / 2, noise]
        chosen = torch.stack(kinds)[labels, torch.arange(count)]
        wave = (0.3 + 0.5 * gain) * chosen + 0.05 * noise.roll(1, 0)
        return wave[:, None], labels

    return draw


def spectrograms(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Log power of `tones`, [N, 1, 33, 32], about mean 0 and deviation 1."""
    waves, labels = tones(1024)(generator, count)
    window = torch.hann_window(64)
    power = torch.stft(waves[:, 0], 64, 32, window=window, return_complex=True).abs().square()
    return ((power + 1e-3).log()[:, None, :, :32] + 3) / 3, labels


def clips(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A window that moves over a photograph, [N, 3, 8, 24, 24], and its direction 0 to 3."""
    images, _ = pixels(generator, count, 48)
    labels = torch.randint(4, (count,), generator=generator)
    moves = torch.tensor([[0, 2], [0, -2], [2, 0], [-2, 0]])[labels]
    frames = []
    for frame in range(8):
        top, left = (12 + moves * (frame - 4)).T
        rows = (top[:, None] + torch.arange(24))[:, None, :, None]
        columns = (left[:, None] + torch.arange(24))[:, None, None, :]
        which = torch.arange(count)[:, None, None, None]
        frames.append(images[which, torch.arange(3)[None, :, None, None], rows, columns])
    return scaled(torch.stack(frames, 2), "half"), labels


def scenes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Discs of one photograph on another, 32 × 32 px.

    Returns: images in [-1, 1], [N, 3, 32, 32]; masks, float [N, 1, 32, 32]; centre and radius of
    the disc in px, [N, 3]; a toy depth, [N, 1, 32, 32]: a sloping floor, and the disc nearer.
    """
    back, _ = pixels(generator, count, 32)
    front, _ = pixels(generator, count, 32)
    x, y, size = torch.rand(3, count, generator=generator)
    discs = torch.stack([6 + 20 * x, 6 + 20 * y, 4 + 5 * size], 1)
    along = torch.arange(32.0)
    distance = (along - discs[:, :1])[:, None, :].square()
    distance = distance + (along - discs[:, 1:2])[:, :, None].square()
    masks = (distance.sqrt() < discs[:, 2, None, None]).float()[:, None]
    images = scaled(masks * front.flip(2) + (1 - masks) * back, "half")
    floor = (1 - along / 32).view(1, 1, 32, 1).expand_as(masks)
    depth = torch.where(masks > 0, 1 - discs[:, 2].view(-1, 1, 1, 1) / 12, 0.5 + floor)
    return images, masks, discs, depth
