"""Draw the feature maps of both models and their difference, as PNG files and for TensorBoard."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor, nn

from fmapboard.capture.inputs import input_images
from fmapboard.capture.isolation import aside
from fmapboard.errors import NoConvolution
from fmapboard.measure.layout import Sequences
from fmapboard.measure.reducer import Reducer
from fmapboard.model.layers import Layers, named_layers, select
from fmapboard.model.tensors import first_tensor, is_observable
from fmapboard.model_comparison.comparison import Comparison
from fmapboard.model_comparison.layer_calls import Arguments, on_device_of, registry_of, run
from fmapboard.model_comparison.pairs import Pair, in_both
from fmapboard.model_comparison.recording import Recorder
from fmapboard.model_comparison.result import ModelDifference
from fmapboard.records import LayerCall, LayerMeasurement, Normalization, Scale, StepData
from fmapboard.render.quantize import Quantizer
from fmapboard.summary.build import SummaryBuilder
from fmapboard.writers import Writer
from fmapboard.writers.folder import FolderWriter
from fmapboard.writers.tensorboard import TensorBoardWriter

Side = Literal["a", "b", "difference"]

SIDES: tuple[Side, ...] = ("a", "b", "difference")
"""Names of the folders and of the runs."""

_ZERO = np.uint8(128)
"""The pixel of 0 on a scale from -m to m."""


def draw_maps_of(
    comparison: Comparison,
    found: ModelDifference,
    batches: Collection[Arguments],
    *,
    layers: Layers,
    out: str | Path | None,
    log_dir: str | Path | None,
    normalization: Normalization | None = None,
) -> None:
    """Draw the maps of the first image of each batch: both models', and the second's minus these.

    The difference is drawn in the zero-centered palette, with one scale per layer.

    Args:
        comparison: The models, and their paired layer calls.
        found: Their first difference is drawn in any case.
        batches: What the models are called with; one step each.
        layers: Layers to draw, as in ``diff``.
        out: Folder of PNG files; one folder below it for each of ``SIDES``, and in these one for
            each batch if there are several. None writes none.
        log_dir: Log directory; one run below it for each of ``SIDES``. None writes none.
        normalization: Mean and standard deviation per channel of the input images.

    Raises:
        LayerNotFound: A pattern in ``layers`` matches no layer.
        WriteError: A folder cannot be created, or a picture cannot be written.
    """
    first, second = comparison.models
    named, drawn = named_layers(first), _drawn_layers(first, found, comparison.pairs, layers)
    pairs = [(one, other) for one, other in in_both(comparison.pairs) if one.layer in drawn]
    each = {side: _Output(first, side, out, log_dir, len(batches) > 1) for side in SIDES}
    try:
        for step, arguments in enumerate(batches):
            own = _outputs(first, [one for one, _ in pairs], arguments)
            others = _outputs(second, [other for _, other in pairs], arguments)
            for position, (one, other) in enumerate(pairs):
                call, module = replace(one, position=position), named[one.layer]
                for side, tensor in _together(own.get(one.label), others.get(other.label)).items():
                    each[side].add(call, tensor, module)
            given = on_device_of(first, arguments)
            for output in each.values():
                output.write(step, given, normalization)
    finally:
        for output in each.values():
            output.close()


def _drawn_layers(
    model: nn.Module, found: ModelDifference, pairs: Sequence[Pair], layers: Layers
) -> list[str]:
    """Names of the first model's layers to draw: the selected ones and the first difference.

    Of a difference between two layers, both are drawn.
    """
    try:
        names = list(select(model, layers))
    except NoConvolution:
        if layers is not None:
            raise
        names = []
    of_label = {pair.first.label: pair.first.layer for pair in pairs if pair.first}
    labels = [row.name for row in found.layers]
    if found.first is not None:
        place = labels.index(found.first)
        near = [place] if found.layers[place].type else [place - 1, place + 1]
        names += [
            of_label[labels[n]] for n in near if 0 <= n < len(labels) and labels[n] in of_label
        ]
    return list(dict.fromkeys(names))


def _outputs(
    model: nn.Module, calls: Sequence[LayerCall], arguments: Arguments
) -> dict[str, list[Tensor]]:
    if not calls:
        return {}
    recorder = Recorder([call.label for call in calls])
    registry = registry_of(model, [call.layer for call in calls])
    run(registry, recorder, on_device_of(model, arguments), "the model")
    return {label: call.outputs for label, call in recorder.calls.items()}


class _Output:
    """Draws and writes the maps of one model, or the difference."""

    def __init__(
        self,
        model: nn.Module,
        side: Side,
        out: str | Path | None,
        log_dir: str | Path | None,
        each_in_folder: bool,
    ) -> None:
        colormap = "signed" if side == "difference" else "grey"
        scale: Scale = "layer" if side == "difference" else "channel"
        self._is_difference = side == "difference"
        quantize = Quantizer(None, scale, self._is_difference)
        sequences = Sequences.of(model)
        self._reduce = Reducer(max_channels=None, sequences=sequences, quantize=quantize)
        self._summarize = SummaryBuilder(colormap=colormap, scale=scale)
        self._measured: list[LayerMeasurement] = []
        self._writers: list[Writer] = []
        if out is not None:
            self._writers.append(FolderWriter(Path(out) / side, each_in_folder))
        if log_dir is not None:
            self._writers.append(TensorBoardWriter(Path(log_dir) / side))

    def add(self, call: LayerCall, tensor: Tensor, module: nn.Module) -> None:
        with aside(tensor.device.type):
            measured = self._reduce(call, "feature_maps", tensor, module).to_host()
        self._measured.append(_as_difference(measured) if self._is_difference else measured)

    def write(self, step: int, arguments: Arguments, normalization: Normalization | None) -> None:
        sequences = self._reduce.sequences.are_expected
        images = input_images(arguments, 1, normalization, sequences=sequences)
        shown = tuple(image.to_host() for image in images)
        measured, self._measured = tuple(self._measured), []
        summary = self._summarize(StepData(step, time.time(), measured=measured, inputs=shown))
        for writer in self._writers:
            writer.write(summary)

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


def _as_difference(measured: LayerMeasurement) -> LayerMeasurement:
    """Draw constant channels in their colour: a difference that is 0 everywhere is no fault."""
    planes, statistics = measured.planes, measured.statistics
    if planes is not None:
        equal = planes.lo == planes.hi  # the whole layer: no value gives a scale
        planes = replace(
            planes,
            pixels=np.where(equal[..., None, None], _ZERO, planes.pixels),
            lo=np.where(equal, -1.0, planes.lo),
            hi=np.where(equal, 1.0, planes.hi),
            flat=np.zeros_like(planes.flat),
        )
    if statistics is not None:
        none = np.zeros_like(statistics.constant)
        statistics = replace(statistics, constant=none, dead=None)
    return replace(measured, planes=planes, statistics=statistics)


def _together(first: Any, second: Any) -> dict[Side, Tensor]:
    """Both models' first tensor and their difference, as far as they can be drawn."""
    one, other = first_tensor(first), first_tensor(second)
    found: dict[Side, Tensor] = {}
    if one is not None and is_observable(one):
        found["a"] = one
    if other is not None and is_observable(other):
        found["b"] = other
    if len(found) == 2 and one is not None and other is not None and one.shape == other.shape:
        found["difference"] = (other.cpu().double() - one.cpu().double()).float()
    return found
