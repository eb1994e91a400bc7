"""Where a tensor's channels and its picture lie when it is no plain [N, C, H, W]."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from fmapboard.model.layers import CONVOLUTIONS, CONVOLUTIONS_1D

_PREFIXES = (0, 1, 2, 4, 5)
"""How many tokens vision transformers put in front: class, distillation, registers."""

_Norm = nn.modules.batchnorm._BatchNorm


def last_axis_is_channels(module: nn.Module, shape: Sequence[int]) -> tuple[bool, str]:
    """Does the last axis of a layer's tensor hold the channels, and what is to be said about it?

    `Linear` and `LayerNorm` work on the last axis, so theirs does. A module made of such layers
    (a Swin block) does it where the last axis of its four or five is as long as one of these layers
    is wide, and the second axis as long as none of its layers is wide. Where both fit the plain
    reading is kept, and that is said. The LayerNorm2d of torchvision and timm, a subclass, turns
    its axes round and works on the second.

    >>> last_axis_is_channels(nn.Linear(8, 16), (1, 4, 4, 16))
    (True, 'the last axis holds the channels, as in every Linear')
    """
    if len(shape) < 3:
        return False, ""
    if isinstance(module, nn.Linear) or _is_last_axis_norm(module):
        return True, f"the last axis holds the channels, as in every {type(module).__name__}"
    if len(shape) not in (4, 5):
        return False, ""
    last, others = _widths(module)
    if shape[-1] not in last:
        return False, ""
    if shape[1] in last | others:
        return False, "" if shape[1] in others else _AMBIGUOUS
    return True, f"the last axis holds the channels: the layers inside are {shape[-1]} wide"


_AMBIGUOUS = "the second or the last axis may hold the channels; the second is taken"


def _widths(module: nn.Module) -> tuple[set[int], set[int]]:
    """Widths of the layers inside that work on the last axis, and of those on the second."""
    last: set[int] = set()
    second: set[int] = set()
    for inner in module.modules():
        if isinstance(inner, nn.Linear):
            last |= {inner.in_features, inner.out_features}
        elif isinstance(inner, nn.LayerNorm):
            (last if _is_last_axis_norm(inner) else second).add(inner.normalized_shape[0])
        elif isinstance(inner, CONVOLUTIONS):
            second |= {inner.in_channels, inner.out_channels}
        elif isinstance(inner, _Norm):
            second.add(inner.num_features)
    return last, second


def _is_last_axis_norm(module: nn.Module) -> bool:
    return (
        isinstance(module, nn.LayerNorm)
        and len(module.normalized_shape) == 1
        and not type(module).__name__.lower().endswith("2d")
    )


def may_hold_patches(model: nn.Module) -> bool:
    """May the model's token sequences be patches of an image?

    It has a `Conv2d`, which cuts the image up, no `Conv1d`, which works on sequences, and no
    attention whose batch is the second axis.
    """
    modules = list(model.modules())
    return (
        any(isinstance(m, nn.Conv2d) for m in modules)
        and not any(isinstance(m, CONVOLUTIONS_1D) for m in modules)
        and all(getattr(m, "batch_first", True) for m in modules)
    )


def as_patches(maps: Tensor) -> tuple[Tensor, str] | None:
    """Tokens [N, C, L] as maps [N, C, side, side], and what was done; None where L does not fit.

    L, or L without 1, 2, 4 or 5 prefix tokens, must be a square of at least 2x2. Only
    nine tokens fit twice: they are taken as 3x3 and not as 2x2 behind five.
    """
    tokens = maps.shape[2]
    for prefix in _PREFIXES:
        side = math.isqrt(max(tokens - prefix, 0))
        if side >= 2 and side * side == tokens - prefix:
            said = f"{tokens - prefix} tokens drawn as {side}×{side} patches"
            if prefix:
                said += f", the first {prefix} left out"
            return maps[..., prefix:].reshape(
                *maps.shape[:2], side, side
            ), said  # [N, C, side, side]
    return None
