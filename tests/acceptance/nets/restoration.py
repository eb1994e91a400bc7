"""Networks that repair or enlarge pictures, and their losses."""

from __future__ import annotations

from torch import nn


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
