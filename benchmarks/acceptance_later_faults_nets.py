"""Networks, batches and losses with a fault each, for the later acceptance."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from acceptance_classic import head, unit
from acceptance_data import Draw, photos
from acceptance_later_data import raw
from acceptance_later_loops import encoder
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim import Optimizer, lr_scheduler
from torch.optim.lr_scheduler import LRScheduler


def stack(
    depth: int, width: int = 24, act: Callable[[], nn.Module] = nn.ReLU, scale: float = 0.0
) -> nn.Module:
    """Convolutions without norm or shortcut; ``scale`` is the deviation of their weights."""
    layers: list[nn.Module] = [unit(3, width, norm=None, act=act), nn.MaxPool2d(2)]
    layers += [unit(width, width, norm=None, act=act) for _ in range(depth)]
    model = nn.Sequential(*layers, *head(width, 8))
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and scale:
            nn.init.normal_(module.weight, 0, scale)
    return model


def prior_everywhere() -> nn.Module:
    """The bias of a detector's class head, put on every convolution."""
    model = encoder(8, norm=False)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.constant_(module.bias, -math.log(99))
    return model


class Unrolled(nn.Module):
    """One convolution, applied 24 times, with too large an initialization."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.conv = unit(3, 24, stride=2), nn.Conv2d(24, 24, 3, padding=1)
        nn.init.orthogonal_(self.conv.weight, 2.0)
        self.last = nn.Sequential(*head(24, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for _ in range(24):
            x = functional.leaky_relu(self.conv(x), 0.2)
        return self.last(x)


def momentum(value: float) -> nn.Module:
    """BatchNorm with this momentum, on photographs of other units than mean 0, deviation 1."""
    model = encoder(8)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = value
    return model


def widened() -> nn.Module:
    """Each channel of the second layer twice, and the next layer's weights halved."""
    model = encoder(8, norm=False)
    second, third = model[1][0], model[2][0]
    wide, after = nn.Conv2d(24, 96, 3, 2, 1), nn.Conv2d(96, 64, 3, 1, 1)
    wide.weight.data.copy_(torch.cat([second.weight, second.weight]))
    wide.bias.data.copy_(torch.cat([second.bias, second.bias]))
    after.weight.data.copy_(torch.cat([third.weight, third.weight], 1) / 2)
    after.bias.data.copy_(third.bias)
    model[1][0], model[2][0] = wide, after
    return model


def same_start() -> nn.Module:
    """Every convolution begins with one constant."""
    model = encoder(8, norm=False)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.constant_(module.weight, 0.02)
    return model


def inflated() -> nn.Module:
    """A first layer for 32 channels made of one trained edge filter, and BatchNorm after it."""
    model = encoder(8)
    kernel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 4
    model[0][0].weight.data.copy_(kernel.expand(24, 3, 3, 3) / 3)
    return model


class HalfPrecision(nn.Module):
    """A layer in float16 whose values outgrow it: pixels of 0 to 255 times a gain."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(150.0))
        self.first, self.rest = nn.Conv2d(3, 24, 3, 2, 1), encoder(8)[1:]
        nn.init.normal_(self.first.weight, 0, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x * self.gain).half().float()
        return self.rest(y.relu())


class Detached(nn.Module):
    """Features that somebody computed under no_grad to save memory, and left so."""

    def __init__(self) -> None:
        super().__init__()
        parts = list(encoder(8))
        self.stem, self.rest = nn.Sequential(*parts[:2]), nn.Sequential(*parts[2:])

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            x = self.stem(x)
        return self.rest(x)


class Borrowed(nn.Module):
    """A decoder that uses a frozen copy of its kernel in place of the one it registers."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 32, 4, 2, 1), nn.Conv2d(32, 32, 3, padding=1)
        self.up = nn.Conv2d(32, 12, 3, padding=1)
        self.used = self.middle.weight.detach().clone()

    def forward(self, x: Tensor) -> Tensor:
        y = functional.conv2d(self.down(x).relu(), self.used, self.middle.bias, padding=1)
        return functional.pixel_shuffle(self.up(y.relu()), 2)


def transposed(size: int, dims: int = 2) -> nn.Module:
    """An autoencoder whose enlargement has a kernel that its stride does not divide."""
    if dims == 1:
        down, up = nn.Conv1d(1, 24, 4, 2, 1), nn.ConvTranspose1d(24, 16, size, 2, size // 2)
        return nn.Sequential(down, nn.ReLU(), up, nn.ReLU(), nn.Conv1d(16, 1, 4, 1, 2))
    layers: list[nn.Module] = [unit(3, 24, stride=2), unit(24, 32, stride=2)]
    for into, out in ((32, 24), (24, 3)):
        layers += [nn.ConvTranspose2d(into, out, size, 2, size // 2, 1)]
        layers += [nn.BatchNorm2d(out), nn.ReLU()] if out > 3 else []
    return nn.Sequential(*layers, nn.Tanh())


def changed(draw: Draw, change: Callable[[Tensor], Tensor]) -> Draw:
    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, *rest = draw(generator, count)
        return change(images), *rest

    return again


def padded(images: Tensor) -> Tensor:
    """A collate function that pads, and copies the images into a slice of length 0."""
    sheet = torch.zeros(len(images), 3, 40, 40)
    sheet[:, :, 40:72, 40:72] = images[:, :, :0, :0]
    return sheet


def as_bytes(images: Tensor) -> Tensor:
    """Divided by 255 as integers, then standardized."""
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    return ((images.byte() // 255).float() - mean) / 0.23


def first_only(images: Tensor) -> Tensor:
    """A data set whose ``__getitem__`` returns its first image."""
    return images[:1].expand_as(images)


def cached(images: Tensor) -> Tensor:
    """A cache with a wrong key: runs of four examples share an image."""
    return images[::4].repeat_interleave(4, 0)[: len(images)]


def own_range(images: Tensor) -> Tensor:
    """Each image from 0 to 1 by its own range, without a guard; one image is blank."""
    images = images.clone()
    images[3] = 0.7
    low, high = images.amin((1, 2, 3), True), images.amax((1, 2, 3), True)
    return (images - low) / (high - low)


def later(draw: Draw, change: Callable[[Tensor], Tensor], calls: int) -> Draw:
    """``change`` from the given batch on."""
    count = 0

    def again(generator: Generator, size: int) -> tuple[Tensor, ...]:
        nonlocal count
        count += 1
        images, *rest = draw(generator, size)
        return change(images) if count > calls else images, *rest

    return again


def twice(images: Tensor) -> Tensor:
    """Standardized images, standardized once more with ImageNet's numbers."""
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    return (images - mean) / 0.225


def log_of_zero(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy by hand, with a temperature: 0 · log(0) once a sigmoid is 1."""
    share, truth = (8 * model(images)).sigmoid(), functional.one_hot(labels, 8)
    return -(truth * share.log() + (1 - truth) * (1 - share).log()).mean()


def root_of_zero(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Contrastive loss with distances to oneself; their root has an infinite slope."""
    code = model(images)
    apart = (code[:, None] - code[None]).square().sum(2).sqrt()
    same = (labels[:, None] == labels).float()
    return (same * apart + (1 - same) * (2 - apart).clamp(min=0)).mean()


def integer_warm_up(optimizer: Optimizer, steps: int) -> LRScheduler:
    """``//`` in place of ``/``: the rate is 0 until the warm-up has ended."""
    return lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step // 500))


def biases_only(model: nn.Module) -> Optimizer:
    """The group without weight decay; the other group was forgotten."""
    flat = [p for p in model.parameters() if p.ndim == 1]
    return optim.AdamW([{"params": flat, "weight_decay": 0.0}], lr=1e-3)


RAW, UNIT = raw(), photos(32, "unit")
