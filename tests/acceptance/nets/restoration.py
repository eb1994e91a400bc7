"""Networks that repair or enlarge pictures, and their losses."""

from __future__ import annotations

from nets.classifiers import unit
from torch import Tensor, nn


class Denoiser(nn.Module):
    """DnCNN: the network finds the noise, which is subtracted."""

    def __init__(self) -> None:
        super().__init__()
        middle = [unit(24, 24) for _ in range(3)]
        first = unit(3, 24, norm=None)
        self.body = nn.Sequential(first, *middle, nn.Conv2d(24, 3, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.body(x)


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
