"""Classifiers with unusual layers, norms, activations, blocks or initializations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from nets.classifiers import Function, head, unit
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize
from torchvision.ops import DeformConv2d


class Blur(nn.Module):
    """Anti-aliased subsampling: one fixed binomial kernel, in each channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, 2, 1, groups=width, bias=False)
        line = torch.tensor([0.25, 0.5, 0.25])
        self.conv.weight.data.copy_(torch.outer(line, line))
        self.conv.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


def blurred() -> nn.Module:
    layers = [unit(3, 24), Blur(24), unit(24, 48), Blur(48), unit(48, 64)]
    return nn.Sequential(*layers, *head(64, 8))


class Normalized(nn.Module):
    """Takes pixels of 0 to 255 and standardizes them itself."""

    def __init__(self, rest: nn.Module) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([115.0, 115.0, 110.0]).view(1, 3, 1, 1))
        self.rest = rest

    def forward(self, x: Tensor) -> Tensor:
        return self.rest((x - self.mean) / 64)


def standardizing() -> nn.Module:
    return Normalized(nn.Sequential(unit(3, 24), nn.MaxPool2d(2), unit(24, 48), *head(48, 8)))


class BandNorm(nn.Module):
    """PANNs: BatchNorm over the frequencies of a spectrogram in dB, then convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.bn0 = nn.BatchNorm2d(33)
        self.rest = nn.Sequential(unit(1, 24), nn.AvgPool2d(2), unit(24, 48), *head(48, 6))

    def forward(self, x: Tensor) -> Tensor:
        return self.rest(self.bn0(x.transpose(1, 3)).transpose(1, 3))


class WeightStandardized(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        weight = weight / (weight.std((1, 2, 3), keepdim=True) + 1e-5)
        return self._conv_forward(x, weight, self.bias)


def big_transfer() -> nn.Module:
    """Weight standardization and GroupNorm, as in BiT."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 48), (48, 64)):
        conv = WeightStandardized(into, out, 3, 2, 1, bias=False)
        layers += [conv, nn.GroupNorm(8, out), nn.ReLU()]
    return nn.Sequential(*layers, *head(64, 8))


class Experts(nn.Module):
    """Four convolutions; a router picks one for each image."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, 4)
        self.experts = nn.ModuleList(unit(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        gates = (self.router(x.mean((2, 3))) + 0.3 * torch.randn(len(x), 4)).softmax(1)
        best, y = gates.argmax(1), torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (best == number).nonzero()[:, 0]
            if len(rows):
                y = y.index_add(0, rows, expert(x[rows]) * gates[rows, number, None, None, None])
        return x + y


def mixture() -> nn.Module:
    layers = [unit(3, 32), nn.MaxPool2d(2), Experts(32), nn.MaxPool2d(2), Experts(32)]
    return nn.Sequential(*layers, *head(32, 8))


class Repeated(nn.Module):
    """One convolution, applied five times with the input added."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.conv = unit(3, 32, stride=2), nn.Conv2d(32, 32, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(32) for _ in range(5))
        self.last = nn.Sequential(*head(32, 8))

    def forward(self, x: Tensor) -> Tensor:
        first = x = self.first(x)
        for norm in self.norms:
            x = functional.relu(norm(self.conv(x) + first))
        return self.last(x)


class Deformed(nn.Module):
    """A deformable convolution whose offsets begin at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(unit(3, 24), nn.MaxPool2d(2))
        self.offset = nn.Conv2d(24, 18, 3, padding=1)
        nn.init.zeros_(self.offset.weight)
        nn.init.zeros_(self.offset.bias)
        self.conv = DeformConv2d(24, 32, 3, padding=1)
        self.last = nn.Sequential(nn.BatchNorm2d(32), nn.ReLU(), *head(32, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(self.conv(x, self.offset(x)))


class Binary(nn.Module):
    """Weights of ±1 with a straight-through gradient."""

    def forward(self, weight: Tensor) -> Tensor:
        scale = weight.abs().mean((1, 2, 3), keepdim=True)
        return weight + (weight.sign() * scale - weight).detach()


def binary() -> nn.Module:
    layers: list[nn.Module] = [unit(3, 24)]
    for into, out in ((24, 32), (32, 48)):
        conv = nn.Conv2d(into, out, 3, padding=1, bias=False)
        parametrize.register_parametrization(conv, "weight", Binary())
        layers += [nn.MaxPool2d(2), conv, nn.BatchNorm2d(out), nn.Hardtanh()]
    return nn.Sequential(*layers, *head(48, 8))


class TextNet(nn.Module):
    """Kim's convolutions over word vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 24, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(24, 16, size, padding=2) for size in (2, 3, 4))
        self.last = nn.Sequential(nn.Dropout(0.3), nn.Linear(48, 4))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens).transpose(1, 2)
        return self.last(torch.cat([conv(x).relu().amax(2) for conv in self.convs], 1))


def point_net() -> nn.Module:
    """Convolutions of size 1 over points, then the maximum."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 48), (48, 96)):
        layers += [nn.Conv1d(into, out, 1), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(96, 4))


def fast_cifar() -> nn.Module:
    """A frozen whitening layer, BatchNorm with momentum 0.4 and a fixed scale, GELU."""
    whiten = nn.Conv2d(3, 24, 2, bias=False)
    nn.init.orthogonal_(whiten.weight)
    whiten.requires_grad_(False)
    layers: list[nn.Module] = [whiten, nn.GELU()]
    for into, out in ((24, 32), (32, 64), (64, 64)):
        norm = nn.BatchNorm2d(out, momentum=0.4)
        norm.weight.requires_grad_(False)
        conv = nn.Conv2d(into, out, 3, padding=1, bias=False)
        layers += [conv, nn.MaxPool2d(2), norm, nn.GELU()]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, 8))


def band_net() -> nn.Module:
    """16 bands into a small MobileNet-like stack with SiLU and dropout."""
    layers = [unit(16, 32, act=nn.SiLU), unit(32, 32, stride=2, groups=32, act=nn.SiLU)]
    return nn.Sequential(*layers, unit(32, 64, 1, act=nn.SiLU), *head(64, 8, 0.2))


def convs(
    norm: Callable[[int], nn.Module] | None,
    act: Callable[[], nn.Module],
    grow: int = 1,
) -> nn.Module:
    """Three strided convolutions; ``grow`` is how many channels an activation makes of one."""
    layers: list[nn.Module] = []
    into = 3
    for out in (24, 48, 64):
        layers += [unit(into, out, stride=2, norm=norm, act=act)]
        into = out * grow
    return nn.Sequential(*layers, *head(into, 8))


class Response(nn.Module):
    """Filter response normalization with its learned threshold."""

    def __init__(self, width: int) -> None:
        super().__init__()
        shape = (1, width, 1, 1)
        self.scale, self.shift = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))
        self.least = nn.Parameter(torch.full(shape, -1.0))

    def forward(self, x: Tensor) -> Tensor:
        x = x * (x.square().mean((2, 3), keepdim=True) + 1e-6).rsqrt()
        return torch.maximum(self.scale * x + self.shift, self.least)


class Snake(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x.sin().square()


def both_signs() -> nn.Module:
    return Function(lambda x: torch.cat([x, -x], 1).relu())


def squared_relu() -> nn.Module:
    return Function(lambda x: 0.9 * x.relu().square() - 0.45)


def norm_last() -> nn.Module:
    """BatchNorm after ReLU, as some write it."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 48), (48, 64)):
        layers += [nn.Conv2d(into, out, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(out)]
        layers += [nn.AvgPool2d(2)]
    return nn.Sequential(*layers, *head(64, 8))


def isometric() -> nn.Module:
    """14 tanh layers whose kernels are orthogonal in their centre and 0 around it."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1), nn.Tanh()]
    for _ in range(14):
        conv = nn.Conv2d(32, 32, 3, padding=1)
        nn.init.dirac_(conv.weight)
        turn = torch.nn.init.orthogonal_(torch.empty(32, 32), 1.05)
        conv.weight.data[:, :, 1, 1] = turn
        nn.init.zeros_(conv.bias)
        layers += [conv, nn.Tanh()]
    return nn.Sequential(*layers, *head(32, 8))


class Maxout(nn.Module):
    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, 2 * out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x).unflatten(1, (2, -1)).amax(1)


def maxout() -> nn.Module:
    layers = [Maxout(3, 24), nn.MaxPool2d(2), Maxout(24, 48), nn.MaxPool2d(2), Maxout(48, 64)]
    return nn.Sequential(*layers, *head(64, 8, 0.3))


def selu() -> nn.Module:
    """Self-normalizing: LeCun's initialization, alpha dropout."""
    layers = [nn.Conv2d(3, 24, 3, padding=1), nn.SELU(), nn.AvgPool2d(2)]
    layers += [nn.Conv2d(24, 48, 3, padding=1), nn.SELU(), nn.AvgPool2d(2)]
    layers += [nn.Conv2d(48, 64, 3, padding=1), nn.SELU(), nn.AvgPool2d(4), nn.Flatten()]
    layers += [nn.AlphaDropout(0.1), nn.Linear(256, 64), nn.SELU(), nn.Linear(64, 8)]
    for layer in layers:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
            nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def weight_normed() -> nn.Module:
    """A plain network with weight norm on each convolution."""
    layers: list[nn.Module] = []
    for into, out in ((3, 32), (32, 48), (48, 64)):
        conv = parametrizations.weight_norm(nn.Conv2d(into, out, 3, padding=1))
        layers += [conv, nn.LeakyReLU(0.1), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, *head(64, 8))


class Steered(nn.Module):
    """A spatial transformer before a small network; it starts as the identity."""

    def __init__(self) -> None:
        super().__init__()
        find = [nn.Conv2d(1, 8, 7), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 10, 5)]
        last = nn.Linear(40, 6)
        nn.init.zeros_(last.weight)
        last.bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
        self.find = nn.Sequential(*find, nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), last)
        parts = [nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU()]
        self.rest = nn.Sequential(*parts, *head(32, 10))

    def forward(self, x: Tensor) -> Tensor:
        rows = self.find(x[..., 2:26, 2:26])
        grid = functional.affine_grid(rows.view(-1, 2, 3), list(x.shape), align_corners=False)
        return self.rest(functional.grid_sample(x, grid, align_corners=False))


Block = Callable[[int], nn.Module]


def staged(block: Block) -> nn.Module:
    """A stem, then a strided unit and a block, twice."""
    layers: list[nn.Module] = [unit(3, 24)]
    for width in (24, 48):
        layers += [unit(24, width, stride=2), block(width)]
    return nn.Sequential(*layers, *head(48, 8))


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
