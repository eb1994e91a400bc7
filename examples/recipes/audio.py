"""Train M5, a 1-D convolutional network, to classify four kinds of synthetic sound."""

import argparse
import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard

RATE, BATCH = 8000, 16
SOUNDS = ("tone", "chirp", "clicks", "noise")


class M5(nn.Module):
    """After Dai et al., Very deep convolutional neural networks for raw waveforms (2017)."""

    def __init__(self, classes: int, channels: int = 32) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv1d(1, channels, 80, stride=16), nn.BatchNorm1d(channels)
        self.conv2, self.bn2 = nn.Conv1d(channels, channels, 3), nn.BatchNorm1d(channels)
        self.conv3, self.bn3 = nn.Conv1d(channels, 2 * channels, 3), nn.BatchNorm1d(2 * channels)
        self.conv4 = nn.Conv1d(2 * channels, 2 * channels, 3)
        self.bn4 = nn.BatchNorm1d(2 * channels)
        self.pool = nn.MaxPool1d(4)
        self.fc1 = nn.Linear(2 * channels, classes)

    def forward(self, x: Tensor) -> Tensor:  # [N, 1, 8000]
        x = self.pool(functional.relu(self.bn1(self.conv1(x))))  # [N, 32, 124]
        x = self.pool(functional.relu(self.bn2(self.conv2(x))))  # [N, 32, 30]
        x = self.pool(functional.relu(self.bn3(self.conv3(x))))  # [N, 64, 7]
        x = functional.relu(self.bn4(self.conv4(x)))  # [N, 64, 5]
        return self.fc1(x.mean(2))


def sounds() -> tuple[Tensor, Tensor]:
    """A batch of one-second waves, [N, 1, 8000] in -1 to 1, and labels, [N]."""
    labels = torch.randint(len(SOUNDS), (BATCH,))
    pitch, rhythm = 200 + 800 * torch.rand(BATCH, 1), 4 + 12 * torch.rand(BATCH, 1)
    time = torch.arange(RATE) / RATE  # [8000] s
    kinds = torch.stack(
        [
            torch.sin(2 * math.pi * pitch * time),
            torch.sin(2 * math.pi * pitch * (time + time.square())),
            torch.exp(-40 * (rhythm * time).frac() / rhythm) * torch.randn(BATCH, RATE) / 3,
            torch.randn(BATCH, RATE) / 3,
        ]
    )  # [4, N, 8000]
    waves = kinds[labels, torch.arange(BATCH)] + 0.05 * torch.randn(BATCH, RATE)
    return waves.clamp(-1, 1).unsqueeze(1), labels


def train(steps: int, every: int, logdir: Path) -> nn.Module:
    torch.manual_seed(0)
    model = M5(len(SOUNDS))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=0.1)

    with fmapboard.watch(model, logdir, optimizer=optimizer, every=every):
        for _ in range(steps):
            waves, labels = sounds()
            loss = functional.cross_entropy(model(waves), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=200, type=int)
    parser.add_argument("--every", default=20, type=int)
    parser.add_argument("--logdir", default="runs/audio", type=Path)
    args = parser.parse_args()
    train(args.steps, args.every, args.logdir)
    print(f"tensorboard --logdir {args.logdir}")
