"""Networks of the trainings in ``strangers_*.py``."""

from __future__ import annotations

import itertools

import torch
from nets.classifiers import head, unit
from torch import Tensor, nn
from torch.nn import functional
from torchvision.ops import DeformConv2d, SqueezeExcitation, StochasticDepth


def group(width: int) -> nn.Module:
    return nn.GroupNorm(4, width)


class Residual(nn.Module):
    def __init__(self, *body: nn.Module, skip: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.skip = nn.Sequential(*body), skip or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.skip(x) + self.body(x)


def squeezed(drop: float = 0.0) -> nn.Module:
    """Inverted bottlenecks with squeeze-and-excite, SiLU and stochastic depth."""
    layers: list[nn.Module] = [unit(3, 16, stride=2, act=nn.SiLU)]
    for into, out, stride in ((16, 16, 1), (16, 24, 1), (24, 24, 1), (24, 40, 2), (40, 40, 1)):
        body = [unit(into, 4 * into, 1, act=nn.SiLU)]
        body += [unit(4 * into, 4 * into, 3, stride, act=nn.SiLU, groups=4 * into)]
        body += [SqueezeExcitation(4 * into, into), nn.Conv2d(4 * into, out, 1)]
        skip = nn.Conv2d(into, out, 1, stride) if into != out else None
        layers.append(Residual(*body, nn.BatchNorm2d(out), StochasticDepth(drop, "row"), skip=skip))
    return nn.Sequential(*layers, unit(40, 128, 1, act=nn.SiLU), *head(128, 8, 0.2))


class Branches(nn.Module):
    """GoogLeNet's: 1 × 1, 3 × 3, 5 × 5 and pooling."""

    def __init__(self, into: int, width: int) -> None:
        super().__init__()
        pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), unit(into, width, 1))
        branches = [nn.Sequential(unit(into, width, 1), unit(width, width, s)) for s in (3, 5)]
        self.branches = nn.ModuleList([unit(into, width, 1), *branches, pooled])

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def inception(classes: int = 8, channels: int = 3) -> nn.Module:
    layers = [unit(channels, 24, 5, 2), Branches(24, 12), Branches(48, 12), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, Branches(48, 20), Branches(80, 20), *head(80, classes, 0.4))


class Hybrid(nn.Module):
    """A convolutional stem and two transformer layers over its map, as CCT."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(unit(3, 32, norm=None), nn.MaxPool2d(2), unit(32, 64, stride=2))
        self.place = nn.Parameter(0.02 * torch.randn(1, 64, 64))
        layer = nn.TransformerEncoderLayer(64, 4, 128, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.pool, self.last = nn.Linear(64, 1), nn.Linear(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.layers(self.stem(x).flatten(2).transpose(1, 2) + self.place)
        return self.last((self.pool(tokens).softmax(1) * tokens).sum(1))


class Modulated(nn.Module):
    """A deformable convolution v2: offsets and a mask, which begin at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.offset, self.conv = nn.Conv2d(width, 27, 3, 1, 1), DeformConv2d(width, width, 3, 1, 1)
        for parameter in self.offset.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        offset, mask = self.offset(x).split([18, 9], 1)
        return self.conv(x, offset, 2 * mask.sigmoid())


class Involution(nn.Module):
    """A kernel of its own at each place, made from the pixel there."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.kernel = nn.Sequential(unit(width, width // 4, 1), nn.Conv2d(width // 4, 4 * 9, 1))

    def forward(self, x: Tensor) -> Tensor:
        count, width, high, wide = x.shape
        near = functional.unfold(x, 3, padding=1).view(count, 4, width // 4, 9, high, wide)
        return (near * self.kernel(x).view(count, 4, 1, 9, high, wide)).sum(3).flatten(1, 2)


class Gate(nn.Module):
    """A U-Net whose skips pass attention gates, in 2-D or 3-D."""

    def __init__(
        self, into: int = 3, out: int = 1, norm: object = group, wide: bool = True
    ) -> None:
        super().__init__()
        conv, up = (nn.Conv2d, nn.ConvTranspose2d) if wide else (nn.Conv3d, nn.ConvTranspose3d)
        self.pool = nn.MaxPool2d(2) if wide else nn.MaxPool3d(2)

        def block(into: int, out: int) -> nn.Module:
            return nn.Sequential(conv(into, out, 3, padding=1), norm(out), nn.LeakyReLU(0.01))

        self.down = nn.ModuleList([block(into, 12), block(12, 24), block(24, 48)])
        self.up = nn.ModuleList([up(48, 24, 2, 2), up(24, 12, 2, 2)])
        self.gate = nn.ModuleList([conv(48, 1, 1), conv(24, 1, 1)])
        self.join = nn.ModuleList([block(48, 24), block(24, 12)])
        self.last = conv(12, out, 1)

    def forward(self, x: Tensor) -> Tensor:
        one = self.down[0](x)
        two = self.down[1](self.pool(one))
        y = self.down[2](self.pool(two))
        for skip, up, gate, join in zip((two, one), self.up, self.gate, self.join, strict=True):
            y = up(y)
            y = join(torch.cat([skip * gate(torch.cat([skip, y], 1)).sigmoid(), y], 1))
        return self.last(y)


class Pyramid(nn.Module):
    """Strided stages, lateral 1 × 1 convolutions, sums on the way up; a head per entry."""

    def __init__(self, **heads: int) -> None:
        super().__init__()
        pairs = list(itertools.pairwise((3, 24, 32, 48)))
        self.stages = nn.ModuleList(nn.Sequential(unit(a, b, 3, 2), unit(b, b)) for a, b in pairs)
        self.lateral = nn.ModuleList(nn.Conv2d(width, 32, 1) for _, width in pairs)
        last = {k: nn.Sequential(unit(32, 24), nn.Conv2d(24, n, 1)) for k, n in heads.items()}
        self.heads = nn.ModuleDict(last)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        stages = itertools.accumulate(self.stages, lambda y, stage: stage(y), initial=x)
        maps = [side(y) for side, y in zip(self.lateral, list(stages)[1:], strict=True)]
        y = maps[2]
        for finer in maps[1::-1]:
            y = finer + functional.interpolate(y, scale_factor=2)
        return {name: made(y) for name, made in self.heads.items()}


def attended(width: int = 24) -> nn.Module:
    """RCAN's block: convolutions without norm, then a gain per channel."""
    body = [unit(width, width, norm=None), nn.Conv2d(width, width, 3, 1, 1)]
    return Residual(*body, SqueezeExcitation(width, width // 4))


def restorer(out: int = 3, *end: nn.Module) -> nn.Module:
    blocks = [attended() for _ in range(3)]
    return nn.Sequential(nn.Conv2d(3, 24, 3, 1, 1), *blocks, nn.Conv2d(24, out, 3, 1, 1), *end)


class Conditioned(nn.Module):
    """GroupNorm whose scale and shift come from time and class (FiLM)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.word = nn.Embedding(10, 32)
        self.time = nn.Sequential(nn.Linear(1, 32), nn.SiLU(), nn.Linear(32, 32))
        self.first, self.last = nn.Conv2d(1, width, 3, 1, 1), nn.Conv2d(width, 1, 3, 1, 1)
        self.norms = nn.ModuleList(nn.GroupNorm(4, width, affine=False) for _ in range(3))
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, 1, d, d) for d in (1, 2, 4))
        self.films = nn.ModuleList(nn.Linear(32, 2 * width) for _ in range(3))

    def forward(self, x: Tensor, time: Tensor, labels: Tensor) -> Tensor:
        code = functional.silu(self.time(time[:, None]) + self.word(labels))
        y = self.first(x)
        for norm, conv, film in zip(self.norms, self.convs, self.films, strict=True):
            scale, shift = film(code)[:, :, None, None].chunk(2, 1)
            y = y + conv(functional.silu(norm(y) * (1 + scale) + shift))
        return self.last(y)


class Gaussian(nn.Module):
    """A convolutional VAE of digits; returns the picture's logits, mean and log-variance."""

    def __init__(self) -> None:
        super().__init__()
        down = [nn.Conv2d(1, 16, 4, 2, 1), group(16), nn.SiLU(), nn.Conv2d(16, 32, 4, 2, 1)]
        self.down = nn.Sequential(*down, group(32), nn.SiLU(), nn.Flatten(), nn.Linear(1568, 32))
        up = [nn.Linear(16, 1568), nn.SiLU(), nn.Unflatten(1, (32, 7, 7))]
        up += [nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1)]
        self.up = nn.Sequential(*up)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, spread = self.down(x).chunk(2, 1)
        return self.up(mean + (spread / 2).exp() * torch.randn_like(mean)), mean, spread


def heart(channels: int, classes: int, norm: type[nn.Module] = nn.BatchNorm1d) -> nn.Module:
    """A residual 1-D network for long signals: wide kernels, norm first, dropout."""

    def block() -> nn.Module:
        first = [norm(24), nn.ReLU(), nn.Dropout(0.2), nn.Conv1d(24, 24, 9, padding=4)]
        return Residual(*first, norm(24), nn.ReLU(), nn.Conv1d(24, 24, 9, padding=4))

    layers = [nn.Conv1d(channels, 24, 15, 2, 7), *(block(), nn.MaxPool1d(2), block())]
    end = [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(24, classes)]
    return nn.Sequential(*layers, norm(24), nn.ReLU(), *end)


class WaveNet(nn.Module):
    """Gated causal convolutions of growing dilation, with sums of skips."""

    def __init__(self, out: int, width: int = 24) -> None:
        super().__init__()
        self.first, self.pads = nn.Conv1d(1, width, 1), (1, 2, 4, 8, 16)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in self.pads)
        self.mixes = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in self.pads)
        end = [nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, out, 1)]
        self.last = nn.Sequential(*end)

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.first(x), torch.zeros(())
        for gate, mix, pad in zip(self.gates, self.mixes, self.pads, strict=True):
            value, share = gate(functional.pad(x, (pad, 0))).chunk(2, 1)
            more, skip = mix(value.tanh() * share.sigmoid()).chunk(2, 1)
            x, total = x + more, total + skip
        return self.last(total)
