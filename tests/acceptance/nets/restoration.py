"""Networks that repair or enlarge pictures, and their losses."""

from __future__ import annotations

import torch
from nets.classifiers import unit
from nets.dense import wider
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.demo.network import load_trained


class Residue(nn.Module):
    """EDSR's block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.2 * self.conv2(functional.relu(self.conv1(x)))


def super_resolution(kind: str) -> nn.Module:
    """16 × 16 to 32 × 32 px: "espcn", "edsr" (both PixelShuffle) or "fsrcnn" (transposed)."""
    if kind == "espcn":
        layers = [nn.Conv2d(3, 48, 5, padding=2), nn.Tanh(), nn.Conv2d(48, 24, 3, padding=1)]
        return nn.Sequential(
            *layers, nn.Tanh(), nn.Conv2d(24, 12, 3, padding=1), nn.PixelShuffle(2)
        )
    if kind == "edsr":
        layers = [nn.Conv2d(3, 32, 3, padding=1), *(Residue(32) for _ in range(3))]
        layers += [nn.Conv2d(32, 128, 3, padding=1), nn.PixelShuffle(2)]
        return nn.Sequential(*layers, nn.Conv2d(32, 3, 3, padding=1))
    layers = [nn.Conv2d(3, 32, 5, padding=2), nn.PReLU(32), nn.Conv2d(32, 12, 1), nn.PReLU(12)]
    layers += [nn.Conv2d(12, 12, 3, padding=1), nn.PReLU(12), nn.Conv2d(12, 32, 1), nn.PReLU(32)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, 3, 8, 2, 3))


class Denoiser(nn.Module):
    """DnCNN: the network finds the noise, which is subtracted."""

    def __init__(self, depth: int = 5, channels: int = 3) -> None:
        super().__init__()
        middle = [unit(24, 24) for _ in range(depth - 2)]
        first = unit(channels, 24, norm=None)
        self.body = nn.Sequential(first, *middle, nn.Conv2d(24, channels, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.body(x)


class SuperResolution(nn.Module):
    """SRResNet: PReLU, BatchNorm, PixelShuffle; 16 × 16 to 32 × 32 px."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 32, 9, padding=4), nn.PReLU())
        self.blocks = nn.ModuleList(
            nn.Sequential(
                unit(32, 32, act=nn.PReLU), nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32)
            )
            for _ in range(3)
        )
        self.up = nn.Sequential(nn.Conv2d(32, 128, 3, padding=1), nn.PixelShuffle(2), nn.PReLU())
        self.last = nn.Conv2d(32, 3, 9, padding=4)

    def forward(self, x: Tensor) -> Tensor:
        first = y = self.first(x)
        for block in self.blocks:
            y = y + block(y)
        return self.last(self.up(first + y))


class WithPerceptualLoss(nn.Module):
    """A network and, as a part of the same module, the frozen one that judges its pictures."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.judge = load_trained().eval().requires_grad_(False)

    def train(self, mode: bool = True) -> WithPerceptualLoss:
        super().train(mode)
        self.judge.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        small = functional.interpolate(images, scale_factor=0.5, mode="bicubic", antialias=True)
        found = self.net(small)
        return functional.l1_loss(found, images) + 0.02 * functional.mse_loss(
            self.judge((found - 0.45) * 4), self.judge((images - 0.45) * 4)
        )


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


class RedNet(nn.Module):
    """RED-Net: convolutions, then transposed ones of stride 1, symmetric shortcuts, no norm."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            nn.Conv2d(3 if k == 0 else width, width, 3, padding=1) for k in range(4)
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(width, 3 if k == 3 else width, 3, padding=1) for k in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        kept = [x]
        for down in self.down:
            kept.append(down(kept[-1]).relu())
        y = kept.pop()
        for number, up in enumerate(self.up):
            y = up(y) + kept.pop()
            y = y.relu() if number < 3 else y
        return y


class SimpleGate(nn.Module):
    """NAFNet: depthwise convolution, products of halves, no activation function."""

    def __init__(self, width: int = 24, blocks: int = 3) -> None:
        super().__init__()
        self.first, self.last = (nn.Conv2d(*c, 3, padding=1) for c in ((3, width), (width, 3)))
        self.blocks = nn.ModuleList()
        for _ in range(blocks):
            layers = [nn.GroupNorm(1, width), nn.Conv2d(width, 2 * width, 1)]
            layers += [nn.Conv2d(2 * width, 2 * width, 3, 1, 1, groups=2 * width)]
            self.blocks.append(
                nn.ModuleDict(
                    {
                        "in": nn.Sequential(*layers),
                        "attend": nn.Conv2d(width, width, 1),
                        "out": nn.Conv2d(width, width, 1),
                    }
                )
            )
        self.scales = nn.ParameterList(torch.full((1, width, 1, 1), 0.1) for _ in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        for block, scale in zip(self.blocks, self.scales, strict=True):
            one, other = block["in"](y).chunk(2, 1)
            z = one * other
            y = y + scale * block["out"](z * block["attend"](z.mean((2, 3), keepdim=True)))
        return x + self.last(y)


class ChannelAttention(nn.Module):
    """RCAN: residual groups with attention to channels, then PixelShuffle."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.first, self.bodies, self.gates = nn.Conv2d(3, width, 3, 1, 1), None, None
        self.bodies = nn.ModuleList(
            nn.Sequential(unit(width, width, norm=None), nn.Conv2d(width, width, 3, padding=1))
            for _ in range(3)
        )
        self.gates = nn.ModuleList(
            nn.Sequential(unit(width, 6, 1, norm=None), nn.Conv2d(6, width, 1), nn.Sigmoid())
            for _ in range(3)
        )
        self.last = nn.Sequential(
            nn.Conv2d(width, 48, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(12, 3, 3, padding=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        first = y = self.first(x)
        for body, gate in zip(self.bodies, self.gates, strict=True):
            z = body(y)
            y = y + z * gate(z.mean((2, 3), keepdim=True))
        return self.last(first + y)


def srcnn() -> nn.Module:
    """SRCNN on an enlarged picture: 9, 5 and 5 px."""
    layers = [nn.Conv2d(3, 32, 9, padding=4), nn.ReLU(), nn.Conv2d(32, 24, 5, padding=2)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(24, 3, 5, padding=2))


def sharpened(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """From a picture that was made smaller and larger again to the picture."""
    small = functional.interpolate(images, scale_factor=0.5, mode="bicubic", antialias=True)
    return functional.mse_loss(model(wider(small)), images) * 10


class Hazy(nn.Module):
    """AOD-Net: one map K by which the haze is removed, K(x) · x - K(x) + 1."""

    def __init__(self) -> None:
        super().__init__()
        sizes = ((3, 12, 1), (12, 12, 3), (24, 12, 5), (24, 12, 7))
        self.convs = nn.ModuleList(nn.Conv2d(a, b, s, padding=s // 2) for a, b, s in sizes)
        self.last = nn.Conv2d(48, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        maps = [self.convs[0](x).relu()]
        maps.append(self.convs[1](maps[-1]).relu())
        for conv in self.convs[2:]:
            maps.append(conv(torch.cat(maps[-2:], 1)).relu())
        k = self.last(torch.cat(maps, 1))
        return k * x - k + 1


def hazed(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Pictures of 0 to 1 behind haze of random strength."""
    left = 0.3 + 0.5 * torch.rand(len(images), 1, 1, 1)
    return functional.mse_loss(model(images * left + 0.9 * (1 - left)), images)
