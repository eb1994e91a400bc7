"""Networks that repair or enlarge pictures, and their losses."""

from __future__ import annotations

import torch
from nets.classifiers import unit
from torch import Tensor, nn


def super_resolution(kind: str) -> nn.Module:
    """16 × 16 to 32 × 32 px: "espcn" (PixelShuffle) or "fsrcnn" (transposed)."""
    if kind == "espcn":
        layers = [nn.Conv2d(3, 48, 5, padding=2), nn.Tanh(), nn.Conv2d(48, 24, 3, padding=1)]
        return nn.Sequential(
            *layers, nn.Tanh(), nn.Conv2d(24, 12, 3, padding=1), nn.PixelShuffle(2)
        )
    layers = [nn.Conv2d(3, 32, 5, padding=2), nn.PReLU(32), nn.Conv2d(32, 12, 1), nn.PReLU(12)]
    layers += [nn.Conv2d(12, 12, 3, padding=1), nn.PReLU(12), nn.Conv2d(12, 32, 1), nn.PReLU(32)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, 3, 8, 2, 3))


class Denoiser(nn.Module):
    """DnCNN: the network finds the noise, which is subtracted."""

    def __init__(self) -> None:
        super().__init__()
        middle = [unit(24, 24) for _ in range(3)]
        first = unit(3, 24, norm=None)
        self.body = nn.Sequential(first, *middle, nn.Conv2d(24, 3, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.body(x)


def blind_spot(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Noise2Void: chosen pixels are replaced by a neighbour, and only they count."""
    noisy = images + 0.2 * torch.randn_like(images)
    spots = (torch.rand(len(images), 1, *images.shape[2:]) < 0.03).float()
    shown = noisy * (1 - spots) + noisy.roll((1, -1), (2, 3)) * spots
    return ((model(shown) - noisy).square() * spots).sum() / spots.sum() / 3


def icnr(conv: nn.Conv2d) -> nn.Conv2d:
    """fastai's initialization before PixelShuffle: neighbours in the picture begin alike."""
    kept = torch.empty(conv.out_channels // 4, *conv.weight.shape[1:])
    conv.weight.data.copy_(nn.init.kaiming_normal_(kept).repeat_interleave(4, 0))
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
