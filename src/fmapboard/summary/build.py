"""Build pictures, histograms, scalars and tab records from the measurements of a step."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from fmapboard.formats import tags
from fmapboard.records import (
    Histogram,
    InputImage,
    Kernels,
    LayerMeasurement,
    LoggedStep,
    Scale,
    StepData,
    TaggedPictures,
)
from fmapboard.render import png
from fmapboard.render.grid import arrangement, draw_input_image, draw_kernels, draw_maps
from fmapboard.render.palettes import LEGEND, Palette, palette
from fmapboard.render.quantize import used_scale
from fmapboard.summary.attributions import SIDE, AttributionSummary
from fmapboard.summary.change import ChannelChanges
from fmapboard.summary.facts import FindingsBuilder, first_nonfinite, plain
from fmapboard.summary.histogram import histogram
from fmapboard.summary.overview import RunOverview
from fmapboard.summary.tab_records import TabRecords, kernel_facts


def followers(measured: Iterable[LayerMeasurement]) -> dict[str, LayerMeasurement]:
    """Label of a layer -> the activation with an off value that directly follows it in call order.

    The activation must have as many channels as the layer, so that they can be matched by index. An
    activation that is drawn itself is not a follower.
    """
    found: dict[str, LayerMeasurement] = {}
    before: LayerMeasurement | None = None
    for part in measured:
        if part.kind != "feature_maps" or part.statistics is None:
            continue
        is_activation, is_drawn = part.statistics.dead is not None, part.layer_call.pictures
        if is_activation and not is_drawn and _channels(before) == _channels(part):
            assert before is not None  # else it has no channels
            found[before.layer_call.label] = part
        before = part if is_drawn or not is_activation else None
    return found


def _channels(part: LayerMeasurement | None) -> int | None:
    return None if part is None or part.statistics is None else part.statistics.minimum.size


_SCALE_TEXT: dict[Scale, str] = {
    "channel": "each channel scaled between its own extremes",
    "layer": "one scale for all channels of the layer",
    "locked": "scale locked to the first logged step",
}


class SummaryBuilder:
    """Turns the ``StepData`` of each step into a ``LoggedStep``; used by one thread at a time.

    Args:
        colormap: Name of a palette.
        scale: How the planes were scaled, for the descriptions.
        name: Name of the model; every tag begins with ``name.``. None for no prefix.
        max_kernels: Maximum number of outputs and inputs of a convolution that are drawn.
        compact: Encode PNGs for size rather than speed.
        with_pngs: Encode the pictures here, for a caller that needs their size before writing.
        has_probe: The drawn maps are those of a probe: the same images at each step.
        attribution_side: Length in px of the longer side of a picture of attribution.
    """

    def __init__(
        self,
        *,
        colormap: str = "grey",
        scale: Scale = "channel",
        name: str | None = None,
        max_kernels: int | None = 64,
        compact: bool = False,
        with_pngs: bool = False,
        has_probe: bool = False,
        attribution_side: int = SIDE,
    ) -> None:
        self._palette: Palette = palette(colormap)
        self._scale = scale
        self._prefix = tags.prefix(name)
        self._max_kernels, self._compact, self._with_pngs = max_kernels, compact, with_pngs
        self._records = TabRecords(self._prefix, self._palette.name, scale)
        self._changes = ChannelChanges(has_probe=has_probe)
        self._overview = RunOverview(self._prefix)
        self._findings = FindingsBuilder(self._prefix)
        self._attributions = AttributionSummary(self._prefix, attribution_side)
        self._nonfinite_reported = self._reported_now = False

    def __call__(self, data: StepData) -> LoggedStep:
        """Build everything that is written about one step."""
        self._reported_now = False
        pictures = [self._maps(m) for m in data.measured if m.planes is not None]
        kernels = [self._kernels(k) for k in data.kernels]
        facts = {
            k.layer_call.label: kernel_facts(k, self._max_kernels, peak)
            for k, (_, peak) in zip(data.kernels, kernels, strict=True)
        }
        drawn = list(map(self._finished, [*pictures, *(tagged for tagged, _ in kernels)]))
        inputs = map(self._input_image, data.inputs)
        changes, after = self._changes(data), followers(data.measured)
        records = self._records(data, drawn, facts, changes, after)
        attributions, norms, firsts = self._attributions(data.step, data.attributions)
        overview, fractions = self._overview(data, drawn, changes, after)
        return LoggedStep(
            data.step,
            data.wall_time,
            pictures=(*drawn, *map(self._finished, [*inputs, *attributions])),
            histograms=tuple(self._histograms(data)),
            scalars=self._scalars(data, fractions) | norms,
            # The overview last, so that it is never ahead.
            records=(*records, *firsts, *self._findings(data), *overview),
            statistics=data.measured,
            texts=self._texts(data),
            attributions=data.attributions,
            graph=data.graph,
        )

    def undo(self) -> None:
        """Discard the last step, which could not be stored."""
        self._records.undo()
        self._changes.undo()
        self._overview.undo()
        self._findings.undo()
        self._attributions.undo()
        self._nonfinite_reported &= not self._reported_now

    def _finished(self, tagged: TaggedPictures) -> TaggedPictures:
        """Apply the options ``compact`` and ``with_pngs`` to pictures."""
        samples = tagged.samples
        if self._compact:
            samples = tuple(replace(picture, compact=True) for picture in samples)
        if self._with_pngs:
            samples = tuple(png.encoded(picture) for picture in samples)
        return tagged if samples is tagged.samples else replace(tagged, samples=samples)

    def _texts(self, data: StepData) -> dict[str, str]:
        """Text that is written once: where the first non-finite value was found."""
        text = None if self._nonfinite_reported else first_nonfinite(data)
        if text is None:
            return {}
        self._nonfinite_reported = self._reported_now = True
        return {self._prefix + tags.FIRST_NONFINITE: text}

    def _maps(self, measured: LayerMeasurement) -> TaggedPictures:
        planes, layer_call = measured.planes, measured.layer_call
        assert planes is not None  # checked by the caller
        dead = None if measured.statistics is None else measured.statistics.dead
        samples = tuple(
            draw_maps(planes, sample, self._palette, dead) for sample in range(len(planes.pixels))
        )
        tag = self._prefix + tags.image(measured.kind, layer_call.group, layer_call.label)
        description = self._describe(measured)
        return TaggedPictures(tag, measured.kind, samples, layer_call, description, planes.layout)

    def _describe(self, measured: LayerMeasurement) -> str:
        planes, layer_call = measured.planes, measured.layer_call
        assert planes is not None
        drawn, (height, width) = planes.pixels.shape[1], planes.pixels.shape[2:]
        rows, per_row = planes.layout == "rows", arrangement(planes)[0]
        parts = [
            f"{measured.kind.replace('_', ' ')} of `{plain(layer_call.label)}` "
            f"({layer_call.type}), shape {list(planes.shape)}, channels 0…{drawn - 1}"
            + ("" if rows else f", {per_row} per row"),
            _SCALE_TEXT[used_scale(planes, self._scale)],
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

    def _kernels(self, kernels: Kernels) -> tuple[TaggedPictures, float]:
        picture, peak = draw_kernels(kernels, self._max_kernels)
        layer_call, most = kernels.layer_call, self._max_kernels
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
        if kernels.view:
            parts.append(kernels.view)
        tag = self._prefix + tags.image("kernels", layer_call.group, layer_call.layer)
        text = "; ".join(parts)
        return TaggedPictures(tag, "kernels", (picture,), layer_call, text, kernels.layout), peak

    def _input_image(self, image: InputImage) -> TaggedPictures:
        picture, how = draw_input_image(image)
        tag = self._prefix + tags.network_input(image.sample)
        description = f"the network's input; {how}"
        if image.block > 1:
            description += f"; each pixel is the mean of {image.block}×{image.block} values"
        return TaggedPictures(tag, "network_input", (picture,), None, description)

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
    listed = {n: v for n, v in norms.items() if n not in omitted or not math.isfinite(total)}
    return {
        tags.of(group, tags.TOTAL): total,
        **{tags.of(group, name): norm for name, norm in listed.items()},
    }
