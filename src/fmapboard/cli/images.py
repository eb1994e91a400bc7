"""Reads photographs: any mode that Pillow knows, as upright 8-bit RGB."""

from __future__ import annotations

import contextlib
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from fmapboard.errors import ImageError, closest

T = TypeVar("T")

IMAGE_SUFFIXES = (
    *(".avif", ".bmp", ".gif", ".j2k", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg", ".mpo", ".pbm"),
    *(".pgm", ".png", ".pnm", ".ppm", ".qoi", ".tga", ".tif", ".tiff", ".webp"),
)
"""What a file in a folder ends with to count as an image; a file named by itself may end in any."""

_PROGRAMS = frozenset({"EPS", "WMF"})
"""Formats that Pillow draws by running another program on the file."""

_DECODERS = r"PIL\b|fmapboard\.cli\.images\b"
"""Modules whose warnings are about the file."""

_STRIP = 2**21
"""Pixels that are converted at a time: a large picture is not held in several modes at once."""

_LARGE = 2**24
"""Pixels above which a picture is read while no other large one is."""

_READING_LARGE = threading.Lock()

_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""EXIF orientation -> what turns the stored pixels upright."""


def find_images(paths: Iterable[Path]) -> list[Path]:
    """The image files that ``paths`` mean, in the order given.

    A file stands for itself, whatever it is called. A folder stands for its own image files,
    those whose name ends as in `IMAGE_SUFFIXES`, without hidden ones and without sub-folders,
    in natural order: ``photo2`` before ``photo10``.

    Raises:
        ImageError: a path does not exist, or a folder holds no image.
    """
    return [image for path in paths for image in _expand(path)]


def read_image(path: Path) -> Image.Image:
    """The picture in a file, upright, as 8-bit RGB; of an animation, the first frame.

    What each mode becomes is told at `to_rgb`. The file is closed when this returns.

    Raises:
        ImageError: there is no such file, or it is empty, truncated, damaged, too large, or no
            image.
    """
    _check_file(path)
    try:
        with decoding():
            return _decode(path)
    except ImageError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        limit = (Image.MAX_IMAGE_PIXELS or 0) / 1e6
        raise ImageError(
            f"{str(path)!r} has more than {limit:.0f} million pixels; make it smaller first"
        ) from error
    except UnidentifiedImageError as error:
        raise ImageError(f"{str(path)!r} is not an image that Pillow can read") from error
    except Exception as error:  # damaged files make Pillow's decoders raise nearly anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(f"cannot read the image {str(path)!r}: {reason}") from error


def read_fitted(path: Path, fit: Callable[[Image.Image], T]) -> T:
    """What ``fit`` makes of the picture in a file; several threads read one large one at a time.

    Raises:
        ImageError: as `read_image` does.
    """
    with _READING_LARGE if _pixels(path) > _LARGE else contextlib.nullcontext():
        return fit(read_image(path))


def _pixels(path: Path) -> int:
    """Pixels of the picture in a file, from its header; 0 where that cannot be read."""
    with contextlib.suppress(Exception), decoding():
        _check_file(path)
        with path.open("rb") as file, Image.open(file) as image:
            return int(image.width * image.height)
    return 0


class _Filters:
    """What the decoders' warnings become, while anybody decodes."""

    lock = threading.Lock()
    holders = 0
    kept = contextlib.ExitStack()


@contextlib.contextmanager
def decoding() -> Iterator[None]:
    """Decoders' warnings are quiet inside, in all threads; the last one out restores the filters.

    They are about odd metadata, which is no concern of who looks at the picture; the one that
    matters, half a decompression bomb, is an error. Filters belong to the process: threads that
    each saved and restored them would undo one another's. So hold this around a pool that reads.
    """
    with _Filters.lock:
        if _Filters.holders == 0:
            _Filters.kept.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", module=_DECODERS)
            warnings.simplefilter("error", Image.DecompressionBombWarning)
        _Filters.holders += 1
    try:
        yield
    finally:
        with _Filters.lock:
            _Filters.holders -= 1
            if _Filters.holders == 0:
                _Filters.kept.close()


def to_rgb(image: Image.Image) -> Image.Image:
    """A loaded picture as 8-bit RGB.

    Transparency is laid on white. 16-bit greys are scaled so that 65535 becomes 255; Pillow
    calls those ``I;16``, or ``I`` when they come from a PNG or PNM file. Other 32-bit integers
    and floats have no known white: they are scaled between their own finite extremes, NaN
    becoming black. CMYK, YCbCr, HSV and LAB are converted as Pillow does.

    Example:
        >>> to_rgb(Image.new("RGBA", (1, 1), (255, 0, 0, 0))).getpixel((0, 0))
        (255, 255, 255)
    """
    low_high = (0.0, 65535.0)
    if image.mode in ("I", "F") and not (image.mode == "I" and image.format in ("PNG", "PPM")):
        low_high = _extremes(image)
    rgb = Image.new("RGB", image.size)
    for box in _strips(image):
        rgb.paste(_strip_to_rgb(image.crop(box), *low_high), box)
    return rgb


def _strips(image: Image.Image) -> Iterator[tuple[int, int, int, int]]:
    rows = max(1, _STRIP // max(1, image.width))
    for top in range(0, image.height, rows):
        yield 0, top, image.width, min(top + rows, image.height)


def _strip_to_rgb(strip: Image.Image, low: float, high: float) -> Image.Image:
    if strip.mode in ("I", "F") or strip.mode.startswith("I;16"):
        return _grey(_stretch(np.asarray(strip).astype(np.float64), low, high))
    if strip.has_transparency_data:
        white = Image.new("RGBA", strip.size, "white")
        return Image.alpha_composite(white, strip.convert("RGBA")).convert("RGB")
    return strip.convert("RGB")


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        return _images_in(path)
    _check_exists(path)
    return [path]


def _images_in(folder: Path) -> list[Path]:
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        raise ImageError(f"cannot list the folder {str(folder)!r}: {error.strerror}") from error
    found = [
        entry
        for entry in entries
        if entry.suffix.lower() in IMAGE_SUFFIXES
        and not entry.name.startswith(".")
        and entry.is_file()
    ]
    if not found:
        raise ImageError(
            f"the folder {str(folder)!r} holds no image; looked for {', '.join(IMAGE_SUFFIXES)}"
        )
    return sorted(found, key=_natural)


def _natural(path: Path) -> tuple[list[tuple[int, int, str]], str]:
    """A key that sorts numbers in names by value; digits come before letters, as in ASCII."""
    parts = re.findall(r"[0-9]+|[^0-9]+", path.name.casefold())
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts], path.name


def _check_exists(path: Path) -> None:
    if path.exists():
        return
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    raise ImageError(f"no such file or folder: {str(path)!r}; closest: {closest(path.name, names)}")


def _check_file(path: Path) -> None:
    _check_exists(path)
    if path.is_dir():
        raise ImageError(f"{str(path)!r} is a folder, not an image")
    if not path.is_file():
        raise ImageError(f"{str(path)!r} is a pipe or a device, not a file; save the image first")
    if path.stat().st_size == 0:
        raise ImageError(f"the image {str(path)!r} is empty: 0 bytes")


def _decode(path: Path) -> Image.Image:
    # Opened here, so that no decoder that fails can leave the file open.
    with path.open("rb") as file, Image.open(file) as image:
        if image.format in _PROGRAMS:
            raise ImageError(f"{str(path)!r} is a drawing ({image.format}); save it as PNG first")
        image.load()
        if 0 in image.size:
            raise ImageError(f"the image {str(path)!r} has no pixels: {image.size}")
        turn = _UPRIGHT.get(_orientation(image))
        rgb = to_rgb(image)
    del image  # before the picture is held a third time
    return rgb if turn is None else rgb.transpose(turn)


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation, 1 … 8; 1 where the file has none that can be read."""
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # damaged metadata raises nearly anything, and must not cost the picture
        return 1


def _grey(values: NDArray[np.float64]) -> Image.Image:
    """Values in 0 … 255 as an RGB picture, rounded to the nearest."""
    return Image.fromarray(np.rint(values).astype(np.uint8)).convert("RGB")


def _extremes(image: Image.Image) -> tuple[float, float]:
    """The smallest and the largest finite value; 0 and 0 where there is none."""
    found = []
    for box in _strips(image):
        values = np.asarray(image.crop(box)).astype(np.float64)
        finite = values[np.isfinite(values)]
        found += [float(finite.min()), float(finite.max())] if finite.size else []
    return min(found, default=0.0), max(found, default=0.0)


def _stretch(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Values scaled so that ``low`` is 0 and ``high`` is 255; NaN becomes 0."""
    scaled = np.clip((values - low) / ((high - low) or 1.0), 0, 1) * 255
    return np.where(np.isnan(scaled), 0.0, scaled)
