"""Run a model on images and record one logged step per image.

Images are run in batches if the model treats each image of a batch independently. This is tested,
not assumed: the first image of each size is run alone and then again in its batch, and the
statistics of every layer must agree. Models that fail the test (batch statistics in eval mode, a
fixed batch size, outputs that are not ordered by image) are run on one image at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from torch import Tensor, nn

from fmapboard.capture.failed_pass import explained
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.image_listener import ImageListener, NotSeparable, Shapes
from fmapboard.capture.side_pass import run_side_pass
from fmapboard.capture.step_parts import PendingStep
from fmapboard.capture.weights import read_kernels
from fmapboard.errors import CaptureError, first_line, interrupt_in
from fmapboard.measure.reducer import Reducer
from fmapboard.model.activations import activations
from fmapboard.model.layers import Layers
from fmapboard.records import Normalization, StepData

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
        done = 0
        try:
            while self._separable and len(images) - done > 1:
                for recorded in self._together(images[done:], first + done):
                    yield recorded
                    done += 1
        except NotSeparable as reason:
            self._separable = False
            self.refused(str(reason))
        for number in range(done, len(images)):
            yield self._alone(images[number : number + 1], first + number)

    def one(self, image: Tensor, step: int = 0) -> StepData:
        """Record the step of one image [1, C, H, W] and finalize it; raises like ``__call__``."""
        return self._alone(image, step).to_host()

    def _alone(self, image: Tensor, step: int) -> PendingStep:
        registry = self._registry()
        seen = ImageListener(self.reducer, 1, None, self.normalization)
        again = partial(run_side_pass, registry.model, image)
        try:
            with explained(registry.model, again):
                _run(registry, image, seen)
        except CaptureError:
            raise
        except Exception as error:
            if interrupt_in(error) is not None:
                raise
            raise CaptureError(
                f"the model cannot run on this input: {first_line(error)}"
            ) from error
        registry.check_taps()
        if not seen.labels and not self._has_output:
            raise CaptureError("no selected layer ran, or none returned a tensor")
        self._has_output = True
        kernels = read_kernels(registry.layers, None) if self.kernels and step == 0 else ()
        (recorded,) = seen.steps(step, kernels)
        return recorded

    def _together(self, images: Tensor, first: int) -> Iterator[PendingStep]:
        """Record as many of the images as fit into one pass."""
        size = tuple(images.shape[1:])
        known = self._shapes.get(size)
        if known is not None:
            yield from self._batch(images[: self._max_images(known)], known, first)
            return
        recorded = self._alone(images[:1], first)
        alone = recorded.to_host()
        yield replace(recorded, to_host=lambda: alone)
        shapes = {measured.layer_call.label: measured.shape for measured in alone.measured}
        again, *others = self._batch(images[: max(2, self._max_images(shapes))], shapes, first)
        _check_same_statistics(alone, again.to_host())
        self._shapes[size] = shapes
        yield from others

    def _max_images(self, shapes: Shapes) -> int:
        values = sum(int(np.prod(shape)) for shape in shapes.values())
        return max(1, MAX_PASS_BYTES // max(1, 4 * values))

    def _batch(self, images: Tensor, shapes: Shapes, first: int) -> list[PendingStep]:
        seen = ImageListener(self.reducer, len(images), shapes, self.normalization)
        try:
            _run(self._registry(), images, seen)
        except NotSeparable:
            raise
        except Exception as error:
            if interrupt_in(error) is not None:
                raise
            reason = f"a pass on {len(images)} images failed: {first_line(error)}"
            raise NotSeparable(reason) from error
        if seen.labels != list(shapes):
            raise NotSeparable(f"different layers ran on {len(images)} images than on one")
        return seen.steps(first)

    def _registry(self) -> HookRegistry:
        also = activations(self.model) if self.layers is None else {}
        return HookRegistry(self.model, self.layers, also=also, effective=self.effective)


def _run(registry: HookRegistry, images: Tensor, seen: ImageListener) -> None:
    with registry.listening(seen):
        # A copy: the model may modify its input in place, and the images may be run again.
        run_side_pass(registry.model, images.clone())


def _check_same_statistics(alone: StepData, together: StepData) -> None:
    """Compare the statistics of an image that was run alone and in a batch, layer by layer.

    Raises:
        NotSeparable: The statistics of a layer differ.
    """
    for one, other in zip(alone.measured, together.measured, strict=True):
        first, second = one.statistics, other.statistics
        assert first is not None  # always computed for images
        assert second is not None
        span = np.fmax.reduce(first.maximum) - np.fmin.reduce(first.minimum)
        margin = _TOLERANCE * (span if np.isfinite(span) else 0.0)
        moments = ("mean", "std") if one.layer_call.pictures else ()  # other layers have none
        for name in ("minimum", "maximum", *moments):
            here, there = getattr(first, name), getattr(second, name)
            if not np.allclose(here, there, rtol=0.0, atol=margin, equal_nan=True):
                raise NotSeparable(
                    f"{one.layer_call.label} differs when an image is run in a batch"
                )
