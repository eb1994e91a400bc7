"""Train MONAI's 3-D UNet to segment spheres in noisy volumes."""

import argparse
from pathlib import Path

import numpy as np
import torch
from monai.data import create_test_image_3d
from monai.losses import DiceCELoss
from monai.networks.nets import UNet
from monai.utils import set_determinism
from torch import Tensor, nn

import fmapboard

SIDE, BATCH = 48, 2


def volumes(step: int) -> tuple[Tensor, Tensor]:
    """Volumes, [N, 1, 48, 48, 48] in 0 to 1, and masks of the same shape, 1 inside the spheres."""
    source = np.random.RandomState(step)
    pairs = [
        create_test_image_3d(
            *(SIDE, SIDE, SIDE), num_objs=6, rad_max=10, rad_min=4, num_seg_classes=1,
            noise_max=0.5, random_state=source,
        )
        for _ in range(BATCH)
    ]  # fmt: skip
    images, labels = (
        torch.from_numpy(np.stack(part)[:, None]).float() for part in zip(*pairs, strict=True)
    )
    return images, labels


def train(steps: int, every: int, logdir: Path) -> nn.Module:
    set_determinism(0)
    model = UNet(
        spatial_dims=3,
        in_channels=1,
        out_channels=1,
        channels=(8, 16, 32),
        strides=(2, 2),
        num_res_units=1,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_function = DiceCELoss(sigmoid=True)

    with fmapboard.watch(model, logdir, optimizer=optimizer, every=every):
        model.train()
        for step in range(steps):
            images, labels = volumes(step)
            optimizer.zero_grad()
            loss = loss_function(model(images), labels)
            loss.backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=60, type=int)
    parser.add_argument("--every", default=10, type=int)
    parser.add_argument("--logdir", default="runs/monai", type=Path)
    args = parser.parse_args()
    train(args.steps, args.every, args.logdir)
    print(f"tensorboard --logdir {args.logdir}")
