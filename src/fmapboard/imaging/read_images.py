"""The images that a user gave, read one after the other, without files that cannot be read."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image
from torch import Tensor, nn
from torchvision.transforms.functional import pil_to_tensor

from fmapboard.errors import ConfigurationError, FmapboardError, ImageError, escaped
from fmapboard.imaging.images import PEAK, ImageFile, decoding, find_images, read_fitted, to_rgb
from fmapboard.imaging.models.preprocessing import Preprocessing
from fmapboard.model.given import described
from fmapboard.options import Normalizing, checked_normalization
from fmapboard.records import Normalization

A = TypeVar("A")
B = TypeVar("B")


def prefetched(
    function: Callable[[A], B],
    items: Iterable[A],
    *,
    ahead: int,
    threads: int,
    size: Callable[[A], int] = lambda item: 1,
) -> Generator[B, None, None]:
    """Like ``map(function, items)``, with results computed in threads before they are needed.

    An exception in the function is raised where its result would be yielded. If the generator is
    closed early, it starts no further call and waits for the running ones.

    Args:
        function: Called in the threads.
        items: Each is passed to the function.
        ahead: Maximum size of the items after the one whose result is yielded next.
        threads: Number of threads.
        size: Of an item.

    >>> list(prefetched(abs, [-1, 2, -3], ahead=2, threads=2))
    [1, 2, 3]
    """
    waiting: deque[tuple[Future[B], int]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="fmapboard-prefetch")
    try:
        for item in items:
            waiting.append((pool.submit(function, item), size(item)))
            while sum(own for _, own in waiting) - waiting[0][1] > ahead:
                yield waiting.popleft()[0].result()
        while waiting:
            yield waiting.popleft()[0].result()
    finally:
        for future, _ in reversed(waiting):  # from the front, the threads would overtake it
            future.cancel()
        pool.shutdown(wait=True, cancel_futures=True)


READERS = min(4, os.cpu_count() or 1)
"""Threads that read images ahead of the forward passes."""

DARK = 0.1
"""A 16-bit image whose largest value is below this part of the range is named."""

LISTED = 20
"""Maximum number of files that are listed as left out."""


Source = ImageFile | Image.Image | Tensor
"""An image that was given; a tensor [C, H, W] is as the model takes it."""


@dataclass(slots=True)
class ReadImages:
    """Images in order. A file in a folder that cannot be read is left out, and remembered.

    Attributes:
        sources: The images.
        fit: Turns an image of PIL into a tensor [C, H, W].
        prepare: Turns a batch of them [B, C, H, W] into the model's input.
        normalization: Mean and standard deviation per channel of that input, if known.
        ahead: Maximum number of images that are read, in threads, before they are needed.
        numbers: Index in ``sources`` of each image read so far; it grows while ``tensors`` is
            iterated.
        left_out: Name and reason of the files left out so far.
        dark: Name -> largest value, 0 to 1, of the 16-bit images that use few of their values.
    """

    sources: Sequence[Source]
    fit: Callable[[Image.Image], Tensor]
    prepare: Callable[[Tensor], Tensor] = lambda batch: batch
    normalization: Normalization | None = None
    ahead: int = 0
    numbers: list[int] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    dark: dict[str, float] = field(default_factory=dict)
    _chosen: Sequence[int] | None = None

    @classmethod
    def of(
        cls, sources: Sequence[Source], preprocessing: Preprocessing, *, ahead: int = 0
    ) -> ReadImages:
        """Images that are preprocessed for a model."""
        normalization = preprocessing.mean, preprocessing.std
        return cls(
            sources,
            fit=preprocessing.fit,
            prepare=preprocessing.normalize,
            normalization=normalization,
            ahead=ahead,
        )

    @property
    def names(self) -> list[str]:
        """One per source: that of its file, or its number."""
        names = []
        for number, source in enumerate(self.sources):
            name = source.name if isinstance(source, ImageFile) else f"image{number}"
            names.append(name)
        return names

    def only(self, number: int, image: Tensor | None = None) -> ReadImages:
        """One of the images, under the same number; it is not read again if ``image`` is given."""
        sources = list(self.sources)
        if image is not None:
            sources[number] = image
        return replace(self, sources=sources, numbers=[], left_out=[], _chosen=[number])

    def tensors(self) -> Generator[Tensor, None, None]:
        """Yield each image that can be read, [C, H, W]; from the first one on in each call.

        Raises:
            ImageError: A file that was given by its name cannot be read, or no file can.
        """
        self.numbers.clear()
        self.left_out.clear()
        chosen = range(len(self.sources)) if self._chosen is None else self._chosen
        names = self.names
        sources = [self.sources[number] for number in chosen]
        images = (self._read(source) for source in sources)
        if self.ahead:
            images = prefetched(self._read, sources, ahead=self.ahead, threads=READERS)
        with decoding(), closing(images):
            for number, image in zip(chosen, images, strict=True):
                if isinstance(image, Tensor):
                    self.numbers.append(number)
                    yield image
                else:
                    self.left_out.append((names[number], str(image)))
        if not self.numbers:
            reason = self.left_out[0][1]
            if len(self.sources) > 1:
                reason = f"none of {len(self.sources):,} files can be read: {reason}"
            raise ImageError(reason)

    def _read(self, source: Source) -> Tensor | ImageError:
        if isinstance(source, Tensor):
            return source
        if not isinstance(source, ImageFile):
            return self.fit(to_rgb(source))

        def fit(image: Image.Image) -> Tensor:
            if 0 < image.info.get(PEAK, 1.0) < DARK:
                self.dark[source.name] = image.info[PEAK]
            return self.fit(image)

        try:
            return read_fitted(source.path, fit)
        except ImageError as error:
            if source.in_folder:
                return error
            raise

    def say_left_out(self, say: Callable[[str], object]) -> None:
        """Name the files that were left out, one per line, and those that are drawn black."""
        if self.dark:
            # Several threads read, so the first one that was noted need not be the first one.
            files = (source for source in self.sources if isinstance(source, ImageFile))
            name = next(file.name for file in files if file.name in self.dark)
            others = f", and {len(self.dark) - 1:,} more are alike" if len(self.dark) > 1 else ""
            dark = (
                f"{name}: its brightest pixel is {100 * self.dark[name]:.1f} % of 16 bits, so it "
                f"is drawn dark{others}; multiply the values of 12-bit images by 16 first"
            )
            say(escaped(dark, keep=""))
        for name, reason in self.left_out[:LISTED]:
            say(escaped(f"left out: {name}: {reason}", keep=""))
        if len(self.left_out) > LISTED:
            say(f"left out: {len(self.left_out) - LISTED:,} more")

    def check_complete(self) -> None:
        """Raise an error if files were left out, after listing them on stderr.

        Raises:
            FmapboardError: Files were left out.
        """
        self.say_left_out(lambda line: print(line, file=sys.stderr))
        if self.left_out:
            raise FmapboardError(
                f"{len(self.left_out):,} of {len(self.sources):,} files could not be read and were "
                "left out, see above; everything else is done. Repair or remove them, and run this "
                "again"
            )


def given_images(
    images: Any,
    model: nn.Module,
    transform: Callable[[Image.Image], Tensor] | None,
    normalization: Normalization | Normalizing | None,
    *,
    has_inputs: bool = False,
) -> ReadImages:
    """The images passed to ``visualize`` or ``patches``: a tensor, files, or PIL images.

    Raises:
        ConfigurationError: they are none of these, or an argument is invalid.
    """
    if normalization is not None:
        normalization = checked_normalization(normalization)
    if isinstance(images, Tensor):
        if transform is not None:
            raise ConfigurationError(
                "transform= is for image files and PIL images, not tensors; pass the transformed "
                "tensors without it"
            )
        batch = images[None] if images.dim() == 3 else images
        if batch.dim() < 3 or len(batch) == 0:
            raise ConfigurationError(
                f"images of shape {list(images.shape)}: expected [N, C, H, W] or [C, H, W]"
            )
        return ReadImages(list(batch.detach()), pil_to_tensor, normalization=normalization)
    sources = _sources(images)
    if transform is not None:
        return ReadImages(sources, transform, normalization=normalization)
    return ReadImages.of(sources, Preprocessing.assumed(model, has_inputs=has_inputs))


def _sources(images: Any) -> list[Source]:
    """Image files and PIL images, in order; folders are replaced by the files in them."""
    several = images if isinstance(images, (list, tuple)) else [images]
    found: list[Source] = []
    for given in several:
        if isinstance(given, (str, os.PathLike)):
            found += find_images([Path(given)])
        elif isinstance(given, Image.Image):
            found.append(given)
        else:
            raise ConfigurationError(
                f"images={described(given)}: expected a tensor [N, C, H, W], image files, "
                "a folder, or PIL images (torch.stack(images) for a list of tensors)"
            )
    if not found:
        raise ConfigurationError("images=[]: expected at least one image")
    return found
