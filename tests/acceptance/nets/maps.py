"""Networks from images to maps, boxes and images, and autoencoders."""

from __future__ import annotations

import itertools
from functools import partial
from itertools import pairwise

import torch
from nets import classifiers as cnn
from nets import library
from nets.parts import Net, group, mlp
from torch import Tensor, nn
from torch.nn import functional


def atrous() -> nn.Module:
    """DeepLab: dilated convolutions side by side."""
    parts = {k: cnn.unit(48, 24, dilation=d) for k, d in (("a", 1), ("b", 2), ("c", 4))}
    last = [cnn.unit(72, 48, 1), nn.Conv2d(48, 1, 1), nn.Upsample(scale_factor=4, mode="bilinear")]
    joined = Net(lambda m, x: torch.cat([m[k](x) for k in "abc"], 1), **parts)
    return nn.Sequential(cnn.unit(3, 24, 3, 2), cnn.unit(24, 48, 3, 2), joined, *last)


def painter(more: int = 0) -> nn.Module:
    """From grey to colours, -1 to 1; ``more`` convolutions in the middle."""
    sizes = [(1, 24, 5, 1), (24, 32, 3, 2), *[(32, 32, 3, 1)] * (1 + more)]
    last = [nn.ConvTranspose2d(32, 24, 4, 2, 1), nn.ReLU(), nn.Conv2d(24, 3, 3, 1, 1)]
    return nn.Sequential(*(cnn.unit(*s, norm=None) for s in sizes), *last)


def perceptron(*sizes: int) -> nn.Module:
    return nn.Sequential(*(z for a, b in pairwise(sizes) for z in (nn.Linear(a, b), nn.ReLU())))[
        :-1
    ]


DECODER = {f"decoder_{k}": v for k, v in library.BODY.items()} | {"decoder_num_hidden_layers": 1}


class Pyramid(nn.Module):
    """Strided stages, lateral 1 × 1 convolutions, sums on the way up; a head per entry."""

    def __init__(self, **heads: int) -> None:
        super().__init__()
        pairs = list(itertools.pairwise((3, 24, 32, 48)))
        self.stages = nn.ModuleList(
            nn.Sequential(cnn.unit(a, b, 3, 2), cnn.unit(b, b)) for a, b in pairs
        )
        self.lateral = nn.ModuleList(nn.Conv2d(width, 32, 1) for _, width in pairs)
        last = {k: nn.Sequential(cnn.unit(32, 24), nn.Conv2d(24, n, 1)) for k, n in heads.items()}
        self.heads = nn.ModuleDict(last)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        stages = itertools.accumulate(self.stages, lambda y, stage: stage(y), initial=x)
        maps = [side(y) for side, y in zip(self.lateral, list(stages)[1:], strict=True)]
        y = maps[2]
        for finer in maps[1::-1]:
            y = finer + functional.interpolate(y, scale_factor=2)
        return {name: made(y) for name, made in self.heads.items()}


def center_net() -> nn.Module:
    model = Pyramid(heat=1, size=1, offset=2)
    nn.init.constant_(model.heads["heat"][-1].bias, -2.19)
    return model


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


UBN = partial(Gate, norm=nn.BatchNorm2d)

FOUR_STAGES = library.SMALL | {"num_hidden_layers": 4, "out_indices": [1, 2, 3, 4]}


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


def fcn() -> nn.Module:
    """VGG and three transposed convolutions."""
    layers: list[nn.Module] = []
    for into, out in ((3, 16), (16, 32), (32, 64)):
        layers += [cnn.unit(into, out, norm=None), nn.MaxPool2d(2)]
    for into, out in ((64, 32), (32, 16), (16, 1)):
        layers += [nn.ConvTranspose2d(into, out, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def through_code() -> nn.Module:
    down = [nn.Conv2d(3, 24, 4, 2, 1), nn.ReLU(), nn.Conv2d(24, 16, 4, 2, 1), nn.ReLU()]
    up = [nn.ConvTranspose2d(16, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 3, 4, 2, 1)]
    return nn.Sequential(*down, *up)


def through(code: int, cut: nn.Module | None = None, end: nn.Module | None = None) -> nn.Module:
    """An autoencoder of photographs; ``cut`` stands between its halves."""
    down = [nn.Conv2d(3, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 32, 4, 2, 1)]
    down += [nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2048, code)]
    up = [nn.Linear(code, 2048), nn.ReLU(), nn.Unflatten(1, (32, 8, 8))]
    up += [nn.ConvTranspose2d(32, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 3, 4, 2, 1)]
    return nn.Sequential(*down, cut or nn.Identity(), *up, end or nn.Tanh())


def pointer() -> nn.Module:
    """Where an object is: three convolutions and two Linear layers."""
    convs = [cnn.unit(a, b, stride=2, norm=None) for a, b in ((3, 16), (16, 24), (24, 32))]
    return nn.Sequential(*convs, mlp(512, 64, 2))
