"""Maps that show themselves in a notebook: what `extract` returns, and the grid of one tensor."""

from __future__ import annotations

import base64
import html
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from fmapboard.capture.isolation import aside
from fmapboard.errors import ConfigurationError
from fmapboard.measure.reducer import Reducer
from fmapboard.model.tensors import first_tensor, is_observable
from fmapboard.records import LayerCall, Picture, Planes, Scale
from fmapboard.render.grid import draw_maps, enlarge
from fmapboard.render.palettes import palette
from fmapboard.render.png import encode

_OVERVIEW_CHANNELS, _OVERVIEW_TILE = 16, 48


@dataclass(frozen=True, slots=True, repr=False)
class Grid:
    """One sample's channels as a picture; shows itself in a notebook.

    ``picture`` holds the pixels, ``said`` what was left out of them.
    """

    picture: Picture
    said: str

    def save(self, path: str | Path) -> None:
        """Write a PNG file."""
        Path(path).write_bytes(self._repr_png_())

    def _repr_png_(self) -> bytes:
        return encode(self.picture)

    def __repr__(self) -> str:
        height, width = self.picture.pixels.shape[:2]
        return f"Grid({width}×{height} px, {self.said})"


def draw(
    maps: Tensor,
    *,
    sample: int = 0,
    max_channels: int | None = 64,
    max_tile: int | None = 64,
    scale: Scale = "channel",
    colormap: str = "grey",
) -> Grid:
    """A grid of one sample's channels, as the Images dashboard has it; small maps are enlarged.

    >>> draw(torch.rand(1, 8, 40, 40))
    Grid(86×170 px, 8 channels)

    Args:
        maps: [N, C, H, W], as `extract` returns it, or tokens [N, L, C] that fill a square.
        sample: which of the N.
        max_channels: draw at most so many; None draws all.
        max_tile: average larger maps down to at most so many px a side; None keeps the size.
        scale: ``"channel"``: each on its own; ``"layer"``: one for all.
        colormap: ``"grey"``, ``"viridis"``, ``"magma"`` or the zero-centred ``"signed"``.

    Raises:
        ConfigurationError: the tensor is no maps, has no such sample, or an option is unknown.
    """
    if not isinstance(maps, Tensor):
        raise ConfigurationError(
            f"maps={type(maps).__name__}: expected a tensor [N, C, H, W], as extract(...)[layer] is"
        )
    colours = palette(colormap)
    if scale not in ("channel", "layer"):
        raise ConfigurationError(f"scale={scale!r}: expected 'channel' or 'layer'")
    if maps.dim() == 0 or not 0 <= sample < len(maps):
        count = len(maps) if maps.dim() else 0
        raise ConfigurationError(f"sample={sample}: there are {count}")
    planes = _planes(
        maps[sample : sample + 1],
        Reducer(1, max_channels, max_tile, scale, colours.zero_centered, tokens_are_patches=True),
    )
    if planes is None:
        raise ConfigurationError(
            f"maps of shape {list(maps.shape)} cannot be drawn: expected [N, C, H, W] "
            "(maps[None] for [C, H, W])"
        )
    return Grid(enlarge(draw_maps(planes, 0, colours)), _said(planes))


class LayerMaps(dict[str, Any]):
    """Layer name -> tensor: a dict that prints shapes, and shows grids in a notebook.

    It is copied and pickled as an `OrderedDict`, so what `torch.save` writes loads anywhere.
    """

    def __repr__(self) -> str:
        lines = [f"LayerMaps of {len(self)} layers"]
        return "\n  ".join(lines + [f"{name}: {_shape(value)}" for name, value in self.items()])

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedDict, (), None, None, iter(self.items())

    def _repr_html_(self) -> str:
        rows = (
            (f"<b>{html.escape(name)}</b><br>{html.escape(_shape(value))}", _image(value))
            for name, value in self.items()
        )
        cell = "<td style='text-align:left'>"
        return (
            f"<table>{''.join(f'<tr>{cell}{a}</td>{cell}{b}</td></tr>' for a, b in rows)}</table>"
        )


def _planes(maps: Tensor, reducer: Reducer) -> Planes | None:
    if not is_observable(maps):
        return None
    with aside(maps.device.type):
        layer_call = LayerCall("maps", "Tensor")
        pending = reducer(layer_call, "feature_maps", maps, nn.Identity(), numbers=False)
        return pending.to_host().planes


def _said(planes: Planes) -> str:
    drawn = planes.pixels.shape[1]
    of_all = "" if drawn == planes.channels else f" of {planes.channels}"
    parts = [
        f"{drawn}{of_all} channels",
        planes.view,
        f"a pixel is the mean of {planes.block}×{planes.block}" if planes.block > 1 else "",
    ]
    return "; ".join(filter(None, parts))


def _image(value: Any) -> str:
    """The first channels of the first sample, small: a network has many layers."""
    maps = first_tensor(value)
    if maps is None or maps.dim() < 3:
        return ""
    reducer = Reducer(1, _OVERVIEW_CHANNELS, _OVERVIEW_TILE, tokens_are_patches=True)
    planes = _planes(maps[:1], reducer)
    if planes is None:
        return ""
    data = base64.b64encode(encode(enlarge(draw_maps(planes, 0, palette("grey"))))).decode()
    said = html.escape(_said(planes))
    return f"<img alt='{said}' title='{said}' src='data:image/png;base64,{data}'>"


def _shape(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    maps = first_tensor(value)
    return type(value).__name__ + (f" with {_shape(maps)}" if maps is not None else "")
