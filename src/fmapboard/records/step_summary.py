"""What a writer receives for a logged step: pictures, histograms, scalars and tab records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fmapboard.records.attribution import Attribution
from fmapboard.records.layer_call import Bytes8, Floats, LayerCall, Layout, TensorKind
from fmapboard.records.measurements import LayerMeasurement
from fmapboard.records.model_graph import ModelGraph


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture.

    Attributes:
        pixels: u8 [H, W] (grey, or palette indices) or u8 [H, W, 3] (RGB).
        palette: u8 [256, 3] if the pixels are palette indices; otherwise None.
        tile: (height, width) in px of one map in the picture.
        compact: Encode it for size rather than speed.
    """

    pixels: Bytes8
    palette: Bytes8 | None = None
    tile: tuple[int, int] = (0, 0)
    compact: bool = False


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
        blobs: The record in the format of ``tab_format``.
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
        graph: The network's graph, with the first logged step of ``watch(graph=True)``.

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
    graph: ModelGraph | None = None
