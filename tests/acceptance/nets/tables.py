"""Networks of rows of a table."""

from __future__ import annotations

from functools import partial

import torch
from nets.classifiers import Function
from nets.parts import Net, mlp
from torch import Tensor, nn

AGES = partial(mlp, 5, 64, 64, 1)


def tabular() -> nn.Module:
    """FT-Transformer: each column is a token."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
    tokens = Net(
        lambda m, x: x[..., None] * m["scale"].weight + m["shift"].weight,
        scale=nn.Embedding(6, 32),
        shift=nn.Embedding(6, 32),
    )
    means = Function(lambda x: x.mean(1))
    return nn.Sequential(tokens, nn.TransformerEncoder(layer, 2), means, nn.Linear(32, 1))


def deep_and_wide(*end: nn.Module) -> nn.Module:
    fields = [Function(lambda x: x + 24 * torch.arange(3)), nn.Embedding(72, 12), nn.Flatten()]
    return nn.Sequential(*fields, mlp(36, 64, 32, 1), *end)


class Rows(nn.Module):
    """An LSTM reads a digit's rows."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.last = nn.LSTM(28, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x[:, 0])[0][:, -1])
