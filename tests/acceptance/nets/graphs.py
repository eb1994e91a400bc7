"""Networks of nodes and links."""

from __future__ import annotations

from nets.parts import Net
from torch import Tensor, nn


def graph(width: int = 32, end: nn.Module | None = None) -> nn.Module:
    """A network of a graph's links and of its nodes' words."""

    def run(m: nn.ModuleDict, links: Tensor, x: Tensor) -> Tensor:
        return m["end"](links @ m["two"]((links @ m["one"](x)).relu()))

    return Net(run, one=nn.Linear(60, width), two=nn.Linear(width, 3), end=end or nn.Identity())
