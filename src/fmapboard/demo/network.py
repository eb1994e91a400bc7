"""The demonstration's network, which trains in seconds and has several kernel shapes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fmapboard.demo.bundled import bundled

CLASSES = ("astronaut", "brick", "chelsea", "coffee", "grass", "gravel", "retina", "rocket")
"""The photographs it classifies, in the order of its outputs."""

INPUT_SIZE = 48
"""Height and width of a training crop, in px; larger images work too."""

MEAN = (0.51, 0.39, 0.36)
"""Mean of the training crops per channel R, G, B, on a scale of 0 to 1."""

STD = (0.25, 0.19, 0.20)
"""Standard deviation of the training crops per channel R, G, B, on a scale of 0 to 1."""


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """A convolution that keeps the size, but for its stride; the norm after it adds the bias."""
    padding = kernel // 2
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=padding, bias=False)


class Block(nn.Module):
    """Residual block of two 3 × 3 convolutions: [N, C, H, W] -> [N, C, H, W]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = _convolution(channels, channels, 3)
        self.norm1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv2 = _convolution(channels, channels, 3)
        self.norm2 = nn.BatchNorm2d(channels)
        self.relu2 = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """Add the input to the second convolution's output, then apply ReLU."""
        y = self.norm1(self.conv1(x))
        y = self.relu1(y)
        y = self.norm2(self.conv2(y))
        out: Tensor = self.relu2(y + x)
        return out


class DemoNetwork(nn.Module):
    """A small convolutional network: images [N, 3, H, W] -> logits [N, classes].

    Images are float32, normalized with `MEAN` and `STD`; H and W are at least 8 px. It has six
    convolutions of five kernel shapes, each followed by batch normalization and an in-place ReLU.
    The initial weights depend only on ``seed``; the global random number generators are not
    changed.

    >>> DemoNetwork()(torch.zeros(2, 3, 48, 48)).shape
    torch.Size([2, 8])
    """

    def __init__(self, classes: int = len(CLASSES), *, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            # Not `torch.manual_seed`, which would reseed every accelerator as well.
            torch.default_generator.manual_seed(seed)
            self.conv1 = _convolution(3, 16, 7)
            self.norm1 = nn.BatchNorm2d(16)
            self.relu1 = nn.ReLU(inplace=True)
            self.pool1 = nn.MaxPool2d(2)
            self.conv2 = _convolution(16, 32, 5)
            self.norm2 = nn.BatchNorm2d(32)
            self.relu2 = nn.ReLU(inplace=True)
            self.pool2 = nn.MaxPool2d(2)
            self.block = Block(32)
            self.conv3 = _convolution(32, 64, 3, stride=2)
            self.norm3 = nn.BatchNorm2d(64)
            self.relu3 = nn.ReLU(inplace=True)
            self.conv4 = _convolution(64, 96, 1)
            self.norm4 = nn.BatchNorm2d(96)
            self.relu4 = nn.ReLU(inplace=True)
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.head = nn.Linear(96, classes)
            with torch.no_grad():
                # Batch normalization cancels the factor in the output. Smaller initial noise makes
                # the learned patterns visible in the kernels after fewer steps.
                self.conv1.weight.mul_(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of each image, one per class, [N, classes]."""
        x = self.norm1(self.conv1(x))  # [N, 16, H, W]
        x = self.relu1(x)
        x = self.pool1(x)  # [N, 16, H/2, W/2]
        x = self.norm2(self.conv2(x))  # [N, 32, H/2, W/2]
        x = self.relu2(x)
        x = self.pool2(x)  # [N, 32, H/4, W/4]
        x = self.block(x)
        x = self.norm3(self.conv3(x))  # [N, 64, H/8, W/8]
        x = self.relu3(x)
        x = self.norm4(self.conv4(x))  # [N, 96, H/8, W/8]
        x = self.relu4(x)
        pooled = self.pool(x).flatten(1)  # [N, 96]
        logits: Tensor = self.head(pooled)  # [N, classes]
        return logits


def load_trained() -> DemoNetwork:
    """The trained network that ships with fmapboard, in eval mode, on the CPU.

    >>> load_trained().training
    False
    """
    network = DemoNetwork()
    file = bundled("demo_network.pt")
    weights = torch.load(file, map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    return network.eval()
