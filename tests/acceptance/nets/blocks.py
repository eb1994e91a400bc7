"""Classifiers whose blocks attend, route, share or are reversible."""

from __future__ import annotations

from collections.abc import Callable

import torch
from nets.classifiers import head, unit
from torch import Tensor, nn
from torch.nn import functional

Block = Callable[[int], nn.Module]


class Added(nn.Module):
    """x + f(x), then an activation."""

    def __init__(self, inner: nn.Module, act: nn.Module | None = None) -> None:
        super().__init__()
        self.inner, self.act = inner, act or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x + self.inner(x))


def staged(block: Block, widths: tuple[int, ...] = (24, 48), classes: int = 8) -> nn.Module:
    """A stem, then a strided unit and a block per width."""
    layers: list[nn.Module] = [unit(3, widths[0])]
    for into, out in zip((widths[0], *widths), widths, strict=False):
        layers += [unit(into, out, stride=2), block(out)]
    return nn.Sequential(*layers, *head(widths[-1], classes))


def two(width: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
    return nn.Sequential(unit(width, width, act=act), conv, nn.BatchNorm2d(width))


class Cbam(nn.Module):
    """Attention to channels by mean and maximum, then to places."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body, self.place = two(width), nn.Conv2d(2, 1, 7, padding=3)
        self.mlp = nn.Sequential(
            nn.Conv2d(width, width // 4, 1), nn.ReLU(), nn.Conv2d(width // 4, width, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        mean, most = y.mean((2, 3), keepdim=True), y.amax((2, 3), keepdim=True)
        y = y * (self.mlp(mean) + self.mlp(most)).sigmoid()
        spots = torch.cat([y.mean(1, keepdim=True), y.amax(1, keepdim=True)], 1)
        return (x + y * self.place(spots).sigmoid()).relu()


class Eca(nn.Module):
    """Attention to channels by a 1-D convolution over them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body, self.mix = two(width), nn.Conv1d(1, 1, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        gate = self.mix(y.mean((2, 3))[:, None]).sigmoid()
        return (x + y * gate[:, 0, :, None, None]).relu()


class NonLocal(nn.Module):
    """Embedded Gaussian over all places; the last BatchNorm's scale begins at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.ask, self.key, self.value = (nn.Conv2d(width, width // 2, 1) for _ in range(3))
        self.out, self.norm = nn.Conv2d(width // 2, width, 1), nn.BatchNorm2d(width)
        nn.init.zeros_(self.norm.weight)
        self.body = Added(two(width), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        ask, key, value = (f(x).flatten(2) for f in (self.ask, self.key, self.value))
        share = (ask.transpose(1, 2) @ key).softmax(2)
        y = (value @ share.transpose(1, 2)).unflatten(2, x.shape[2:])
        return self.body(x + self.norm(self.out(y)))


class Res2(nn.Module):
    """Res2Net: four groups of channels, each convolved after the one before was added."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, part = unit(width, width, 1), width // 4
        self.convs = nn.ModuleList(unit(part, part) for _ in range(3))
        self.last = nn.Sequential(nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(4, 1))
        for number, conv in enumerate(self.convs, 1):
            before = parts[number - 1] if number > 1 else 0
            parts[number] = conv(parts[number] + before)
        return (x + self.last(torch.cat(parts, 1))).relu()


class Involution(nn.Module):
    """A 3 × 3 kernel per place and group, made from the place's own values."""

    def __init__(self, width: int, groups: int = 4) -> None:
        super().__init__()
        self.groups, self.norm = groups, nn.BatchNorm2d(width)
        self.kernel = nn.Sequential(
            unit(width, width // 4, 1), nn.Conv2d(width // 4, 9 * groups, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        count, width, rows, columns = x.shape
        kernel = self.kernel(x).view(count, self.groups, 1, 9, rows, columns)
        near = functional.unfold(x, 3, padding=1)
        near = near.view(count, self.groups, width // self.groups, 9, rows, columns)
        return (x + self.norm((kernel * near).sum(3).view_as(x))).relu()


class Coordinates(nn.Module):
    """CoordConv: two planes with the place's coordinates beside the maps."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.body = unit(into + 2, out, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        along = [torch.linspace(-1, 1, n) for n in x.shape[2:]]
        planes = torch.stack(torch.meshgrid(*along, indexing="ij"))
        return self.body(torch.cat([x, planes.expand(len(x), -1, -1, -1)], 1))


class Fractal(nn.Module):
    """FractalNet of depth 3: paths of 1, 2 and 4 units, averaged."""

    def __init__(self, width: int, depth: int = 3) -> None:
        super().__init__()
        self.short = unit(width, width)
        parts = [Fractal(width, depth - 1) for _ in range(2)] if depth > 1 else []
        self.long = nn.Sequential(*parts)

    def forward(self, x: Tensor) -> Tensor:
        return (self.short(x) + self.long(x)) / 2 if len(self.long) else self.short(x)


class Highway(nn.Module):
    """A gate between a convolution and the identity; its bias begins at -1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.made, self.gate = unit(width, width, norm=None), nn.Conv2d(width, width, 3, 1, 1)
        nn.init.constant_(self.gate.bias, -1.0)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate(x).sigmoid()
        return gate * self.made(x) + (1 - gate) * x


class Ode(nn.Module):
    """A neural ODE by six Euler steps of one shared function of place and time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.last = (nn.Conv2d(width + 1, width, 3, padding=1) for _ in range(2))
        self.norms = nn.ModuleList(nn.GroupNorm(6, width) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for step in range(6):
            time = torch.full_like(x[:, :1], step / 6)
            y = self.norms[0](self.first(torch.cat([x, time], 1)).relu())
            x = x + self.norms[1](self.last(torch.cat([y, time], 1))) / 6
        return x


class Equilibrium(nn.Module):
    """A fixed point found without gradients, and one step with them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inside, self.outside = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.norm = nn.GroupNorm(6, width)

    def forward(self, x: Tensor) -> Tensor:
        given, y = self.outside(x), torch.zeros_like(x)
        with torch.no_grad():
            for _ in range(8):
                y = self.norm((0.5 * self.inside(y) + given).relu())
        return self.norm((0.5 * self.inside(y) + given).relu())


class Reversible(nn.Module):
    """Two halves that are changed in turn, as RevNet; nothing is lost."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = two(width // 2), two(width // 2)

    def forward(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2, 1)
        first = first + self.one(second)
        return torch.cat([first, second + self.two(first)], 1)


class ShakeShake(nn.Module):
    """Two branches, mixed by random shares in training mode."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = two(width), two(width)

    def forward(self, x: Tensor) -> Tensor:
        share = torch.rand(len(x), 1, 1, 1) if self.training else 0.5
        return (x + share * self.one(x) + (1 - share) * self.two(x)).relu()


class Latents(nn.Module):
    """Perceiver: 16 learned vectors ask the patches twice, then each other."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.place = nn.Parameter(torch.randn(1, 64, width) * 0.02)
        self.latents = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        self.look = nn.MultiheadAttention(width, 4, batch_first=True)
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        self.think = nn.TransformerEncoderLayer(width, 4, 2 * width, **options)
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, 8)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.patches(x).flatten(2).transpose(1, 2) + self.place
        y = self.latents.expand(len(x), -1, -1)
        for _ in range(2):
            y = self.think(y + self.look(self.norm(y), seen, seen, need_weights=False)[0])
        return self.last(self.norm(y.mean(1)))
