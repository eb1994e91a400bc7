"""How a layer's tensor is read as maps: [N, C, *spatial]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

_SPATIAL = {
    nn.Conv1d: 1, nn.ConvTranspose1d: 1,
    nn.Conv2d: 2, nn.ConvTranspose2d: 2,
    nn.Conv3d: 3, nn.ConvTranspose3d: 3,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MapsView:
    """A tensor seen as maps.

    Attributes:
        maps: [N, C, *spatial], float32 or float64, with any number of spatial axes; it may alias
            the layer's live tensor.
        drawable: False where the axes have no meaning as a picture (a token sequence).
        said: what was done to get there, for the picture's description; empty for plain maps.
    """

    maps: Tensor
    drawable: bool = True
    said: str = ""


def as_maps(tensor: Tensor, module: nn.Module, *, channels_last_sequences: bool) -> MapsView:
    """Read a layer's input or output as maps.

    Convolutions know their number of axes, so an unbatched tensor gets a batch of one. Of other
    modules: [C] and [N, C] are maps of one pixel; [N, C, H, W] and [N, C, D, H, W] are maps; three
    axes are [N, L, C] (tokens) where ``channels_last_sequences``, else [N, C, L].
    """
    said = []
    if tensor.is_complex():
        tensor, said = tensor.detach().abs(), ["absolute values of complex numbers"]
    tensor = tensor.detach()
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.to(torch.float32)
    spatial = next((n for kind, n in _SPATIAL.items() if isinstance(module, kind)), None)
    if spatial is not None:
        maps = tensor if tensor.dim() == spatial + 2 else tensor.unsqueeze(0)
        return MapsView(maps, said="; ".join(said))
    if tensor.dim() == 3 and channels_last_sequences:
        return MapsView(tensor.transpose(1, 2), drawable=False, said="; ".join(said))
    if tensor.dim() < 2:
        tensor = tensor.reshape(1, -1)
    return MapsView(tensor, drawable=tensor.dim() <= 5, said="; ".join(said))


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
