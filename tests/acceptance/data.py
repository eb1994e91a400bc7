"""Batches: crops of the bundled photographs, and made-up signals.

Each function takes a generator and a number of examples N, or returns a function that does. Nothing
is downloaded.
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
    """Labelled crops; 4 channels add brightness, 6 the horizontal difference."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels = pixels(generator, count, size)
        grey, images = images.mean(1, keepdim=True), scaled(images, scale)
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


def power(generator: Generator, count: int) -> tuple[Tensor, Tensor]:
    """Power of `tones` by frequency and time, [N, 33, 33], and labels."""
    waves, labels = tones(1024)(generator, count)
    window = torch.hann_window(64)
    found = torch.stft(waves[:, 0], 64, 32, window=window, return_complex=True)
    return found.abs().square(), labels


def spectrograms(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Log `power`, [N, 1, 33, 32], about mean 0 and deviation 1."""
    found, labels = power(generator, count)
    return ((found + 1e-3).log()[:, None, :, :32] + 3) / 3, labels


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


def changed(draw: Draw, change: Callable[[Tensor], Tensor], since: int = 1, every: int = 1) -> Draw:
    """``change`` is applied to the images of the batches ``since``, ``since + every``, …"""
    count = 0

    def again(generator: Generator, size: int) -> tuple[Tensor, ...]:
        nonlocal count
        count += 1
        images, *rest = draw(generator, size)
        spoiled = count >= since and (count - since) % every == 0
        return change(images) if spoiled else images, *rest

    return again


def colourless(size: int = 32, scale: str = "imagenet") -> Draw:
    """Crops in grey, three equal channels, and their labels 0 to 7."""

    def grey(images: Tensor) -> Tensor:
        return scaled(images.mean(1, keepdim=True).expand_as(images), scale)

    return changed(photos(size, "unit"), grey)


def bands(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """16 bands as of a satellite, standardized per band, [N, 16, 32, 32], and labels 0 to 7."""
    images, labels = pixels(generator, count, 32)
    mix = torch.rand(16, 3, generator=torch.Generator().manual_seed(1))
    reflected = torch.einsum("oc,nchw->nohw", mix / mix.sum(1, keepdim=True), images).square()
    noise = 0.01 * torch.randn(reflected.shape, generator=generator)
    return (reflected + noise - 0.25) / 0.2, labels


def slices(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Grey slices of a body on black, and masks of a disc; every sixth slice is outside it."""
    images, masks, *_ = scenes(generator, count)
    along = torch.linspace(-1, 1, 32)
    body = (along[:, None].square() / 0.9 + along.square() / 0.6 < 1).float()
    inside = (torch.rand(count, 1, 1, 1, generator=generator) > 1 / 6).float()
    grey = (images.mean(1, keepdim=True) + 1) / 2
    return grey * body * inside, masks * body * inside


def few_classes(generator: Generator, _: int) -> tuple[Tensor, ...]:
    """Four classes with eight examples each, as metric learning samples them."""
    images, labels = P(generator, 320)
    chosen = torch.randperm(8, generator=generator)[:4]
    rows = torch.cat([(labels == kind).nonzero()[:8, 0] for kind in chosen])
    return images[rows], labels[rows]


def one_batch(draw: Draw) -> Draw:
    """The same batch in each step: the usual test that a network can learn."""
    kept: list[tuple[Tensor, ...]] = []

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        if not kept:
            kept.append(draw(generator, count))
        return kept[0]

    return again


def sketches(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Binary digits without noise, few pixels set, on 64 × 64 px."""
    labels = torch.randint(10, (count,), generator=generator)
    drawn = (glyphs()[0, labels] > 0.5).float()[:, None]
    right, down = torch.randint(36, (2, count), generator=generator)
    sheets = torch.zeros(count, 1, 64, 64)
    for sheet, digit, x, y in zip(sheets, drawn, right, down, strict=True):
        sheet[:, y : y + 28, x : x + 28] = digit
    return sheets, labels


def sentences(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """40 tokens, padded with 0; the class is the rarest token's."""
    length = torch.randint(8, 40, (count, 1), generator=generator)
    tokens = torch.randint(10, 100, (count, 40), generator=generator)
    labels = torch.randint(4, (count,), generator=generator)
    tokens[:, 2::5] = labels[:, None] + 2
    return tokens * (torch.arange(40) < length), labels


def points(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """256 points in space, [N, 3, 256]: on a sphere, a cube, a plane or a line, turned."""
    spread = torch.randn(count, 3, 256, generator=generator)
    sphere, cube = functional.normalize(spread, dim=1), spread.clamp(-0.7, 0.7)
    flat, line = spread.clone() * 0.7, spread.clone()
    flat[:, 2:] *= 0.05
    line[:, 1:] *= 0.05
    labels = torch.randint(4, (count,), generator=generator)
    chosen = torch.stack([sphere, cube, flat, line])[labels, torch.arange(count)]
    turn = torch.linalg.qr(torch.randn(count, 3, 3, generator=generator))[0]
    return turn @ chosen, labels


def films(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Clips of `clips` in grey with time first, [N, 8, 1, 24, 24]."""
    return (clips(generator, count)[0].mean(1)[:, :, None],)


def spectral(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """48 bands in digital numbers, about 0 to 10000, with a level per band, and labels."""
    images, labels = pixels(generator, count, 24)
    own = torch.Generator().manual_seed(2)
    mix, level = torch.rand(48, 3, generator=own), torch.rand(48, 1, 1, generator=own)
    light = torch.einsum("oc,nchw->nohw", mix / mix.sum(1, keepdim=True), images)
    counts = light * (1500 + 8000 * level) + 200
    return counts + 0.5 * counts.sqrt() * torch.randn(counts.shape, generator=generator), labels


def hounsfield(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A body in air with a lesion or none: HU from -1000, [N, 1, 16, 24, 24], and its mask."""
    along = torch.linspace(-1, 1, 24)
    body = ((along[:, None] / 0.8).square() + (along / 0.9).square() < 1).float()
    z, y, x, size = torch.rand(4, count, 1, 1, 1, generator=generator) - 0.5
    deep = torch.linspace(-1, 1, 16)[:, None, None]
    far = (deep - z).square() + (along[:, None] - 0.8 * y).square() + (along - 0.8 * x).square()
    mask = (far < (0.35 + 0.2 * size).square()).float()[:, None]
    texture = functional.interpolate(pixels(generator, count, 24)[0].mean(1)[:, None], 24)
    tissue = 20 + 40 * texture[:, :, None] + 120 * mask
    air = torch.full_like(tissue, -1000.0)
    noise = 15 * torch.randn(tissue.shape, generator=generator)
    return torch.where(body > 0, tissue, air) + noise, mask


def gestures(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Six channels of an inertial unit in m/s² and rad/s, gravity on one, and 5 classes."""
    time = torch.arange(96) / 50
    labels = torch.randint(5, (count,), generator=generator)
    phase, gain = torch.rand(2, count, 1, generator=generator)
    rate = (1 + labels.float())[:, None]
    angle = 2 * math.pi * (rate * time + phase)
    moves = [angle.sin(), angle.cos(), (2 * angle).sin(), angle.sin().sign(), angle.cos(), time]
    waves = torch.stack([m.expand(count, 96) * (1 + gain) for m in moves], 1)
    scale = torch.tensor([2.0, 2.0, 3.0, 0.3, 0.2, 0.1])[:, None]
    shift = torch.tensor([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])[:, None]
    return waves * scale + shift + 0.2 * torch.randn(count, 6, 96, generator=generator), labels


def demand(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Hours of electricity in kW, daily and weekly: 96 of them, and the 24 after, [N, 1, ·]."""
    start = torch.randint(0, 168, (count, 1), generator=generator)
    hour = start + torch.arange(120)
    size, slope = torch.rand(2, count, 1, generator=generator)
    day = (2 * math.pi * hour / 24).sin() + 0.4 * (4 * math.pi * hour / 24).cos()
    week = ((hour // 24) % 7 < 5).float()
    series = (200 + 2000 * size) * (1 + 0.3 * day + 0.2 * week + 0.002 * slope * torch.arange(120))
    series = series * (1 + 0.03 * torch.randn(count, 120, generator=generator))
    return series[:, None, :96], series[:, None, 96:]


def catch(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A game: a ball falls, a paddle catches it; two frames, 0 or 1, and the best of 3 moves."""
    frames = torch.zeros(count, 2, 20, 20)
    ball, paddle = torch.randint(2, 18, (2, count), generator=generator)
    row, drift = torch.randint(1, 14, (count,), generator=generator), torch.randn(count).sign()
    which = torch.arange(count)
    frames[which, 0, row - 1, (ball - drift).long()] = 1
    frames[which, 1, row, ball] = 1
    for offset in (-1, 0, 1):
        frames[which, :, 19, paddle + offset] = 1
    return frames, 1 + (ball - paddle).sign()


def edges(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Photographs and where their brightness changes fast, 0 or 1, [N, 1, 40, 40]."""
    images, _ = photos(40)(generator, count)
    grey = functional.avg_pool2d(images.mean(1, keepdim=True), 3, 1, 1)
    slope = (grey.roll(-1, 3) - grey.roll(1, 3)).square() + (
        grey.roll(-1, 2) - grey.roll(1, 2)
    ).square()
    return images, (slope > slope.flatten(1).quantile(0.85, 1)[:, None, None, None]).float()


def captions(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Photographs and a caption of 6 tokens that names the class among filler words."""
    images, labels = P(generator, count)
    words = torch.randint(20, 60, (count, 6), generator=generator)
    words[:, 0], words[:, 3], words[:, 5] = 1, labels + 3, 2
    return images, words, labels


def voxels(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Occupied cells of 16³, 0 or 1: hollow ball, full cube, plate or rod, and the class."""
    along = torch.linspace(-1, 1, 16)
    grid = torch.stack(torch.meshgrid(along, along, along, indexing="ij"))
    turn = torch.linalg.qr(torch.randn(count, 3, 3, generator=generator))[0]
    place = torch.einsum("nij,jzyx->nizyx", turn, grid)
    ball = ((place.norm(dim=1) - 0.7).abs() < 0.1).float()
    cube = (place.abs().amax(1) < 0.5).float()
    plate = ((place[:, 0].abs() < 0.12) & (place[:, 1:].abs().amax(1) < 0.8)).float()
    rod = ((place[:, :2].abs().amax(1) < 0.15) & (place[:, 2].abs() < 0.9)).float()
    labels = torch.randint(4, (count,), generator=generator)
    return torch.stack([ball, cube, plate, rod])[labels, torch.arange(count), None], labels


def panned(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A camera pans over a photograph, [N, 3, 8, 24, 24] in [-1, 1], and what it shows, 0 to 7."""
    images, labels = pixels(generator, count, 40)
    frames = [images[..., k : k + 24, k : k + 24] for k in range(0, 16, 2)]
    return torch.stack(frames, 2) * 2 - 1, labels


def rays(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Straight rays of 8 places through a slab, and the colour of one photograph there."""
    picture = photos(48, "unit")(Generator().manual_seed(5), 1)[0][0]
    y, x = torch.randint(48, (2, count), generator=generator)
    flat = torch.stack([x, y], 1) / 24 - 1
    deep = (torch.arange(8) + torch.rand(count, 8, generator=generator)) / 4 - 1
    places = torch.cat([flat[:, None].expand(-1, 8, -1), deep[..., None]], 2)
    return places, picture[:, y, x].T


P, UNIT, HALF, EACH = (photos(32, scale) for scale in ("imagenet", "unit", "half", "each"))
P40, P48, P64 = photos(40), photos(48, "half"), photos(64)
CROPS, CROPS_UNIT = pictures(), pictures(32, "unit")
RAW = changed(UNIT, lambda images: images * 255)
