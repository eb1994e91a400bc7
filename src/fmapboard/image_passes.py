"""Forward passes on batches of images, each image recorded as if it had gone through alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor, nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.side_pass import run_probe
from fmapboard.measure.reducer import Reducer
from fmapboard.model.activations import activations
from fmapboard.model.layers import Layers
from fmapboard.records import StepData
from fmapboard.separate import Images, NotSeparable, Recorded, Shapes
from fmapboard.snapshot import snapshot

MAX_PASS_BYTES = 256 * 2**20
"""A batch is cut so that what is kept of one pass, full-size maps in float32, stays below this."""

_TOLERANCE = 1e-3


@dataclass(slots=True)
class Recorder:
    """Records images in passes of several, where the network treats each image by itself.

    Whether it does is seen, not assumed: the first image of each size goes through alone, then
    once more in its batch, and every layer must say the same of it both times. Batch statistics in
    eval mode, windows in another order, a fixed batch size: such a network runs one by one.

    Attributes:
        model: any module that takes a float tensor [B, C, H, W], on any device.
        reducer: says what is drawn, and how.
        layers: which; as `snapshot.snapshot` takes them.
        mean: per channel, of the input's normalization, to draw the input as it was.
        std: per channel.
        kernels: step 0 also holds the convolution kernels.
        refused: is told, once, why the network runs one by one.
    """

    model: nn.Module
    reducer: Reducer
    layers: Layers = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    kernels: bool = False
    refused: Callable[[str], object] = str
    _separable: bool = True
    _shapes: dict[tuple[int, ...], Shapes] = field(default_factory=dict)

    def __call__(self, images: Tensor, first: int) -> Iterator[Recorded]:
        """A step for each of ``images`` [B, C, H, W], numbered from ``first``.

        Raises:
            CaptureError: the model cannot run on an image, or an output cannot be recorded.
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
            yield _finished(self._alone(images[number : number + 1], first + number))

    def _together(self, images: Tensor, first: int) -> Iterator[Recorded]:
        """As many of the images as one pass may hold."""
        size = tuple(images.shape[1:])
        known = self._shapes.get(size)
        if known is not None:
            yield from self._pass(images[: self._most(known)], known, first)
            return
        alone = self._alone(images[:1], first)
        yield _finished(alone)
        shapes = {measured.site.label: measured.shape for measured in alone.measured}
        again, *others = self._pass(images[: max(2, self._most(shapes))], shapes, first)
        check_same(alone, again.finish())
        self._shapes[size] = shapes
        yield from others

    def _most(self, shapes: Shapes) -> int:
        values = sum(int(np.prod(shape)) for shape in shapes.values())
        return max(1, MAX_PASS_BYTES // max(1, 4 * values))

    def _alone(self, image: Tensor, step: int) -> StepData:
        return snapshot(
            self.model,
            image.clone(),  # a network may work in place, and the image goes through once more
            self.reducer,
            layers=self.layers,
            step=step,
            mean=self.mean,
            std=self.std,
            kernels=self.kernels and step == 0,
        )

    def _pass(self, images: Tensor, shapes: Shapes, first: int) -> list[Recorded]:
        also = activations(self.model) if self.layers is None else {}
        registry = HookRegistry(self.model, self.layers, also=also)
        seen = Images(self.reducer, len(images), shapes, self.mean, self.std)
        registry.arm(seen)
        try:
            run_probe(self.model, images.clone())
        except NotSeparable:
            raise
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise NotSeparable(f"a pass on {len(images)} images failed: {reason}") from error
        finally:
            registry.disarm()
        if seen.labels != list(shapes):
            raise NotSeparable(f"other layers ran on {len(images)} images than on one")
        return seen.by_image(first)


def _finished(data: StepData) -> Recorded:
    return Recorded(data.step, data.nbytes, lambda: data)


def check_same(alone: StepData, together: StepData) -> None:
    """Does every layer say the same of an image that was alone and that was in a batch?

    Raises:
        NotSeparable: one does not.
    """
    for one, other in zip(alone.measured, together.measured, strict=True):
        first, second = one.statistics, other.statistics
        assert first is not None  # a snapshot always counts
        assert second is not None
        span = np.fmax.reduce(first.maximum) - np.fmin.reduce(first.minimum)
        margin = _TOLERANCE * (span if np.isfinite(span) else 0.0)
        moments = ("mean", "std") if one.site.pictures else ()  # not asked for of any other
        for name in ("minimum", "maximum", *moments):
            here, there = getattr(first, name), getattr(second, name)
            if not np.allclose(here, there, rtol=0.0, atol=margin, equal_nan=True):
                raise NotSeparable(f"{one.site.label} treats an image in a batch otherwise")
