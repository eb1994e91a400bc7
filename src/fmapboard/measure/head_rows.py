"""Rows and numbers of the heads of attention, a file of its own: it sees tensors, no modules.

No matrix of logits is held as a whole, unless the model itself holds it.

Axis letters: n images, W windows of each, H heads, T queries, K keys, D features of a head.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from fmapboard.arithmetic import ceil_div
from fmapboard.measure.device import HALVES

MOST_HELD = 2**25
"""How many values of queries and keys are read in float32; 128 MiB."""
_MOST_LOGITS = 2**22
"""How many logits are computed at once; 16 MiB."""
_MOST_QUERIES = 1024
"""Among how many rows of each matrix, evenly spaced, the largest logit is searched."""
_SAMPLED = 16
"""How many rows of each matrix, evenly spaced, the entropy is the mean of."""
_MASKED = -5e3
"""Logits below it are masked: masks hold -1e4 or float16's lowest value, which is -65504."""


class HeadRows(NamedTuple):
    """What was read of the attention of one call.

    Attributes:
        rows: [n, H, K], the row of the first token; of the last one in causal attention.
        peak_rows: [n, H, K], per head the row with the largest logit.
        numbers: [3, H], per head: the mean of the rows' entropy, relative to that of a uniform row,
            NaN if no row has two keys; the largest logit; and the mean share of the first key.
        windows: W, of which the rows are those of the first one, and of the one with the largest
            logit.
    """

    rows: Tensor
    peak_rows: Tensor
    numbers: Tensor
    windows: int


class Logits(Protocol):
    """The logits of some images: what a softmax over the last axis turns into attention."""

    @property
    def shape(self) -> tuple[int, ...]:
        """n, W, H, T and K."""

    def rows(self, which: slice) -> Tensor:
        """Some rows of all windows and heads, [n, W, H, rows, K]."""

    def row(self, window: Tensor, query: Tensor) -> Tensor:
        """One row of each head, [n, H, K].

        Args:
            window: [n, H], its window.
            query: [n, H], its number.
        """


@dataclass(frozen=True, slots=True)
class Given:
    """Logits that the model holds itself.

    Attributes:
        values: [n, W, H, T, K].
    """

    values: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """n, W, H, T and K."""
        return tuple(self.values.shape)

    def rows(self, which: slice) -> Tensor:
        """Some rows of all windows and heads, [n, W, H, rows, K]."""
        return wide(self.values[..., which, :])

    def row(self, window: Tensor, query: Tensor) -> Tensor:
        """One row of each head, [n, H, K]."""
        images, heads = _indices(window)
        return wide(self.values[images, window, heads, query])


@dataclass(frozen=True, slots=True)
class Products:
    """Logits as products of queries and keys.

    Attributes:
        queries: [n, W, H, T, D].
        keys: [n, W, H, K, D], float32 or wider.
        scale: the queries are multiplied by it.
        masks: each [n, W, H, T, K], expanded views: what is added to the logits, or which keys are
            seen, or hidden.
        hides: True in a mask means that a key is hidden.
        is_causal: the first T keys belong to the queries, and each sees those up to its own.
    """

    queries: Tensor
    keys: Tensor
    scale: float
    masks: tuple[Tensor, ...] = ()
    hides: bool = False
    is_causal: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """n, W, H, T and K."""
        return (*self.queries.shape[:-1], self.keys.shape[-2])

    def rows(self, which: slice) -> Tensor:
        """Some rows of all windows and heads, [n, W, H, rows, K]."""
        queries = wide(self.queries[..., which, :]) * self.scale
        products = queries @ self.keys.transpose(-1, -2)
        masks = [mask[..., which, :] for mask in self.masks]
        numbers = torch.arange(self.queries.shape[-2], device=self.queries.device)
        return self._masked(products, masks, numbers[which])

    def row(self, window: Tensor, query: Tensor) -> Tensor:
        """One row of each head, [n, H, K]."""
        images, heads = _indices(window)
        queries = wide(self.queries[images, window, heads, query]) * self.scale  # [n, H, D]
        keys = self.keys[images, window, heads]  # [n, H, K, D]
        products = (keys @ queries.unsqueeze(-1)).squeeze(-1)
        masks = [mask[images, window, heads, query] for mask in self.masks]
        return self._masked(products, masks, query)

    def _masked(self, logits: Tensor, masks: list[Tensor], queries: Tensor) -> Tensor:
        """Logits with what masks hide or add; ``queries`` are the numbers of their queries."""
        if self.is_causal:
            keys = torch.arange(logits.shape[-1], device=logits.device)
            logits = logits.masked_fill(keys > queries.unsqueeze(-1), -math.inf)
        for mask in masks:
            if mask.dtype == torch.bool:
                is_hidden = mask if self.hides else ~mask
                logits = logits.masked_fill(is_hidden, -math.inf)
            else:
                logits = logits + mask
        return logits


def _indices(window: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of the images [n, 1] and of the heads [H], to index with beside ``window`` [n, H]."""
    images, heads = window.shape
    device = window.device
    return torch.arange(images, device=device).unsqueeze(1), torch.arange(heads, device=device)


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32 or float64."""
    return tensor.float() if tensor.dtype in HALVES else tensor


def read_heads(logits: Logits) -> HeadRows:
    """Read the rows and numbers of one call; call it inside ``isolation.aside``."""
    _, windows, _, queries, _ = logits.shape
    ends = logits.rows(slice(0, None, max(1, queries - 1)))[:, 0]  # [n, H, 1 or 2, K]
    seen = (ends > _MASKED).sum(dim=(0, 1, 3))
    is_causal = seen[-1] > seen[0]
    rows = torch.where(is_causal, ends[..., -1, :], ends[..., 0, :])  # [n, H, K]
    largest = _largest(logits)
    peak_rows = logits.row(largest.window, largest.query)
    sampled = logits.rows(slice(0, None, ceil_div(queries, _SAMPLED)))
    numbers = torch.stack([_entropy(sampled), largest.logit.amax(0), _first_share(sampled)])
    return HeadRows(_softmax(rows), _softmax(peak_rows), numbers.float(), windows)


class _Largest(NamedTuple):
    """The largest logits: their values, windows and queries, [n, H] each."""

    logit: Tensor
    window: Tensor
    query: Tensor


def _largest(logits: Logits) -> _Largest:
    images, windows, heads, queries, keys = logits.shape
    step = ceil_div(queries, _MOST_QUERIES)
    at_once = max(1, _MOST_LOGITS // (images * windows * heads * keys))
    found = []
    for start in range(0, queries, step * at_once):
        chunk = logits.rows(slice(start, start + step * at_once, step))
        found.append(chunk.amax(-1))
    rows = torch.cat(found, -1)  # [n, W, H, rows]
    by_head = rows.transpose(1, 2).flatten(2)  # [n, H, W * rows]
    logit, place = by_head.max(-1)
    count = rows.shape[-1]
    return _Largest(logit, place // count, (place % count) * step)


def _softmax(logits: Tensor) -> Tensor:
    """Attention; 0 in rows all of whose keys are hidden."""
    is_hidden = logits.amax(-1, keepdim=True) == -math.inf
    return logits.softmax(-1).masked_fill(is_hidden, 0.0)


def _entropy(logits: Tensor) -> Tensor:
    """[H]: mean entropy of rows [n, W, H, rows, K] with several keys, relative to uniform ones."""
    keys = (logits > _MASKED).sum(-1)
    entropy = torch.special.entr(_softmax(logits)).sum(-1)
    relative = entropy / keys.clamp(min=2).log()
    has_several = keys > 1
    total = relative.masked_fill(~has_several, 0.0).sum(dim=(0, 1, 3))
    mean: Tensor = total / has_several.sum(dim=(0, 1, 3))
    return mean


def _first_share(logits: Tensor) -> Tensor:
    """[H]: mean share of the first key in rows [n, W, H, rows, K]."""
    return _softmax(logits)[..., 0].mean(dim=(0, 1, 3))
