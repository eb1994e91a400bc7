"""Find which axes of a layer's tensor are N, C, H and W, and convert the tensor to maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeGuard

import torch
from torch import Tensor, nn

from fmapboard.measure.device import HALVES
from fmapboard.measure.token_grids import TokenGrid, TokenGrids, square_of
from fmapboard.model.kernel_shapes import (
    CONVOLUTIONS,
    is_convolution,
    output_channels,
    spatial_axes,
)
from fmapboard.records import LayerPart, Layout

_FLOAT_DTYPES = (torch.float32, torch.float64)

_Norm = nn.modules.batchnorm._BatchNorm


class Axes(NamedTuple):
    """The sample and channel axes of a layer's tensor; all other axes are spatial.

    Attributes:
        channels: Index of the channel axis.
        batch: Index of the sample axis; None for an unbatched tensor.
        tokens: True if the only spatial axis is a sequence of tokens, such as image patches.
        note: How the axes were determined, if that is not obvious; shown in the description.
        grid: How the tokens cover an image; None if they do not, or nothing tells it.
        rows: Tokens without a grid are drawn like any sequence, as those of a block's parts are.
    """

    channels: int = 1
    batch: int | None = 0
    tokens: bool = False
    note: str = ""
    grid: TokenGrid | None = None
    rows: bool = False


_UNBATCHED = Axes(channels=0, batch=None)


class MapsView(NamedTuple):
    """A tensor interpreted as maps.

    Attributes:
        maps: ``[N, C, *spatial]``, float32 or float64, on accelerators also float16 or bfloat16,
            with any number of spatial axes. May alias the layer's live tensor.
        drawable: False if the tensor is measured but not drawn.
        note: How the tensor was converted to maps, for the picture's description; empty for plain
            maps.
        patches: [N, C, H, W], drawn instead of ``maps`` if the tensor holds tokens that cover an
            image; [N, C, rows, h, columns, w] of windows of h×w tokens. Otherwise None.
    """

    maps: Tensor
    drawable: bool = True
    note: str = ""
    patches: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Sequences:
    """How tensors with three axes are read.

    Attributes:
        channels_last: They are [N, L, C], unless their layer determines the axes (see ``axes_of``).
        tokens_are_patches: Tokens whose grid is not known are drawn as image patches if they fill a
            square (see ``square_of``).
        tokens_are_rows: Tokens without a grid are drawn like any sequence. By default they are
            measured but not drawn.
        grids: Those of the pass that is recorded; None if the model has neither attention nor a
            ``LayerNorm`` over the last axis.
    """

    channels_last: bool = True
    tokens_are_patches: bool = False
    tokens_are_rows: bool = False
    grids: TokenGrids | None = field(default=None, compare=False)

    @classmethod
    def of(cls, model: nn.Module) -> Sequences:
        """How this model is taken to use them.

        They are [N, C, L] if the model has 1-D convolutions, otherwise tokens [N, L, C]. Tokens may
        be patches of an image if the model has a 2-D convolution (to cut the image into patches),
        no 1-D convolution (which would operate on sequences), and no attention or recurrent module
        with the batch on axis 1. They are drawn as rows if the model has no 2-D or 3-D convolution.
        """
        modules = list(model.modules())
        axes = set(map(spatial_axes, modules))  # 1 and 2: of 1-D and of 2-D convolutions
        batch_first = all(getattr(module, "batch_first", True) for module in modules)
        has_maps = any(map(is_convolution, modules)) and axes & {1, 2, 3} != {1}
        channels_last = 1 not in axes
        are_patches = channels_last and 2 in axes and batch_first
        grids = None
        if batch_first and channels_last and any(map(_is_of_tokens, modules)):
            grids = TokenGrids.of(modules)
        return cls(channels_last, are_patches, tokens_are_rows=not has_maps, grids=grids)

    @property
    def are_expected(self) -> bool:
        """True if a tensor with three axes holds sequences, not an unbatched image [C, H, W]."""
        return self.tokens_are_rows or not self.channels_last

    def grid_of(self, samples: int | None, tokens: int) -> TokenGrid | None:
        """On which grid a number of tokens lies; a guess only where no pass has told any grid."""
        if self.grids is not None and self.grids.is_known:
            return self.grids.grid_of(samples, tokens)
        return square_of(tokens) if self.tokens_are_patches else None


def axes_of(
    module: nn.Module,
    shape: Sequence[int],
    sequences: Sequences = Sequences(),
    part: LayerPart | None = None,
) -> Axes:
    """Find the axes of a layer's input or output of the given shape.

    - Rows of attention, [N, heads, keys]: the heads are the channels.
    - Parts of blocks: the last axis, if it has the length that ``part`` says. Of windows, such as
      MaxViT's, the other three are [N · windows, h, w] or [N, windows, tokens].
    - Convolutions: the number of spatial axes is known, so an unbatched tensor is recognized.
    - Recurrent modules, three axes: [L, N, C], or [N, L, C] with ``batch_first``.
    - Other modules, [C] and [N, C]: maps of one pixel.
    - Other modules, three axes: [N, L, C] (tokens) with ``sequences.channels_last`` or if the
      module is a ``Linear`` or ``LayerNorm``, otherwise [N, C, L].
    - Other modules, four or five axes: [N, C, H, W] or [N, C, D, H, W]; or [N, H, W, C] or
      [N, D, H, W, C] if ``last_axis_is_channels`` says so.

    Example:
        >>> axes_of(nn.LSTM(8, 16), (20, 4, 16))
        Axes(channels=2, batch=1, tokens=False, note='', grid=None, rows=False)
    """
    dims = len(shape)
    if part is not None and part.unit == "head":
        return Axes(grid=sequences.grid_of(None, shape[2]))  # of the first images of the batch
    if part is not None and dims >= 3 and shape[-1] == part.features:
        grids = sequences.grids
        if dims == 4 and grids is not None and grids.is_known:
            grid = grids.windows_of(shape, strided=part.strided)
            if grid is not None:
                return Axes(channels=3, grid=grid)
        if dims > 3:
            return Axes(dims - 1, note=f"the last axis holds the channels: {part.shape}")
        return Axes(channels=2, tokens=True, grid=sequences.grid_of(*shape[:2]), rows=True)
    spatial = spatial_axes(module)
    if spatial is not None and dims == spatial + 2:
        return Axes()
    if isinstance(module, CONVOLUTIONS):
        return _UNBATCHED
    # A convolution of the user's own.
    if spatial is not None and dims == spatial + 1 and output_channels(module) == shape[0]:
        return _UNBATCHED
    if isinstance(module, nn.RNNBase) and dims == 3:
        batch = 0 if module.batch_first else 1
        return Axes(channels=2, batch=batch)
    is_last, reason = last_axis_is_channels(module, shape)
    if dims == 3 and (is_last or sequences.channels_last):
        return Axes(channels=2, tokens=True, grid=sequences.grid_of(*shape[:2]))
    if dims < 2:
        return _UNBATCHED
    return Axes(channels=dims - 1 if is_last else 1, note=reason)


def as_maps(tensor: Tensor, axes: Axes, sequences: Sequences = Sequences()) -> MapsView:
    """Convert a layer's input or output to maps; by default tokens are not drawn."""
    maps = tensor.detach()
    note = ""
    if maps.dtype not in _FLOAT_DTYPES:
        maps, note = _real(maps)
    if axes.batch is None:
        maps = maps.reshape(1, -1) if maps.dim() == 0 else maps.unsqueeze(0)
    elif (axes.batch, axes.channels) != (0, 1):
        maps = maps.movedim((axes.batch, axes.channels), (0, 1))  # [N, C, *spatial]
    if axes.grid is None:
        is_drawn_layout = sequences.tokens_are_rows or axes.rows or not axes.tokens
        drawable = is_drawn_layout and maps.dim() <= 5
        notes = "; ".join(filter(None, [note, axes.note]))
        return MapsView(maps, drawable, notes)
    grid = axes.grid
    how = f"{grid.height * grid.width} tokens drawn as {grid.height}×{grid.width} patches"
    if grid.prefix:
        how += f", prefix tokens skipped: {grid.prefix}"
    if grid.window is not None:
        what = "grids of {}×{} distant patches" if grid.strided else "windows of {}×{}"
        how += f", put together from {what}".format(*grid.window)
        if sequences.grids is not None and sequences.grids.is_shifted:
            how += "; where a block shifts its windows, the patches are shifted"
    notes = "; ".join(filter(None, [note, how]))
    return MapsView(maps, note=notes, patches=_patches(maps, grid))


def _patches(maps: Tensor, grid: TokenGrid) -> Tensor:
    """Tokens on their grid (see ``MapsView.patches``); a view where possible.

    Args:
        maps: [N, C, L]; of windows also [N · windows, C, h, w] or [N, C, windows, tokens].
        grid: the grid.
    """
    samples, channels = maps.shape[:2]
    if grid.window is None:
        return maps[..., grid.prefix :].reshape(samples, channels, grid.height, grid.width)
    window_height, window_width = grid.window
    rows = grid.height // window_height
    columns = grid.width // window_width
    if maps.dim() == 4 and maps.shape[2:] != grid.window:
        maps = maps.transpose(1, 2)  # [N, windows, C, tokens]
    windows = maps.reshape(-1, rows, columns, channels, *grid.window)
    if grid.strided:
        return windows.permute(0, 3, 4, 1, 5, 2)  # [N, C, h, rows, w, columns]
    return windows.permute(0, 3, 1, 4, 2, 5)  # [N, C, rows, h, columns, w]


def _real(tensor: Tensor) -> tuple[Tensor, str]:
    """The tensor in a dtype that can be measured, and a note if that took more than a cast."""
    if tensor.dtype in HALVES and not tensor.is_cpu:
        return tensor, ""
    note = ""
    if tensor.is_complex():
        tensor = tensor.abs()
        note = "absolute values of complex numbers"
    elif tensor.is_quantized:
        note = f"dequantized from {tensor.dtype}"
        tensor = tensor.dequantize()
    if tensor.dtype not in _FLOAT_DTYPES:
        tensor = tensor.to(torch.float32)
    return tensor, note


def as_pictures(maps: Tensor, depth: int | None = None) -> tuple[Tensor, str, Layout]:
    """Convert maps ``[N, C, *spatial]``, or ``MapsView.patches``, to pictures.

    A single spatial axis becomes one row of pixels per channel. Maps with three spatial axes are
    reduced to one depth slice: slice ``depth``, or the last one if there are fewer slices; the
    middle one if ``depth`` is None.

    Returns:
        The pictures [N, C, H, W], a note on the conversion (empty for plain maps), and the layout.
    """
    if maps.dim() == 2:
        return maps[..., None, None], "", "tiles"
    if maps.dim() == 3:
        note = "one row of pixels per channel, one column per position"
        return maps.unsqueeze(2), note, "rows"
    if maps.dim() == 5:
        slices = maps.shape[2]
        drawn = slices // 2 if depth is None else min(depth, slices - 1)
        note = f"depth slice {drawn} of 0…{slices - 1}"
        if depth is not None and depth != drawn:
            note += f" (the last one: there is no slice {depth})"
        return maps[:, :, drawn], note, "tiles"
    if maps.dim() == 6:  # windows
        return maps.flatten(4).flatten(2, 3), "", "tiles"
    return maps, "", "tiles"


def other_slices(depth: int, most: int) -> tuple[int, ...]:
    """Depth slices of a volume besides the middle one: evenly spaced, at most ``most - 1``.

    Example:
        >>> other_slices(32, 5), other_slices(3, 8)
        ((0, 8, 23, 31), (0, 2))
    """
    middle = depth // 2
    count = min(most, depth)
    if count < 2:
        return ()
    chosen = [round(number * (depth - 1) / (count - 1)) for number in range(count)]
    chosen.remove(min(chosen, key=lambda place: abs(place - middle)))
    return tuple(chosen)


def last_axis_is_channels(module: nn.Module, shape: Sequence[int]) -> tuple[bool, str]:
    """Whether the last axis of a layer's tensor holds the channels, and a note for the description.

    ``Linear`` and ``LayerNorm`` operate on the last axis. A module composed of such layers (a Swin
    block, for example) is assumed to do so if its tensor has three to five axes, the last axis
    matches the width of one of these layers, and axis 1 matches the width of none of its layers. If
    both axes match, axis 1 is used; the note says so unless another layer of this width operates on
    it. ``LayerNorm2d`` of torchvision and timm is a ``LayerNorm``, but operates on axis 1.

    Example:
        >>> last_axis_is_channels(nn.Linear(8, 16), (1, 4, 4, 16))
        (True, 'the last axis holds the channels, as in every Linear')
    """
    if len(shape) < 3:
        return False, ""
    if isinstance(module, nn.Linear) or _is_last_axis_norm(module):
        return True, f"the last axis holds the channels, as in every {type(module).__name__}"
    if len(shape) > 5 or not module._modules:
        return False, ""
    last, others = _widths(module)
    second_side = shape[1]
    last_side = shape[-1]
    if last_side not in last or second_side in others:
        return False, ""
    if second_side in last:
        return False, _AMBIGUOUS
    return True, f"the last axis holds the channels: the inner layers have width {last_side}"


_AMBIGUOUS = "the channels may be on the second or on the last axis; the second is used"


def _widths(module: nn.Module) -> tuple[set[int], set[int]]:
    """Widths of the inner layers that operate on the last axis, and of those that use axis 1."""
    last: set[int] = set()
    second: set[int] = set()
    for inner in module.modules():
        if isinstance(inner, nn.Linear):
            last.add(inner.in_features)
            last.add(inner.out_features)
        elif _is_last_axis_norm(inner):
            last.add(inner.normalized_shape[0])
        elif isinstance(inner, nn.LayerNorm):
            second.add(inner.normalized_shape[0])
        elif is_convolution(inner):
            for width in (getattr(inner, "in_channels", None), output_channels(inner)):
                if isinstance(width, int):
                    second.add(width)
        elif isinstance(inner, _Norm):
            second.add(inner.num_features)
    return last, second


def _is_last_axis_norm(module: nn.Module) -> TypeGuard[nn.LayerNorm]:
    if not isinstance(module, nn.LayerNorm) or len(module.normalized_shape) != 1:
        return False
    return not type(module).__name__.lower().endswith("2d")


def _is_of_tokens(module: nn.Module) -> bool:
    return isinstance(module, nn.MultiheadAttention) or _is_last_axis_norm(module)
