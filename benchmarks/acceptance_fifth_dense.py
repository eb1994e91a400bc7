"""Networks of the fifth set that return pictures: encoder and decoder, or blocks of equal size."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from acceptance_classic import unit
from acceptance_fifth_nets import BATCH, Act, Body, Norm, reduced, single
from torch import Tensor, nn
from torch.nn import functional


def enlarged(kind: str, into: int, out: int, norm: Norm, act: Act) -> nn.Module:
    """Twice the rows and columns."""
    if kind == "shuffle":
        return nn.Sequential(unit(into, 4 * out, 1, 1, norm, act), nn.PixelShuffle(2))
    if kind == "transposed":
        conv = nn.ConvTranspose2d(into, out, 4, 2, 1, bias=norm is None)
        return nn.Sequential(conv, *([norm(out)] if norm else []), act())
    smooth = {"align_corners": False} if kind == "bilinear" else {}
    return nn.Sequential(
        nn.Upsample(scale_factor=2, mode=kind, **smooth), unit(into, out, 3, 1, norm, act)
    )


class Hourglass(nn.Module):
    """An encoder and a decoder; maps of equal size are joined, added or not used again."""

    def __init__(
        self,
        body: Body = single,
        widths: tuple[int, ...] = (16, 32, 48),
        *,
        norm: Norm = BATCH,
        act: Act = nn.ReLU,
        skip: str = "",
        down: str = "stride",
        up: str = "nearest",
        channels: int = 3,
        out: int = 3,
        last: Callable[[Tensor], Tensor] | None = None,
        around: bool = False,
    ) -> None:
        super().__init__()
        self.skip, self.last, self.around = skip, last, around
        self.first = unit(channels, widths[0], 3, 1, norm, act)
        pairs = list(itertools.pairwise(widths))
        self.downs = nn.ModuleList(
            nn.Sequential(reduced(down, a, norm, act), body(a, b, norm, act)) for a, b in pairs
        )
        self.ups = nn.ModuleList(enlarged(up, b, a, norm, act) for a, b in reversed(pairs))
        wide = 2 if skip == "join" else 1
        self.bodies = nn.ModuleList(body(wide * a, a, norm, act) for a, _ in reversed(pairs))
        self.final = nn.Conv2d(widths[0], out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y, kept = self.first(x), []
        for down in self.downs:
            kept.append(y)
            y = down(y)
        for up, body in zip(self.ups, self.bodies, strict=True):
            y, side = up(y), kept.pop()
            if self.skip:
                y = torch.cat([y, side], 1) if self.skip == "join" else y + side
            y = body(y)
        y = self.final(y)
        y = self.last(y) if self.last is not None else y
        return x + y if self.around else y


class Flat(nn.Module):
    """Residual bodies at full size between two convolutions; adds to its input if ``around``."""

    def __init__(
        self,
        body: Body,
        width: int = 24,
        depth: int = 3,
        *,
        norm: Norm = None,
        act: Act = nn.ReLU,
        channels: int = 3,
        out: int = 3,
        around: bool = True,
        dense: bool = False,
    ) -> None:
        super().__init__()
        self.around, self.dense = around, dense
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        self.bodies = nn.ModuleList(
            body(width * (n + 1) if dense else width, width, norm, act) for n in range(depth)
        )
        self.final = nn.Conv2d(width * (depth + 1) if dense else width, out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        for body in self.bodies:
            y = torch.cat([y, body(y)], 1) if self.dense else y + body(y)
        y = self.final(y)
        return x + y if self.around else y


class Bottle(nn.Module):
    """An autoencoder with a vector of 48 numbers in the middle, 32 × 32 px."""

    def __init__(self, norm: Norm = BATCH, act: Act = nn.ReLU, up: str = "nearest") -> None:
        super().__init__()
        widths = (24, 32, 48)
        layers = [unit(a, b, 3, 2, norm, act) for a, b in zip((3, *widths), widths, strict=False)]
        self.encode = nn.Sequential(*layers, nn.Flatten(), nn.Linear(48 * 16, 48))
        self.spread = nn.Sequential(nn.Linear(48, 48 * 16), nn.Unflatten(1, (48, 4, 4)), act())
        ups = [enlarged(up, a, b, norm, act) for a, b in ((48, 32), (32, 24), (24, 24))]
        self.decode = nn.Sequential(*ups, nn.Conv2d(24, 3, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.spread(self.encode(x)))


class Cosines(nn.Module):
    """Cosines between an image's code and a proxy per class."""

    def __init__(self, body: nn.Module, width: int, classes: int = 8) -> None:
        super().__init__()
        self.body, self.proxies = body, nn.Parameter(torch.randn(classes, width))

    def forward(self, x: Tensor) -> Tensor:
        return (
            functional.normalize(self.body(x), dim=1) @ functional.normalize(self.proxies, dim=1).T
        )
