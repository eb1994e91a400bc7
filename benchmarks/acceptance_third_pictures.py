"""Networks of the third set that return pictures, and their losses."""

from __future__ import annotations

import itertools

import torch
from acceptance_classic import unit
from torch import Tensor, nn
from torch.nn import functional


class Dense(nn.Module):
    """ESRGAN's dense block, its result scaled by 0.2."""

    def __init__(self, width: int = 24, growth: int = 12) -> None:
        super().__init__()
        convs = [nn.Conv2d(width + k * growth, growth, 3, padding=1) for k in range(3)]
        self.convs = nn.ModuleList(convs)
        self.last = nn.Conv2d(width + 3 * growth, width, 3, padding=1)
        for conv in [*convs, self.last]:
            nn.init.kaiming_normal_(conv.weight)
            conv.weight.data.mul_(0.1)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for conv in self.convs:
            y = torch.cat([y, functional.leaky_relu(conv(y), 0.2)], 1)
        return x + 0.2 * self.last(y)


class Rrdb(nn.Module):
    """ESRGAN's generator: dense blocks, nearest enlargement, convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.body = nn.Conv2d(3, 24, 3, padding=1), nn.Sequential(Dense(), Dense())
        self.after, self.up = (nn.Conv2d(24, 24, 3, padding=1) for _ in range(2))
        self.last = nn.Conv2d(24, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        y = y + self.after(self.body(y))
        y = functional.interpolate(y, scale_factor=2.0, mode="nearest")
        return self.last(functional.leaky_relu(self.up(y), 0.2))


class Laplacian(nn.Module):
    """LapSRN: two enlargements by 2, each with a transposed convolution of 4 px for the residue."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 24, 3, padding=1)
        self.bodies = nn.ModuleList(unit(24, 24, norm=None) for _ in range(2))
        self.ups = nn.ModuleList(nn.ConvTranspose2d(24, 24, 4, 2, 1) for _ in range(2))
        self.lasts = nn.ModuleList(nn.Conv2d(24, 3, 3, padding=1) for _ in range(2))

    def forward(self, x: Tensor) -> list[Tensor]:
        y, found = self.first(x), []
        for body, up, last in zip(self.bodies, self.ups, self.lasts, strict=True):
            y = functional.leaky_relu(up(body(y)), 0.2)
            x = functional.interpolate(x, scale_factor=2.0, mode="bilinear") + last(y)
            found.append(x)
        return found


def pyramid(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Charbonnier's loss at each size."""
    half, quarter = (
        functional.interpolate(images, scale_factor=f, mode="bicubic", antialias=True)
        for f in (0.5, 0.25)
    )
    shown = model(quarter)
    terms = zip(shown, (half, images), strict=True)
    return sum(((a - b).square() + 1e-6).sqrt().mean() for a, b in terms)


class NoiseLevel(nn.Module):
    """FFDNet: the picture in four half-sized parts, and a plane with the noise's level."""

    def __init__(self) -> None:
        super().__init__()
        layers = [unit(13, 32, norm=None), unit(32, 32), unit(32, 32)]
        self.body = nn.Sequential(*layers, nn.Conv2d(32, 12, 3, padding=1))

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        parts = functional.pixel_unshuffle(x, 2)
        plane = level.view(-1, 1, 1, 1).expand(-1, 1, *parts.shape[2:])
        return functional.pixel_shuffle(self.body(torch.cat([parts, plane], 1)), 2)


def any_noise(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    level = 0.3 * torch.rand(len(images))
    noise = level.view(-1, 1, 1, 1) * torch.randn_like(images)
    return functional.mse_loss(model(images + noise, level), images)


def blind_spot(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Noise2Void: chosen pixels are replaced by a neighbour, and only they count."""
    noisy = images + 0.2 * torch.randn_like(images)
    spots = (torch.rand(len(images), 1, *images.shape[2:]) < 0.03).float()
    shown = noisy * (1 - spots) + noisy.roll((1, -1), (2, 3)) * spots
    return ((model(shown) - noisy).square() * spots).sum() / spots.sum() / 3


class Curves(nn.Module):
    """Zero-DCE: curves for dark pictures, found without a target."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = unit(3, 24, norm=None), unit(24, 24, norm=None)
        self.conv3, self.last = unit(48, 24, norm=None), nn.Conv2d(24, 12, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first = self.conv1(x)
        y = self.conv3(torch.cat([first, self.conv2(first)], 1))
        curves = self.last(y).tanh()
        for curve in curves.split(3, 1):
            x = x + curve * (x * x - x)
        return x, curves


def brighter(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Exposure, colour constancy and smoothness of the curves; dark pictures of 0 to 0.3."""
    shown, curves = model(images * 0.3)
    mean = shown.mean((2, 3))
    exposed = (functional.avg_pool2d(shown.mean(1, keepdim=True), 8) - 0.6).square().mean()
    grey = (mean - mean.roll(1, 1)).square().mean()
    rough = (curves.diff(dim=2).square().mean() + curves.diff(dim=3).square().mean()) * 20
    return 10 * exposed + 5 * grey + rough


class Developed(nn.Module):
    """Raw sensor values to a picture: black level and white point are removed inside."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(4, 32, 3, padding=1), nn.LeakyReLU(0.2)]
        for _ in range(3):
            layers += [nn.Conv2d(32, 32, 3, padding=1), nn.LeakyReLU(0.2)]
        self.body = nn.Sequential(*layers, nn.Conv2d(32, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.body((x - 256) / (4095 - 256))


def close(model: nn.Module, images: Tensor, target: Tensor) -> Tensor:
    return functional.l1_loss(model(images), target)


class Holistic(nn.Module):
    """HED: a map of edges from each stage, and one fused from them."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 16, 32, 48)
        pairs = itertools.pairwise(widths)
        self.stages = nn.ModuleList(nn.Sequential(unit(a, b), unit(b, b)) for a, b in pairs)
        self.sides = nn.ModuleList(nn.Conv2d(width, 1, 1) for width in widths[1:])
        self.fuse = nn.Conv2d(3, 1, 1)
        nn.init.constant_(self.fuse.weight, 1 / 3)

    def forward(self, x: Tensor) -> list[Tensor]:
        size, found = x.shape[2:], []
        for stage, side in zip(self.stages, self.sides, strict=True):
            x = stage(x)
            found.append(functional.interpolate(side(x), size, mode="bilinear"))
            x = functional.max_pool2d(x, 2)
        return [*found, self.fuse(torch.cat(found, 1))]


def balanced(model: nn.Module, images: Tensor, target: Tensor) -> Tensor:
    weight = torch.where(target > 0, 0.85, 0.15)
    entropy = functional.binary_cross_entropy_with_logits
    return sum(entropy(shown, target, weight) for shown in model(images))


def density() -> nn.Module:
    """CSRNet: dilated convolutions, and a map of how many there are."""
    layers = [unit(3, 24), nn.MaxPool2d(2), unit(24, 32)]
    layers += [unit(32, 32, dilation=2), unit(32, 32, dilation=2), nn.Conv2d(32, 1, 1)]
    return nn.Sequential(*layers)


def counted(model: nn.Module, images: Tensor, target: Tensor) -> Tensor:
    return functional.mse_loss(model(images), 4 * functional.avg_pool2d(target, 2))


class Centres(nn.Module):
    """CenterNet: heat of the centres and radius; a bias of -2.19 for rare centres."""

    def __init__(self) -> None:
        super().__init__()
        layers = [unit(3, 24, stride=2), unit(24, 48, stride=2), unit(48, 48)]
        self.back = nn.Sequential(*layers, nn.ConvTranspose2d(48, 32, 4, 2, 1), nn.ReLU())
        self.heat = nn.Sequential(unit(32, 32, norm=None), nn.Conv2d(32, 1, 1))
        self.size = nn.Sequential(unit(32, 32, norm=None), nn.Conv2d(32, 1, 1))
        nn.init.constant_(self.heat[-1].bias, -2.19)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.back(x)
        return self.heat(y), self.size(y)


def centres(model: nn.Module, images: Tensor, _mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """The penalty-reduced focal loss, and L1 of the radius at the centre."""
    heat, size = model(images)
    along, places = torch.arange(16.0), discs[:, :2] / 2
    far = (along[:, None] - places[:, 1, None, None]).square()
    far = far + (along - places[:, 0, None, None]).square()
    column, row = places.round().long().clamp(0, 15).T
    which, goal = torch.arange(len(images)), (-far / 2).exp()
    goal[which, row, column] = 1
    share = heat[:, 0].sigmoid().clamp(1e-4, 1 - 1e-4)
    hit = ((1 - share).square() * share.log())[which, row, column]
    miss = ((1 - goal) ** 4 * share.square() * (1 - share).log()).sum((1, 2))
    return -(hit + miss).mean() + 0.1 * (size[which, 0, row, column] - discs[:, 2]).abs().mean()


class Pose(nn.Module):
    """Simple baseline: a stem and three transposed convolutions of 4 px with BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 24, 32, 48, 64)
        pairs = itertools.pairwise(widths)
        layers: list[nn.Module] = [unit(a, b, stride=2) for a, b in pairs]
        for into in (64, 32, 32):
            conv = nn.ConvTranspose2d(into, 32, 4, 2, 1, bias=False)
            layers += [conv, nn.BatchNorm2d(32), nn.ReLU()]
        self.body, self.last = nn.Sequential(*layers), nn.Conv2d(32, 1, 1)
        nn.init.normal_(self.last.weight, std=0.001)

    def forward(self, x: Tensor) -> Tensor:
        y = self.last(self.body(x))
        return functional.interpolate(y, x.shape[2:], mode="bilinear")


def icnr(conv: nn.Conv2d, factor: int = 2) -> nn.Conv2d:
    """fastai's initialization before PixelShuffle: neighbours in the picture begin alike."""
    kept = torch.empty(conv.out_channels // factor**2, *conv.weight.shape[1:])
    conv.weight.data.copy_(nn.init.kaiming_normal_(kept).repeat_interleave(factor**2, 0))
    nn.init.zeros_(conv.bias)
    return conv


def dynamic_unet() -> nn.Module:
    """fastai's way up: a 1 × 1 convolution with ICNR, PixelShuffle and a blur, twice."""
    layers: list[nn.Module] = [unit(3, 24, stride=2), unit(24, 48, stride=2)]
    for into, out in ((48, 24), (24, 12)):
        layers += [icnr(nn.Conv2d(into, 4 * out, 1)), nn.ReLU(), nn.PixelShuffle(2)]
        layers += [nn.ReplicationPad2d((1, 0, 1, 0)), nn.AvgPool2d(2, 1), unit(out, out)]
    return nn.Sequential(*layers, nn.Conv2d(12, 3, 1))
