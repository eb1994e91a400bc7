"""One forward pass on several images, kept apart: of each, what a pass of its own would leave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.collector import PendingPhotograph, Stopwatch
from fmapboard.capture.hooks import Side
from fmapboard.capture.isolation import aside
from fmapboard.capture.transfer import send
from fmapboard.errors import FmapboardError
from fmapboard.measure.per_image import PendingImages, reduce_images
from fmapboard.measure.reducer import Pending, Reducer
from fmapboard.model.tensors import first_tensor, is_observable, tensors
from fmapboard.records import Site, StepData

Shapes = Mapping[str, tuple[int, ...]]
"""Label of a site -> the shape of what its layer returns for one image, in the order of calls."""


class NotSeparable(FmapboardError):
    """The network does not treat each image of a batch as it treats that image alone."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One image's step on the host; ``finish`` does the slow half of it, in any thread, once."""

    step: int
    nbytes: int
    finish: Callable[[], StepData]


class Images:
    """The sink of a registry: reduces the images of a batch one after the other.

    Args:
        reducer: says what is drawn, and how, of each.
        count: how many images go through.
        shapes: what every layer returns for one image.
        mean: per channel, of the input's normalization, to draw the input as it was.
        std: per channel.
    """

    def __init__(
        self,
        reducer: Reducer,
        count: int,
        shapes: Shapes,
        mean: tuple[float, ...] | None,
        std: tuple[float, ...] | None,
    ) -> None:
        self._reduce, self._count, self._shapes = reducer, count, shapes
        self._mean, self._std = mean, std
        self._input = torch.empty(0)
        self._layers: list[PendingImages | list[Pending]] = []
        self._stopwatch = Stopwatch()

    @property
    def labels(self) -> list[str]:
        """Of the sites that were seen, in order."""
        layers = self._layers
        sites = [(one.site if isinstance(one, PendingImages) else one[0].site) for one in layers]
        return [site.label for site in sites]

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the network's input, which its first operation may overwrite."""
        self._input = next(tensors((args, kwargs))).to(torch.float32, copy=True)

    def again(self) -> bool:
        """One pass is all there is."""
        return False

    def captured(self, site: Site, side: Side, value: Any, module: nn.Module) -> None:
        """Read and copy a layer's output at once: the next operation may overwrite it."""
        tensor = first_tensor(value)
        if tensor is None or not is_observable(tensor):
            return
        self._check_shape(site, tensor)
        with self._stopwatch(), aside(tensor.device.type):
            together = reduce_images(self._reduce, site, "feature_maps", tensor, module)
            # An image at a time stays in the cache from the first pass over it to the last.
            self._layers.append(
                together
                or [
                    self._reduce(site, "feature_maps", tensor[number : number + 1], module)
                    for number in range(self._count)
                ]
            )

    def _check_shape(self, site: Site, tensor: Tensor) -> None:
        alone, together = self._shapes.get(site.label, ()), tuple(tensor.shape)
        if alone[:1] != (1,) or together != (self._count, *alone[1:]):
            raise NotSeparable(
                f"{site.label} returns {list(alone)} for one image and {list(together)} "
                f"for {self._count}"
            )

    def by_image(self, first: int) -> list[Recorded]:
        """A step an image, numbered from ``first``; waits for the device."""
        held = [self._input, *(tensor for layer in self._layers for tensor in _tensors(layer))]
        arrived, inputs = send((self._layers, self._input), held)()
        layers = [one.split() if isinstance(one, PendingImages) else one for one in arrived]
        own = zip(*layers, strict=True) if layers else [()] * self._count
        return [
            self._recorded(first + number, pending, pixels)
            for number, (pending, pixels) in enumerate(zip(own, inputs, strict=True))
        ]

    def _recorded(self, step: int, pending: tuple[Pending, ...], pixels: Tensor) -> Recorded:
        now, milliseconds = time.time(), self._stopwatch.ms / self._count

        def finish() -> StepData:
            return StepData(
                step,
                now,
                measured=tuple(part.to_host() for part in pending),
                photographs=(PendingPhotograph(0, pixels, self._mean, self._std).to_host(),),
                training_thread_ms=milliseconds,
            )

        return Recorded(step, pixels.nbytes + sum(map(_nbytes, pending)), finish)


def _tensors(layer: PendingImages | list[Pending]) -> Iterator[Tensor]:
    for part in [layer] if isinstance(layer, PendingImages) else layer:
        yield from part.tensors()


def _nbytes(pending: Pending) -> int:
    """Of a layer's picture and of its sample."""
    maps = 0 if pending.drawn is None else pending.drawn.maps.nbytes
    return maps + (0 if pending.sample is None else pending.sample.values.nbytes)
