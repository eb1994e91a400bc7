"""Networks of the acceptance trainings: attention, gates, unusual norms, sequences and clips."""

from __future__ import annotations

import torch
from acceptance_classic import head, unit
from acceptance_mobile import Add
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations


class Tokens(nn.Module):
    """Patches by a strided convolution, with learned positions: [N, T, C]."""

    def __init__(self, stem: nn.Module, width: int, count: int) -> None:
        super().__init__()
        self.stem = stem
        self.place = nn.Parameter(0.02 * torch.randn(1, count, width))

    def forward(self, x: Tensor) -> Tensor:
        return self.stem(x).flatten(2).transpose(1, 2) + self.place


class Mean(nn.Module):
    """Mean over the tokens, then a Linear layer."""

    def __init__(self, width: int, classes: int = 8) -> None:
        super().__init__()
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x).mean(1))


def encoder(width: int, depth: int, dropout: float = 0.1) -> nn.Module:
    layer = nn.TransformerEncoderLayer(
        width, 4, 2 * width, dropout, "gelu", batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


def vit(channels: int = 3) -> nn.Module:
    stem = nn.Conv2d(channels, 64, 4, 4)
    return nn.Sequential(Tokens(stem, 64, 64), encoder(64, 3), Mean(64))


def hybrid() -> nn.Module:
    """Convolutions, then attention."""
    stem = nn.Sequential(unit(3, 32, stride=2), unit(32, 64, stride=2), nn.Conv2d(64, 64, 1))
    return nn.Sequential(Tokens(stem, 64, 64), encoder(64, 2), Mean(64))


class Mixer(nn.Module):
    """MLP-Mixer's block."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(count, 64), nn.GELU(), nn.Linear(64, count))
        self.along = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norm2(x))


def mixer() -> nn.Module:
    stem = Tokens(nn.Conv2d(3, 64, 4, 4), 64, 64)
    return nn.Sequential(stem, Mixer(64, 64), Mixer(64, 64), Mixer(64, 64), Mean(64))


class Maxout(nn.Module):
    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, 2 * out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x).unflatten(1, (2, -1)).amax(1)


def maxout() -> nn.Module:
    layers = [Maxout(3, 24), nn.MaxPool2d(2), Maxout(24, 48), nn.MaxPool2d(2), Maxout(48, 64)]
    return nn.Sequential(*layers, *head(64, 8, 0.3))


class Gated(nn.Module):
    """Convolution times a sigmoid of another."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, 2 * out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return functional.glu(self.conv(x), 1)


def gated() -> nn.Module:
    layers = [Gated(3, 32), nn.AvgPool2d(2), nn.BatchNorm2d(32), Gated(32, 48), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.BatchNorm2d(48), Gated(48, 64), *head(64, 8))


def selu() -> nn.Module:
    """Self-normalizing: LeCun's initialization, alpha dropout."""
    layers = [nn.Conv2d(3, 24, 3, padding=1), nn.SELU(), nn.AvgPool2d(2)]
    layers += [nn.Conv2d(24, 48, 3, padding=1), nn.SELU(), nn.AvgPool2d(2)]
    layers += [nn.Conv2d(48, 64, 3, padding=1), nn.SELU(), nn.AvgPool2d(4), nn.Flatten()]
    layers += [nn.AlphaDropout(0.1), nn.Linear(256, 64), nn.SELU(), nn.Linear(64, 8)]
    for layer in layers:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
            nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def reparametrized(kind: str) -> nn.Module:
    """A plain network with weight norm or spectral norm on each convolution."""
    wrap = getattr(parametrizations, kind)
    layers: list[nn.Module] = []
    for into, out in ((3, 32), (32, 48), (48, 64)):
        conv = wrap(nn.Conv2d(into, out, 3, padding=1))
        layers += [conv, nn.LeakyReLU(0.1), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, *head(64, 8))


class Capsules(nn.Module):
    """Capsules routed twice; the lengths of the class capsules are the logits."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 32, 7, 2)
        self.primary = nn.Conv2d(32, 64, 5, 2)
        self.votes = nn.Parameter(0.05 * torch.randn(classes, 8 * 16, 8, 8))

    @staticmethod
    def squash(x: Tensor) -> Tensor:
        length = x.square().sum(-1, keepdim=True)
        return x * length.add(1e-8).sqrt() / (1 + length)

    def forward(self, x: Tensor) -> Tensor:
        x = self.primary(functional.relu(self.conv(x)))  # [N, 64, 4, 4]
        x = self.squash(x.flatten(2).unflatten(1, (8, 8)).permute(0, 1, 3, 2).flatten(1, 2))
        votes = torch.einsum("nid,kide->nkie", x, self.votes)
        routes = torch.zeros(votes.shape[:3])
        for _ in range(2):
            out = self.squash((routes.softmax(1)[..., None] * votes).sum(2))  # [N, classes, 8]
            routes = routes + (votes.detach() * out.detach()[:, :, None]).sum(-1)
        return 8 * out.norm(dim=-1)


class Steered(nn.Module):
    """A spatial transformer before a small network; it starts as the identity."""

    def __init__(self) -> None:
        super().__init__()
        find = [nn.Conv2d(1, 8, 7), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 10, 5)]
        last = nn.Linear(40, 6)
        nn.init.zeros_(last.weight)
        last.bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
        self.find = nn.Sequential(*find, nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), last)
        parts = [nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU()]
        self.rest = nn.Sequential(*parts, *head(32, 10))

    def forward(self, x: Tensor) -> Tensor:
        rows = self.find(x[..., 2:26, 2:26])
        grid = functional.affine_grid(rows.view(-1, 2, 3), list(x.shape), align_corners=False)
        return self.rest(functional.grid_sample(x, grid, align_corners=False))


def waveform() -> nn.Module:
    """M5: a wide first kernel, then pooling, on raw sound."""
    layers: list[nn.Module] = [nn.Conv1d(1, 24, 40, 4), nn.BatchNorm1d(24), nn.ReLU()]
    for into, out in ((24, 24), (24, 48)):
        layers += [nn.MaxPool1d(2), nn.Conv1d(into, out, 3), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 6))


class Causal(nn.Module):
    """TCN's block: two dilated causal convolutions with weight norm and dropout."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.pad = (2 * dilation, 0)
        conv = [nn.Conv1d(width, width, 3, dilation=dilation) for _ in range(2)]
        self.conv1, self.conv2 = map(parametrizations.weight_norm, conv)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.drop(functional.relu(self.conv1(functional.pad(x, self.pad))))
        y = self.drop(functional.relu(self.conv2(functional.pad(y, self.pad))))
        return functional.relu(x + y)


def tcn() -> nn.Module:
    layers = [nn.Conv1d(1, 24, 7, 2, 3), *(Causal(24, 2**level) for level in range(5))]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(24, 6))


class Wave(nn.Module):
    """WaveNet-like: gated dilated convolutions with skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 24, 1)
        widths = [2**level for level in range(6)]
        self.gates = nn.ModuleList(nn.Conv1d(24, 48, 3, padding=d, dilation=d) for d in widths)
        self.skips = nn.ModuleList(nn.Conv1d(24, 24, 1) for _ in widths)
        self.residuals = nn.ModuleList(nn.Conv1d(24, 24, 1) for _ in widths[1:])
        self.last = nn.Linear(24, 6)

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.first(x), torch.zeros(())
        for level, gate in enumerate(self.gates):
            a, b = gate(x).chunk(2, 1)
            y = a.tanh() * b.sigmoid()
            total = total + self.skips[level](y)
            if level < len(self.residuals):
                x = x + self.residuals[level](y)
        return self.last(functional.relu(total).mean(2))


class Recurrent(nn.Module):
    """Convolutions over a spectrogram, then a GRU over time."""

    def __init__(self) -> None:
        super().__init__()
        layers = [unit(1, 16), nn.MaxPool2d(2), unit(16, 32), nn.MaxPool2d((4, 2))]
        self.conv = nn.Sequential(*layers)
        self.gru, self.head = nn.GRU(32 * 4, 32, batch_first=True), nn.Linear(32, 6)

    def forward(self, x: Tensor) -> Tensor:
        steps = self.conv(x).permute(0, 3, 1, 2).flatten(2)
        return self.head(self.gru(steps)[0].mean(1))


def clip_net(split: bool = False) -> nn.Module:
    """C3D-like; ``split`` takes a spatial and a temporal convolution in place of each."""

    def block(into: int, out: int) -> list[nn.Module]:
        if not split:
            return [nn.Conv3d(into, out, 3, padding=1), nn.BatchNorm3d(out), nn.ReLU()]
        space = nn.Conv3d(into, out, (1, 3, 3), padding=(0, 1, 1), bias=False)
        time = nn.Conv3d(out, out, (3, 1, 1), padding=(1, 0, 0), bias=False)
        return [space, nn.BatchNorm3d(out), nn.ReLU(), time, nn.BatchNorm3d(out), nn.ReLU()]

    layers = [*block(3, 16), nn.MaxPool3d((1, 2, 2)), *block(16, 24), nn.MaxPool3d(2)]
    layers += [*block(24, 32), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 4)]
    return nn.Sequential(*layers)


def one_dimensional_resnet() -> nn.Module:
    def block(width: int) -> nn.Module:
        last = [nn.Conv1d(width, width, 7, padding=3), nn.BatchNorm1d(width)]
        return Add(nn.Conv1d(width, width, 7, padding=3), nn.BatchNorm1d(width), nn.ReLU(), *last)

    layers = [nn.Conv1d(1, 24, 15, 4, 7), nn.BatchNorm1d(24), nn.ReLU(), block(24), nn.ReLU()]
    layers += [nn.MaxPool1d(2), block(24), nn.ReLU(), nn.AdaptiveAvgPool1d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(24, 6))
