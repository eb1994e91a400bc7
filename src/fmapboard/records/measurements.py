"""What is measured at a logged step, before pictures and scalars are built from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.overview_format.step_source import StepSource
from fmapboard.records.attribution import Attribution
from fmapboard.records.input_image import InputImage
from fmapboard.records.layer_call import (
    COLOURS,
    ONE_PASS,
    Bytes8,
    Floats,
    LayerCall,
    Layout,
    PassCount,
    TensorKind,
)
from fmapboard.records.model_graph import ModelGraph
from fmapboard.records.training_facts import TrainingFacts


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


class Nonfinite(NamedTuple):
    """Counts of non-finite values, by kind."""

    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0

    def __str__(self) -> str:
        kinds = zip(("NaN", "+Inf", "-Inf"), self, strict=True)
        return ", ".join(f"{count:,} {kind}" for kind, count in kinds if count)


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
        dead: True if the channel has more than one value, all equal to ``LayerCall.floor``. None
            for layers that are not activations.
        counted: False if non-finite values were found on an accelerator at the first logged step
            that has them. Which channels are affected is then exact, but their counts are lower
            bounds (1 for each kind found), and their statistics are not known (NaN). The values are
            counted from the next logged step on.
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
    """

    layer_call: LayerCall
    kind: TensorKind
    planes: Planes | None = None
    statistics: Statistics | None = None
    sample: Sample | None = None
    shape: tuple[int, ...] = ()
    passes: PassCount = ONE_PASS

    @property
    def view(self) -> str:
        """How the drawn tensor was converted to maps, and what it may lack or have been given."""
        note = "" if self.planes is None else self.planes.view
        received = RECEIVED if self.layer_call.received else ""
        return "; ".join(filter(None, [note, received, str(self.passes)]))


RECEIVED = "what the next layer receives, after all forward hooks"
"""In the description of an output that is not what ``forward`` returned."""


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
    """

    name: str
    weight: Sample | None = None
    gradient: Sample | None = None
    norm: float | None = None
    nonfinite: Nonfinite = NONE
    is_listed: bool = True


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
        graph: The network's graph; None if it is not recorded in this step.
        source: The image or checkpoint that the step shows; None for a step of a training.
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
    facts: TrainingFacts | None = None
    attributions: tuple[Attribution, ...] = ()
    graph: ModelGraph | None = None
    source: StepSource | None = None
