"""Train a DCGAN on the bundled photographs: two models and two optimizers in one run."""

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.demo.photographs import Photographs

NOISE, BATCH = 64, 16


def generator() -> nn.Sequential:
    return nn.Sequential(
        *(nn.ConvTranspose2d(NOISE, 128, 6, bias=False), nn.BatchNorm2d(128), nn.ReLU(True)),
        *(nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(True)),
        *(nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(True)),
        *(nn.ConvTranspose2d(32, 3, 4, 2, 1, bias=False), nn.Tanh()),
    )


def discriminator() -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)),
        *(nn.Conv2d(32, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.LeakyReLU(0.2, True)),
        *(nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.LeakyReLU(0.2, True)),
        nn.Conv2d(128, 1, 6, bias=False),
    )


def initialize(module: nn.Module) -> None:
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)


def real_batch(photographs: Photographs, step: int) -> Tensor:
    crops, _ = photographs.training_batch(BATCH, torch.Generator().manual_seed(step))
    return (crops / 2.5).clamp_(-1, 1)  # [N, 3, 48, 48], the range of the generator's tanh


def train(steps: int, every: int, logdir: Path) -> nn.Module:
    torch.manual_seed(0)
    photographs = Photographs.load()
    netG, netD = generator().apply(initialize), discriminator().apply(initialize)
    optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))

    boards = [
        fmapboard.watch(netG, logdir, optimizer=optimizerG, every=every, name="generator"),
        fmapboard.watch(netD, logdir, optimizer=optimizerD, every=every, name="discriminator"),
    ]

    for step in range(steps):
        netD.zero_grad()
        logits = netD(real_batch(photographs, step)).flatten()
        functional.binary_cross_entropy_with_logits(logits, torch.ones(BATCH)).backward()
        fake = netG(torch.randn(BATCH, NOISE, 1, 1))
        logits = netD(fake.detach()).flatten()
        functional.binary_cross_entropy_with_logits(logits, torch.zeros(BATCH)).backward()
        optimizerD.step()

        netG.zero_grad()
        logits = netD(fake).flatten()
        functional.binary_cross_entropy_with_logits(logits, torch.ones(BATCH)).backward()
        optimizerG.step()

    for board in boards:
        board.close()
    return nn.ModuleList([netG, netD])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=300, type=int)
    parser.add_argument("--every", default=20, type=int)
    parser.add_argument("--logdir", default="runs/gan", type=Path)
    args = parser.parse_args()
    train(args.steps, args.every, args.logdir)
    print(f"tensorboard --logdir {args.logdir}")
