"""Networks of nodes and links, and of points in space."""

from __future__ import annotations

from nets.parts import Net
from torch import Tensor, nn


def graph(width: int = 32, end: nn.Module | None = None) -> nn.Module:
    """A network of a graph's links and of its nodes' words."""

    def run(m: nn.ModuleDict, links: Tensor, x: Tensor) -> Tensor:
        return m["end"](links @ m["two"]((links @ m["one"](x)).relu()))

    return Net(run, one=nn.Linear(60, width), two=nn.Linear(width, 3), end=end or nn.Identity())


def point_net() -> nn.Module:
    """Convolutions of size 1 over points, then the maximum."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 48), (48, 96)):
        layers += [nn.Conv1d(into, out, 1), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(96, 4))
