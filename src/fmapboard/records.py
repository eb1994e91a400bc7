"""Immutable dataclasses exchanged between packages; their NumPy arrays alias nothing of the model.

``StepData`` goes from the training thread to the worker, ``LoggedStep`` from there to the writer::

    step = SummaryBuilder()(data)            # StepData -> LoggedStep
    step.pictures[0].samples[0].pixels       # u8 [H, W]

Axis letters in shapes: N samples, C channels, H height, W width, L sequence length, S values of a
flattened tensor, K histogram buckets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.formats.overview import StepSource
from fmapboard.formats.training_facts import Nonfinite, TrainingFacts

COLOURS = 3  # red, green and blue
Bytes8 = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.floating[Any]]
TensorKind = Literal[
    "feature_maps",
    "inputs",
    "gradients_of_maps",
    "kernels",
    "network_input",
    "attribution",
    "tokens_as_colours",
    "patches",
]
Scale = Literal["channel", "layer", "locked"]
Layout = Literal["tiles", "rows"]  # one tile per channel; one row of pixels per channel
Normalization = tuple[tuple[float, ...], tuple[float, ...]]  # mean, std of each input channel


class PixelMark(IntEnum):
    """Meaning of a pixel that is not a value."""

    PADDING = 250
    NAN = 251
    POSITIVE_INFINITY = 252
    NEGATIVE_INFINITY = 253
    CONSTANT = 254
    DEAD = 255


class KernelShape(tuple[int, ...]):
    """Shape of a convolution's weight, printed as ``64x3x7x7``.

    Regular convolutions: ``(out, in / groups, *kernel)``; transposed ones:
    ``(in, out / groups, *kernel)``.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "x".join(map(str, self))

    def __repr__(self) -> str:
        return f"KernelShape({self})"


class TransposedShape(KernelShape):
    """``KernelShape`` of a transposed convolution, whose first axis is the input channel."""

    __slots__ = ()


Unit = Literal["channel", "feature", "unit", "head", "expert", "branch"]
"""What a tile shows: a channel of a convolution, a feature of tokens, a unit of an MLP, …"""


class LayerPart(NamedTuple):
    """What a watched module is in a network of blocks (see ``model.blocks``).

    Attributes:
        shape: ``Attention 12×64`` (heads × features of each), ``MLP 768→3072``, ``Block 768`` or
            ``Experts 8, top 2``.
        unit: What one tile is; ``"branch"`` of the last layer of an MLP, of whose output only the
            norm is kept.
        features: Length of the last axis of its output, [N, T, features] or [N, H, W, features]; 0
            for rows of attention, [N, heads, keys].
        chosen: Of a router, the number of experts to which it sends each token; 0 for others.
        heads: Of attention, the number of its heads, 0 if it is not known; None for others.
        strided: Where attention works inside windows, each holds every k-th row and column of the
            image, not neighbours: MaxViT's grids.
    """

    shape: str
    unit: Unit
    features: int
    chosen: int = 0
    heads: int | None = None
    strided: bool = False


@dataclass(frozen=True, slots=True)
class LayerCall:
    """One call of a watched layer in the recorded forward pass.

    Attributes:
        layer: Name of the layer in the model.
        type: Name of the module's class.
        kernel_shape: Shape of a convolution's weight; None for other modules.
        call: Which call of the layer this is, counted from 1.
        position: Index of the call among all calls of the pass, counted from 0.
        pictures: True if the layer is drawn; otherwise it is only measured.
        floor: Output of an activation when it is off (0 for ReLU); None for other modules.
        transposed_stride: Stride of a transposed convolution; None for other modules.
        followed_by: Types of the normalizations, of Tanh and of Sigmoid that the model defines
            between this layer and the next one with kernels.
        received: True if the output is what the next layer receives, after all forward hooks on
            this one; False if it is what ``forward`` returned.
        part: What the layer is in a block; None for others.
    """

    layer: str
    type: str
    kernel_shape: KernelShape | None = None
    call: int = 1
    position: int = 0
    pictures: bool = True
    floor: float | None = None
    transposed_stride: tuple[int, ...] | None = None
    received: bool = False
    followed_by: tuple[str, ...] = ()
    part: LayerPart | None = None

    @property
    def label(self) -> str:
        """The layer's name; from its second call on with the suffix ``.call2`` etc."""
        return self.layer if self.call == 1 else f"{self.layer}.call{self.call}"

    @property
    def group(self) -> str:
        """Group in the Images dashboard: the kernel shape, that of a part, or the module's type."""
        if self.kernel_shape:
            return str(self.kernel_shape)
        return self.type if self.part is None else self.part.shape

    @property
    def unit(self) -> Unit:
        """What one tile of the layer is."""
        return "channel" if self.part is None else self.part.unit


class PassCount(NamedTuple):
    """How many of the backward passes that contribute to a step a gradient is the sum of.

    >>> str(PassCount(1, 2)), str(PassCount(2, 2))
    ('first of 2 backward passes', '')

    Attributes:
        summed: Number of passes in the sum; the others came later.
        seen: Number of passes.
    """

    summed: int = 1
    seen: int = 1

    def __str__(self) -> str:
        if self.summed >= self.seen:
            return ""
        first = "first" if self.summed == 1 else f"first {self.summed}"
        return f"{first} of {self.seen} backward passes"


ONE_PASS = PassCount()


@dataclass(frozen=True, slots=True)
class Attribution:
    """Where larger activations of a layer lower the loss, or raise a score, for one sample.

    Attributes:
        layer_call: The layer call.
        sample: Index in the batch.
        heat: f32 [H, W], ``relu(-dL/dA) * A`` summed over channels, of the unscaled loss L. A pixel
            is negative where the activations themselves are.
        gradient: 2-norm of the sample's part of dL/dA.
        batch: Number of samples in the batch.
        image: The sample's input image; None if it is unknown.
        tokens: The layer returns tokens.
        score: Name of the score, which is then -L; empty for a loss.
        of_probe: The loss is ``attribution_loss`` on the probe, instead of the training step's.
        passes: The backward passes that the gradient is the sum of.
        value: The score; None for a loss.
    """

    layer_call: LayerCall
    sample: int
    heat: Floats
    gradient: float
    batch: int
    image: InputImage | None = None
    tokens: bool = False
    score: str = ""
    of_probe: bool = False
    passes: PassCount = ONE_PASS
    value: float | None = None


@dataclass(frozen=True, slots=True)
class InputImage:
    """An input image of the network, as the network received it.

    Attributes:
        sample: Index in the batch.
        values: f32 [C, H, W].
        normalization: Mean and standard deviation per channel of the model's normalization; None if
            unknown.
        block: Side in px of the squares that were averaged into one pixel; 1 for none.
    """

    sample: int
    values: Floats
    normalization: Normalization | None = None
    block: int = 1

    def is_stretched(self, lo: float, hi: float) -> bool:
        """True if its colours are not those of the image: it was normalized, and how is unknown.

        Args:
            lo: The least finite value.
            hi: The largest one.
        """
        return self.normalization is None and not (lo >= 0 and hi <= 1)


@dataclass(frozen=True, slots=True)
class HardImage:
    """An input image with a high loss.

    Attributes:
        values: f32 [C, H, W], every k-th pixel of the image as the network received it.
        sample: Index in the batch.
        label: Class that the loss was computed with.
        prediction: Class with the largest output.
        loss: Its loss, without weights.
    """

    values: Floats
    sample: int
    label: int
    prediction: int
    loss: float


@dataclass(frozen=True, slots=True)
class RecordedFacts:
    """What training recorded of one step, and what is needed to compare it with others.

    Attributes:
        of_step: what the step alone shows; ``unchanged`` is empty.
        rates: parameter -> learning rate at which an optimizer updated it in this step.
        weights: digest of some weights in a step without an optimizer step; None of other steps.
        hardest: output -> the images with the highest loss, highest first.
    """

    of_step: TrainingFacts
    rates: Mapping[str, float] = field(default_factory=dict)
    weights: bytes | None = None
    hardest: Mapping[str, tuple[HardImage, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planes:
    """The drawn samples and channels of one tensor, quantized to one byte per pixel.

    Attributes:
        pixels: u8 [N, C, H, W], 255 * (value - lo) / (hi - lo) rounded down.
        marks: u8 [N, C, H, W], a ``PixelMark`` or 0; None if all values are finite.
        flat: bool [N, C], True for a plane of more than one pixel that has one finite value only.
        lo: f64 [N, C], the value drawn as 0.
        hi: f64 [N, C], the value drawn as 255.
        shape: Shape of the whole tensor.
        channels: Number of channels of the whole tensor.
        block: Side in px of the squares that were averaged into one pixel; 1 for none.
        view: How the tensor was converted to maps; empty for plain [N, C, H, W].
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


class Slices(NamedTuple):
    """Depth slices of the drawn samples and channels of a volume, besides the drawn one.

    Attributes:
        planes: The first slice of all samples, then the second one, and so on; each on its own
            scale.
        depths: Index of each slice, ascending.
        drawn: Index of the slice that ``LayerMeasurement.planes`` has.
    """

    planes: Planes
    depths: tuple[int, ...]
    drawn: int


NONE = Nonfinite()


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of each channel over the whole batch; every array is [C].

    Attributes:
        minimum: Smallest finite value; NaN if there is none, or see ``counted``.
        maximum: Largest finite value; NaN if there is none, or see ``counted``.
        mean: Mean of the finite values; NaN if there are none, if the layer is not drawn, or see
            ``counted``.
        std: Population standard deviation of the finite values; NaN like ``mean``.
        nan: Number of NaN values.
        positive_infinity: Number of +Inf values.
        negative_infinity: Number of -Inf values.
        constant: True if the channel has more than one value, all equal and finite.
        dead: True if the channel has more than one value, all equal to ``floor``, or see
            ``health.states.dead_heads``. None for layers that are neither activations, routers nor
            rows of attention.
        counted: False if non-finite values were found on an accelerator at the first logged step
            that has them. Which channels are affected is then exact, but their counts are lower
            bounds (1 for each kind found), and their statistics are not known (NaN). The values are
            counted from the next logged step on.
        floor: ``LayerCall.floor``, rounded to the dtype of the output.
        spread: Standard deviation between the images of the batch relative to the root mean square
            of all values, 0 to 1. Where planes have 64 values or more, that of mean and standard
            deviation, or of the extremes, of each channel in the first eight images, whichever is
            larger. NaN for a single image, for channels that lie side by side in memory, as those
            of tokens, if ``mean`` is NaN, and on accelerators, except for layers without maps.
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
    counted: bool = True
    floor: float | None = None
    spread: float = float("nan")

    @property
    def nonfinite(self) -> npt.NDArray[np.bool_]:
        """bool [C]: the channel has at least one NaN or infinity."""
        counts: npt.NDArray[np.int64] = self.nan + self.positive_infinity + self.negative_infinity
        return counts > 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Values of a tensor for a histogram.

    Attributes:
        values: f32 or f64 [S].
        total: Number of values of the whole tensor.
        lo: Smallest finite value of the whole tensor; NaN if it is not known.
        hi: Largest finite value of the whole tensor; NaN if it is not known.
    """

    values: Floats
    total: int
    lo: float = float("nan")
    hi: float = float("nan")


@dataclass(frozen=True, slots=True)
class HeadNumbers:
    """Numbers of the attention of each head, in some images of the batch; every array is f32 [H].

    Attributes:
        entropy: Mean entropy of up to 16 rows of each matrix, relative to that of a uniform row: 0
            for one key, 1 for all alike. NaN if each query sees one key only.
        logit: Largest logit of a key that is not masked: in all rows of the drawn images, and in
            the rows of ``entropy`` of the others.
        first: Mean share of the first key in the same rows as ``entropy``.
        next_key: Smallest weight in these rows of the key behind the query's own, where that is no
            padding. NaN unless the keys are the tokens of a text and the queries too.
        padding: Mean weight of padding for the other queries; NaN likewise, and without padding.
        off_one: If the softmax was taken over another axis than the keys, how far the sum of a row
            is from 1 at most; ``logit`` is NaN then. NaN otherwise.
        samples: How many samples the batch has if the attention is between them, 0 otherwise.
        same_token: How far the logits of equal tokens of a text are apart at most in its last row,
            over their range; NaN for fewer than eight pairs of them, and as ``next_key``.
    """

    entropy: Floats
    logit: Floats
    first: Floats
    next_key: Floats
    padding: Floats
    off_one: Floats
    samples: Floats
    same_token: Floats


@dataclass(frozen=True, slots=True)
class LayerMeasurement:
    """Everything kept of one tensor of a layer call.

    Attributes:
        layer_call: The layer call.
        kind: Which tensor of the layer call: its output, input or gradient.
        planes: What is drawn; None if nothing is.
        statistics: Statistics per channel; None if they were not computed.
        sample: Values for the histogram; None without a histogram.
        shape: Shape of the whole tensor.
        passes: Of a gradient: the backward passes that it is the sum of.
        heads: Numbers of the attention whose rows these are; None for others.
        tokens: f32 or f64 [h, w, C], all features of the first drawn image's tokens (see
            ``measure.kept_tokens``); None for layers whose tokens lie on no grid.
        slices: Further depth slices of the drawn samples of a volume; None for others.
        token_norms: f32 [3], largest and median norm of the tokens, and the norm of them all; None
            for layers that are no blocks and no attention.
    """

    layer_call: LayerCall
    kind: TensorKind
    planes: Planes | None = None
    statistics: Statistics | None = None
    sample: Sample | None = None
    shape: tuple[int, ...] = ()
    passes: PassCount = ONE_PASS
    heads: HeadNumbers | None = None
    tokens: Floats | None = None
    token_norms: Floats | None = None
    slices: Slices | None = None

    @property
    def is_counted(self) -> bool:
        """False if the counts of non-finite values are lower bounds (``Statistics.counted``)."""
        return self.statistics is None or self.statistics.counted

    @property
    def view(self) -> str:
        """How the drawn tensor was converted to maps, and what it may lack or have been given."""
        note = "" if self.planes is None else self.planes.view
        received = RECEIVED if self.layer_call.received else ""
        return "; ".join(filter(None, [note, received, str(self.passes)]))


RECEIVED = "what the next layer receives, after all forward hooks"
"""In the description of an output that is not what ``forward`` returned."""


class UpdateRatio(NamedTuple):
    """How much one optimizer step changed a parameter.

    Attributes:
        value: 2-norm of the change divided by that of the parameter before it.
        norm: 2-norm of the values that were read, before the step.
        is_estimate: The parameter was read in part.
    """

    value: float
    norm: float
    is_estimate: bool


class OutsideChange(NamedTuple):
    """How much code other than the optimizer changed a parameter between two steps of it.

    Attributes:
        ratio: 2-norm of the change divided by that of the parameter before it.
        limit: Largest magnitude of the changed values, if these are the values beyond a range, and
            are now at its ends; None otherwise.
    """

    ratio: float
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter at a logged step.

    Attributes:
        name: Name of the parameter in the model.
        weight: Values of the parameter for its histogram; None without a histogram.
        gradient: Values of the gradient for its histogram; None without a gradient.
        norm: 2-norm of the gradient; None without a gradient.
        nonfinite: Counts of the gradient's non-finite values.
        is_listed: False if ``layers=`` leaves its layer out: the norm counts in the total only.
        update: How much an optimizer step changed it; None if that is not known.
        changed_outside: How much other code changed it; None if it did not, as far as is known.
    """

    name: str
    weight: Sample | None = None
    gradient: Sample | None = None
    norm: float | None = None
    nonfinite: Nonfinite = NONE
    is_listed: bool = True
    update: UpdateRatio | None = None
    changed_outside: OutsideChange | None = None


@dataclass(frozen=True, slots=True)
class Kernels:
    """Weight of one convolution, a copy.

    Attributes:
        layer_call: The convolution.
        weight: f32 [out, in / groups, height, width]; [out / groups, in, height, width] of a
            transposed convolution.
        view: How the weight was converted to this shape; empty if it was not.
        inputs: Size of axis 1 of the whole weight, if it may have been cut; otherwise None.
        layout: ``"rows"`` for convolutions over sequences.
        groups: Number of groups of the convolution; None if unknown.
    """

    layer_call: LayerCall
    weight: Floats
    view: str = ""
    inputs: int | None = None
    layout: Layout = "tiles"
    groups: int | None = None

    @property
    def is_of_colours(self) -> bool:
        """True for a weight over images with three inputs, such as a first layer's on RGB."""
        return self.layout == "tiles" and (self.inputs or self.weight.shape[1]) == COLOURS

    def cut(self, most: int | None) -> Kernels:
        """At most ``most`` outputs and inputs; the three inputs of RGB stay together."""
        inputs = COLOURS if self.is_of_colours else most
        whole = self.inputs or self.weight.shape[1]
        return replace(self, weight=self.weight[:most, :inputs], inputs=whole)


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a batch that are drawn.

    Attributes:
        ids: i64 [S, T], the ids of their tokens.
        names: Per drawn text, the name of each token; empty if they are not named.
    """

    ids: npt.NDArray[np.int64]
    names: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class StepData:
    """What the training thread passes to the worker for one logged step.

    Attributes:
        step: Number of the step.
        wall_time: Time in seconds since the epoch.
        measured: Measurements of the layer calls, in call order.
        parameters: Histogram samples and gradient norms of the parameters.
        kernels: Weights of convolutions, at steps at which they are drawn.
        inputs: Input images of the network.
        scalars: Further scalars: tag without the model's prefix -> value.
        norms_before_clipping: Parameter name -> 2-norm of its gradient before clipping.
        training_thread_ms: Time in ms that the step took on the training thread.
        facts: What only the training process knows; None if it is not recorded.
        attributions: Where larger activations lower the loss, per layer call and drawn sample.
        source: The image or checkpoint that the step shows; None for a step of a training.
        texts: The texts that the network received, with the option ``tokens``; of one length each.
    """

    step: int
    wall_time: float
    measured: tuple[LayerMeasurement, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    kernels: tuple[Kernels, ...] = ()
    inputs: tuple[InputImage, ...] = ()
    scalars: Mapping[str, float] = field(default_factory=dict)
    norms_before_clipping: Mapping[str, float] = field(default_factory=dict)
    training_thread_ms: float = 0.0
    facts: RecordedFacts | None = None
    attributions: tuple[Attribution, ...] = ()
    source: StepSource | None = None
    texts: tuple[Texts, ...] = ()


@dataclass(frozen=True, slots=True)
class Crop:
    """The part of an image that a channel's value at a position depends on.

    Attributes:
        value: The channel's value there.
        image: Number of the image, from 0.
        name: Name of the image.
        position: Index of the position along each axis of the layer's output after samples and
            channels; empty for a layer that returns one number per channel.
        field: Top, left, bottom and right in px of the image as the network saw it, the latter two
            exclusive. No pixel outside changes the value.
        size: Height and width in px of that image.
        spot: (y, x) in px of the position in the image, if the layer's output covers it as a map.
        pixels: u8 [H, W, 3], the field as the network saw it, without its normalization.
        block: Side in px of the squares that were averaged into one of ``pixels``.
    """

    value: float
    image: int
    name: str
    position: tuple[int, ...]
    field: tuple[int, int, int, int]
    size: tuple[int, int]
    spot: tuple[float, float] | None
    pixels: Bytes8
    block: int = 1

    @property
    def is_whole(self) -> bool:
        """True if the field is the whole image."""
        return self.field == (0, 0, *self.size)


@dataclass(frozen=True, slots=True)
class LayerPatches:
    """The crops that excite each channel of a layer most.

    Attributes:
        layer_call: The layer call.
        channels: Number of channels of the layer; the first ``len(crops)`` were searched.
        crops: For each searched channel, its crops by descending value; of equal values the earlier
            image, then the earlier position. May be fewer than asked for.
        k: Number of crops asked for.
        images: Number of images that were searched.
        cell: (height, width) in px of the largest field.
        nan: Per searched channel, number of NaN values, which are left out.
        lost_at: Name of an operation because of which the field counts as the whole image; None
            otherwise.
    """

    layer_call: LayerCall
    channels: int
    crops: tuple[tuple[Crop, ...], ...]
    k: int
    images: int
    cell: tuple[int, int]
    nan: tuple[int, ...] = ()
    lost_at: str | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture.

    Attributes:
        pixels: u8 [H, W] (grey, or palette indices) or u8 [H, W, 3] (RGB).
        palette: u8 [256, 3] if the pixels are palette indices; otherwise None.
        tile: (height, width) in px of one map in the picture.
        png: The picture as a PNG file, so that several writers need not encode it again; mostly
            None.
    """

    pixels: Bytes8
    palette: Bytes8 | None = None
    tile: tuple[int, int] = (0, 0)
    png: bytes | None = None

    @property
    def colours(self) -> Bytes8:
        """The pixels without a palette: u8 [H, W] (grey) or u8 [H, W, 3] (RGB)."""
        return self.pixels if self.palette is None else self.palette[self.pixels]


@dataclass(frozen=True, slots=True)
class TaggedPictures:
    """Pictures of one tensor of a layer call at one step.

    Attributes:
        tag: Tag in TensorBoard, for example ``feature_maps_64x3x7x7/conv1``.
        kind: Which tensor is shown.
        samples: One picture per drawn sample of the batch.
        layer_call: The layer call; None for the network's input.
        description: What is drawn and how, in markdown.
        layout: ``"rows"`` for sequences, otherwise ``"tiles"``.
    """

    tag: str
    kind: TensorKind
    samples: tuple[Picture, ...]
    layer_call: LayerCall | None = None
    description: str = ""
    layout: Layout = "tiles"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of a tensor's finite values in buckets.

    Attributes:
        tag: Tag in TensorBoard.
        edges: f64 [K + 1], ascending; empty if there is no finite value.
        counts: f64 [K]; the counts of a sample are scaled up to the whole tensor.
        nonfinite: Number of non-finite values, which are in no bucket.
    """

    tag: str
    edges: Floats
    counts: Floats
    nonfinite: int = 0


@dataclass(frozen=True, slots=True)
class TabRecord:
    """One record of the Feature maps tab.

    Attributes:
        tag: Tag in TensorBoard.
        blobs: The record in the format of ``formats.tab_records``.
    """

    tag: str
    blobs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """Everything that a writer receives for one step; immutable.

    Tags are complete, including the prefix of the model's name.

    Attributes:
        step: Number of the step.
        wall_time: Time in seconds since the epoch.
        pictures: Grids of feature maps, inputs, gradients and kernels, and the network's input.
        histograms: Histograms of activations, weights and gradients.
        scalars: Tag -> value: gradient norms, fractions of dead channels, ...
        records: Records of the Feature maps tab.
        statistics: The measurements that pictures and scalars were built from.
        texts: Tag -> markdown text.
        attributions: The heat maps that the pictures of attribution were drawn from.
        earlier: Earlier step -> scalars of that step, which are certain only since this one.

    Example:
        >>> step = LoggedStep(step=100, wall_time=0.0, scalars={"gradient_norm/total": 0.5})
        >>> step.step, dict(step.scalars), step.pictures
        (100, {'gradient_norm/total': 0.5}, ())
    """

    step: int
    wall_time: float
    pictures: tuple[TaggedPictures, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    scalars: Mapping[str, float] = field(default_factory=dict)
    records: tuple[TabRecord, ...] = ()
    statistics: tuple[LayerMeasurement, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    attributions: tuple[Attribution, ...] = ()
    earlier: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
