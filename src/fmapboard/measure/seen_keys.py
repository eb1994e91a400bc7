"""Keys that are tokens of a text, apart from ``head_rows``, which knows no texts.

Axis letters: N texts, n of which are read, T tokens, H heads, K keys.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

MASKED = -5e3
"""Logits below it are masked: masks hold -1e4 or float16's lowest value, which is -65504."""
_LEAST_PAIRS = 8
"""How many pairs of equal tokens tell whether their places make a difference."""


class TextKeys(NamedTuple):
    """The keys of attention over the tokens of texts.

    Attributes:
        ids: of the tokens, whole numbers [N, T].
        padding: which of them are padding, bool [N, T].
    """

    ids: Tensor
    padding: Tensor


def padding_of(ids: Tensor) -> Tensor:
    """Which tokens are padding, bool [N, T]; nothing waits for the device.

    It is known from the ids alone: a token that stands only in runs at the end of texts, or only at
    their beginning, and whose runs have different lengths.

    Args:
        ids: whole numbers [N, T].
    """
    behind = _runs_at_end(ids)
    in_front = _runs_at_end(ids.flip(1)).flip(1)
    return torch.where(behind.any(), behind, in_front)


def _runs_at_end(ids: Tensor) -> Tensor:
    """bool [N, T]: the padding at the end of texts; False everywhere if there is none."""
    last = ids[:, -1:]
    lengths = _run_at_end(ids == last).sum(1)  # [N]
    token = last[lengths.argmax()]
    is_token = ids == token
    run = _run_at_end(is_token)
    lengths = run.sum(1)
    is_only_there = run.sum() == is_token.sum()
    differs = (lengths.amax() > lengths.amin()) & (lengths.amax() > 1)
    return run & is_only_there & differs


def _run_at_end(is_token: Tensor) -> Tensor:
    """bool [N, T]: True from some token to the last one of a text."""
    return is_token.flip(1).cumprod(1).flip(1).bool()


def next_weight(attention: Tensor, step: int, padding: Tensor) -> Tensor:
    """[H]: the smallest weight of the key behind a query's own, where it is no padding.

    Args:
        attention: rows [n, H, rows, K] of each ``step``-th of K queries, which are the keys.
        step: see ``attention``.
        padding: bool [n, K].
    """
    weights = attention.flatten(2)[..., 1 :: attention.shape[-1] + step]  # [n, H, queries]
    is_left_out = padding[:, None, 1::step]  # [n, 1, queries]
    return weights.masked_fill(is_left_out, math.inf).amin(dim=(0, 2))


def padding_weight(attention: Tensor, step: int, padding: Tensor) -> Tensor:
    """[H]: mean weight of the padding for queries that are none; NaN without padding.

    Args:
        attention: as for ``next_weight``.
        step: likewise.
        padding: bool [n, K].
    """
    weights = (attention * padding[:, None, None]).sum(-1)  # [n, H, rows]
    counts = padding.any(1, keepdim=True) & ~padding[:, ::step]  # [n, rows]
    total = (weights * counts[:, None]).sum(dim=(0, 2))
    return total / counts.sum()


def same_token_gap(logits: Tensor, ids: Tensor) -> Tensor:
    """[H]: how far the logits of equal tokens of a text are apart at most, over the range of all.

    NaN for fewer than eight pairs, or if all logits are the same.

    Args:
        logits: one row of each head, [n, H, K].
        ids: of the keys, whole numbers [n, K].
    """
    ordered, order = ids.sort(1)  # [n, K]
    is_pair = (ordered[:, 1:] == ordered[:, :-1]).unsqueeze(1)  # [n, 1, K - 1]
    by_token = logits.gather(2, order.unsqueeze(1).expand_as(logits))  # [n, H, K]
    is_hidden = by_token <= MASKED
    lowest = by_token.masked_fill(is_hidden, math.inf).amin(dim=(0, 2))
    between = by_token.amax(dim=(0, 2)) - lowest  # [H]
    apart = (by_token[..., 1:] - by_token[..., :-1]).abs()
    apart = apart.masked_fill(~is_pair | (is_hidden[..., 1:] & is_hidden[..., :-1]), 0.0)
    gap = apart.amax(dim=(0, 2)) / between
    return gap.masked_fill(is_pair.sum() < _LEAST_PAIRS, math.nan)
