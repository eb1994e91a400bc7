"""Networks of measured series and of sounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from nets import classifiers as cnn
from nets.classifiers import Function
from nets.parts import Net, Residual
from torch import Tensor, nn
from torch.nn import functional


def genome(act: Callable[[], nn.Module] = nn.ReLU, more: int = 0) -> nn.Module:
    """Convolutions over bases, ``more`` in the middle, and two Linear layers."""
    body = [z for n in (32, *[48] * more) for z in (nn.Conv1d(n, 48, 5, 1, 2), act())]
    last = [nn.MaxPool1d(2), nn.Flatten(), nn.Linear(384, 64), act(), nn.Linear(64, 4)]
    return nn.Sequential(nn.Conv1d(4, 32, 9, 1, 4), act(), nn.MaxPool1d(4), *body, *last)


def meter(act: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    """Four strided convolutions over a current, and two Linear layers."""
    sizes = ((1, 24), (24, 32), (32, 32), (32, 48))
    layers = [layer for a, b in sizes for layer in (nn.Conv1d(a, b, 5, 2, 2), act())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(480, 48), act(), nn.Linear(48, 5))


def station(act: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    """Four strided convolutions over what a station records, and two Linear layers."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 32), (32, 32), (32, 48)):
        layers += [nn.Conv1d(into, out, 7, 2, 3), act()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(48 * 13, 48), act(), nn.Linear(48, 4))


def keyword(cut: Callable[[Tensor], Tensor] = lambda x: x) -> nn.Module:
    """DS-CNN: depthwise and pointwise convolutions over a spectrogram."""
    layers: list[nn.Module] = [cnn.unit(1, 32, 5, 2)]
    for into, out in ((32, 48), (48, 48), (48, 64)):
        layers += [cnn.unit(into, into, groups=into), cnn.unit(into, out, 1)]
    return nn.Sequential(*layers, Function(cut), *cnn.head(64, 6))


def pen(act: Callable[[], nn.Module] = nn.ReLU, more: int = 0) -> nn.Module:
    """Strided convolutions over a stroke, ``more`` after them, and two Linear layers."""
    sizes = [(2, 24, 2), (24, 32, 2), (32, 48, 2), *[(48, 48, 1)] * more]
    layers = [z for a, b, stride in sizes for z in (nn.Conv1d(a, b, 5, stride, 2), act())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(384, 48), act(), nn.Linear(48, 5))


def series(into: int, out: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    """Four strided convolutions over a series, and two Linear layers."""
    layers: list[nn.Module] = []
    for a, b in ((into, 24), (24, 32), (32, 32), (32, 48)):
        layers += [nn.Conv1d(a, b, 5, 2, 2), act()]
    wide = 48 * (3 if into == 6 else 10)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(wide, 48), act(), nn.Linear(48, out))


def watcher(drop: float = 0.0) -> nn.Module:
    """A transformer over what an engine's gauges say."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        y = m["first"](x.mT[:, ::2]) + m["place"](torch.arange(24))
        return m["last"](m["body"](m["drop"](y)).mean(1))

    layer = nn.TransformerEncoderLayer(48, 4, 96, drop, batch_first=True)
    parts = {"body": nn.TransformerEncoder(layer, 2), "last": nn.Linear(48, 1)}
    return Net(
        run, first=nn.Linear(6, 48), place=nn.Embedding(24, 48), drop=nn.Dropout(drop), **parts
    )


GAUGES = partial(series, 6, 1)


def pulse() -> nn.Module:
    """Three strided convolutions over a heart beat."""
    layers: list[nn.Module] = []
    for into, out in ((1, 24), (24, 32), (32, 48)):
        layers += [nn.Conv1d(into, out, 7, 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(48 * 15, 4))


def heart(channels: int, classes: int, norm: type[nn.Module] = nn.BatchNorm1d) -> nn.Module:
    """A residual 1-D network for long signals: wide kernels, norm first, dropout."""

    def block() -> nn.Module:
        first = [norm(24), nn.ReLU(), nn.Dropout(0.2), nn.Conv1d(24, 24, 9, padding=4)]
        return Residual(*first, norm(24), nn.ReLU(), nn.Conv1d(24, 24, 9, padding=4))

    layers = [nn.Conv1d(channels, 24, 15, 2, 7), *(block(), nn.MaxPool1d(2), block())]
    end = [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(24, classes)]
    return nn.Sequential(*layers, norm(24), nn.ReLU(), *end)


class WaveNet(nn.Module):
    """Gated causal convolutions of growing dilation, with sums of skips."""

    def __init__(self, out: int, width: int = 24) -> None:
        super().__init__()
        self.first, self.pads = nn.Conv1d(1, width, 1), (1, 2, 4, 8, 16)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in self.pads)
        self.mixes = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in self.pads)
        end = [nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, out, 1)]
        self.last = nn.Sequential(*end)

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.first(x), torch.zeros(())
        for gate, mix, pad in zip(self.gates, self.mixes, self.pads, strict=True):
            value, share = gate(functional.pad(x, (pad, 0))).chunk(2, 1)
            more, skip = mix(value.tanh() * share.sigmoid()).chunk(2, 1)
            x, total = x + more, total + skip
        return self.last(total)


class Series(nn.Module):
    """A recurrent layer; the last state counts."""

    def __init__(self, kind: type[nn.RNNBase] = nn.LSTM, out: int = 1) -> None:
        super().__init__()
        self.body, self.last = kind(1, 64, batch_first=True), nn.Linear(64, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x)[0][:, -1])
