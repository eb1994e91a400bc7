"""How a layer's tensor is read as maps: [N, C, *spatial]."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from fmapboard.measure.axes import as_patches, last_axis_is_channels

_SPATIAL = {
    nn.Conv1d: 1, nn.ConvTranspose1d: 1,
    nn.Conv2d: 2, nn.ConvTranspose2d: 2,
    nn.Conv3d: 3, nn.ConvTranspose3d: 3,
}  # fmt: skip

_WIDE = (torch.float32, torch.float64)


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
    [N, H, W, C] and [N, D, H, W, C] where the module's type tells (`axes.last_axis_is_channels`);
    three axes are [N, L, C] (tokens) where ``channels_last_sequences``, else [N, C, L]. With
    ``tokens_are_patches``, as many tokens as fill a square are drawn as maps (`axes.as_patches`).
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
