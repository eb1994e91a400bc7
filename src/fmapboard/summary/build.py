"""Build pictures, histograms, scalars and tab records from the measurements of a step.

At the end: keep a step within ``max_bytes_per_step``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.training_facts import FirstNonfinite, Nonfinite, Place, pack_nonfinite, plain
from fmapboard.records import (
    Floats,
    HardImage,
    Histogram,
    InputImage,
    Kernels,
    LayerMeasurement,
    LoggedStep,
    Normalization,
    Planes,
    Sample,
    Scale,
    StepData,
    TabRecord,
    TaggedPictures,
)
from fmapboard.render import png
from fmapboard.render.grid import arrangement, draw_input_image, draw_kernels, draw_maps
from fmapboard.render.heat import draw_hard_images
from fmapboard.render.palettes import LEGEND, palette
from fmapboard.render.quantize import finite_extremes, longest, shrink_pixels, used_scale
from fmapboard.summary.attributions import SIDE, AttributionState, attributions
from fmapboard.summary.change import (
    Drawn,
    IdleStep,
    Maps,
    ReadLoss,
    Weights,
    certain_outputs,
    changes_of_maps,
    followed_weights,
    output_scalars,
    training_facts,
)
from fmapboard.summary.overview import OverviewState, overview
from fmapboard.summary.tab_records import of_kernels, of_maps, tab_records

BUCKETS = 30
"""Number of buckets; TensorBoard re-bins to 30 of equal width, so these are shown unchanged."""


def followers(measured: Iterable[LayerMeasurement]) -> dict[str, LayerMeasurement]:
    """Label of a layer -> the activation with an off value that directly follows it in call order.

    The activation must have as many channels as the layer, so that they can be matched by index. An
    activation that is drawn itself is not a follower.
    """
    found: dict[str, LayerMeasurement] = {}
    before, channels = "", 0
    for part in measured:
        statistics, call = part.statistics, part.layer_call
        if part.kind != "feature_maps" or statistics is None:
            continue
        may_follow = statistics.dead is not None and not call.pictures
        if may_follow and statistics.minimum.size == channels:
            found[before] = part
        before, channels = call.label, 0 if may_follow else statistics.minimum.size
    return found


_SCALE_TEXT: dict[Scale, str] = {
    "channel": "each channel scaled between its own extremes",
    "layer": "one scale for all channels of the layer",
    "locked": "scale locked to the first logged step",
}


@dataclass(frozen=True, slots=True)
class SummaryState:
    """What a summary needs to know of the stored steps before; nothing in it is changed in place.

    Attributes:
        written: Label of a layer -> number of its records for the tab.
        maps: What later maps are compared with.
        weights: What later weights are compared with.
        idle: The last step, if no optimizer stepped in it.
        read: What was last read of the losses, by name of the output.
        overview: See ``OverviewState``.
        attributions: See ``AttributionState``.
        has_nonfinite: The first non-finite value has been reported.
    """

    written: Mapping[str, int] = field(default_factory=dict)
    maps: Maps = field(default_factory=dict)
    weights: Weights = field(default_factory=dict)
    idle: IdleStep | None = None
    read: Mapping[str, ReadLoss] = field(default_factory=dict)
    overview: OverviewState = field(default_factory=OverviewState)
    attributions: AttributionState = field(default_factory=AttributionState)
    has_nonfinite: bool = False


@dataclass(kw_only=True)
class SummaryBuilder:
    """Turns the ``StepData`` of each step into a ``LoggedStep``; used by one thread at a time.

    Attributes:
        colormap: Name of a palette.
        scale: How the planes were scaled, for the descriptions.
        name: Name of the model; every tag begins with ``name.``. None for no prefix.
        max_kernels: Maximum number of outputs and inputs of a convolution that are drawn.
        with_pngs: Encode the pictures here, for a caller that needs their size before writing.
        has_probe: The drawn maps are those of a probe: the same images at each step.
        class_names: Of the classes, for the pictures of images with a high loss.
        normalization: Mean and standard deviation per channel of the input, if known.
        attribution_side: Length in px of the longer side of a picture of attribution.
        state: What is known of the steps before.
    """

    colormap: str = "grey"
    scale: Scale = "channel"
    name: str | None = None
    max_kernels: int | None = 64
    with_pngs: bool = False
    has_probe: bool = False
    class_names: tuple[str, ...] = ()
    normalization: Normalization | None = None
    attribution_side: int = SIDE
    state: SummaryState = field(default_factory=SummaryState, init=False)

    def __post_init__(self) -> None:
        self._palette, self._prefix = palette(self.colormap), tags.prefix(self.name)

    def __call__(self, data: StepData) -> LoggedStep:
        """Build everything that is written about one step, which counts as stored."""
        self.state, step = self.build(data)
        return step

    def build(self, data: StepData) -> tuple[SummaryState, LoggedStep]:
        """Build everything that is written about one step.

        Returns:
            What is to become ``state`` when the step has been stored, and the step.
        """
        before = self.state
        pictures = [self._maps(m, m.planes) for m in data.measured if m.planes is not None]
        kernels = [self._kernels(k) for k in data.kernels]
        drawn = [self._finished(tagged) for tagged, _ in (*pictures, *kernels)]
        headers = {tagged.tag: header for tagged, header in (*pictures, *kernels)}
        of_layers: defaultdict[str, list[TaggedPictures]] = defaultdict(list)
        for tagged in drawn:
            assert tagged.layer_call is not None  # `drawn` holds no network input
            of_layers[tagged.layer_call.label].append(tagged)
        inputs = list(map(self._input_image, data.inputs))
        maps, changes = changes_of_maps(before.maps, before.weights, data, has_probe=self.has_probe)
        weights = followed_weights(before.weights, data)
        step_drawn = Drawn(data, of_layers, changes, followers(data.measured), self._prefix)
        written, records = tab_records(before.written, step_drawn, headers)
        heat, attributed, norms, firsts = attributions(
            before.attributions, data, self._prefix, self.attribution_side
        )
        given = () if data.facts is None else data.facts.of_step.outputs
        read, outputs = certain_outputs(before.read, given, data.step)
        losses, earlier = output_scalars(outputs, self._prefix)
        for one in outputs:
            hard = () if data.facts is None else data.facts.hardest.get(one.name, ())
            if hard and one.kind != "not certain":
                inputs.append(self._hard_images(hard))
        idle, told = training_facts(
            before.idle, before.weights, weights, outputs, data, self._prefix
        )
        numbers, overviews, fractions = overview(before.overview, step_drawn)
        nonfinite = None if before.has_nonfinite else first_nonfinite(data)
        texts: dict[str, str] = {}
        if nonfinite is not None:
            texts[self._prefix + tags.FIRST_NONFINITE] = f"step {data.step}: {nonfinite.text}"
            tag = self._prefix + tags.FIRST_NONFINITE_RECORD
            told = [*told, TabRecord(tag, pack_nonfinite(nonfinite))]
        step = LoggedStep(
            data.step,
            data.wall_time,
            pictures=(*drawn, *map(self._finished, [*inputs, *attributed])),
            histograms=tuple(self._histograms(data)),
            scalars={**self._scalars(data, fractions), **losses, **norms},
            # The overview last, so that it is never ahead.
            records=(*records, *firsts, *told, *overviews),
            statistics=data.measured,
            texts=texts,
            attributions=data.attributions,
            graph=data.graph,
            earlier=earlier,
        )
        reported = before.has_nonfinite or nonfinite is not None
        return SummaryState(written, maps, weights, idle, read, numbers, heat, reported), step

    def _finished(self, tagged: TaggedPictures) -> TaggedPictures:
        """The pictures with their PNGs, if ``with_pngs`` is set."""
        if not self.with_pngs:
            return tagged
        return replace(tagged, samples=tuple(png.encoded(picture) for picture in tagged.samples))

    def _maps(
        self, measured: LayerMeasurement, planes: Planes
    ) -> tuple[TaggedPictures, dict[str, Any]]:
        """The pictures of maps, and what the tab's record says of them."""
        layer_call = measured.layer_call
        dead = None if measured.statistics is None else measured.statistics.dead
        samples = tuple(
            draw_maps(planes, sample, self._palette, dead) for sample in range(len(planes.pixels))
        )
        tag = self._prefix + tags.image(measured.kind, layer_call.group, layer_call.label)
        description = self._describe(measured, planes)
        tagged = TaggedPictures(tag, measured.kind, samples, layer_call, description, planes.layout)
        return tagged, of_maps(tagged, measured, planes, self._palette.name, self.scale)

    def _describe(self, measured: LayerMeasurement, planes: Planes) -> str:
        layer_call, (_, drawn, height, width) = measured.layer_call, planes.pixels.shape
        rows, per_row = planes.layout == "rows", arrangement(planes)[0]
        parts = [
            f"{measured.kind.replace('_', ' ')} of `{plain(layer_call.label)}` "
            f"({layer_call.type}), shape {list(planes.shape)}, channels 0…{drawn - 1}"
            + ("" if rows else f", {per_row} per row"),
            _SCALE_TEXT[used_scale(planes, self.scale)],
        ]
        if drawn < planes.channels:
            parts.append(f"{planes.channels - drawn} of {planes.channels} channels not drawn")
        if planes.block > 1:
            block = f"{planes.block} positions" if rows else f"{planes.block}×{planes.block} values"
            tile = "" if rows else f", tiles of {height}×{width} px"
            parts.append(f"downscaled: each pixel is the mean of {block}{tile}")
        if measured.view:
            parts.append(measured.view)
        return "; ".join([*parts, LEGEND])

    def _kernels(self, kernels: Kernels) -> tuple[TaggedPictures, dict[str, Any]]:
        """The picture of kernels, and what the tab's record says of it."""
        picture, peak = draw_kernels(kernels, self.max_kernels)
        layer_call, most = kernels.layer_call, self.max_kernels
        arrangement_text = "a row per input, a column per output"
        if kernels.layout == "rows":
            arrangement_text = "a row per output, a column per input"
        shape = layer_call.kernel_shape or (0,)
        if len(shape) == 2:
            arrangement_text = "a row per entry of the weight's first axis"
        if picture.palette is None:
            arrangement_text = "RGB, grey is 0"
        named = f"`{plain(layer_call.layer)}` ({layer_call.type})"
        parts = [f"kernels of {named}: {arrangement_text}; one scale for the layer"]
        rgb = kernels.is_of_colours
        if most is not None and max(shape[: 1 if rgb or len(shape) == 2 else 2]) > most:
            parts.append(
                f"at most {most} outputs{'' if rgb else ' and inputs'} of {layer_call.group}"
            )
        if len(shape) == 2 and kernels.weight.shape[-1] < shape[1]:
            parts.append(f"the first {kernels.weight.shape[-1]} of {shape[1]} weights of each")
        if kernels.view:
            parts.append(kernels.view)
        tag = self._prefix + tags.image("kernels", layer_call.group, layer_call.layer)
        text = "; ".join(parts)
        tagged = TaggedPictures(tag, "kernels", (picture,), layer_call, text, kernels.layout)
        return tagged, of_kernels(tagged, kernels, most, peak)

    def _input_image(self, image: InputImage) -> TaggedPictures:
        picture, how = draw_input_image(image)
        tag = self._prefix + tags.network_input(image.sample)
        description = f"the network's input; {how}"
        if image.block > 1:
            description += f"; each pixel is the mean of {image.block}×{image.block} values"
        return TaggedPictures(tag, "network_input", (picture,), None, description)

    def _hard_images(self, images: tuple[HardImage, ...]) -> TaggedPictures:
        known, channels = self.normalization, len(images[0].values)
        known = known if known is not None and len(known[0]) == channels else None
        picture = draw_hard_images(images, known, self.class_names)
        samples = ", ".join(str(one.sample) for one in images)
        text = f"images of the batch with the highest loss: samples {samples} of this step"
        tag = self._prefix + tags.HIGHEST_LOSS
        return TaggedPictures(tag, "network_input", (picture,), None, text)

    def _histograms(self, data: StepData) -> Iterator[Histogram]:
        for measured in data.measured:
            if measured.sample is not None:
                tag = tags.of(tags.HISTOGRAM_OF[measured.kind], measured.layer_call.label)
                yield histogram(self._prefix + tag, measured.sample)
        for parameter in data.parameters:
            samples = {tags.WEIGHTS: parameter.weight, tags.GRADIENTS: parameter.gradient}
            for group, sample in samples.items():
                if sample is not None:
                    yield histogram(self._prefix + tags.of(group, parameter.name), sample)

    def _scalars(self, data: StepData, fractions: Mapping[str, float]) -> dict[str, float]:
        norms = {p.name: p.norm for p in data.parameters if p.norm is not None}
        omitted = {p.name for p in data.parameters if not p.is_listed}
        scalars = {
            **_norms(tags.GRADIENT_NORM, norms, omitted),
            **fractions,
            **data.scalars,
            **_norms(tags.GRADIENT_NORM_BEFORE_CLIPPING, data.norms_before_clipping, omitted),
            tags.LOGGED_STEP_MS: data.training_thread_ms,
        }
        return {self._prefix + tag: value for tag, value in scalars.items()}


def _norms(group: str, norms: Mapping[str, float], omitted: Container[str]) -> dict[str, float]:
    """The total and the norms by tag.

    If one is not finite, those of the omitted parameters are listed too: which gradients are finite
    tells the cause.
    """
    if not norms:
        return {}
    total = math.hypot(*norms.values())
    if math.isfinite(total):
        norms = {name: norm for name, norm in norms.items() if name not in omitted}
    listed = {tags.of(group, name): norm for name, norm in norms.items()}
    return {tags.of(group, tags.TOTAL): total, **listed}


def first_nonfinite(data: StepData) -> FirstNonfinite | None:
    """Find the first non-finite values of a logged step; None without any.

    "First" is the order of computation: activations in call order (a layer's input before its
    output), then gradients of activations from the last layer to the first, then gradients of
    parameters in definition order.
    """
    forward = [part for part in data.measured if part.kind in ("feature_maps", "inputs")]
    forward.sort(key=lambda part: (part.layer_call.position, part.kind == "feature_maps"))
    backward = [part for part in data.measured if part.kind == "gradients_of_maps"]
    backward.sort(key=lambda part: -part.layer_call.position)
    for part in (*forward, *backward):
        call, known = part.layer_call, part.statistics
        if known is None:
            continue
        rows = known.nan, known.positive_infinity, known.negative_infinity
        found = Nonfinite(*(int(row.sum()) for row in rows))
        if any(found):
            place, total = cast(Place, part.kind), math.prod(part.shape)
            return FirstNonfinite(
                data.step, place, call.layer, call.type, call.call, found, total, part.is_counted
            )
    for one in data.parameters:
        if any(one.nonfinite):
            return FirstNonfinite(data.step, "gradients", one.name, "", 0, one.nonfinite, 0)
    return None


def histogram(tag: str, sample: Sample) -> Histogram:
    """Count the finite values of a sample in ``BUCKETS`` of equal width, scaled up to the tensor.

    The buckets span the tensor's finite range if it is known (``Sample.lo``), otherwise the
    sample's. With n sampled values, the count of a bucket that holds the fraction p of the tensor
    has a relative standard error of sqrt((1 - p) / (n * p)). If all values are equal, there is one
    bucket of width 1 around them, or wider where float64 cannot represent that.

    Args:
        tag: Tag of the histogram.
        sample: The values.

    Returns:
        Edges f64 [K + 1] and counts f64 [K]; both are empty if there is no finite value.
    """
    values = sample.values
    seen = values.size or 1
    smallest, largest, is_finite = finite_extremes(values)
    finite = values if is_finite else values[np.isfinite(values)]
    if not finite.size:
        return Histogram(tag, np.empty(0), np.empty(0), round(sample.total * values.size / seen))
    lo, hi = float(np.fmin(smallest, sample.lo)), float(np.fmax(largest, sample.hi))  # NaN: unknown
    nonfinite = round((values.size - finite.size) * sample.total / seen)
    buckets = 1 if lo == hi else BUCKETS
    if lo == hi:
        lo = min(lo - 0.5, math.nextafter(lo, -math.inf))
        hi = max(hi + 0.5, math.nextafter(hi, math.inf))
    edges, counts = _count(finite, lo, hi, buckets)
    return Histogram(tag, edges, counts * (sample.total / seen), nonfinite)


def _count(finite: Floats, lo: float, hi: float, buckets: int) -> tuple[Floats, Floats]:
    """Edges f64 [buckets + 1] and the number of values in each bucket, f64 [buckets]."""
    half = 1.0 if math.isfinite(hi - lo) else 0.5  # keeps 1e308 - (-1e308) from overflowing
    start, span = lo * half, hi * half - lo * half
    edges = np.minimum((start + span * np.linspace(0, 1, buckets + 1)) / half, hi)
    edges[-1] = hi
    place = (np.multiply(finite, half, dtype=np.float64) - start) / span * buckets
    counts = np.bincount(place.astype(np.intp), minlength=buckets + 1)
    counts[buckets - 1] += counts[buckets:].sum()  # the largest value itself
    return edges, counts[:buckets].astype(np.float64)


# Steps within ``max_bytes_per_step``: fewer pixels, then fewer channels.

_SIDES = (48, 32, 24, 16, 12, 8, 4)
_CHANNELS = (32, 16, 8, 4, 2, 1)


class Limits(NamedTuple):
    """Size limits of pictures.

    In a run they only get tighter, so that its steps stay comparable.

    Attributes:
        side: Maximum side of a tile in px; None for no limit.
        channels: Maximum number of channels; None for no limit.
        pictures: False if no pictures are written at all.
    """

    side: int | None = None
    channels: int | None = None
    pictures: bool = True

    def applied(self, data: StepData) -> StepData:
        """The step with its pictures reduced to these limits."""
        if self == Limits():
            return data
        return replace(
            data,
            measured=tuple(_smaller(measured, self) for measured in data.measured),
            kernels=tuple(k.cut(self.channels) for k in data.kernels) if self.pictures else (),
            inputs=data.inputs if self.pictures else (),
            facts=data.facts
            if self.pictures or not data.facts
            else replace(data.facts, hardest={}),
            attributions=data.attributions if self.pictures else (),
        )


TIGHTER = (
    *(Limits(side) for side in _SIDES),
    *(Limits(_SIDES[-1], channels) for channels in _CHANNELS),
    Limits(_SIDES[-1], _CHANNELS[-1], pictures=False),
)
"""One after the other."""


def _smaller(measured: LayerMeasurement, limits: Limits) -> LayerMeasurement:
    planes, some = measured.planes, (slice(None), slice(limits.channels))
    if planes is None or not limits.pictures:
        return replace(measured, planes=None)
    pixels, marks = planes.pixels[some], None if planes.marks is None else planes.marks[some]
    most = longest(limits.side, planes.layout)
    block = 1 if most is None else -(-max(pixels.shape[2:]) // most)
    if block > 1:
        pixels, marks = shrink_pixels(pixels, marks, block)
    flat, lo, hi = planes.flat[some], planes.lo[some], planes.hi[some]
    smaller = replace(
        planes, pixels=pixels, marks=marks, flat=flat, lo=lo, hi=hi, block=planes.block * block
    )
    return replace(measured, planes=smaller)
