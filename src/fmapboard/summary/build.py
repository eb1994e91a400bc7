"""Build pictures, histograms, scalars and tab records from the measurements of a step."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fmapboard.formats import tags
from fmapboard.formats.training_facts import FirstNonfinite, pack_nonfinite
from fmapboard.records import (
    Histogram,
    Kernels,
    LayerMeasurement,
    LoggedStep,
    Normalization,
    Scale,
    StepData,
    TabRecord,
    TaggedPictures,
)
from fmapboard.render import png
from fmapboard.render.palettes import palette
from fmapboard.summary.attributions import SIDE, AttributionState, attributions
from fmapboard.summary.change import Drawn, Maps, Weights, changes_of_maps, followed_weights
from fmapboard.summary.drawn_kernels import DrawnKernels, kernel_pictures
from fmapboard.summary.heads import head_scalars
from fmapboard.summary.histograms import histogram
from fmapboard.summary.overview import OverviewState, overview
from fmapboard.summary.pictures import Pictures
from fmapboard.summary.tab_records import tab_records
from fmapboard.summary.tokens import Projections, token_pictures, token_scalars
from fmapboard.summary.training import (
    IdleStep,
    ReadLoss,
    certain_outputs,
    first_nonfinite,
    output_scalars,
    training_facts,
)


def followers(measured: Iterable[LayerMeasurement]) -> dict[str, LayerMeasurement]:
    """Label of a layer -> the activation with an off value that directly follows it in call order.

    The activation must have as many channels as the layer, so that they can be matched by index. An
    activation that is drawn itself is not a follower.
    """
    found: dict[str, LayerMeasurement] = {}
    before = ""
    channels = 0
    for part in measured:
        statistics = part.statistics
        if part.kind != "feature_maps" or statistics is None:
            continue
        call = part.layer_call
        may_follow = statistics.dead is not None and not call.pictures
        if may_follow and statistics.minimum.size == channels:
            found[before] = part
        before = call.label
        channels = 0 if may_follow else statistics.minimum.size
    return found


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
        kernels: See ``drawn_kernels.KernelPictures.last``.
        left_out_kernels: Those of the last step that were not drawn although they have changed.
        tokens: The components by which the tokens of layers are drawn.
        has_nonfinite: The first non-finite value has been reported.
    """

    written: Mapping[str, int] = field(default_factory=dict)
    maps: Maps = field(default_factory=dict)
    weights: Weights = field(default_factory=dict)
    idle: IdleStep | None = None
    read: Mapping[str, ReadLoss] = field(default_factory=dict)
    overview: OverviewState = field(default_factory=OverviewState)
    attributions: AttributionState = field(default_factory=AttributionState)
    kernels: Mapping[str, DrawnKernels] = field(default_factory=dict)
    left_out_kernels: tuple[Kernels, ...] = ()
    tokens: Projections = field(default_factory=dict)
    has_nonfinite: bool = False


@dataclass(kw_only=True)
class SummaryBuilder:
    """Turns the ``StepData`` of each step into a ``LoggedStep``; used by one thread at a time.

    Attributes:
        colormap: Name of a palette.
        scale: How the planes were scaled, for the descriptions.
        name: Name of the model; every tag begins with ``name.``. None for no prefix.
        max_kernels: Maximum number of outputs and inputs of a convolution that are drawn.
        only_changed_kernels: Draw kernels again only once they have changed.
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
    only_changed_kernels: bool = False
    with_pngs: bool = False
    has_probe: bool = False
    class_names: tuple[str, ...] = ()
    normalization: Normalization | None = None
    attribution_side: int = SIDE
    state: SummaryState = field(default_factory=SummaryState, init=False)

    def __post_init__(self) -> None:
        self._prefix = tags.prefix(self.name)
        self._pictures = Pictures(
            palette=palette(self.colormap),
            scale=self.scale,
            prefix=self._prefix,
            max_kernels=self.max_kernels,
            class_names=self.class_names,
            normalization=self.normalization,
        )

    def __call__(self, data: StepData) -> LoggedStep:
        """Build everything that is written about one step, which counts as stored."""
        self.state, step = self.build(data)
        return step

    def build(self, data: StepData) -> tuple[SummaryState, LoggedStep]:
        """Build everything that is written about one step.

        Returns:
            What is to become ``state`` when the step has been stored, and the step.
        """
        layers = self._of_layers(data)
        whole = self._of_the_network(data)
        attributed, heats, gradient_norms, first_heats = attributions(
            self.state.attributions, data, self._prefix, self.attribution_side
        )
        projections, coloured = token_pictures(self.state.tokens, data, self._prefix)
        nonfinite = None if self.state.has_nonfinite else first_nonfinite(data)
        step = LoggedStep(
            data.step,
            data.wall_time,
            pictures=(*layers.pictures, *self._finished([*whole.pictures, *heats, *coloured])),
            histograms=tuple(self._histograms(data)),
            scalars=self._scalars(data, layers.fractions) | whole.scalars | gradient_norms,
            # The overview last, so that it is never ahead.
            records=(
                *layers.records,
                *first_heats,
                *whole.records,
                *self._nonfinite_record(nonfinite),
                *layers.overview_records,
            ),
            statistics=data.measured,
            texts=self._nonfinite_text(nonfinite),
            attributions=data.attributions,
            earlier=whole.earlier,
        )
        state = SummaryState(
            written=layers.written,
            maps=layers.maps,
            weights=whole.weights,
            idle=whole.idle,
            read=whole.read,
            overview=layers.overview,
            attributions=attributed,
            kernels=layers.kernels,
            left_out_kernels=layers.left_out_kernels,
            tokens=projections,
            has_nonfinite=self.state.has_nonfinite or nonfinite is not None,
        )
        return state, step

    def left_out_kernels(self) -> tuple[TaggedPictures, ...]:
        """The kernels of the last step that were not drawn there, because they hardly changed."""
        drawn = [self._pictures.of_kernels(own) for own in self.state.left_out_kernels]
        return tuple(self._finished(layer.tagged for layer in drawn))

    def _of_layers(self, data: StepData) -> _OfLayers:
        """Pictures, records and numbers of the layers."""
        before = self.state
        drawn = [
            self._pictures.of_maps(measured, measured.planes)
            for measured in data.measured
            if measured.planes is not None
        ]
        kernels = kernel_pictures(
            before.kernels,
            data.kernels,
            self._pictures,
            data.step,
            only_changed=self.only_changed_kernels,
        )
        drawn += kernels.drawn
        pictures = self._finished(layer.tagged for layer in drawn)
        by_label = _by_label(pictures)
        slices = {
            layer.tagged.layer_call.label: layer.slices
            for layer in drawn
            if layer.slices and layer.tagged.layer_call is not None
        }
        maps, changes = changes_of_maps(before.maps, before.weights, data, has_probe=self.has_probe)
        step = Drawn(
            data,
            pictures=by_label,
            unchanged_kernels=kernels.unchanged,
            changes=changes,
            followers=followers(data.measured),
            prefix=self._prefix,
            slices=slices,
        )
        headers = {layer.tagged.tag: layer.header for layer in drawn}
        written, records = tab_records(before.written, step, headers)
        numbers, overview_records, fractions = overview(before.overview, step)
        return _OfLayers(
            pictures=pictures,
            maps=maps,
            kernels=kernels.last,
            left_out_kernels=kernels.left_out,
            written=written,
            records=records,
            overview=numbers,
            overview_records=overview_records,
            fractions=fractions,
        )

    def _of_the_network(self, data: StepData) -> _OfTheNetwork:
        """Inputs, losses and what only the training process knows."""
        before = self.state
        recorded = data.facts
        read, outputs = certain_outputs(
            before.read, () if recorded is None else recorded.of_step.outputs, data.step
        )
        pictures = [self._pictures.of_input(image) for image in data.inputs]
        for output in outputs:
            hardest = () if recorded is None else recorded.hardest.get(output.name, ())
            if hardest and output.kind != "not certain":
                pictures.append(self._pictures.of_hard_images(hardest))
        weights = followed_weights(before.weights, data)
        idle, records = training_facts(
            before.idle,
            before=before.weights,
            weights=weights,
            outputs=outputs,
            data=data,
            prefix=self._prefix,
        )
        scalars, earlier = output_scalars(outputs, self._prefix)
        return _OfTheNetwork(
            pictures=pictures,
            read=read,
            weights=weights,
            idle=idle,
            records=records,
            scalars=scalars,
            earlier=earlier,
        )

    def _finished(self, pictures: Iterable[TaggedPictures]) -> list[TaggedPictures]:
        """The pictures, with their PNGs if ``with_pngs`` is set."""
        if not self.with_pngs:
            return list(pictures)
        return [
            replace(tagged, samples=tuple(png.encoded(picture) for picture in tagged.samples))
            for tagged in pictures
        ]

    def _nonfinite_record(self, found: FirstNonfinite | None) -> list[TabRecord]:
        if found is None:
            return []
        return [TabRecord(self._prefix + tags.FIRST_NONFINITE_RECORD, pack_nonfinite(found))]

    def _nonfinite_text(self, found: FirstNonfinite | None) -> dict[str, str]:
        if found is None:
            return {}
        return {self._prefix + tags.FIRST_NONFINITE: f"step {found.step}: {found.text}"}

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
            **head_scalars(data.measured),
            **token_scalars(data.measured),
            **data.scalars,
            **_norms(tags.GRADIENT_NORM_BEFORE_CLIPPING, data.norms_before_clipping, omitted),
            tags.LOGGED_STEP_MS: data.training_thread_ms,
        }
        return {self._prefix + tag: value for tag, value in scalars.items()}


class _OfLayers(NamedTuple):
    """What is written about the layers of a step, and what is known of them afterwards.

    Attributes:
        pictures: Of maps and kernels.
        maps: See ``SummaryState``, as ``kernels``, ``left_out_kernels``, ``written`` and
            ``overview``.
        records: Of the tab, a record per drawn layer call.
        overview_records: Of the run's overview.
        fractions: Tag without prefix -> share of channels.
    """

    pictures: Sequence[TaggedPictures]
    maps: Maps
    kernels: Mapping[str, DrawnKernels]
    left_out_kernels: tuple[Kernels, ...]
    written: Mapping[str, int]
    records: Sequence[TabRecord]
    overview: OverviewState
    overview_records: Sequence[TabRecord]
    fractions: Mapping[str, float]


class _OfTheNetwork(NamedTuple):
    """What is written about the network as a whole, and what is known of it afterwards.

    Attributes:
        pictures: Its inputs, and images with a high loss.
        read: See ``SummaryState``, as ``weights`` and ``idle``.
        records: The training facts.
        scalars: Of the losses.
        earlier: Step -> scalars of that step which are certain only now.
    """

    pictures: Sequence[TaggedPictures]
    read: Mapping[str, ReadLoss]
    weights: Weights
    idle: IdleStep | None
    records: Sequence[TabRecord]
    scalars: dict[str, float]
    earlier: Mapping[int, Mapping[str, float]]


def _by_label(pictures: Iterable[TaggedPictures]) -> dict[str, list[TaggedPictures]]:
    """Label of a layer call -> its pictures."""
    by_label: defaultdict[str, list[TaggedPictures]] = defaultdict(list)
    for tagged in pictures:
        assert tagged.layer_call is not None  # none of them is a network input
        by_label[tagged.layer_call.label].append(tagged)
    return by_label


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
