"""Train a U-Net of segmentation_models_pytorch to segment textures (brick, grass, gravel)."""

import argparse
from pathlib import Path

import segmentation_models_pytorch as smp
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.demo.photographs import Photographs

SIDE, BATCH = 64, 8
TEXTURES = ("brick", "grass", "gravel")


def scenes(photographs: Photographs, step: int) -> tuple[Tensor, Tensor]:
    """Images with textures in random regions, [N, 3, 64, 64], and the regions, [N, 1, 64, 64]."""
    source = torch.Generator().manual_seed(step)
    crops, labels = photographs.training_batch(12 * BATCH, source)
    crops = functional.interpolate(crops, SIDE, mode="bilinear")
    textures = torch.tensor([photographs.names.index(name) for name in TEXTURES])
    is_texture = torch.isin(labels, textures)
    inside, outside = crops[is_texture][:BATCH], crops[~is_texture][:BATCH]
    noise = torch.randn(BATCH, 1, 4, 4, generator=source)
    masks = functional.interpolate(noise, SIDE, mode="bicubic") > 0
    return torch.where(masks, inside, outside), masks.float()


def train(steps: int, every: int, logdir: Path) -> nn.Module:
    torch.manual_seed(0)
    photographs = Photographs.load()
    model = smp.Unet("resnet18", encoder_weights=None, decoder_interpolation="nearest", classes=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    dice = smp.losses.DiceLoss("binary", from_logits=True)
    model.train()

    with fmapboard.watch(model, logdir, optimizer=optimizer, every=every):
        for step in range(steps):
            images, masks = scenes(photographs, step)
            logits = model(images)
            loss = dice(logits, masks) + functional.binary_cross_entropy_with_logits(logits, masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=100, type=int)
    parser.add_argument("--every", default=10, type=int)
    parser.add_argument("--logdir", default="runs/segmentation", type=Path)
    args = parser.parse_args()
    train(args.steps, args.every, args.logdir)
    print(f"tensorboard --logdir {args.logdir}")
