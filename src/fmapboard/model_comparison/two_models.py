"""``diff``: run two models in lockstep, find the first layer in which they differ; draw both."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor, nn

from fmapboard.capture.inputs import PendingInputImage, input_images
from fmapboard.capture.isolation import aside
from fmapboard.errors import ConfigurationError, NoConvolution
from fmapboard.extraction.call_trace import check_input
from fmapboard.formats import tags
from fmapboard.formats.model_difference import pack_difference
from fmapboard.formats.overview import StepSource
from fmapboard.measure.layout import Sequences
from fmapboard.measure.reducer import Reducer
from fmapboard.model.layers import Layers, named_layers, select
from fmapboard.model.tensors import first_tensor, is_observable
from fmapboard.model_comparison.comparison import compared
from fmapboard.model_comparison.differences import ModelDifference
from fmapboard.model_comparison.layer_calls import Arguments, on_device_of, record
from fmapboard.model_comparison.pairs import Pair, in_both
from fmapboard.model_comparison.rows import difference_of
from fmapboard.records import LayerCall, LayerMeasurement, Normalization, StepData, TabRecord
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


def diff(
    model_a: nn.Module,
    model_b: nn.Module,
    images: Any,
    *,
    tolerance: float | None = None,
    forward_kwargs: Mapping[str, Any] | None = None,
    layers: Layers = None,
    out: str | Path | None = None,
    log_dir: str | Path | None = None,
) -> ModelDifference:
    """Find the first layer in which two models differ.

    Both models run on the same input in their current modes (train or eval), without gradients, and
    with the same random numbers. Then the second one runs in lockstep with the first: each layer
    receives what its partner in the first model received, and the code between layers continues
    with what the partner returned. The error that a layer *adds* is therefore its own. What
    functional code adds (an addition, a pooling function) is placed between two layers.

    A layer is a module that calls no other module. Layers are paired by name, then by order. Modes,
    buffers and random states are restored, and all hooks are removed, even after an error.

    If one model computes in a coarser dtype, the error that a layer adds is measured with a copy of
    the other model in the same dtype, so that it does not contain the rounding that both share.

    Args:
        model_a: The reference, any module. A compiled model runs eagerly.
        model_b: The model to compare with it.
        images: Input of both models: a tuple is their positional arguments, anything else the only
            argument. Tensors are copied to the device of each model, and floating-point ones to
            the dtype of its first parameter.
        tolerance: Relative error above which a layer is different. None: 1e-5 in float32, 1e-12
            in float64, 5e-4 in float16, 4e-3 in bfloat16, by the coarser of the dtypes in which
            most layers of each model return their outputs.
        forward_kwargs: Keyword arguments of both models.
        layers: Layers to draw; always with the first difference. As in ``watch``, if ``out`` or
            ``log_dir`` is given: None draws every convolution.
        out: Folder of PNG files: the first image's maps in both models in ``a`` and ``b``, and the
            second model's minus the first's in ``difference``.
        log_dir: Directory of the runs ``a``, ``b`` and ``difference`` for TensorBoard.

    Returns:
        ``first``, the name of the first difference, or None; ``layers``, with the errors of each.

    Raises:
        ConfigurationError: An argument is invalid, a model cannot run on the input, or no layer of
            one can be paired with the other's.
        LayerNotFound: A pattern in ``layers`` matches no layer.
        WriteError: A picture cannot be written.

    Example:
        >>> import copy
        >>> from torch import nn
        >>> from fmapboard import diff
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))
        >>> other = copy.deepcopy(net)
        >>> other[2].weight.data[0] *= 1.01
        >>> diff(net, other, torch.rand(1, 3, 8, 8)).first
        '2'
        >>> diff(net, net, torch.rand(1, 3, 8, 8)).first is None
        True
    """
    batch = images if isinstance(images, tuple) else (images,)
    for argument in batch:
        check_input(argument, what="images")
    keywords = dict(forward_kwargs or {})
    batches = [(batch, keywords)]
    return difference(
        model_a, model_b, batches, tolerance=tolerance, layers=layers, out=out, log_dir=log_dir
    )


def difference(
    model_a: nn.Module,
    model_b: nn.Module,
    batches: Collection[Arguments],
    *,
    tolerance: float | None,
    layers: Layers,
    out: str | Path | None,
    log_dir: str | Path | None,
    normalization: Normalization | None = None,
    name_of: Callable[[int], str] = "batch {}".format,
) -> ModelDifference:
    """As ``diff``, on several batches, of which the first images are drawn, one step each.

    Both models' maps are drawn, and the second's minus these: in the zero-centered palette, with
    one scale per layer.

    Args:
        model_a: As for ``diff``, as are all arguments that are not named here.
        model_b: Likewise.
        batches: What the models are called with; iterated again to draw.
        tolerance: Likewise.
        layers: Likewise; the first difference is drawn in any case.
        out: Likewise, with one folder for each of ``SIDES``, and in these one for each batch if
            there are several.
        log_dir: Likewise, with one run for each of ``SIDES``.
        normalization: Mean and standard deviation per channel of the images.
        name_of: Number of a batch that was read -> name of its first image.
    """
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise ConfigurationError(f"tolerance={tolerance!r}: expected a number of at least 0")
    comparison = compared(model_a, model_b, batches)
    found = difference_of(comparison, tolerance)
    if out is None and log_dir is None:
        return found
    model_a, model_b = comparison.models
    names = _drawn_layers(model_a, found, comparison.pairs, layers)
    pairs = [pair for pair in in_both(comparison.pairs) if pair[0].layer in names]
    sequences = Sequences.of(model_a)
    with contextlib.ExitStack() as stack:
        sides = {}
        for side in SIDES:
            writers: list[Writer] = []
            if out is not None:
                writers.append(FolderWriter(Path(out) / side, len(batches) > 1))
            if log_dir is not None:
                board = TensorBoardWriter(Path(log_dir) / side)
                writers.append(stack.enter_context(contextlib.closing(board)))
            sides[side] = _Side(side, sequences, writers)
        table = TabRecord(tags.MODEL_DIFFERENCE, pack_difference(found.table))
        sides["difference"].records = (table,)
        for step, arguments in enumerate(batches):
            _add_maps(sides, model_a, model_b, pairs, arguments)
            given = on_device_of(model_a, arguments)
            images = input_images(given, 1, normalization, sequences=sequences.are_expected)
            source = StepSource("image", name_of(step))
            for drawn in sides.values():
                drawn.write(step, images, source)
    return found


def _add_maps(
    sides: Mapping[Side, _Side],
    model_a: nn.Module,
    model_b: nn.Module,
    pairs: Sequence[tuple[LayerCall, LayerCall]],
    arguments: Arguments,
) -> None:
    """Run both models on a batch and add the maps of the paired calls."""
    calls_a = [first for first, _ in pairs]
    calls_b = [second for _, second in pairs]
    outputs_a = _outputs(model_a, calls_a, arguments)
    outputs_b = _outputs(model_b, calls_b, arguments)
    modules = named_layers(model_a)
    for position, (first, second) in enumerate(pairs):
        call = replace(first, position=position)
        output_a = outputs_a.get(first.label)
        output_b = outputs_b.get(second.label)
        maps = _together(output_a, output_b)
        module = modules[first.layer]
        for side, tensor in maps.items():
            sides[side].add(call, tensor, module)


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
    if found.first is None:
        return names
    labels = [row.name for row in found.layers]
    place = labels.index(found.first)
    near = labels[place : place + 1]
    is_between = not found.layers[place].type
    if is_between:
        start = max(place - 1, 0)
        near = labels[start : place + 2]  # the place itself is no label
    for call, _ in pairs:
        if call is None or call.label not in near:
            continue
        if call.layer not in names:
            names.append(call.layer)
    return names


def _outputs(
    model: nn.Module, calls: Sequence[LayerCall], arguments: Arguments
) -> dict[str, list[Tensor]]:
    """Label of a call -> the tensors that it returned, copies."""
    if not calls:
        return {}
    layers = {call.label: call.layer for call in calls}
    found, _ = record(model, layers, arguments, "the model")
    return {label: call.tensors["output"] for label, call in found.items()}


class _Side:
    """Draws and writes the maps of one model, or the difference.

    Args:
        side: Which of them.
        sequences: How tensors with three axes are read.
        writers: Receive the pictures.

    Attributes:
        records: Further records, written with the first step.
    """

    def __init__(self, side: Side, sequences: Sequences, writers: Sequence[Writer]) -> None:
        self._is_difference = side == "difference"
        self._writers = writers
        if self._is_difference:
            colormap = "signed"
            quantize = Quantizer(None, "layer", zero_centered=True)
        else:
            colormap = "grey"
            quantize = Quantizer(None, "channel")
        self._reduce = Reducer(max_channels=None, sequences=sequences, quantize=quantize)
        self._summarize = SummaryBuilder(colormap=colormap, scale=quantize.scale)
        self._measured: list[LayerMeasurement] = []
        self.records: tuple[TabRecord, ...] = ()

    def add(self, call: LayerCall, tensor: Tensor, module: nn.Module) -> None:
        with aside(tensor.device.type):
            measured = self._reduce(call, "feature_maps", tensor, module).to_host()
        if self._is_difference:
            measured = _as_difference(measured)
        self._measured.append(measured)

    def write(self, step: int, images: Sequence[PendingInputImage], source: StepSource) -> None:
        inputs = tuple(image.to_host() for image in images)
        measured = tuple(self._measured)
        self._measured.clear()
        now = time.time()
        data = StepData(step, now, measured=measured, inputs=inputs, source=source)
        summary = self._summarize(data)
        summary = replace(summary, records=(*summary.records, *self.records))
        self.records = ()
        for writer in self._writers:
            writer.write(summary)


def _as_difference(measured: LayerMeasurement) -> LayerMeasurement:
    """Draw constant channels in their colour: a difference that is 0 everywhere is no fault."""
    planes = measured.planes
    if planes is not None:
        equal = planes.lo == planes.hi  # the whole layer: no value gives a scale
        per_pixel = equal[..., None, None]
        pixels = np.where(per_pixel, _ZERO, planes.pixels)
        low = np.where(equal, -1.0, planes.lo)
        high = np.where(equal, 1.0, planes.hi)
        flat = np.zeros_like(planes.flat)
        planes = replace(planes, pixels=pixels, lo=low, hi=high, flat=flat)
    statistics = measured.statistics
    if statistics is not None:
        none = np.zeros_like(statistics.constant)
        statistics = replace(statistics, constant=none, dead=None)
    return replace(measured, planes=planes, statistics=statistics)


def _together(first: Any, second: Any) -> dict[Side, Tensor]:
    """Both models' first tensor and their difference, as far as they can be drawn."""
    found: dict[Side, Tensor] = {}
    tensor_a = first_tensor(first)
    tensor_b = first_tensor(second)
    if tensor_a is not None and is_observable(tensor_a):
        found["a"] = tensor_a
    if tensor_b is not None and is_observable(tensor_b):
        found["b"] = tensor_b
    if len(found) < 2:
        return found
    wide_a = found["a"].cpu().double()
    wide_b = found["b"].cpu().double()
    if wide_a.shape == wide_b.shape:
        difference = wide_b - wide_a
        found["difference"] = difference.float()
    return found
