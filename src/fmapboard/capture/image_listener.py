"""``ImageListener``: reduces each image of a batch on its own, to one step per image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from fmapboard.capture.guard import Stopwatch
from fmapboard.capture.input_images import PendingInputImage, input_images
from fmapboard.capture.isolation import aside
from fmapboard.capture.passes import Side
from fmapboard.capture.step_parts import PendingStep, StepHeader, StepParts
from fmapboard.capture.transfer import Transfer
from fmapboard.capture.weights import PendingKernels
from fmapboard.errors import CaptureError, FmapboardError, interrupt_in
from fmapboard.measure.pending import PendingMeasurement
from fmapboard.measure.per_image import PendingImages, reduce_images
from fmapboard.measure.reducer import Reducer
from fmapboard.model.tensors import first_tensor, is_observable
from fmapboard.records import LayerCall, Normalization

Shapes = Mapping[str, tuple[int, ...]]
"""Label of a layer -> shape of its output for one image, in call order."""


class NotSeparable(FmapboardError):
    """The model does not treat the images of a batch independently."""


class ImageListener:
    """A ``listener.CaptureListener`` that reduces each image of a batch separately.

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
        self._reduce, self._count, self._shapes = reducer, count, shapes
        self._normalization = normalization
        self._inputs: list[PendingInputImage] = []
        self._layers: list[PendingImages | list[PendingMeasurement]] = []
        self._stopwatch = Stopwatch()

    @property
    def labels(self) -> list[str]:
        """Labels of the layers that ran, in call order."""
        layers = self._layers
        layer_calls = [
            (one.layer_call if isinstance(one, PendingImages) else one[0].layer_call)
            for one in layers
        ]
        return [layer_call.label for layer_call in layer_calls]

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy the model's input, which its first operation may overwrite."""
        sequences = self._reduce.has_sequences
        self._inputs = input_images((args, kwargs), None, self._normalization, sequences=sequences)

    def again(self) -> bool:
        """False: only one pass is recorded."""
        return False

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Reduce a layer's output immediately: the next operation may overwrite it."""
        tensor = first_tensor(value)
        if tensor is None or not is_observable(tensor):
            return
        if self._shapes is not None:
            self._check_shape(layer_call, tensor, self._shapes)
        with self._stopwatch, aside(tensor.device.type, tensor.nbytes):
            try:
                self._layers.append(self._reduced(layer_call, tensor, module))
            except Exception as error:
                if interrupt_in(error) is not None:
                    raise
                raise CaptureError(f"{layer_call.layer}: {error}") from error

    def _reduced(
        self, layer_call: LayerCall, tensor: Tensor, module: nn.Module
    ) -> PendingImages | list[PendingMeasurement]:
        if self._count == 1:
            return [self._reduce(layer_call, "feature_maps", tensor, module)]
        batched = reduce_images(self._reduce, layer_call, "feature_maps", tensor, module)
        # A single image stays in the CPU cache between passes over it.
        return batched or [
            self._reduce(layer_call, "feature_maps", tensor[number : number + 1], module)
            for number in range(self._count)
        ]

    def _check_shape(self, layer_call: LayerCall, tensor: Tensor, shapes: Shapes) -> None:
        alone, together = shapes.get(layer_call.label, ()), tuple(tensor.shape)
        if alone[:1] != (1,) or together != (self._count, *alone[1:]):
            raise NotSeparable(
                f"{layer_call.label} returns {list(alone)} for one image and {list(together)} "
                f"for {self._count}"
            )

    def steps(self, first: int, kernels: tuple[PendingKernels, ...] = ()) -> list[PendingStep]:
        """One step per image, numbered from ``first``; waits for the device.

        Args:
            first: Number of the first step.
            kernels: Convolution kernels for the first image's step.
        """
        held = [tensor for layer in self._layers for tensor in _tensors(layer)]
        held += [image.values for image in self._inputs]
        arrived, inputs = Transfer()((self._layers, self._inputs), held)()
        layers = [one.split() if isinstance(one, PendingImages) else one for one in arrived]
        own = zip(*layers, strict=True) if layers else [()] * self._count
        milliseconds = self._stopwatch.ms / self._count
        return [
            _pending(
                StepParts(
                    measured,
                    kernels=() if number else kernels,
                    inputs=tuple(replace(image, sample=0) for image in inputs[number : number + 1]),
                ),
                StepHeader(first + number, lambda: milliseconds),
            )
            for number, measured in enumerate(own)
        ]


def _tensors(layer: PendingImages | list[PendingMeasurement]) -> Iterator[Tensor]:
    for part in [layer] if isinstance(layer, PendingImages) else layer:
        yield from part.tensors()


def _pending(parts: StepParts, header: StepHeader) -> PendingStep:
    nbytes = sum(tensor.nbytes for tensor in parts.tensors())
    return PendingStep(header.step, nbytes, lambda: parts.to_host(header, _unrecordable))


def _unrecordable(about: str, error: Exception) -> None:
    raise CaptureError(f"{about}: {error}") from error
