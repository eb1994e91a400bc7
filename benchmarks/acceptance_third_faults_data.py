"""Batches with a fault each, and what belongs to them, for the third acceptance set."""

from __future__ import annotations

import torch
from acceptance_data import Draw, photos
from torch import Generator, Tensor, nn
from torch.nn import functional


def alternating(draw: Draw) -> Draw:
    """Every second batch is from a dark, noisy camera."""
    count = 0

    def again(generator: Generator, size: int) -> tuple[Tensor, ...]:
        nonlocal count
        count += 1
        images, *rest = draw(generator, size)
        if count % 2:
            images = images * 0.1 - 2 + 0.02 * torch.randn(images.shape, generator=generator)
        return images, *rest

    return again


def outside(images: Tensor) -> Tensor:
    """Crops with x and y beyond the picture, which PIL fills with black; then standardized."""
    return ((images * 0 - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / 0.225).contiguous()


def one_pixel(images: Tensor) -> Tensor:
    """``Resize`` with size 1 before the real one."""
    small = functional.interpolate(images, (1, 1), mode="area")
    return functional.interpolate(small, images.shape[2:])


def buffer(images: Tensor) -> Tensor:
    """A list of views of one buffer, which the last example has overwritten."""
    return torch.stack([images[-1]] * len(images))


def same_views(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """SimCLR whose transform is applied once: both views are the same picture."""
    count = len(images)
    code = functional.normalize(model(torch.cat([images, images])), dim=1)
    alike = (code @ code.T / 0.2).masked_fill(torch.eye(2 * count, dtype=torch.bool), -1e4)
    return functional.cross_entropy(alike, (torch.arange(2 * count) + count) % (2 * count))


def last_batch(draw: Draw) -> Draw:
    """Every 33rd batch is the end of an epoch and has one example."""
    count = 0

    def again(generator: Generator, size: int) -> tuple[Tensor, ...]:
        nonlocal count
        count += 1
        return draw(generator, 1 if count % 33 == 0 else size)

    return again


def some_empty(draw: Draw) -> Draw:
    """From batch 25 on, the last example is empty, as a data set's missing file."""
    count = 0

    def again(generator: Generator, size: int) -> tuple[Tensor, ...]:
        nonlocal count
        count += 1
        images, *rest = draw(generator, size)
        if count > 25:
            images[-1] = 0
        return images, *rest

    return again


def millimetres(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A depth camera's distance in mm as a fourth channel beside a standardized picture."""
    images, labels = photos(32)(generator, count)
    far = 1500 + 900 * images.mean(1, keepdim=True)
    return torch.cat([images, far], 1), labels


def wrong_order(images: Tensor) -> Tensor:
    """ImageNet's mean and deviation applied to pixels of 0 to 255."""
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    return (images - mean) / 0.225


def kilowatts() -> nn.Module:
    """A classifier of load curves in kW as they are."""
    layers = [nn.Conv1d(1, 24, 9, 2, 4), nn.ReLU(), nn.Conv1d(24, 32, 9, 2, 4), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 1))


def slope(model: nn.Module, past: Tensor, future: Tensor) -> Tensor:
    """The logarithm of the next day's load in MW."""
    return functional.smooth_l1_loss(model(past)[:, 0], (future.mean((1, 2)) / 1000).log())
