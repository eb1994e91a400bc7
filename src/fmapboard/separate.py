"""One pass on several images, read at once and kept apart: what each one's own pass would leave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fmapboard.activations import floor_of
from fmapboard.capture import PendingPhotograph, Stopwatch
from fmapboard.errors import FmapboardError
from fmapboard.observe import aside, first_tensor, is_observable, tensors
from fmapboard.records import Measured, Site, Statistics, StepData
from fmapboard.reduce import Pending, Reducer, _rounded
from fmapboard.registry import Side
from fmapboard.samples import PendingSample, sample
from fmapboard.statistics import PendingStatistics, statistics
from fmapboard.transfer import send
from fmapboard.views import as_maps

Shapes = Mapping[str, tuple[int, ...]]
"""Label of a site -> the shape of what its layer returns for one image, in the order of calls."""


_NUMBERS = [part.name for part in fields(Statistics)]


class NotSeparable(FmapboardError):
    """The network does not treat each image of a batch as it treats that image alone."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One image's step on the host; ``finish`` does the slow half of it, in any thread, once."""

    step: int
    nbytes: int
    finish: Callable[[], StepData]


@dataclass(frozen=True, slots=True)
class Part:
    """What one layer returned for all images.

    ``drawn`` has the pictures of all, ``counted`` the channels of all in a row.
    """

    drawn: Pending
    counted: PendingStatistics
    samples: list[PendingSample]


class Images:
    """The sink of a registry: reads a batch at once, and keeps each image's numbers apart."""

    def __init__(
        self,
        reducer: Reducer,
        count: int,
        shapes: Shapes,
        mean: tuple[float, ...] | None,
        std: tuple[float, ...] | None,
    ) -> None:
        self._reduce = replace(reducer, samples=None)
        self._count, self._shapes = count, shapes
        self._mean, self._std = mean, std
        self.parts: list[Part] = []
        self._stopwatch = Stopwatch()
        self._input = torch.empty(0)

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
        with self._stopwatch(), aside(tensor.device.type):
            self.parts.append(self._read(replace(site, floor=floor_of(module)), tensor, module))

    def _read(self, site: Site, tensor: Tensor, module: nn.Module) -> Part:
        alone, together = self._shapes.get(site.label, ()), tuple(tensor.shape)
        if alone[:1] != (1,) or together != (self._count, *alone[1:]):
            raise NotSeparable(
                f"{site.label} returns {list(alone)} for one image and {list(together)} "
                f"for {self._count}"
            )
        maps = as_maps(
            tensor,
            module,
            channels_last_sequences=self._reduce.channels_last_sequences,
            tokens_are_patches=self._reduce.tokens_are_patches,
        ).maps
        floor = _rounded(site.floor, tensor.dtype)
        return Part(
            self._reduce(site, "feature_maps", tensor, module, numbers=False),
            _counted(maps, floor, moments=site.pictures),
            [sample(maps[i : i + 1]) for i in range(self._count)] if site.pictures else [],
        )

    def by_image(self, first: int) -> list[Recorded]:
        """A step an image; waits for the device."""
        held = [self._input, *(tensor for part in self.parts for tensor in part.counted.parts)]
        parts, inputs = send((self.parts, self._input), held)()
        images = zip(*(_apart(part, self._count) for part in parts), strict=True)
        return [
            self._recorded(first + number, own, pixels)
            for number, (own, pixels) in enumerate(zip(images, inputs, strict=True))
        ]

    def _recorded(self, step: int, parts: tuple[_Image, ...], pixels: Tensor) -> Recorded:
        now, milliseconds = time.time(), self._stopwatch.ms / self._count

        def finish() -> StepData:
            return StepData(
                step,
                now,
                measured=tuple(part.finish() for part in parts),
                photographs=(PendingPhotograph(0, pixels, self._mean, self._std).to_host(),),
                training_thread_ms=milliseconds,
            )

        return Recorded(step, sum(part.nbytes for part in parts), finish)


@dataclass(frozen=True, slots=True)
class _Image:
    """What one layer returned for one image."""

    drawn: Pending
    numbers: Statistics
    sample: PendingSample | None

    @property
    def nbytes(self) -> int:
        """Of its picture and its sample."""
        maps = 0 if self.drawn.drawn is None else self.drawn.drawn.maps.nbytes
        return maps + (0 if self.sample is None else self.sample.values.nbytes)

    def finish(self) -> Measured:
        """As the image's own pass would have given it."""
        sampled = None
        if self.sample is not None:
            lo, hi = np.fmin.reduce(self.numbers.minimum), np.fmax.reduce(self.numbers.maximum)
            sampled = self.sample.to_host(float(lo), float(hi))
        return replace(self.drawn.to_host(), statistics=self.numbers, sample=sampled)


def _counted(maps: Tensor, floor: float | None, *, moments: bool) -> PendingStatistics:
    """Statistics of every image's channels, as if they were all those of one image: [B * C]."""
    if maps.is_cpu:
        read = statistics(maps, floor, moments=moments)
        if len(read.parts) > 1:  # of each image by itself: [B, C, ...]
            parts = tuple(part.flatten(0, 1).unsqueeze(0) for part in read.parts)
            return replace(read, parts=parts, samples=1)
    return statistics(maps.reshape(1, -1, *maps.shape[2:]), floor, moments=moments)


def _apart(part: Part, count: int) -> Iterator[_Image]:
    """The images of a pass."""
    drawn, shape = part.drawn, (1, *part.drawn.shape[1:])
    for number, numbers in enumerate(_rows(part.counted.to_host(), count)):
        maps = None
        if drawn.drawn is not None:
            maps = replace(drawn.drawn, maps=drawn.drawn.maps[number : number + 1])
        sampled = part.samples[number] if part.samples else None
        yield _Image(replace(drawn, shape=shape, drawn=maps), numbers, sampled)


def _rows(counted: Statistics, count: int) -> Iterator[Statistics]:
    """Each image's own channels out of those of all in a row: [B * C] -> B times [C]."""
    columns = {name: getattr(counted, name) for name in _NUMBERS}
    tables = {name: c.reshape(count, -1) for name, c in columns.items() if c is not None}
    for number in range(count):
        yield Statistics(**{name: table[number] for name, table in tables.items()})
