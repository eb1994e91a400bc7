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
from fmapboard.measure.seen_keys import (
    MASKED,
    TextKeys,
    next_weight,
    padding_weight,
    same_token_gap,
)

MOST_HELD = 2**25
"""How many values of queries and keys are read in float32; 128 MiB."""
_MOST_LOGITS = 2**22
"""How many logits are computed at once; 16 MiB."""
_CACHED_LOGITS = 2**19
"""On the CPU, more of them than one image has are read at once up to this number; 2 MiB."""
_MOST_QUERIES = 1024
"""Among how many rows of each matrix, evenly spaced, the largest logit is searched."""
_SAMPLED = 16
"""How many rows of each matrix, evenly spaced, the entropy is the mean of."""
_LOWEST = -1e30
"""In place of -infinity, which times 0 is no number."""


class HeadRows(NamedTuple):
    """What was read of the attention of one call.

    Attributes:
        rows: [n, H, K], the row of the first token; of the last one in causal attention.
        peak_rows: [d, H, K], per head the row with the largest logit, of the images that are drawn.
        numbers: [8, H], the fields of ``records.HeadNumbers``.
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

    @property
    def is_cpu(self) -> bool:
        """True if they are on the CPU."""

    def rows(self, images: slice, which: slice) -> Tensor:
        """Some rows of all windows and heads of some images, [n, W, H, rows, K]."""


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

    @property
    def is_cpu(self) -> bool:
        """True if they are on the CPU."""
        return self.values.is_cpu

    def rows(self, images: slice, which: slice) -> Tensor:
        """Some rows of all windows and heads of some images, [n, W, H, rows, K]."""
        return wide(self.values[images, ..., which, :])


@dataclass(frozen=True, slots=True)
class Products:
    """Logits as products of queries and keys.

    Attributes:
        queries: [n, W, H, T, D].
        keys: [n, W, H, K, D], or of fewer heads, each for as many heads of the queries.
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

    @property
    def is_cpu(self) -> bool:
        """True if they are on the CPU."""
        return self.queries.is_cpu

    def rows(self, images: slice, which: slice) -> Tensor:
        """Some rows of all windows and heads of some images, [n, W, H, rows, K]."""
        queries = wide(self.queries[images, ..., which, :]) * self.scale
        keys = wide(self.keys[images])
        groups = queries.reshape(*keys.shape[:3], -1, keys.shape[-1])  # [n, W, H of keys, *, D]
        products = groups @ keys.transpose(-1, -2)
        logits = products.view(*queries.shape[:-1], -1)  # [n, W, H, rows, K]
        if self.is_causal:
            places = torch.arange(logits.shape[-1], device=logits.device)
            own = torch.arange(self.queries.shape[-2], device=logits.device)[which]
            logits.masked_fill_(places > own.unsqueeze(-1), -math.inf)
        for every_mask in self.masks:
            mask = every_mask[images, ..., which, :]
            if mask.dtype == torch.bool:
                is_hidden = mask if self.hides else ~mask
                logits.masked_fill_(is_hidden, -math.inf)
            else:
                logits += mask
        return logits


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32 or float64."""
    return tensor.float() if tensor.dtype in HALVES else tensor


def read_heads(
    logits: Logits,
    text: TextKeys | None = None,
    *,
    over_keys: bool = True,
    samples: int = 0,
    drawn: int | None = None,
) -> HeadRows:
    """Read the rows and numbers of one call; call it inside ``isolation.aside``.

    Args:
        logits: of the call.
        text: the keys; None if they are not the tokens of a text, or not the queries too.
        over_keys: False for logarithms of weights, whose softmax was taken over another axis.
        samples: as in ``records.HeadNumbers``.
        drawn: number of images that are drawn; None for all. Of the others only the rows are
            computed that the numbers need.
    """
    images, windows, _, queries, _ = logits.shape
    searched = images if drawn is None else min(drawn, images)
    ends, sampled, largest, peak_rows = map(torch.cat, zip(*_parts(logits, searched), strict=True))
    seen = (ends > MASKED).sum(dim=(0, 1, 3))
    is_causal = seen[-1] > seen[0]
    rows = torch.where(is_causal, ends[..., -1, :], ends[..., 0, :])  # [n, H, K]
    shares = _softmax(sampled)
    attention = shares if over_keys else sampled.exp()
    unknown = torch.full_like(largest[0], math.nan)
    next_key = of_padding = off_one = same_token = unknown
    if not over_keys:
        off_one = (attention.sum(-1) - 1).abs().amax(dim=(0, 1, 3))
    elif text is not None and windows == 1:
        step = ceil_div(queries, _SAMPLED)
        next_key = next_weight(attention[:, 0], step, text.padding[:images])
        of_padding = padding_weight(attention[:, 0], step, text.padding[:images])
        same_token = same_token_gap(ends[..., -1, :], text.ids[:images])
    numbers = [
        _entropy(sampled, shares),
        largest.amax(0) if over_keys else unknown,
        attention[..., 0].mean(dim=(0, 1, 3)),
        next_key,
        of_padding,
        off_one,
        torch.full_like(largest[0], samples),
        same_token,
    ]
    weights = _softmax if over_keys else torch.exp
    return HeadRows(weights(rows), weights(peak_rows), torch.stack(numbers).float(), windows)


class _Part(NamedTuple):
    """Logits that were read of some images.

    Attributes:
        ends: the first row and the last one of the first window, [n, H, 1 or 2, K].
        sampled: [n, W, H, rows, K].
        largest: [n, H].
        peak_rows: [n, H, K], the rows of the largest ones; none of images that are not searched.
    """

    ends: Tensor
    sampled: Tensor
    largest: Tensor
    peak_rows: Tensor


def _parts(logits: Logits, searched: int) -> list[_Part]:
    """Read all images; in so many of them the largest logit is searched."""
    images, windows, heads, queries, keys = logits.shape
    most = _CACHED_LOGITS if logits.is_cpu else _MOST_LOGITS
    at_once = max(1, most // (windows * heads * queries * keys))
    parts = []
    for first in range(0, searched, at_once):
        parts.append(_read(logits, slice(first, min(first + at_once, searched))))
    others = 1 if logits.is_cpu else images  # the product of several copies their keys
    for first in range(searched, images, others):
        parts.append(_read_sampled(logits, slice(first, first + others)))
    return parts


def _read(logits: Logits, images: slice) -> _Part:
    total, windows, heads, queries, keys = logits.shape
    count = len(range(total)[images])
    step = ceil_div(queries, _MOST_QUERIES)
    at_once = step * max(1, _MOST_LOGITS // (count * windows * heads * keys))
    if at_once >= queries and step == 1:
        logits = Given(logits.rows(images, slice(None)))  # computed once
        images = slice(None)
    ends = logits.rows(images, slice(0, None, max(1, queries - 1)))[:, 0]
    sampled = logits.rows(images, slice(0, None, ceil_div(queries, _SAMPLED)))
    largest, peak_rows = _peaks(logits.rows(images, slice(0, at_once, step)))
    for first in range(at_once, queries, at_once):
        chunk = logits.rows(images, slice(first, first + at_once, step))
        others, other_rows = _peaks(chunk)
        is_larger = (others > largest) | others.isnan()
        largest = torch.where(is_larger, others, largest)
        peak_rows = torch.where(is_larger.unsqueeze(-1), other_rows, peak_rows)
    return _Part(ends, sampled, largest, peak_rows)


def _read_sampled(logits: Logits, images: slice) -> _Part:
    """Read some rows of images in which the largest logit is not searched."""
    queries = logits.shape[3]
    sampled = logits.rows(images, slice(0, None, ceil_div(queries, _SAMPLED)))
    ends = logits.rows(images, slice(0, None, max(1, queries - 1)))[:, 0]
    return _Part(ends, sampled, sampled.amax(dim=(1, 3, 4)), ends[:0, :, 0])


def _peaks(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The largest of logits [n, W, H, rows, K] for each head, [n, H], and its row, [n, H, K]."""
    images, _, heads, count, _ = logits.shape
    by_head = logits.amax(-1).transpose(1, 2).flatten(2)  # [n, H, W * rows]
    largest, place = by_head.max(-1)
    image = torch.arange(images, device=place.device).unsqueeze(1)
    head = torch.arange(heads, device=place.device)
    return largest, logits[image, place // count, head, place % count]


def _softmax(logits: Tensor) -> Tensor:
    """Attention; 0 in rows all of whose keys are hidden."""
    is_hidden = logits.amax(-1, keepdim=True) == -math.inf
    return logits.softmax(-1).masked_fill(is_hidden, 0.0)


def _entropy(logits: Tensor, attention: Tensor) -> Tensor:
    """[H]: mean entropy of rows [n, W, H, rows, K] with several keys, relative to uniform ones.

    Without a logarithm per key: that of a share is its logit minus one number per row.
    """
    keys = (logits > MASKED).sum(-1)
    below_peak = (logits - logits.amax(-1, keepdim=True)).clamp_(min=_LOWEST)
    entropy = -(attention * below_peak).sum(-1) - attention.amax(-1).log()
    relative = entropy / keys.clamp(min=2).log()
    has_several = keys > 1
    total = relative.masked_fill(~has_several, 0.0).sum(dim=(0, 1, 3))
    mean: Tensor = total / has_several.sum(dim=(0, 1, 3))
    return mean
