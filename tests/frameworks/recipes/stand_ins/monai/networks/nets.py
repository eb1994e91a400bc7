"""A 3-D U-Net of one level with the class and layer names of MONAI."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Named(nn.Module):
    """A convolution inside a submodule of a given name."""

    def __init__(self, name: str, layer: nn.Module) -> None:
        super().__init__()
        self.name = name
        self.add_module(name, layer)

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self, self.name)(x)


class Skip(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.submodule = Named("conv", nn.Conv3d(channels, channels, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.submodule(x).relu()], 1)


class UNet(nn.Module):
    def __init__(self, *, channels: tuple[int, ...], **_: object) -> None:
        super().__init__()
        first = channels[0]
        self.model = nn.Sequential(
            Named("conv", Named("unit0", Named("conv", nn.Conv3d(1, first, 3, 2, 1)))),
            Skip(first),
            nn.Sequential(
                Named("conv", nn.ConvTranspose3d(2 * first, 1, 3, 2, 1, output_padding=1))
            ),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)
