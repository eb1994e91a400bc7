"""Immutable dataclasses exchanged between packages; numpy arrays that alias nothing of the model.

Axis letters in shape comments: N samples, C channels, H height, W width, L length of a sequence,
S values of a plane flattened, K histogram buckets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

COLOURS = 3  # red, green and blue
Bytes8 = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.floating[Any]]
TensorKind = Literal["feature_maps", "inputs", "gradients_of_maps", "kernels", "network_input"]
Scale = Literal["channel", "layer", "locked"]
Layout = Literal["tiles", "rows"]  # one tile per channel; one row of pixels per channel
Normalization = tuple[tuple[float, ...], tuple[float, ...]]  # mean, std of each input channel


class PixelMark(IntEnum):
    """What a pixel is when it is not a value."""

    PADDING = 250
    NAN = 251
    POSITIVE_INFINITY = 252
    NEGATIVE_INFINITY = 253
    CONSTANT = 254
    DEAD = 255


class KernelShape(tuple[int, ...]):
    """The shape of a convolution's weight, printed as ``64x3x7x7``.

    Regular convolutions: (out, in / groups, *kernel); transposed ones: (in, out / groups, *kernel).
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "x".join(map(str, self))

    def __repr__(self) -> str:
        return f"KernelShape({self})"


@dataclass(frozen=True, slots=True)
class LayerCall:
    """One call of one watched layer in the observed forward pass.

    ``call`` counts from 1; ``position`` is the place in the order of calls, from 0. ``pictures``:
    maps are drawn, not only measured. ``floor`` is the value at which an activation module is off;
    None for every other module.
    """

    layer: str
    type: str
    kernel_shape: KernelShape | None = None
    call: int = 1
    position: int = 0
    pictures: bool = True
    floor: float | None = None

    @property
    def label(self) -> str:
        """The layer's name, with ``.call2`` and so on behind it for later calls."""
        return self.layer if self.call == 1 else f"{self.layer}.call{self.call}"

    @property
    def group(self) -> str:
        """What the Images dashboard groups by: the kernel shape, else the module's type."""
        return str(self.kernel_shape) if self.kernel_shape else self.type


@dataclass(frozen=True, slots=True)
class Planes:
    """The drawn samples and channels of one tensor, quantised.

    Attributes:
        pixels: u8 [N, C, H, W]; value = lo + (hi - lo) * pixel / 255, rounded down.
        marks: u8 [N, C, H, W], a `PixelMark` or 0; None where every value is finite.
        flat: bool [N, C], the plane has more than one pixel and one single finite value.
        lo, hi: f64 [N, C], the values drawn as 0 and as 255.
        shape: the tensor's own shape, before anything was left out.
        channels: how many channels the tensor has in all.
        block: side in px of the square blocks that were averaged into one pixel; 1 for none.
        view: how the tensor was read as maps, where that is not plain [N, C, H, W].
        layout: ``"rows"`` for sequences, whose planes are [1, L].
    """

    pixels: Bytes8
    marks: Bytes8 | None
    flat: npt.NDArray[np.bool_]
    lo: Floats
    hi: Floats
    shape: tuple[int, ...]
    channels: int
    block: int = 1
    view: str = ""
    layout: Layout = "tiles"


class Nonfinite(NamedTuple):
    """How many values are not finite, by kind."""

    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0

    def __str__(self) -> str:
        kinds = zip(("NaN", "+Inf", "-Inf"), self, strict=True)
        return ", ".join(f"{count:,} {kind}" for kind, count in kinds if count)


NONE = Nonfinite()


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of each channel over the whole batch and plane; every array is [C].

    ``minimum``, ``maximum``, ``mean`` and ``std`` (population) are of the finite values, NaN for a
    channel that has none; mean and std are NaN too of layers that are not drawn. ``constant``: more
    than one value, all equal and finite. ``dead``: more than one value, all at the activation's
    floor; None for other modules.
    """

    minimum: Floats
    maximum: Floats
    mean: Floats
    std: Floats
    nan: npt.NDArray[np.int64]
    positive_infinity: npt.NDArray[np.int64]
    negative_infinity: npt.NDArray[np.int64]
    constant: npt.NDArray[np.bool_]
    dead: npt.NDArray[np.bool_] | None = None

    @property
    def nonfinite(self) -> npt.NDArray[np.bool_]:
        """bool [C]: the channel holds at least one NaN or infinity."""
        counts: npt.NDArray[np.int64] = self.nan + self.positive_infinity + self.negative_infinity
        return counts > 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Values drawn from a tensor for a histogram: f32 or f64 [S], out of ``total`` values.

    ``lo`` and ``hi``: finite extremes of the whole tensor; NaN where only the sample's are known.
    """

    values: Floats
    total: int
    lo: float = float("nan")
    hi: float = float("nan")


@dataclass(frozen=True, slots=True)
class LayerMeasurement:
    """Everything kept of one tensor of a layer call; ``shape`` is the tensor's own."""

    layer_call: LayerCall
    kind: TensorKind
    planes: Planes | None = None
    statistics: Statistics | None = None
    sample: Sample | None = None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter at a logged step: samples for histograms, and its gradient's 2-norm.

    ``norm`` is None without a gradient; ``nonfinite`` counts the gradient's non-finite values.
    """

    name: str
    weight: Sample | None = None
    gradient: Sample | None = None
    norm: float | None = None
    nonfinite: Nonfinite = NONE


@dataclass(frozen=True, slots=True)
class Kernels:
    """The weight of one convolution as (out, in / groups, height, width), f32, a copy.

    ``inputs``: how many the whole weight has where fewer are here. ``layout``: rows for sequences.
    """

    layer_call: LayerCall
    weight: Floats
    view: str = ""
    inputs: int | None = None
    layout: Layout = "tiles"

    @property
    def is_of_colours(self) -> bool:
        """True if the weight is of images and has three inputs, as a first layer on RGB has."""
        return self.layout == "tiles" and (self.inputs or self.weight.shape[1]) == COLOURS

    def cut(self, most: int | None) -> Kernels:
        """At most so many outputs and inputs; the three inputs of a first layer stay together."""
        inputs = COLOURS if self.is_of_colours else most
        whole = self.inputs or self.weight.shape[1]
        return replace(self, weight=self.weight[:most, :inputs], inputs=whole)


@dataclass(frozen=True, slots=True)
class InputImage:
    """An image that went into the network: f32 [C, H, W], as the network got it.

    ``normalization``: where known. ``block``: px per side that were averaged into one pixel.
    """

    sample: int
    values: Floats
    normalization: Normalization | None = None
    block: int = 1


@dataclass(frozen=True, slots=True)
class StepData:
    """What the training thread hands to the worker for one logged step."""

    step: int
    wall_time: float
    measured: tuple[LayerMeasurement, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    kernels: tuple[Kernels, ...] = ()
    inputs: tuple[InputImage, ...] = ()
    scalars: Mapping[str, float] = field(default_factory=dict)
    norms_before_clipping: Mapping[str, float] = field(default_factory=dict)  # by parameter
    training_thread_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: u8 [H, W] (grey, or palette indices) or u8 [H, W, 3] (RGB).

    ``palette`` is u8 [256, 3] where pixels are indices. ``tile``: (height, width) in px of one map
    inside. ``compact``: encode for size rather than speed.
    """

    pixels: Bytes8
    palette: Bytes8 | None = None
    tile: tuple[int, int] = (0, 0)
    compact: bool = False


@dataclass(frozen=True, slots=True)
class TaggedPictures:
    """The pictures of one kind of tensor of one layer call at one step, one per sample."""

    tag: str
    kind: TensorKind
    samples: tuple[Picture, ...]
    layer_call: LayerCall | None = None
    description: str = ""
    layout: Layout = "tiles"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of finite values: edges f64 [K + 1] ascending, counts f64 [K].

    Counts of a sample are scaled up to the whole tensor; ``nonfinite`` values are left out.
    """

    tag: str
    edges: Floats
    counts: Floats
    nonfinite: int = 0


@dataclass(frozen=True, slots=True)
class TabRecord:
    """One record of the Feature maps tab: a blob sequence under ``tag`` (see `tab_format`)."""

    tag: str
    blobs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """What writers get: everything of one step, ready to be stored; ``texts``: tag -> markdown."""

    step: int
    wall_time: float
    pictures: tuple[TaggedPictures, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    scalars: Mapping[str, float] = field(default_factory=dict)
    records: tuple[TabRecord, ...] = ()
    statistics: tuple[LayerMeasurement, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
