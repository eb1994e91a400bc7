"""Networks of the third set with several inputs, volumes, series, bands, or coordinates."""

from __future__ import annotations

import torch
from acceptance_classic import head, unit
from acceptance_data import Draw
from torch import Generator, Tensor, nn
from torch.nn import functional


class Flow(nn.Module):
    """FlowNet: both pictures as 6 channels, flow at three sizes, transposed convolutions of 4."""

    def __init__(self) -> None:
        super().__init__()
        act = lambda: nn.LeakyReLU(0.1)  # noqa: E731
        self.down = nn.ModuleList(
            unit(a, b, size, 2, act=act) for a, b, size in ((6, 24, 7), (24, 48, 5), (48, 64, 3))
        )
        self.ups = nn.ModuleList(nn.ConvTranspose2d(a, 24, 4, 2, 1) for a in (64, 74))
        self.flows = nn.ModuleList(nn.Conv2d(a, 2, 3, padding=1) for a in (64, 74, 50))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(2, 2, 4, 2, 1) for _ in range(2))

    def forward(self, one: Tensor, two: Tensor) -> list[Tensor]:
        maps = [torch.cat([one, two], 1)]
        for down in self.down:
            maps.append(down(maps[-1]))
        y, found = maps[3], [self.flows[0](maps[3])]
        for number, skip in enumerate((maps[2], maps[1])):
            wide = self.wider[number](found[-1])
            y = torch.cat([skip, functional.leaky_relu(self.ups[number](y), 0.1), wide], 1)
            found.append(self.flows[number + 1](y))
        return found


def endpoint(model: nn.Module, one: Tensor, two: Tensor, flow: Tensor) -> Tensor:
    """End-point error, weighted by size; flow in units of 4 px."""
    loss = torch.zeros(())
    for weight, shown in zip((0.2, 0.5, 1.0), model(one, two), strict=True):
        goal = functional.interpolate(flow / 4, shown.shape[2:])
        loss = loss + weight * (shown - goal).square().sum(1).add(1e-6).sqrt().mean()
    return loss


class Volume(nn.Module):
    """PSMNet: shared features, a volume of shifts, 3-D convolutions, soft argmin."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(unit(3, 16), unit(16, 16), nn.Conv2d(16, 12, 3, padding=1))
        self.cost = nn.Sequential(
            nn.Conv3d(24, 16, 3, padding=1),
            nn.BatchNorm3d(16),
            nn.ReLU(),
            nn.Conv3d(16, 1, 3, 1, 1),
        )

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        left, right = self.features(left), self.features(right)
        shifts = [functional.pad(right, (k, 0))[..., : right.shape[3]] for k in range(6)]
        volume = torch.stack([torch.cat([left, shift], 1) for shift in shifts], 2)
        share = (-self.cost(volume)[:, 0]).softmax(1)
        return (share * torch.arange(6.0).view(1, 6, 1, 1)).sum(1)


def disparity(model: nn.Module, left: Tensor, right: Tensor, goal: Tensor) -> Tensor:
    return functional.smooth_l1_loss(model(left, right), goal)


class Bands(nn.Module):
    """Digital numbers of 48 bands: standardized by a BatchNorm in front, then 1 × 1 and 3 × 3."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(48, affine=False)
        self.body = nn.Sequential(unit(48, 32, 1), unit(32, 48, stride=2), *head(48, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self.norm(x))


class Fixed(nn.Module):
    """The same, standardized by numbers of the data set that are kept as buffers."""

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        (images, *_) = draw(Generator().manual_seed(77), 64)
        self.register_buffer("mean", images.mean((0, 2, 3))[:, None, None])
        self.register_buffer("deviation", images.std((0, 2, 3))[:, None, None])
        layers = [unit(48, 32, 1, norm=None), unit(32, 48, stride=2, norm=None)]
        self.body = nn.Sequential(*layers, *head(48, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.body((x - self.mean) / self.deviation)


class VNet(nn.Module):
    """Residual 3-D U-Net on HU: a window of -150 to 250 is applied inside."""

    def __init__(self) -> None:
        super().__init__()

        def conv(into: int, out: int, stride: int = 1) -> nn.Module:
            return nn.Sequential(
                nn.Conv3d(into, out, 3, stride, 1),
                nn.InstanceNorm3d(out, affine=True),
                nn.PReLU(out),
            )

        self.first, self.down, self.middle = conv(1, 12), conv(12, 24, 2), conv(24, 24)
        self.up, self.join = nn.ConvTranspose3d(24, 12, 2, 2), conv(24, 12)
        self.last = nn.Conv3d(12, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first((x.clamp(-150, 250) - 50) / 100)
        y = self.down(first)
        y = self.up(y + self.middle(y))
        return self.last(self.join(torch.cat([first, y], 1)))


def overlap(model: nn.Module, images: Tensor, mask: Tensor) -> Tensor:
    """Dice and cross-entropy."""
    shown = model(images)
    share, axes = shown.sigmoid(), (1, 2, 3, 4)
    both = 2 * (share * mask).sum(axes) + 1
    dice = 1 - both / (share.sum(axes) + mask.sum(axes) + 1)
    return dice.mean() + functional.binary_cross_entropy_with_logits(shown, mask)


def vox_net() -> nn.Module:
    layers = [nn.Conv3d(1, 24, 5, 2), nn.LeakyReLU(0.1), nn.Conv3d(24, 32, 3), nn.LeakyReLU(0.1)]
    layers += [nn.MaxPool3d(2), nn.Dropout(0.3), nn.Flatten(), nn.Linear(256, 64), nn.ReLU()]
    return nn.Sequential(*layers, nn.Dropout(0.4), nn.Linear(64, 4))


class Bag(nn.Module):
    """Multiple-instance learning: crops, gated attention, one answer per bag."""

    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(3, 24, stride=2), unit(24, 48, stride=2), *head(48, 32))
        self.value, self.gate = nn.Linear(32, 24), nn.Linear(32, 24)
        self.weight, self.last = nn.Linear(24, 1), nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        code = self.back(x.flatten(0, 1)).view(*x.shape[:2], 32)
        share = self.weight(self.value(code).tanh() * self.gate(code).sigmoid()).softmax(1)
        return self.last((share * code).sum(1))[:, 0]


def positive(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(images), labels)


def agent() -> nn.Module:
    """DQN's network, for frames of 20 px."""
    layers = [nn.Conv2d(2, 16, 4, 2), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, 3))


class WithTable(nn.Module):
    """A picture and a row of a table, joined late."""

    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(3, 24, stride=2), unit(24, 48, stride=2), *head(48, 32))
        self.table = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 24), nn.ReLU())
        self.last = nn.Sequential(nn.Dropout(0.3), nn.Linear(56, 8))

    def forward(self, images: Tensor, rows: Tensor) -> Tensor:
        return self.last(torch.cat([self.back(images).relu(), self.table(rows)], 1))


def joined(model: nn.Module, images: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images, rows), labels)
