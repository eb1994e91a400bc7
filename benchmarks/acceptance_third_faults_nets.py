"""Networks, batches and losses with a fault each, for the third acceptance set."""

from __future__ import annotations

import math

import torch
from acceptance_classic import head, unit
from acceptance_later_loops import encoder
from torch import Generator, Tensor, nn, optim
from torch.nn import functional


def rates_upside_down(model: nn.Module) -> optim.Optimizer:
    """Discriminative rates whose exponent has the wrong sign: 0.01 × 4 per layer to the input."""
    parts = [list(part.parameters()) for part in model]
    parts = [part for part in parts if part]
    groups = [
        {"params": part, "lr": 0.01 * 4 ** (len(parts) - number)}
        for number, part in enumerate(parts)
    ]
    return optim.SGD(groups, momentum=0.9)


class Grown(nn.Module):
    """The shortcut's projection is made in the first forward pass, when its width is known."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.body = unit(3, 24, stride=2), unit(24, 48, stride=2)
        self.skip: nn.Module | None = None
        self.last = nn.Sequential(*head(48, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        y = self.body(x)
        if self.skip is None:
            self.skip = nn.Conv2d(x.shape[1], y.shape[1], 1, 2)
        return self.last(y + self.skip(x))


class Coder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(unit(3, 24, 4, 2), unit(24, 32, stride=2))
        self.decoder = nn.Sequential(nn.Upsample(size=32), unit(32, 24), nn.Conv2d(24, 3, 3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x))


class Rounded(nn.Module):
    """Codes are rounded without a straight-through estimate: nothing flows to the encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(unit(3, 24, stride=2), nn.Conv2d(24, 12, 3, 2, 1))
        layers = [nn.ConvTranspose2d(12, 24, 4, 2, 1), nn.ReLU()]
        self.decoder = nn.Sequential(*layers, nn.ConvTranspose2d(24, 3, 4, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder((self.encoder(x).tanh() * 3).round() / 3)


class SideHead(nn.Module):
    """A second task whose weight in the loss was left at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(3, 24, stride=2), unit(24, 48, stride=2))
        self.last = nn.Sequential(*head(48, 8))
        self.side = nn.Sequential(unit(48, 32, norm=None), nn.Conv2d(32, 1, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.back(x)
        return self.last(y), self.side(y)


def weight_zero(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    told, shown = model(images)
    grey = functional.avg_pool2d(images.mean(1, keepdim=True), 4)
    return functional.cross_entropy(told, labels) + 0.0 * functional.mse_loss(shown, grey)


def zero_scales() -> nn.Module:
    """Scale 0 for every BatchNorm, as it is done for the last one of a residual block."""
    model = encoder(8)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.zeros_(module.weight)
    return model


def relu_last() -> nn.Module:
    """A denoiser of standardized pictures that ends in ReLU."""
    layers = [unit(3, 24, norm=None), unit(24, 24, norm=None), nn.Conv2d(24, 3, 3, padding=1)]
    nn.init.constant_(layers[-1].bias, -0.5)
    return nn.Sequential(*layers, nn.ReLU())


def below(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Targets are below 0: log-density of dark pictures."""
    return functional.mse_loss(model(images), -images.abs() - 0.5)


class Memory(nn.Module):
    """A convolution applied 30 times with tanh and a small gain; only the last state counts."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = nn.Conv2d(3, 24, 3, 2, 1), nn.Conv2d(24, 24, 3, padding=1)
        nn.init.orthogonal_(self.again.weight, 0.4)
        self.last = nn.Sequential(*head(24, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for _ in range(30):
            x = self.again(x).tanh()
        return self.last(x)


def saturated() -> nn.Module:
    """A 1-D network of 14 tanh layers without norm, weights of deviation 0.05."""
    layers: list[nn.Module] = [nn.BatchNorm1d(6), nn.Conv1d(6, 24, 5, padding=2), nn.Tanh()]
    for _ in range(14):
        conv = nn.Conv1d(24, 24, 3, padding=1)
        nn.init.normal_(conv.weight, 0, 0.05)
        layers += [conv, nn.Tanh()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(24, 5))


class Doubling(nn.Module):
    """A residual network from which BatchNorm was removed: its values double per block."""

    def __init__(self, blocks: int = 18) -> None:
        super().__init__()
        self.first, self.blocks = unit(3, 24, stride=2, norm=None), nn.ModuleList()
        for _ in range(blocks):
            block = nn.Sequential(unit(24, 24, norm=None), nn.Conv2d(24, 24, 3, padding=1))
            for conv in (block[0][0], block[1]):
                nn.init.kaiming_normal_(conv.weight)
            self.blocks.append(block)
        self.last = nn.Sequential(*head(24, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


def without_channels() -> nn.Module:
    """He's deviation from the kernel's size only; the number of channels was forgotten."""
    layers = [unit(3, 24, stride=2, norm=None), *(unit(24, 24, norm=None) for _ in range(8))]
    model = nn.Sequential(*layers, *head(24, 8))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, 0, math.sqrt(2 / 9))
    return model


def old_statistics() -> nn.Module:
    """Running statistics of pixels up to 255 in a network that now gets 0 to 1; momentum 1e-3."""
    model = encoder(8)
    first = model[0][1]
    first.running_mean.fill_(20.0)
    first.running_var.fill_(4000.0)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1e-3
    return model


def reseeded() -> nn.Module:
    """A 3-D network whose own initialization seeds a generator for each filter."""
    layers: list[nn.Module] = []
    for into, out in ((1, 12), (12, 24)):
        conv = nn.Conv3d(into, out, 3, 2, 1)
        for kernel in conv.weight.data:
            kernel.normal_(0, math.sqrt(2 / kernel.numel()), generator=Generator().manual_seed(0))
        nn.init.zeros_(conv.bias)
        layers += [conv, nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(24, 4))


def all_ones() -> nn.Module:
    """Weights of 1 / fan-in, left from debugging, in the second layer of a 1-D network."""
    first, second = nn.Conv1d(6, 24, 5, 2, 2), nn.Conv1d(24, 32, 5, 2, 2)
    nn.init.constant_(second.weight, 1 / 120)
    nn.init.zeros_(second.bias)
    layers = [nn.BatchNorm1d(6), first, nn.ReLU(), second, nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 5))


def inertial() -> nn.Module:
    layers = [nn.BatchNorm1d(6), nn.Conv1d(6, 24, 5, 2, 2), nn.ReLU(), nn.Conv1d(24, 32, 5, 2, 2)]
    return nn.Sequential(
        *layers, nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 5)
    )


def cycle_generator() -> nn.Module:
    """CycleGAN's generator as published: 3 px, stride 2, output padding 1."""
    layers: list[nn.Module] = [nn.ReflectionPad2d(3), nn.Conv2d(3, 16, 7), nn.InstanceNorm2d(16)]
    for into, out in ((16, 32), (32, 48)):
        layers += [nn.ReLU(), nn.Conv2d(into, out, 3, 2, 1), nn.InstanceNorm2d(out)]
    for into, out in ((48, 32), (32, 16)):
        layers += [nn.ReLU(), nn.ConvTranspose2d(into, out, 3, 2, 1, 1), nn.InstanceNorm2d(out)]
    layers += [nn.ReLU(), nn.ReflectionPad2d(3), nn.Conv2d(16, 3, 7), nn.Tanh()]
    return nn.Sequential(*layers)


def vocoder() -> nn.Module:
    """A sound decoder: stride 4 with a kernel of 10."""
    layers = [nn.Conv1d(1, 24, 8, 4, 2), nn.LeakyReLU(0.2), nn.Conv1d(24, 24, 3, padding=1)]
    return nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.ConvTranspose1d(24, 1, 10, 4, 3))


class Volumes(nn.Module):
    """A 3-D U-Net that enlarges with 3 px, stride 2."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv3d(1, 8, 3, padding=1), nn.Conv3d(8, 16, 3, 2, 1)
        self.up, self.last = nn.ConvTranspose3d(16, 8, 3, 2, 1, 1), nn.Conv3d(16, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first((x.clamp(-150, 250) - 50) / 100).relu()
        y = self.up(self.down(first).relu()).relu()
        return self.last(torch.cat([first, y], 1))


class ByHand(nn.Module):
    """Standardized by hand over the batch: NaN for a batch of one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest = nn.Conv2d(3, 24, 3, 2, 1), encoder(8, norm=False)[1:]

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        return self.rest(((y - y.mean(0)) / (y.std(0) + 1e-5)).relu())


class Attending(nn.Module):
    """Attention over a map with a mask of what is not padding; one example is all padding."""

    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(3, 24, stride=2), unit(24, 32, 5, stride=4))
        self.ask, self.last = nn.Conv2d(32, 1, 1), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.back(x).flatten(2)
        hidden = functional.max_pool2d(x.abs().amax(1, keepdim=True), 8).flatten(2) < 1e-6
        score = self.ask(y.unflatten(2, (4, 4))).flatten(2).masked_fill(hidden, -math.inf)
        return self.last((y * score.softmax(2)).sum(2))
