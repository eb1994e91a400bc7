"""Batches of rows of a table, made up."""

from __future__ import annotations

from collections.abc import Callable

import torch
from data import Draw, changed
from torch import Generator, Tensor


def drivers(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Age, mass index, children, distance and car of somebody; the premium. Standardized."""
    z = torch.randn(count, 5, generator=generator)
    y = 0.6 * z[:, 3] - 0.5 * z[:, 0] * z[:, 4] + 0.4 * (z[:, 0].square() - 1) + 0.3 * z[:, 1].sin()
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def rides(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Where a taxi starts and ends, and the hour; how long it takes. All are standardized."""
    z = torch.randn(count, 5, generator=generator)
    far = (z[:, :2] - z[:, 2:4]).norm(dim=1)
    y = far * (1 + 0.3 * z[:, 4].sin()) - 1.77
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def cars(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Displacement, power, weight, acceleration, year, cylinders; the fuel. Standardized."""
    z = torch.randn(count, 6, generator=generator)
    y = 0.6 * z[:, 2] + 0.4 * z[:, 0] * z[:, 1] - 0.4 * (z[:, 4].square() - 1) + 0.4 * z[:, 3].sin()
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def tumours(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Radius, texture, girth, area, smoothness of cells, standardized; benign or malignant."""
    z = torch.randn(count, 5, generator=generator)
    risk = z[:, 0] + 0.8 * z[:, 1] * z[:, 4] + 0.6 * z[:, 3] - 0.5 * z[:, 2].square() + 0.4
    return z, (risk + 0.2 * torch.randn(count, generator=generator) > 0).long()


def clicked(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A user, a page and an hour, and whether an advertisement was clicked."""
    x = torch.randint(24, (count, 3), generator=generator)
    liked = torch.randn(3, 24, 4, generator=Generator().manual_seed(4))
    taste = [part[x[:, n]] for n, part in enumerate(liked)]
    return x, ((taste[0] * taste[1]).sum(1) + taste[2][:, 0] > 0).float()[:, None]


BIRDS = torch.tensor([[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3733], [47.5, 15, 217, 5076]])


def penguins(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Length and depth of a bill, length of a flipper, mass; three species. Standardized."""
    kind = torch.randint(3, (count,), generator=generator)
    x = (BIRDS[kind] - BIRDS.mean(0)) / BIRDS.std(0)
    return x + 0.6 * torch.randn(count, 4, generator=generator), kind


def bikes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Temperature, pressure, humidity, wind and hour; bikes hired. All are standardized."""
    z = torch.randn(count, 5, generator=generator)
    y = 0.7 * z[:, 0] - 0.5 * z[:, 2] * z[:, 3] + 0.6 * (2 * z[:, 4]).sin() + 0.3 * z[:, 1]
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def ill(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Eight laboratory values, standardized, and whether somebody is ill."""
    x = torch.randn(count, 8, generator=generator)
    return x, (x[:, :1] + x[:, 1:2] * x[:, 2:3] > 0).float()


TASTES = torch.randn(2, 200, 4, generator=Generator().manual_seed(5))


def ratings(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Users, films, and one to five stars."""
    who, what = torch.randint(200, (2, count), generator=generator)
    return who, what, (3.6 + (TASTES[0, who] * TASTES[1, what]).sum(1)).round().clamp(1, 5)


def noise(*shape: int, classes: int = 0) -> Draw:
    """Random numbers, and random classes or a random number."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        x, y = torch.rand(count, *shape, generator=generator), torch.rand(count, 1)
        return x, (y[:, 0] * classes).long() if classes else y

    return draw


PLANE = changed(noise(2), lambda x: (4 * x - 2).requires_grad_())


def clicks(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Six fields of 50 values each, and whether there was a click."""
    x = torch.randint(50, (count, 6), generator=generator)
    score = (TASTES[0, x[:, 0]] * TASTES[1, x[:, 1]]).sum(1) + 2 * TASTES[0, x[:, 2:4], 0].sum(1)
    return x + 50 * torch.arange(6), (score + torch.randn(count) / 2 > 1).float()


def numbers(columns: int, of: Callable[[Tensor], Tensor], rows: int = 0) -> Draw:
    """Normal numbers and a function of them; the same ``rows`` in each step, or new ones."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        chosen = Generator().manual_seed(0) if rows else generator
        x = torch.randn(rows or count, columns, generator=chosen)
        return x, of(x)

    return draw
