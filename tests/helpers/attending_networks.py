"""Small transformers of images [N, 3, 12, 12] -> [N, 4] that compute attention in various ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

HEADS = 2
WIDTH = 8


class Attention(nn.Module):
    """Attention with dropout.

    Args:
        attend: computes it from queries, keys and values [N, heads, T, features].
    """

    def __init__(self, attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.num_heads = HEADS
        self.attend = attend

    def forward(self, tokens: Tensor) -> Tensor:
        by_head = self.qkv(tokens).unflatten(-1, (3 * HEADS, -1)).transpose(1, 2)
        attended = self.attend(*by_head.chunk(3, 1))
        return self.out(attended.transpose(1, 2).flatten(2))


class OfTorch(nn.MultiheadAttention):
    """torch's own."""

    def __init__(self) -> None:
        super().__init__(WIDTH, HEADS, dropout=0.1, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens, tokens, tokens, need_weights=False)[0]


class Block(nn.Module):
    """Attention and an MLP."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attn = attention
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attn(tokens)
        return tokens + self.down(functional.gelu(self.up(tokens)))


class AttendingNet(nn.Module):
    """Nine patches of an image, and two blocks."""

    def __init__(self, attention: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, 4)
        self.blocks = nn.ModuleList([Block(attention()) for _ in range(2)])
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(tokens.mean(1))


def fused(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value, dropout_p=0.1)


def eager(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    logits = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return functional.dropout(logits.softmax(-1), 0.1) @ value


def unknown(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Linear attention, which has no rows."""
    return query.sigmoid() @ (key.sigmoid().transpose(-1, -2) @ value)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "scaled_dot_product_attention": partial(AttendingNet, partial(Attention, fused)),
    "softmax": partial(AttendingNet, partial(Attention, eager)),
    "MultiheadAttention": partial(AttendingNet, OfTorch),
}
UNSEEN = partial(AttendingNet, partial(Attention, unknown))
LABELS = [f"blocks.{n}.attn.{rows}" for n in range(2) for rows in ("rows", "peak_rows")]


def images(count: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return 3 * torch.randn(count, 3, 12, 12, generator=generator)


@contextmanager
def slow_path() -> Iterator[None]:
    """Keep torch from the fast path of its attention, as in training."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
