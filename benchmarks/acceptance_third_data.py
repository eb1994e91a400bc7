"""Batches of the third acceptance trainings: pairs, sensors' units, volumes, series, sets.

Each function takes a generator and a number of examples N, or returns a function that does.
"""

from __future__ import annotations

import math

import torch
from acceptance_data import Draw, clips, photos, pixels, scenes
from torch import Generator, Tensor
from torch.nn import functional


def shifted(generator: Generator, count: int, size: int = 48, most: int = 4) -> tuple[Tensor, ...]:
    """A crop and the same moved, in [-1, 1], and the flow in px, constant, [N, 2, size, size]."""
    images, _ = pixels(generator, count, size + 2 * most)
    moves = torch.randint(-most, most + 1, (count, 2), generator=generator)
    rows = []
    for image, (x, y) in zip(images, moves.tolist(), strict=True):
        rows.append(image[:, most + y : most + y + size, most + x : most + x + size])
    first = images[:, :, most : most + size, most : most + size]
    flow = -moves.float()[:, :, None, None].expand(-1, -1, size, size)
    return first * 2 - 1, torch.stack(rows) * 2 - 1, flow


def stereo(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Left and right pictures with a near disc, and the left one's disparity in px, 1 or 4."""
    back, front = (pixels(generator, count, 40)[0] for _ in range(2))
    mask = scenes(generator, count)[1]
    far_left, far_right = back[..., :32, 4:36], back[..., :32, 5:37]
    near_left, near_right = front[..., :32, 4:36], front[..., :32, 8:40]
    moved = functional.pad(mask, (0, 4))[..., 4:]
    left = mask * near_left + (1 - mask) * far_left
    right = moved * near_right + (1 - moved) * far_right
    return left * 2 - 1, right * 2 - 1, 1 + 3 * mask[:, 0]


def spectral(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """48 bands in digital numbers, about 0 to 10000, with a level per band, and labels."""
    images, labels = pixels(generator, count, 24)
    own = torch.Generator().manual_seed(2)
    mix, level = torch.rand(48, 3, generator=own), torch.rand(48, 1, 1, generator=own)
    light = torch.einsum("oc,nchw->nohw", mix / mix.sum(1, keepdim=True), images)
    counts = light * (1500 + 8000 * level) + 200
    return counts + 0.5 * counts.sqrt() * torch.randn(counts.shape, generator=generator), labels


def sensor(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Bayer pattern packed to 4 planes, 12 bits above a black level of 256, and the picture."""
    images, _ = pixels(generator, count, 32)
    linear = images.pow(2.2)
    planes = [linear[:, 0, ::2, ::2], linear[:, 1, ::2, 1::2]]
    planes += [linear[:, 1, 1::2, ::2], linear[:, 2, 1::2, 1::2]]
    raw = torch.stack(planes, 1)
    noise = 0.01 * torch.randn(raw.shape, generator=generator)
    return ((raw + noise) * 3800 + 256).clamp(0, 4095).round(), images


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


def mixtures(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A low voice and a high one, mixed, [N, 1, 512], and the two, [N, 2, 512]."""
    time = torch.arange(512) / 8000
    low, high, one, two = torch.rand(4, count, 1, generator=generator)
    first = sum((2 * math.pi * (150 + 150 * low) * k * time + 6 * one).sin() / k for k in (1, 2, 3))
    second = (2 * math.pi * (1500 + 1000 * high) * time + 6 * two).sin()
    second = second * (1 + (2 * math.pi * 30 * time).sin()) / 2
    voices = torch.stack([0.3 * first, 0.4 * second], 1)
    return voices.sum(1, keepdim=True), voices


def bags(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Bags of 6 crops, [N, 6, 3, 32, 32]; positive if one of them is of class 0 or 1."""
    images, labels = photos(32)(generator, 6 * count)
    order = torch.randperm(6 * count, generator=generator)
    kinds = labels[order].view(count, 6)
    return images[order].view(count, 6, 3, 32, 32), (kinds < 2).any(1).float()


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


def crowds(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Photographs with 1 to 9 small marks, and the density of the marks × 100."""
    images, _ = photos(48)(generator, count)
    density, along = torch.zeros(count, 1, 48, 48), torch.arange(48.0)
    for number in range(count):
        for y, x in torch.randint(
            4, 44, (int(torch.randint(1, 10, (), generator=generator)), 2), generator=generator
        ).tolist():
            images[number, :, y - 2 : y + 3, x - 2 : x + 3] = 2.2
            spot = (-((along[:, None] - y).square() + (along - x).square()) / 8).exp()
            density[number, 0] += 100 * spot / spot.sum()
    return images, density


def with_table(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Photographs, five columns about mean 0 that tell something of the class, and labels."""
    images, labels = photos(40)(generator, count)
    noise = torch.randn(count, 5, generator=generator)
    return images, noise + 0.6 * torch.eye(8)[labels][:, :5], labels


def films(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Clips of `clips` with time first, [N, 8, 3, 24, 24], and the direction."""
    shown, labels = clips(generator, count)
    return shown.transpose(1, 2), labels


def captions(size: int = 32) -> Draw:
    """Photographs and a caption of 6 tokens that names the class among filler words."""
    labelled = photos(size)

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels = labelled(generator, count)
        words = torch.randint(20, 60, (count, 6), generator=generator)
        words[:, 0], words[:, 3], words[:, 5] = 1, labels + 3, 2
        return images, words, labels

    return draw
