"""Networks that look at an image and answer with classes, codes or moves."""

from __future__ import annotations

from collections.abc import Callable

import torch
from nets import classifiers as cnn
from nets.parts import Branches, Net, Residual
from torch import Tensor, nn
from torchvision.ops import SqueezeExcitation, StochasticDepth


def shuffled() -> nn.Module:
    """ShuffleNet: grouped convolutions, between which channels change their group."""
    layers: list[nn.Module] = [cnn.unit(3, 32, 3, 2)]
    for into, out, stride in ((32, 32, 1), (32, 64, 2), (64, 64, 1)):
        deep = cnn.unit(into, into, 3, stride, act=nn.Identity, groups=into)
        body = [cnn.unit(into, into, 1, groups=4), nn.ChannelShuffle(4), deep]
        body.append(cnn.unit(into, out, 1, act=nn.Identity, groups=4))
        skip = nn.Identity() if into == out else nn.Conv2d(into, out, 1, stride)
        layers += [Residual(*body, skip=skip), nn.ReLU()]
    return nn.Sequential(*layers, *cnn.head(64, 8))


def in_network(act: Callable[[], nn.Module] = nn.ReLU, drop: float = 0.0) -> nn.Module:
    """Network in network: each convolution is followed by two of size 1. No norm."""
    layers: list[nn.Module] = []
    for into, out, size in ((3, 32, 5), (32, 48, 3), (48, 64, 3)):
        layers += [cnn.unit(a, out, s, 1, None, act) for a, s in ((into, size), (out, 1), (out, 1))]
        layers += [nn.MaxPool2d(2), nn.Dropout2d(drop)]
    return nn.Sequential(*layers, nn.Conv2d(64, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def headed(model: nn.Module, last: str, classes: int) -> nn.Module:
    """A trained network, frozen, with a new last layer."""
    into = model.requires_grad_(False).get_submodule(last).in_features
    model.set_submodule(last, nn.Linear(into, classes))
    return model


def next_net() -> nn.Module:
    """ResNeXt: residual bottlenecks of eight groups."""
    layers: list[nn.Module] = [cnn.unit(3, 32, 3, 2)]
    for into, out, stride in ((32, 48, 1), (48, 64, 2), (64, 64, 1)):
        body = [cnn.unit(into, into, 1), cnn.unit(into, into, 3, stride, groups=8)]
        skip = nn.Identity() if into == out else nn.Conv2d(into, out, 1, stride)
        layers += [Residual(*body, cnn.unit(into, out, 1, act=nn.Identity), skip=skip), nn.ReLU()]
    return nn.Sequential(*layers, *cnn.head(64, 8))


def squeeze_net(classes: int = 8) -> nn.Module:
    """SqueezeNet: each block narrows, then widens by kernels of two sizes. No norm."""

    def fire(into: int, few: int, out: int) -> nn.Module:
        def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
            return torch.cat([m["one"](y := m["squeeze"](x)), m["three"](y)], 1)

        parts = {
            "squeeze": cnn.unit(into, few, 1, norm=None),
            "one": cnn.unit(few, out, 1, norm=None),
        }
        return Net(run, **parts, three=cnn.unit(few, out, 3, norm=None))

    layers = [cnn.unit(3, 24, 3, 2, None), fire(24, 12, 24), nn.MaxPool2d(2), fire(48, 16, 32)]
    return nn.Sequential(*layers, fire(64, 16, 32), *cnn.head(64, classes))


def projected() -> nn.Module:
    layers = [nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 32)]
    return nn.Sequential(cnn.trunk(32), *layers)


def agent(out: int) -> nn.Module:
    layers = [nn.Conv2d(2, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(288, 64), nn.ReLU(), nn.Linear(64, out))


def squeezed(drop: float = 0.0) -> nn.Module:
    """Inverted bottlenecks with squeeze-and-excite, SiLU and stochastic depth."""
    layers: list[nn.Module] = [cnn.unit(3, 16, stride=2, act=nn.SiLU)]
    for into, out, stride in ((16, 16, 1), (16, 24, 1), (24, 24, 1), (24, 40, 2), (40, 40, 1)):
        body = [cnn.unit(into, 4 * into, 1, act=nn.SiLU)]
        body += [cnn.unit(4 * into, 4 * into, 3, stride, act=nn.SiLU, groups=4 * into)]
        body += [SqueezeExcitation(4 * into, into), nn.Conv2d(4 * into, out, 1)]
        skip = nn.Conv2d(into, out, 1, stride) if into != out else None
        layers.append(Residual(*body, nn.BatchNorm2d(out), StochasticDepth(drop, "row"), skip=skip))
    return nn.Sequential(*layers, cnn.unit(40, 128, 1, act=nn.SiLU), *cnn.head(128, 8, 0.2))


def inception(classes: int = 8, channels: int = 3) -> nn.Module:
    layers = [cnn.unit(channels, 24, 5, 2), Branches(24, 12), Branches(48, 12), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, Branches(48, 20), Branches(80, 20), *cnn.head(80, classes, 0.4))


class Hybrid(nn.Module):
    """A convolutional stem and two transformer layers over its map, as CCT."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            cnn.unit(3, 32, norm=None), nn.MaxPool2d(2), cnn.unit(32, 64, stride=2)
        )
        self.place = nn.Parameter(0.02 * torch.randn(1, 64, 64))
        layer = nn.TransformerEncoderLayer(64, 4, 128, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.pool, self.last = nn.Linear(64, 1), nn.Linear(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.layers(self.stem(x).flatten(2).transpose(1, 2) + self.place)
        return self.last((self.pool(tokens).softmax(1) * tokens).sum(1))
