"""Which axes of a layer's tensor are N, C, H and W."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from fmapboard.model.layers import CONVOLUTIONS, CONVOLUTIONS_1D

_SPATIAL = {
    nn.Conv1d: 1, nn.ConvTranspose1d: 1,
    nn.Conv2d: 2, nn.ConvTranspose2d: 2,
    nn.Conv3d: 3, nn.ConvTranspose3d: 3,
}  # fmt: skip

_WIDE = (torch.float32, torch.float64)

_PREFIXES = (0, 1, 2, 4, 5)
"""How many tokens vision transformers put in front: class, distillation, registers."""

_Norm = nn.modules.batchnorm._BatchNorm


@dataclass(frozen=True, slots=True)
class MapsView:
    """A tensor seen as maps.

    Attributes:
        maps: [N, C, *spatial], float32 or float64, with any number of spatial axes; it may alias
            the layer's live tensor.
        drawable: False where the axes have no meaning as a picture (a token sequence).
        said: what was done to get there, for the picture's description; empty for plain maps.
        patches: of tokens, the part that is drawn: [N, C, H, W].
    """

    maps: Tensor
    drawable: bool = True
    said: str = ""
    patches: Tensor | None = None


def as_maps(
    tensor: Tensor,
    module: nn.Module,
    *,
    channels_last_sequences: bool,
    tokens_are_patches: bool = False,
) -> MapsView:
    """Read a layer's input or output as maps.

    Convolutions know their number of axes, so an unbatched tensor gets a batch of one. Of other
    modules: [C] and [N, C] are maps of one pixel; [N, C, H, W] and [N, C, D, H, W] are maps, or
    [N, H, W, C] and [N, D, H, W, C] where the module's type tells (`layout.last_axis_is_channels`);
    three axes are [N, L, C] (tokens) where ``channels_last_sequences``, else [N, C, L]. With
    ``tokens_are_patches``, as many tokens as fill a square are drawn as maps (`layout.as_patches`).
    """
    tensor, said = _real(tensor.detach())
    spatial = _spatial_axes(type(module))  # type: ignore[arg-type]  # a type is hashable
    if spatial is not None:
        maps = tensor if tensor.dim() == spatial + 2 else tensor.unsqueeze(0)
        return MapsView(maps, said=said)
    turned, why = last_axis_is_channels(module, tensor.shape)
    if tensor.dim() == 3 and (turned or channels_last_sequences):
        tokens = tensor.transpose(1, 2)  # [N, C, L]
        found = as_patches(tokens) if tokens_are_patches else None
        if found is None:
            return MapsView(tokens, drawable=False, said=said)
        return MapsView(tokens, said=_joined(said, found[1]), patches=found[0])
    if tensor.dim() < 2:
        tensor = tensor.reshape(1, -1)
    maps = tensor.movedim(-1, 1) if turned else tensor  # [N, C, *spatial]
    return MapsView(maps, drawable=maps.dim() <= 5, said=_joined(said, why))


@lru_cache(maxsize=256)
def _spatial_axes(kind: type) -> int | None:
    """Of a convolution's maps; None for other modules."""
    return next((n for known, n in _SPATIAL.items() if issubclass(kind, known)), None)


def _real(tensor: Tensor) -> tuple[Tensor, str]:
    """Any tensor as float32 or float64, and what was done where that is more than a wider type."""
    if tensor.dtype in _WIDE:
        return tensor, ""
    said = ""
    if tensor.is_complex():
        tensor, said = tensor.abs(), "absolute values of complex numbers"
    elif tensor.is_quantized:
        tensor, said = tensor.dequantize(), f"dequantized from {tensor.dtype}"
    return tensor if tensor.dtype in _WIDE else tensor.to(torch.float32), said


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def as_pictures(maps: Tensor) -> tuple[Tensor, str]:
    """Maps [N, C, *spatial] as [N, C, H, W], and what was done where that is no plain reading.

    One spatial axis is drawn as a line of pixels; of three the middle depth slice is drawn.
    """
    if maps.dim() == 2:
        return maps[..., None, None], ""
    if maps.dim() == 3:
        return maps.unsqueeze(2), "one axis, drawn as a line"
    if maps.dim() == 5:
        depth = maps.shape[2]
        return maps[:, :, depth // 2], f"depth slice {depth // 2} of 0…{depth - 1}"
    return maps, ""


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
