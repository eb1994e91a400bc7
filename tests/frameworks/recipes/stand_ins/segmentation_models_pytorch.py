"""A U-Net of two levels under the name of segmentation_models_pytorch.

It upsamples with a transposed convolution.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, 2)
        self.conv1 = nn.Sequential(
            nn.Conv2d(2 * outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(True)
        )

    def forward(self, coarse: Tensor, fine: Tensor) -> Tensor:
        return self.conv1(torch.cat([self.up(coarse), fine], 1))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, 2, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        fine = self.conv1(x).relu()
        return fine, self.conv2(fine).relu()


class Unet(nn.Module):
    def __init__(self, encoder_name: str, *, classes: int, **_: object) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(), nn.Module()
        self.decoder.blocks = nn.ModuleList([Block(8, 4)])
        self.segmentation_head = nn.Sequential(nn.Conv2d(4, classes, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        fine, coarse = self.encoder(x)
        return self.segmentation_head(self.decoder.blocks[0](coarse, fine))


class DiceLoss(nn.Module):
    def __init__(self, mode: str, *, from_logits: bool) -> None:
        super().__init__()

    def forward(self, logits: Tensor, masks: Tensor) -> Tensor:
        found = logits.sigmoid()
        return 1 - 2 * (found * masks).sum() / (found.sum() + masks.sum())


losses = SimpleNamespace(DiceLoss=DiceLoss)
