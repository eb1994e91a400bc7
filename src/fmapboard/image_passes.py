"""Run a model on images and record one logged step per image.

Images are run in batches if the model treats each image of a batch independently. This is tested,
not assumed: the first image of each size is run alone and then again in its batch, and the
statistics of every layer must agree. Models that fail the test (batch statistics in eval mode, a
fixed batch size, outputs that are not ordered by image) are run on one image at a time.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from fmapboard.capture.attention import MOST_IMAGES, ROWS, AttentionRows
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.inputs import PendingInputImage, input_images
from fmapboard.capture.isolation import aside
from fmapboard.capture.kernels import PendingKernels, read_kernels
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import run_side_pass
from fmapboard.capture.transfer import Transfer
from fmapboard.capture.twin import Twin
from fmapboard.errors import CaptureError, FmapboardError, first_line
from fmapboard.extraction.call_trace import run_recorded
from fmapboard.interrupts import interrupt_in
from fmapboard.measure.reducer import PendingMeasurement, Reducer, with_note
from fmapboard.model.layers import Layers
from fmapboard.model.roles import activations
from fmapboard.model.tensors import first_tensor, is_observable, tensors
from fmapboard.records import LayerCall, Normalization, StepData
from fmapboard.session.step import Collected, PendingStep

Shapes = Mapping[str, tuple[int, ...]]
"""Label of a layer -> shape of its output for one image, in call order."""


NOTHING_RAN = (
    "no selected layer ran, or none returned a tensor; select others with layers= (--layers): "
    "fmapboard.layers(model, images) shows which ones run"
)
"""The message of an error."""


class NotSeparable(FmapboardError):
    """The model does not treat the images of a batch independently."""


@contextlib.contextmanager
def _raising(kind: type[FmapboardError], what: str) -> Iterator[None]:
    """Raise any error inside the block, but for interrupts, as one of a kind, which says what."""
    try:
        yield
    except Exception as error:
        if isinstance(error, kind) or interrupt_in(error) is not None:
            raise
        raise kind(f"{what}: {first_line(error)}") from error


class ImageListener(CaptureListener):
    """A ``CaptureListener`` that reduces each image of a batch separately.

    Args:
        reducer: Determines what is drawn, and how.
        count: Number of images in the batch.
        shapes: Expected output shapes for one image; None accepts any.
        normalization: Mean and standard deviation per channel, to de-normalize the drawn input.
    """

    def __init__(
        self,
        reducer: Reducer,
        count: int,
        shapes: Shapes | None,
        normalization: Normalization | None,
    ) -> None:
        self._reduce = reducer
        self._count = count
        self._shapes = shapes
        self._normalization = normalization
        self._inputs: list[PendingInputImage] = []
        self._layers: list[list[PendingMeasurement]] = []
        self._seconds = 0.0

    @property
    def labels(self) -> list[str]:
        """Labels of the layers that ran, in call order."""
        return [images[0].layer_call.label for images in self._layers]

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy the model's input, which its first operation may overwrite."""
        given = (args, kwargs)
        sequences = self._reduce.sequences.are_expected
        self._inputs = input_images(given, None, self._normalization, sequences=sequences)

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Reduce a layer's output immediately: the next operation may overwrite it."""
        note = ""
        if isinstance(value, AttentionRows):
            with aside(value.call.device.type, value.call.nbytes):
                rows = value.read()
            value = rows.values
            note = rows.note
        tensor = first_tensor(value)
        if tensor is None or not is_observable(tensor):
            return
        if self._shapes is not None:
            self._check_shape(layer_call, tensor, self._shapes)
        begun = time.perf_counter()
        with aside(tensor.device.type, tensor.nbytes), _raising(CaptureError, layer_call.layer):
            # One by one: a single image stays in the CPU cache between passes over it.
            images = [tensor]
            if self._count > 1:
                images = [tensor[n : n + 1] for n in range(self._count)]
            reduced = [self._reduce(layer_call, "feature_maps", image, module) for image in images]
            self._layers.append([with_note(measured, note) for measured in reduced])
        self._seconds += time.perf_counter() - begun

    def _check_shape(self, layer_call: LayerCall, tensor: Tensor, shapes: Shapes) -> None:
        alone = shapes.get(layer_call.label, ())
        expected = (self._count, *alone[1:])
        has_batch_axis = alone[:1] == (1,)
        if not has_batch_axis or tensor.shape != expected:
            raise NotSeparable(
                f"{layer_call.label} returns {list(alone)} for one image and {list(tensor.shape)} "
                f"for {self._count}"
            )

    def steps(self, first: int, kernels: tuple[PendingKernels, ...] = ()) -> list[PendingStep]:
        """One step per image, numbered from ``first``; waits for the device.

        Args:
            first: Number of the first step.
            kernels: Convolution kernels for the first image's step.
        """
        transfer = Transfer()
        receive = transfer((self._layers, self._inputs))
        layers, inputs = receive()
        milliseconds = self._seconds * 1e3 / self._count
        steps = list[PendingStep]()
        for number in range(self._count):
            own_inputs = inputs[number : number + 1]
            collected = Collected(
                step=first + number,
                milliseconds=lambda: milliseconds,
                measured=tuple(images[number] for images in layers),
                kernels=() if number else kernels,
                inputs=tuple(image._replace(sample=0) for image in own_inputs),
            )
            nbytes = sum(tensor.nbytes for tensor in tensors(collected))
            to_host = partial(collected.to_host, _unrecordable)
            pending = PendingStep(first + number, nbytes, to_host)
            steps.append(pending)
        return steps


def _unrecordable(about: str, error: Exception) -> None:
    raise CaptureError(f"{about}: {error}") from error


MAX_PASS_BYTES = 256 * 2**20
"""Maximum size in bytes of the outputs recorded in one pass, counted as float32."""

_TOLERANCE = 1e-3


@dataclass(slots=True)
class ImagePasses:
    """Records images, in batches if the model treats the images of a batch independently.

    Attributes:
        model: Any module that takes a float tensor [B, C, H, W], on any device. It runs in eval
            mode and is restored afterwards.
        reducer: Determines what is drawn, and how.
        layers: Which layers; None draws the default layers (see ``model.layers.Layers``), and
            computes statistics of the activations that have an off value.
        normalization: Mean and standard deviation per channel, to de-normalize the drawn input.
        kernels: Step 0 also records the convolution kernels.
        refused: Called once with the reason if the model is run on one image at a time.
        effective: As in ``extract``.
    """

    model: nn.Module
    reducer: Reducer
    layers: Layers = None
    normalization: Normalization | None = None
    kernels: bool = False
    refused: Callable[[str], object] = str
    effective: bool = False
    _separable: bool = True
    _has_output: bool = False
    _shapes: dict[tuple[int, ...], Shapes] = field(default_factory=dict)

    def __call__(self, images: Tensor, first: int = 0) -> Iterator[PendingStep]:
        """Record a step for each image.

        Args:
            images: [B, C, H, W].
            first: Number of the first step.

        Raises:
            CaptureError: An output cannot be recorded, there is not enough memory, or no selected
                layer returns a tensor for the first image.
            ForwardError: The model cannot run on an image.
            LayerNotFound: A pattern in ``layers`` matches no layer.
            NoConvolution: The model has no layer to record by default.
        """
        count = len(images)
        done = 0
        try:
            while self._separable and count - done > 1:
                rest = images[done:]
                for recorded in self._together(rest, first + done):
                    yield recorded
                    done += 1
        except NotSeparable as reason:
            self._separable = False
            self.refused(str(reason))
        for number in range(done, count):
            image = images[number : number + 1]  # [1, C, H, W]
            yield self._alone(image, first + number)

    def _alone(self, image: Tensor, step: int) -> PendingStep:
        registry = self._registry()
        seen = ImageListener(self.reducer, 1, None, self.normalization)
        run = partial(run_side_pass, probe=image)
        with _raising(CaptureError, "the model cannot run on this input"):
            run_recorded(registry, seen, run, attention=True)
        registry.check_taps()
        if not seen.labels and not self._has_output:
            raise CaptureError(NOTHING_RAN)
        self._has_output = True
        kernels: tuple[PendingKernels, ...] = ()
        if self.kernels and step == 0:
            kernels = read_kernels(registry.layers, None)
        (recorded,) = seen.steps(step, kernels)
        return recorded

    def _together(self, images: Tensor, first: int) -> Iterator[PendingStep]:
        """Record as many of the images as fit into one pass."""
        size = tuple(images.shape[1:])
        known = self._shapes.get(size)
        if known is not None:
            count = self._max_images(known)
            yield from self._batch(images[:count], known, first)
            return
        recorded = self._alone(images[:1], first)
        alone = recorded.to_host()
        yield replace(recorded, to_host=lambda: alone)
        shapes = {measured.layer_call.label: measured.shape for measured in alone.measured}
        count = max(2, self._max_images(shapes))
        again, *others = self._batch(images[:count], shapes, first)
        _check_same_statistics(alone, again.to_host())
        self._shapes[size] = shapes
        yield from others

    def _max_images(self, shapes: Shapes) -> int:
        sizes = map(math.prod, shapes.values())
        values = sum(sizes)
        nbytes = max(1, 4 * values)
        most = max(1, MAX_PASS_BYTES // nbytes)
        if any(label.endswith(ROWS) for label in shapes):
            return min(most, MOST_IMAGES)
        return most

    def _batch(self, images: Tensor, shapes: Shapes, first: int) -> list[PendingStep]:
        seen = ImageListener(self.reducer, len(images), shapes, self.normalization)
        registry = self._registry()
        twin = Twin(registry.model)
        with (
            _raising(NotSeparable, f"a pass on {len(images)} images failed"),
            registry.listening(seen, twin=twin, attention=True),
        ):
            run_side_pass(twin, images)
        if seen.labels != list(shapes):
            raise NotSeparable(f"different layers ran on {len(images)} images than on one")
        return seen.steps(first)

    def _registry(self) -> HookRegistry:
        also: dict[str, nn.Module] = {}
        if self.layers is None:
            also = activations(self.model)
        return HookRegistry(self.model, self.layers, also=also, effective=self.effective)


def _check_same_statistics(alone: StepData, together: StepData) -> None:
    """Compare the statistics of an image that was run alone and in a batch, layer by layer.

    Raises:
        NotSeparable: The statistics of a layer differ.
    """
    for own, other in zip(alone.measured, together.measured, strict=True):
        layer_call = own.layer_call
        expected = own.statistics
        actual = other.statistics
        assert expected is not None  # always computed for images
        assert actual is not None
        low = np.fmin.reduce(expected.minimum)
        high = np.fmax.reduce(expected.maximum)
        span = high - low
        margin = _TOLERANCE * span if np.isfinite(span) else 0.0
        names = ["minimum", "maximum"]
        if layer_call.pictures:  # other layers have no moments
            names += ["mean", "std"]
        for name in names:
            here = getattr(expected, name)
            there = getattr(actual, name)
            if not np.allclose(here, there, rtol=0.0, atol=margin, equal_nan=True):
                raise NotSeparable(f"{layer_call.label} differs when an image is run in a batch")
