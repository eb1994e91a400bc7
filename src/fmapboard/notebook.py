"""Maps that display themselves in a notebook: ``draw``, and the result of ``extract``."""

from __future__ import annotations

import base64
import html
import importlib
import sys
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from torch import Tensor, nn

from fmapboard.capture.isolation import aside
from fmapboard.errors import ConfigurationError, optional
from fmapboard.measure.layout import Axes, Sequences, as_maps, axes_of
from fmapboard.measure.reducer import PendingMeasurement, Reducer
from fmapboard.model.tensors import first_tensor, is_observable
from fmapboard.options import check_depth
from fmapboard.records import KernelShape, LayerCall, Picture, Planes, Scale
from fmapboard.render.grid import draw_maps, enlarge
from fmapboard.render.palettes import Palette, palette
from fmapboard.render.png import encode
from fmapboard.render.quantize import Quantizer

_OVERVIEW_CHANNELS = 16
_OVERVIEW_TILE = 48
"""Side of a tile in the overview of a network, px."""
_PATCHES = Sequences(tokens_are_patches=True)
_CALL = LayerCall("maps", "Tensor")
_DPI = 100
"""Dots per inch of a matplotlib figure."""
_TITLE_HEIGHT = 30
"""Height of the figure's title, px."""
_LEAST_WIDTH = 300
"""Least width of the figure, px, so that the title fits."""


@dataclass(frozen=True, slots=True, repr=False)
class Grid:
    """One sample's channels as a picture; displays itself in a notebook.

    ``numpy.asarray(grid)`` is uint8 [H, W] for a grey picture, otherwise [H, W, 3].

    Attributes:
        picture: The pixels.
        said: What is drawn and what was omitted.
    """

    picture: Picture
    said: str

    @property
    def image(self) -> Image.Image:
        """The picture as a PIL image: of mode ``"L"`` if it is grey, otherwise ``"RGB"``."""
        return Image.fromarray(self.__array__())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.picture.colours, dtype)

    def show(self) -> None:
        """Display the picture: in a notebook below the cell, otherwise in an image viewer."""
        shell = sys.modules.get("IPython")
        if shell is not None and hasattr(shell.get_ipython(), "kernel"):
            importlib.import_module("IPython.display").display(self)
        else:
            self.image.show()

    def figure(self, axes: Any = None) -> Any:
        """Draw the picture with matplotlib, titled with what is drawn.

        Args:
            axes: A ``matplotlib.axes.Axes`` to draw into; None makes a figure, of which one pixel
                of the picture is one of the figure.

        Returns:
            The ``matplotlib.figure.Figure``.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        colours = self.__array__()
        if axes is None:
            plt: Any = optional("matplotlib.pyplot", extra="matplotlib", why="Grid.figure()")
            picture_height, picture_width = colours.shape[:2]
            height = picture_height + _TITLE_HEIGHT
            width = max(picture_width, _LEAST_WIDTH)
            figure = plt.figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
            axes = figure.add_axes((0, 0, 1, picture_height / height))
        axes.imshow(colours, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set_axis_off()
        axes.set_title(self.said, fontsize="small")
        return axes.figure

    def save(self, path: str | Path) -> None:
        """Write a PNG file, replacing an existing one; its folder is created if it is missing.

        Args:
            path: Path of the file.
        """
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(self._repr_png_())

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
    channel_axis: int | None = None,
    depth: int | None = None,
    nrow: int | None = None,
) -> Grid:
    """Draw one sample's channels as a grid of tiles, as in the Images dashboard.

    Maps below 32 px are enlarged by an integer factor.

    Args:
        maps: [N, C, H, W] or [N, C, D, H, W], as ``extract`` returns it; tokens [N, L, C] whose
            number is a square; or, with ``channel_axis``, a sequence, drawn as one row of pixels
            per channel.
        sample: Index of the sample.
        max_channels: Maximum number of channels; None draws all.
        max_tile: Maximum side of a tile in px; larger maps are averaged down. Rows of sequences may
            be 8 times as long. None keeps the size.
        scale: ``"channel"``: each channel between its own extremes; ``"layer"``: one scale for all.
        colormap: ``"grey"``, ``"viridis"``, ``"magma"`` or the zero-centered ``"signed"``.
        channel_axis: Axis of the channels: 1 for a sequence [N, C, L] (Conv1d), 2 or -1 for
            [N, L, C] (LSTM, Embedding, tokens); None infers it from the shape.
        depth: Depth slice of a volume; None draws the middle one.
        nrow: Tiles per row, as in ``make_grid``; None draws ``int(sqrt(channels))``. The rows of a
            sequence are always below each other.

    Returns:
        The picture. It displays itself in a notebook; ``save(path)`` writes it as a PNG file,
        ``show()`` displays it, ``image`` is a PIL image, ``numpy.asarray`` gives the pixels, and
        ``figure()`` is a matplotlib figure.

    Raises:
        ConfigurationError: The tensor's shape cannot be drawn, there is no such sample, or an
            option is invalid.

    Example:
        >>> import torch
        >>> from fmapboard import draw
        >>> draw(torch.rand(1, 8, 40, 40))
        Grid(86×170 px, 8 channels)
        >>> draw(torch.rand(1, 8, 40, 40), nrow=8)
        Grid(338×44 px, 8 channels)
    """
    if not isinstance(maps, Tensor):
        raise ConfigurationError(
            f"maps={type(maps).__name__}: expected a tensor [N, C, H, W], as in extract(...)[layer]"
        )
    colours = palette(colormap)
    check_depth(depth)
    if scale not in ("channel", "layer"):
        raise ConfigurationError(f"scale={scale!r}: expected 'channel' or 'layer'")
    is_integer = isinstance(nrow, int) and not isinstance(nrow, bool)
    if nrow is not None and (not is_integer or nrow < 1):
        raise ConfigurationError(f"nrow={nrow!r}: expected a number of tiles per row, at least 1")
    count = len(maps) if maps.dim() else 0
    if not 0 <= sample < count:
        raise ConfigurationError(f"sample={sample}: the maps have {count} samples, counted from 0")
    quantize = Quantizer(max_tile, scale, colours.zero_centered)
    reducer = Reducer(None, max_channels, depth, _PATCHES, quantize)
    axes = _axes(maps, channel_axis)
    one_sample = maps[sample : sample + 1]
    drawn = _drawn(one_sample, reducer, axes, colours, nrow)
    if drawn is None:
        raise ConfigurationError(
            f"maps of shape {list(maps.shape)} cannot be drawn: expected [N, C, H, W] "
            "(maps[None] for [C, H, W]), or a sequence with its channel_axis (1 for [N, C, L])"
        )
    return drawn


class LayerMaps(dict[str, Any]):
    """Layer name -> tensor: a dict that prints shapes and displays pictures in a notebook.

    It is copied and pickled as an ``OrderedDict``, so that files written by ``torch.save`` can be
    loaded without fmapboard.

    Attributes:
        axes: Layer name -> axes of the layer's first tensor.
        reducer: Selects and reduces what a notebook displays of each layer.
        kernel_shapes: Name of a convolution -> shape of its kernel.
        inputs: The layers' inputs, if outputs and inputs were extracted together; otherwise empty.
    """

    def __init__(self, *values: Any, **by_name: Any) -> None:
        super().__init__(*values, **by_name)
        self.axes: dict[str, Axes] = {}
        self.reducer = Reducer(sequences=_PATCHES)
        self.kernel_shapes: dict[str, KernelShape] = {}
        self.inputs: dict[str, Any] = {}

    @property
    def groups(self) -> dict[KernelShape, list[str]]:
        """Kernel shape -> names of the convolutions with that shape, in call order."""
        found: dict[KernelShape, list[str]] = {}
        for name in self:
            shape = self.kernel_shapes.get(name)
            if shape is not None:
                found.setdefault(shape, []).append(name)
        return found

    def __repr__(self) -> str:
        lines = [f"LayerMaps of {len(self)} layers"]
        for name, value in self.items():
            lines.append(f"{name}: {_shape(value)}")
        return "\n  ".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedDict, (), None, None, iter(self.items())

    def _repr_html_(self) -> str:
        cell = "<td style='text-align:left'>"
        rows = ""
        for name, value in self.items():
            title = f"<b>{html.escape(name)}</b><br>{html.escape(_shape(value))}"
            image = self._image(name)
            rows += f"<tr>{cell}{title}</td>{cell}{image}</td></tr>"
        return f"<table>{rows}</table>"

    def _image(self, name: str) -> str:
        """The first channels of the first sample, small since a network has many layers."""
        maps = first_tensor(self[name])
        if maps is None or maps.dim() < 3:
            return ""
        quantize = Quantizer(_OVERVIEW_TILE)
        reducer = replace(self.reducer, max_channels=_OVERVIEW_CHANNELS, quantize=quantize)
        axes = self.axes.get(name) or axes_of(nn.Identity(), maps.shape, self.reducer.sequences)
        drawn = _drawn(maps, reducer, axes, palette("grey"))
        if drawn is None:
            return ""
        png = base64.b64encode(drawn._repr_png_()).decode()
        text = html.escape(drawn.said)
        return f"<img alt='{text}' title='{text}' src='data:image/png;base64,{png}'>"


def _axes(maps: Tensor, channel_axis: int | None) -> Axes:
    if channel_axis is None:
        return axes_of(nn.Identity(), maps.shape, _PATCHES)
    axis = channel_axis + maps.dim() if channel_axis < 0 else channel_axis
    if not 0 < axis < maps.dim():
        raise ConfigurationError(
            f"channel_axis={channel_axis}: maps of shape {list(maps.shape)} have channels at one "
            f"of the axes 1 to {maps.dim() - 1}; axis 0 holds the samples"
        )
    return Axes(channels=axis)


def _drawn(
    maps: Tensor, reducer: Reducer, axes: Axes, colours: Palette, nrow: int | None = None
) -> Grid | None:
    """The first sample of a tensor as a picture; None if it cannot be drawn."""
    if not is_observable(maps):
        return None
    with aside(maps.device.type):
        view = as_maps(maps, axes, reducer.sequences)
        if not view.drawable:
            return None
        kept = reducer.keep(view, 1)
        shape = tuple(maps.shape)
        pending = PendingMeasurement(_CALL, "feature_maps", shape, reducer.quantize, kept)
        planes = pending.to_host().planes
    if planes is None:
        return None
    picture = draw_maps(planes, 0, colours, nrow=nrow)
    return Grid(enlarge(picture), _description(planes))


def _description(planes: Planes) -> str:
    """What is drawn and what was omitted."""
    drawn = planes.pixels.shape[1]
    of_all = "" if drawn == planes.channels else f" of {planes.channels}"
    parts = [f"{drawn}{of_all} channels"]
    if planes.view:
        parts.append(planes.view)
    if planes.block > 1:
        parts.append(f"each pixel is the mean of {planes.block}×{planes.block} values")
    return "; ".join(parts)


def _shape(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    kind = type(value).__name__
    maps = first_tensor(value)
    return kind if maps is None else f"{kind} with {_shape(maps)}"
