"""Networks composed of a block, a norm, an activation, a stem, a head, and ways to resize maps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from nets.classifiers import he, unit
from torch import Tensor, nn
from torch.nn import functional

Act = Callable[[], nn.Module]
Norm = Callable[[int], nn.Module] | None
Body = Callable[[int, int, Norm, Act], nn.Module]


BATCH = nn.BatchNorm2d


def single(into: int, out: int, norm: Norm, act: Act, size: int = 3) -> nn.Module:
    return unit(into, out, size, norm=norm, act=act)


def double(into: int, out: int, norm: Norm, act: Act) -> nn.Module:
    return nn.Sequential(unit(into, out, norm=norm, act=act), linear(out, out, norm))


def linear(into: int, out: int, norm: Norm, size: int = 3, groups: int = 1) -> nn.Module:
    return unit(into, out, size, norm=norm, act=nn.Identity, groups=groups)


def bottleneck(into: int, out: int, norm: Norm, act: Act) -> nn.Module:
    mid = out // 4
    layers = [unit(into, mid, 1, norm=norm, act=act), unit(mid, mid, norm=norm, act=act)]
    return nn.Sequential(*layers, linear(mid, out, norm, 1))


def inverted(into: int, out: int, norm: Norm, act: Act) -> nn.Module:
    wide = 3 * into
    layers = [unit(into, wide, 1, norm=norm, act=act)]
    layers += [unit(wide, wide, 5, norm=norm, act=act, groups=wide)]
    return nn.Sequential(*layers, linear(wide, out, norm, 1))


def separable(into: int, out: int, norm: Norm, act: Act) -> nn.Module:
    return nn.Sequential(linear(into, into, norm, 7, into), unit(into, out, 1, 1, norm, act))


class Branches(nn.Module):
    """Convolutions in parallel, joined and mixed by 1 × 1; sizes or dilations differ."""

    def __init__(self, into: int, out: int, norm: Norm, act: Act, dilated: bool = False) -> None:
        super().__init__()
        part, scales = out // 2, (1, 2, 3) if dilated else (1, 3, 5)
        self.parts = nn.ModuleList(
            unit(into, part, 3, norm=norm, act=act, dilation=n)
            if dilated
            else unit(into, part, n, norm=norm, act=act)
            for n in scales
        )
        self.mix = unit(part * len(self.parts), out, 1, norm=norm, act=act)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(torch.cat([part(x) for part in self.parts], 1))


def gated(into: int, out: int, norm: Norm, act: Act) -> nn.Module:
    """GLU over channels."""
    return nn.Sequential(linear(into, 2 * out, norm), nn.GLU(1), linear(out, out, norm, 1), act())


class Skip(nn.Module):
    """A body and what is added to it or joined with it."""

    def __init__(self, body: nn.Module, into: int, out: int, kind: str, act: Act) -> None:
        super().__init__()
        self.body, self.kind = body, kind
        same = into == out or kind == "join"
        self.side = nn.Identity() if same else nn.Conv2d(into, out, 1, bias=False)
        self.act = act() if kind == "add" else nn.Identity()
        if kind == "scaled":
            self.scale = nn.Parameter(torch.full((1, out, 1, 1), 0.2))

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        if self.kind == "join":
            return torch.cat([x, y], 1)
        y = self.scale * y if self.kind == "scaled" else y
        return self.act(self.side(x) + y)


class Blur(nn.Module):
    """A binomial low pass of stride 2."""

    def forward(self, x: Tensor) -> Tensor:
        line = torch.tensor([1.0, 2, 1]) / 4
        kernel = (line[:, None] * line).expand(x.shape[1], 1, 3, 3)
        return functional.conv2d(x, kernel, None, 2, 1, 1, x.shape[1])


def reduced(kind: str, width: int, norm: Norm, act: Act) -> nn.Module:
    """Half of the rows and columns."""
    if kind == "stride":
        return unit(width, width, 3, 2, norm, act)
    if kind == "patch":
        return nn.Sequential(*([norm(width)] if norm else []), nn.Conv2d(width, width, 2, 2))
    if kind == "space":
        return nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(4 * width, width, 1))
    return {"max": nn.MaxPool2d(2), "mean": nn.AvgPool2d(2), "blur": Blur()}[kind]


def stem(kind: str, channels: int, out: int, norm: Norm, act: Act) -> nn.Module:
    if kind == "patch":
        return nn.Sequential(nn.Conv2d(channels, out, 2, 2), *([norm(out)] if norm else []))
    if kind == "space":
        return nn.Sequential(nn.PixelUnshuffle(2), unit(4 * channels, out, 3, 1, norm, act))
    if kind == "deep":
        half = unit(channels, out // 2, 3, 2, norm, act)
        return nn.Sequential(half, unit(out // 2, out, 3, 1, norm, act))
    return unit(
        channels, out, *{"wide": (7, 2), "strided": (3, 2), "full": (3, 1)}[kind], norm, act
    )


class Means(nn.Module):
    """Pooling to a vector: the generalized mean, or mean and maximum joined."""

    def __init__(self, both: bool) -> None:
        super().__init__()
        self.both = both
        self.power = nn.Parameter(torch.tensor(3.0)) if not both else None

    def forward(self, x: Tensor) -> Tensor:
        if self.both:
            return torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1)
        return x.clamp(min=1e-4).pow(self.power).mean((2, 3)).pow(1 / self.power)


class Looked(nn.Module):
    """Pooling by a learned share per place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.share = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return (x * self.share(x).flatten(2).softmax(2).view_as(x[:, :1])).sum((2, 3))


def finish(kind: str, width: int, out: int) -> list[nn.Module]:
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    if kind == "max":
        return [nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(width, out)]
    if kind == "mlp":
        return [*pooled, nn.Linear(width, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, out)]
    if kind == "flat":
        spread = [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, 64), nn.ReLU()]
        return [*spread, nn.Linear(64, out)]
    if kind in ("both", "power"):
        wide = 2 * width if kind == "both" else width
        return [Means(kind == "both"), nn.Linear(wide, out)]
    if kind == "looked":
        return [Looked(width), nn.LayerNorm(width), nn.Linear(width, out)]
    return [*pooled, nn.Linear(width, out)]


def net(
    body: Body,
    widths: tuple[int, ...] = (24, 48),
    depth: int = 1,
    *,
    norm: Norm = BATCH,
    act: Act = nn.ReLU,
    skip: str = "",
    down: str = "stride",
    first: str = "strided",
    last: str = "mean",
    channels: int = 3,
    out: int = 8,
    init: bool = False,
) -> nn.Module:
    """Stages of ``depth`` bodies; the maps are reduced between stages."""
    layers: list[nn.Module] = [stem(first, channels, widths[0], norm, act)]
    into = widths[0]
    for level, width in enumerate(widths):
        if level:
            layers.append(reduced(down, into, norm, act))
        for _ in range(depth):
            made = body(into, width, norm, act)
            layers.append(Skip(made, into, width, skip, act) if skip else made)
            into = into + width if skip == "join" else width
    model = nn.Sequential(*layers, *finish(last, into, out))
    return he(model) if init else model
