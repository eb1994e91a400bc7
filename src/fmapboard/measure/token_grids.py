"""``TokenGrids``: on which grid of an image the tokens of a forward pass lie."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

from fmapboard.arithmetic import ceil_div
from fmapboard.model.tensors import tensors
from fmapboard.records import LayerCall

Size = tuple[int, int]
"""Height and width."""

_MOST_PREFIX = 16
"""Class, distillation and register tokens: of the models in timm at most 9 (EVA with registers)."""

_GUESSED_PREFIXES = (0, 1, 2, 4, 5)
"""Numbers of prefix tokens that are considered where the network does not tell its grid."""


class TokenGrid(NamedTuple):
    """How a sequence of tokens covers an image, row by row.

    Attributes:
        prefix: Number of tokens in front of the first patch.
        height: Number of patches in a column.
        width: Number of patches in a row.
        window: Height and width of the windows that the grid is cut into, row by row, each of which
            is a sample of the tensor: [N · windows, window tokens, C]. None for whole images.
        strided: A window holds every k-th row and column of the grid, k being the number of windows
            in a column and in a row.
    """

    prefix: int
    height: int
    width: int
    window: Size | None = None
    strided: bool = False


class Cut(NamedTuple):
    """How the first layer of a network cuts an image into patches.

    Attributes:
        channels: Of the image.
        kernel: Height and width of a patch in px.
        stride: From patch to patch, in px.
        padding: Added to each border, in px.
    """

    channels: int
    kernel: Size
    stride: Size
    padding: Size = (0, 0)

    def grid(self, image: Size) -> Size:
        """Number of patches in a column and in a row of an image."""
        sides = zip(image, self.kernel, self.stride, self.padding, strict=True)
        height, width = ((side + 2 * pad - size) // step + 1 for side, size, step, pad in sides)
        return height, width


class _Images(NamedTuple):
    """A grid that a batch of images lies on."""

    samples: int
    height: int
    width: int


@dataclass(slots=True)
class TokenGrids:
    """The grids of one forward pass: those of its 2-D convolutions, and that of the first layer.

    The first layer is a convolution that cuts the image into patches or, in a network without 2-D
    convolutions, a ``Linear`` that receives the pixels of a patch. Its grid is computed from the
    size of the image, since the layer itself may not be recorded.

    Attributes:
        cut: How the first convolution cuts the image; None without one.
        widths: Numbers of inputs of the ``Linear`` layers, in a network without 2-D convolutions.
        merges: The network has a ``Linear`` that merges 2×2 tokens into one: half as many outputs
            as inputs.
        windows: Heights and widths of the windows inside which attention works, from the modules'
            ``window_size``.
        is_shifted: Some modules shift the image before they cut it into windows (``shift_size``).
    """

    cut: Cut | None = None
    widths: tuple[int, ...] = ()
    merges: bool = False
    windows: frozenset[Size] = frozenset()
    is_shifted: bool = False
    _sizes: list[_Images] = field(default_factory=list)
    _texts: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, modules: Sequence[nn.Module]) -> TokenGrids:
        """Those of a model, given all its modules."""
        convolutions = [module for module in modules if isinstance(module, nn.Conv2d)]
        linears = [module for module in modules if isinstance(module, nn.Linear)]
        first = next((conv for conv in convolutions if max(conv.stride) > 1), None)
        widths = () if convolutions else tuple(linear.in_features for linear in linears)
        merges = any(linear.in_features == 2 * linear.out_features for linear in linears)
        return cls(
            cut=None if first is None else _cut(first),
            widths=widths,
            merges=merges,
            windows=frozenset(_pairs(modules, "window_size")),
            is_shifted=any(max(shift) > 0 for shift in _pairs(modules, "shift_size")),
        )

    def begin(self, arguments: Any) -> None:
        """A pass of the network begins, with these arguments, nested in any way."""
        self._sizes.clear()
        self._texts.clear()
        for tensor in tensors(arguments):
            shape = tuple(tensor.shape)
            if len(shape) == 4:
                grid = self._first_grid(shape)
                if grid is not None:
                    self._sizes.append(_Images(shape[0], *grid))
            is_mask = tensor.dtype == torch.bool
            is_text = len(shape) == 2 and not tensor.is_floating_point() and not is_mask
            if (is_text or len(shape) == 3) and shape[1] > 1:
                self._texts.add(shape[1])

    def _first_grid(self, shape: Sequence[int]) -> Size | None:
        """The grid of the first layer on images of a shape [N, C, H, W]."""
        _, channels, height, width = shape
        if self.cut is not None and self.cut.channels == channels:
            return self.cut.grid((height, width))
        for inputs in self.widths:
            side = math.isqrt(inputs // channels) if channels else 0
            is_patch = side > 1 and side * side * channels == inputs
            if is_patch and height % side == 0 and width % side == 0:
                return height // side, width // side
        return None

    def saw(self, layer_call: LayerCall, shape: Sequence[int]) -> None:
        """A recorded layer has returned a tensor of a shape."""
        kernel = layer_call.kernel_shape
        if kernel is None or len(kernel) != 4 or len(shape) != 4:
            return
        size = _Images(shape[0], *shape[2:])
        if size in self._sizes:
            self._sizes.remove(size)
        self._sizes.append(size)

    @property
    def is_known(self) -> bool:
        """True if the pass has told a grid."""
        return bool(self._sizes)

    def _all_sizes(self) -> Iterator[_Images]:
        """Grids of the network, the latest first, then those of which 2×2 tokens were merged."""
        yield from reversed(self._sizes)
        if not self.merges:
            return
        for samples, height, width in reversed(self._sizes):
            while height > 1 and width > 1:
                height = ceil_div(height, 2)
                width = ceil_div(width, 2)
                yield _Images(samples, height, width)

    def grid_of(self, samples: int | None, tokens: int) -> TokenGrid | None:
        """The grid of a number of tokens; None if they do not lie on a grid of this pass.

        Only grids of so many samples count. If ``samples`` is None, all do, and a single window is
        a grid. At most 16 tokens may be in front, and none in front of merged ones. Texts that the
        network received lie on no grid, nor do patches with a text in front.
        """
        if tokens < 2 or tokens in self._texts:
            return None
        for size in self._all_sizes():
            if samples in (None, size.samples) and size.height * size.width == tokens:
                return TokenGrid(0, size.height, size.width)
        if samples is None:
            for height, width in self.windows:
                if height * width == tokens:
                    return TokenGrid(0, height, width)
        most = min(_MOST_PREFIX, min(self._texts, default=_MOST_PREFIX + 1) - 1)
        found: list[TokenGrid] = []
        for size in self._sizes:
            patches = size.height * size.width
            prefix = tokens - patches
            if samples in (None, size.samples) and 0 < prefix <= most and patches > 1:
                found.append(TokenGrid(prefix, size.height, size.width))
        if found or samples is None:
            return min(found, default=None)
        fitting = [window for window in self.windows if window[0] * window[1] == tokens]
        return self._cut_into(samples, fitting)

    def windows_of(self, shape: Sequence[int], *, strided: bool) -> TokenGrid | None:
        """The grid that windows of features were cut from; None if these are no windows.

        Args:
            shape: [N · windows, h, w, C], or [N, windows, tokens, C] of square windows.
            strided: see ``TokenGrid``.
        """
        samples, height, width, _ = shape
        if _Images(samples, height, width) in self._all_sizes():
            return None  # whole images
        if any(size.samples == samples for size in self._sizes):
            side = math.isqrt(width)
            is_square = side > 1 and side * side == width and height > 1
            found = self._cut_into(samples * height, [(side, side)]) if is_square else None
        else:
            found = self._cut_into(samples, [(height, width)])
        return None if found is None else found._replace(strided=strided)

    def _cut_into(self, samples: int, windows: Iterable[Size]) -> TokenGrid | None:
        """The grid that windows were cut from, padded to whole windows; None if in doubt."""
        found = set[TokenGrid]()
        for window_height, window_width in windows:
            for size in self._all_sizes():
                rows = ceil_div(size.height, window_height)
                columns = ceil_div(size.width, window_width)
                if samples == size.samples * rows * columns:
                    height = rows * window_height
                    width = columns * window_width
                    found.add(TokenGrid(0, height, width, (window_height, window_width)))
        return found.pop() if len(found) == 1 else None


def guessed_grid(image: Size, tokens: int) -> TokenGrid | None:
    """A grid of square patches that cover an image of a size in px; otherwise ``square_of``."""
    height, width = image
    for prefix in _GUESSED_PREFIXES:
        patches = max(tokens - prefix, 1)
        side = max(math.isqrt(height * width // patches), 1)
        fits = height % side == 0 and width % side == 0
        if fits and patches > 1 and height * width == patches * side * side:
            return TokenGrid(prefix, height // side, width // side)
    return square_of(tokens)


def square_of(tokens: int) -> TokenGrid | None:
    """A square that the tokens fill after 0, 1, 2, 4 or 5 prefix tokens; None if there is none.

    The side is at least 2. Only nine tokens are ambiguous: they are read as 3×3, not as 2×2 after
    five prefix tokens.
    """
    for prefix in _GUESSED_PREFIXES:
        others = max(tokens - prefix, 0)
        side = math.isqrt(others)
        if side >= 2 and side * side == others:
            return TokenGrid(prefix, side, side)
    return None


def _pairs(modules: Sequence[nn.Module], name: str) -> Iterator[Size]:
    """The heights and widths that an attribute of modules gives, as one number or as two."""
    for module in modules:
        value = getattr(module, name, None)
        sides = (value, value) if isinstance(value, int) else value
        if isinstance(sides, (tuple, list)) and len(sides) == 2:
            height, width = sides
            if isinstance(height, int) and isinstance(width, int):
                yield height, width


def _cut(convolution: nn.Conv2d) -> Cut | None:
    padding = convolution.padding
    if isinstance(padding, str):
        return None
    kernel_height, kernel_width = convolution.kernel_size
    stride_height, stride_width = convolution.stride
    pad_height, pad_width = padding
    return Cut(
        convolution.in_channels,
        (kernel_height, kernel_width),
        (stride_height, stride_width),
        (pad_height, pad_width),
    )
