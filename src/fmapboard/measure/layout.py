"""Which axes of a layer's tensor are N, C, H and W."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor, nn

from fmapboard.model.layers import CONVOLUTIONS, CONVOLUTIONS_1D
from fmapboard.records import Layout

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
class Axes:
    """Which axes of one layer's tensor hold samples and channels; the others are spatial.

    Attributes:
        channels: the axis of the channels.
        batch: the axis of the samples; None for a tensor of a single one.
        tokens: the one spatial axis counts tokens, which may be patches of an image.
        said: how the axes were found, where that is not plain.
    """

    channels: int = 1
    batch: int | None = 0
    tokens: bool = False
    said: str = ""


@dataclass(frozen=True, slots=True)
class MapsView:
    """A tensor seen as maps.

    Attributes:
        maps: [N, C, *spatial], float32 or float64, with any number of spatial axes; it may alias
            the layer's live tensor.
        drawable: False where the axes have no meaning as a picture.
        said: what was done to get there, for the picture's description; empty for plain maps.
        patches: of tokens, the part that is drawn: [N, C, H, W].
    """

    maps: Tensor
    drawable: bool = True
    said: str = ""
    patches: Tensor | None = None


def axes_of(
    module: nn.Module, shape: Sequence[int], *, channels_last_sequences: bool = True
) -> Axes:
    """Find the axes of a layer's input or output of this shape.

    Convolutions know their number of axes, so an unbatched tensor is a single sample. Recurrent
    modules have [L, N, C], or [N, L, C] with ``batch_first``. Of other modules: [C] and [N, C] are
    maps of one pixel; [N, C, H, W] and [N, C, D, H, W] are maps, or [N, H, W, C] and
    [N, D, H, W, C] where the module's type tells (`last_axis_is_channels`); three axes are
    [N, L, C] (tokens) where ``channels_last_sequences``, else [N, C, L].

    >>> axes_of(nn.LSTM(8, 16), (20, 4, 16))
    Axes(channels=2, batch=1, tokens=False, said='')
    """
    spatial = _spatial_axes(type(module))  # type: ignore[arg-type]  # a type is hashable
    if spatial is not None:
        return Axes() if len(shape) == spatial + 2 else Axes(channels=0, batch=None)
    if isinstance(module, nn.RNNBase) and len(shape) == 3:
        return Axes(channels=2, batch=0 if module.batch_first else 1)
    turned, why = last_axis_is_channels(module, shape)
    if len(shape) == 3 and (turned or channels_last_sequences):
        return Axes(channels=2, tokens=True)
    if len(shape) < 2:
        return Axes(channels=0, batch=None)
    return Axes(channels=len(shape) - 1 if turned else 1, said=why)


def as_maps(
    tensor: Tensor, axes: Axes, *, tokens_are_patches: bool = False, tokens_are_rows: bool = False
) -> MapsView:
    """Read a layer's input or output as maps.

    Tokens are not drawn, except: with ``tokens_are_patches``, as many as fill a square are maps
    (`as_patches`); with ``tokens_are_rows``, they are sequences like any other.
    """
    tensor, said = _real(tensor.detach())
    if axes.batch is None:
        tensor = tensor.reshape(1, -1) if tensor.dim() == 0 else tensor.unsqueeze(0)
        axes = replace(axes, batch=0, channels=1)
    maps = tensor
    if (axes.batch, axes.channels) != (0, 1):
        maps = tensor.movedim((axes.batch or 0, axes.channels), (0, 1))  # [N, C, *spatial]
    found = as_patches(maps) if axes.tokens and tokens_are_patches else None
    if found is not None:
        return MapsView(maps, said=_joined(said, found[1]), patches=found[0])
    drawable = maps.dim() <= 5 and (tokens_are_rows or not axes.tokens)
    return MapsView(maps, drawable, said=_joined(said, axes.said))


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


def as_pictures(maps: Tensor, depth: int | None = None) -> tuple[Tensor, str, Layout]:
    """Maps [N, C, *spatial] as [N, C, H, W], and what was done where that is no plain reading.

    One spatial axis becomes a row of pixels per channel. Of three, one depth slice is drawn: the
    middle one, or number ``depth``; of a layer with fewer slices, the last one.
    """
    if maps.dim() == 2:
        return maps[..., None, None], "", "tiles"
    if maps.dim() == 3:
        return maps.unsqueeze(2), "one row of pixels per channel, a column per position", "rows"
    if maps.dim() == 5:
        slices = maps.shape[2]
        drawn = slices // 2 if depth is None else min(depth, slices - 1)
        said = f"depth slice {drawn} of 0…{slices - 1}"
        if depth is not None and depth != drawn:
            said += f", the last: there is no slice {depth}"
        return maps[:, :, drawn], said, "tiles"
    return maps, "", "tiles"


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


def has_no_convolution(model: nn.Module) -> bool:
    """True for a model without convolutions: what it makes of three axes is sequences."""
    return not any(isinstance(module, CONVOLUTIONS) for module in model.modules())
