"""The images that a user gave, read one after the other, without files that cannot be read."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from PIL import Image
from torch import Tensor, nn

from fmapboard.cli.images import PEAK, ImageFile, decoding, find_images, read_fitted, to_rgb
from fmapboard.cli.models.preprocessing import Preprocessing, assumed
from fmapboard.errors import ConfigurationError, FmapboardError, ImageError, escaped, log
from fmapboard.model.given import described
from fmapboard.options import Normalizing, checked_normalization
from fmapboard.records import Normalization

A = TypeVar("A")
B = TypeVar("B")


def prefetched(
    function: Callable[[A], B], items: Iterable[A], *, ahead: int, threads: int
) -> Generator[B, None, None]:
    """Like ``map(function, items)``, with up to ``ahead`` results computed before they are needed.

    An exception in the function is raised where its result would be yielded. If the generator is
    closed early, it starts no further call and waits for the running ones.

    >>> list(prefetched(abs, [-1, 2, -3], ahead=2, threads=2))
    [1, 2, 3]
    """
    waiting: deque[Future[B]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="fmapboard-prefetch")
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


T = TypeVar("T")

READERS = min(4, os.cpu_count() or 1)
"""Threads that read images ahead of the forward passes."""

DARK = 0.1
"""A 16-bit image whose largest value is below this part of the range is named."""

LISTED = 20
"""Maximum number of files that are listed as left out."""


class ImagesLeftOut(FmapboardError):
    """Some files in folders could not be read; everything else is done."""


class ReadImages:
    """Images in order. A file in a folder that cannot be read is left out, and remembered.

    Args:
        sources: Files, or images of PIL.
        fit: Turns an image of PIL into a tensor [C, H, W].
        ahead: Maximum number of images that are read, in threads, before they are needed.

    Attributes:
        sources: As given.
        numbers: Index in ``sources`` of each image read so far; it grows while ``tensors`` is
            iterated.
        left_out: Name and reason of the files left out so far.
        dark: Name -> largest value, 0 to 1, of the 16-bit images that use few of their values.
    """

    def __init__(
        self,
        sources: Sequence[ImageFile | Image.Image],
        fit: Callable[[Image.Image], Tensor],
        *,
        ahead: int = 0,
    ) -> None:
        self.sources, self._fit, self._ahead = sources, fit, ahead
        self.numbers: list[int] = []
        self.left_out: list[tuple[str, str]] = []
        self.dark: dict[str, float] = {}

    def tensors(self) -> Generator[Tensor, None, None]:
        """Yield each image that can be read, [C, H, W]; from the first one on in each call.

        Raises:
            ImageError: A file that was given by its name cannot be read, or no file can.
        """
        self.numbers.clear()
        self.left_out.clear()
        images = (self._read(source) for source in self.sources)
        if self._ahead:
            images = prefetched(self._read, self.sources, ahead=self._ahead, threads=READERS)
        with decoding(), closing(images):
            for number, image in enumerate(images):
                if isinstance(image, Tensor):
                    self.numbers.append(number)
                    yield image
                else:
                    source = self.sources[number]
                    assert isinstance(source, ImageFile)  # only files are left out
                    self.left_out.append((source.name, str(image)))
        if not self.numbers:
            reason = self.left_out[0][1]
            several = f"none of {len(self.sources):,} files can be read: "
            raise ImageError(f"{several if len(self.sources) > 1 else ''}{reason}")

    def first(self) -> Generator[Tensor, None, None]:
        """Yield the first image that ``tensors`` has yielded, again."""
        image = self._read(self.sources[self.numbers[0]])
        assert isinstance(image, Tensor)  # it was read before
        yield image

    def _read(self, source: ImageFile | Image.Image) -> Tensor | ImageError:
        if not isinstance(source, ImageFile):
            return self._fit(to_rgb(source))

        def fit(image: Image.Image) -> Tensor:
            if 0 < image.info.get(PEAK, 1.0) < DARK:
                self.dark[source.name] = image.info[PEAK]
            return self._fit(image)

        try:
            return read_fitted(source.path, fit)
        except ImageError as error:
            if source.in_folder:
                return error
            raise

    def of_read(self, values: Sequence[T]) -> OfRead[T]:
        """Of one value per source, those of the images read so far; it grows with them."""
        return OfRead(values, self.numbers)

    def say_left_out(self, say: Callable[[str], object]) -> None:
        """Name the files that were left out, one per line, and those that are drawn black."""
        if self.dark:
            # Several threads read, so the first one that was noted need not be the first one.
            files = (source for source in self.sources if isinstance(source, ImageFile))
            name = next(file.name for file in files if file.name in self.dark)
            peak = self.dark[name]
            others = f", and {len(self.dark) - 1:,} more are alike" if len(self.dark) > 1 else ""
            dark = (
                f"{name}: its brightest pixel is {100 * peak:.1f} % of 16 bits, so it is drawn dark"
                f"{others}; multiply the values of 12-bit images by 16 first"
            )
            say(escaped(dark, keep=""))
        for name, reason in self.left_out[:LISTED]:
            say(escaped(f"left out: {name}: {reason}", keep=""))
        if len(self.left_out) > LISTED:
            say(f"left out: {len(self.left_out) - LISTED:,} more")

    def check_complete(self) -> None:
        """Raise an error if files were left out, after listing them on stderr.

        Raises:
            ImagesLeftOut: Files were left out.
        """
        self.say_left_out(lambda line: print(line, file=sys.stderr))
        if self.left_out:
            files = len(self.sources)
            raise ImagesLeftOut(
                f"{len(self.left_out):,} of {files:,} files could not be read and were left out; "
                "everything else is done"
            )


class OfRead(Sequence[T], Generic[T]):
    """A view of a sequence: the entries with the given numbers, which may grow."""

    def __init__(self, values: Sequence[T], numbers: Sequence[int]) -> None:
        self._values, self._numbers = values, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        found: Any = self._numbers[index]
        return self._values[found] if isinstance(found, int) else [self._values[n] for n in found]


Prepare = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class GivenImages:
    """Images that were passed to ``visualize`` or ``patches``.

    Attributes:
        names: One per image: that of its file, or its number.
        read: Reads image files and PIL images; None for a tensor.
        batch: The tensor [N, C, H, W], if one was passed.
        prepare: Turns a batch of them into the model's input.
        normalization: Mean and standard deviation of that input, if known.
    """

    names: list[str]
    read: ReadImages | None
    batch: Tensor | None
    prepare: Prepare
    normalization: Normalization | None

    @classmethod
    def of(
        cls,
        images: Any,
        model: nn.Module,
        transform: Callable[[Image.Image], Tensor] | None,
        normalization: Normalization | Normalizing | None,
        *,
        has_inputs: bool = False,
    ) -> GivenImages:
        """Check the images and find out how to prepare them."""
        if normalization is not None:
            normalization = checked_normalization(normalization)
        if isinstance(images, Tensor):
            if transform is not None:
                raise ConfigurationError(
                    "transform= is for image files and PIL images, not tensors"
                )
            batch = images[None] if images.dim() == 3 else images
            if batch.dim() < 3 or len(batch) == 0:
                raise ConfigurationError(
                    f"images of shape {list(images.shape)}: expected [N, C, H, W] or [C, H, W]"
                )
            names = [f"image{number}" for number in range(len(batch))]
            return cls(names, None, batch.detach(), _as_it_is, normalization)
        sources = _sources(images)
        names = [_name(one, number) for number, one in enumerate(sources)]
        if transform is not None:
            return cls(names, ReadImages(sources, transform), None, _as_it_is, normalization)
        own: Preprocessing = assumed(model, has_inputs=has_inputs)
        read = ReadImages(sources, own.fit)
        return cls(names, read, None, own.normalize, (own.mean, own.std))

    def tensors(self) -> Generator[Tensor, None, None]:
        """Yield the images that can be read, all of one kind."""
        if self.read is not None:
            yield from self.read.tensors()
        elif self.batch is not None:
            yield from self.batch

    def first(self) -> Generator[Tensor, None, None]:
        """Yield the first image again."""
        if self.read is not None:
            yield from self.read.first()
        elif self.batch is not None:
            yield from self.batch[:1]

    @property
    def numbers(self) -> Sequence[int]:
        """Which of the images were read so far."""
        return range(len(self.names)) if self.read is None else self.read.numbers

    def of_read(self, values: Sequence[T]) -> Sequence[T]:
        """Of one value per image, those of the images read so far; it grows with them."""
        return OfRead(values, self.numbers)

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Name and reason of the files in folders that could not be read."""
        return () if self.read is None else tuple(self.read.left_out)

    def warn_left_out(self) -> None:
        """Log a warning for each file that was left out."""
        if self.read is not None:
            self.read.say_left_out(lambda line: log.warning("%s", line))


def _sources(images: Any) -> list[ImageFile | Image.Image]:
    """Image files and PIL images, in order; folders are replaced by the files in them."""
    several = images if isinstance(images, (list, tuple)) else [images]
    found: list[ImageFile | Image.Image] = []
    for one in several:
        if isinstance(one, (str, os.PathLike)):
            found += find_images([Path(one)])
        elif isinstance(one, Image.Image):
            found.append(one)
        else:
            raise ConfigurationError(
                f"images={described(one)}: expected a tensor [N, C, H, W], image files, a folder, "
                "or PIL images (torch.stack(images) for a list of tensors)"
            )
    if not found:
        raise ConfigurationError("images=[]: expected at least one image")
    return found


def _name(source: ImageFile | Image.Image, number: int) -> str:
    return source.name if isinstance(source, ImageFile) else f"image{number}"


def _as_it_is(batch: Tensor) -> Tensor:
    return batch
