"""Read image files of any mode that Pillow supports as upright 8-bit RGB."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from fmapboard.errors import ImageError, nearby, url_of
from fmapboard.imaging.messages import instead_of_data

T = TypeVar("T")

IMAGE_SUFFIXES = (
    *(".avif", ".bmp", ".gif", ".j2k", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg", ".mpo", ".pbm"),
    *(".pgm", ".png", ".pnm", ".ppm", ".qoi", ".tga", ".tif", ".tiff", ".webp"),
)
"""Suffixes that make a file in a folder count as an image; a file given by name may have any."""

_CHECKPOINTS = (".pt", ".pth", ".ckpt", ".safetensors")
"""Suffixes of files that are not images, although they are given as such."""

_VECTOR_FORMATS = frozenset({"EPS", "WMF"})
"""Vector formats, which are refused: Pillow would run another program on the file."""

PEAK = "fmapboard_peak"
"""Key in ``info`` of an image that was converted from 16 bits to RGB: its largest value, 0 to 1."""

_DECODERS = r"PIL\b|fmapboard\.imaging\.images\b"
"""Regular expression of the modules whose warnings are about the image file."""

_STRIP = 2**21
"""Pixels converted at a time, so that a large image is never held in several modes at once."""

_LARGE = 2**24
"""Images with more pixels than this are read one at a time."""

_READING_LARGE = threading.Lock()


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image file that was given by its name, or found in a folder.

    Attributes:
        path: The file.
        name: Its name; in a folder, its path from there on, with slashes. Bytes that are no UTF-8
            are replaced: the name is stored and shown.
        in_folder: It was found in a folder. If it cannot be read, it may be left out.
    """

    path: Path
    name: str
    in_folder: bool = False


def find_images(paths: Iterable[Path]) -> list[ImageFile]:
    """The image files given by ``paths``, in that order.

    A file is taken whatever its suffix. A folder is replaced by the image files in it and in its
    subfolders (see `IMAGE_SUFFIXES`), in natural order: ``photo2`` before ``photo10``, files before
    subfolders. Hidden files and folders are left out; links to folders are followed. A subfolder
    that cannot be listed counts as a file that cannot be read, as does a link to nothing.

    Raises:
        ImageError: A path does not exist, or a folder contains no image.
    """
    return [image for path in paths for image in _expand(path)]


def read_image(path: Path) -> Image.Image:
    """The image in a file, upright, as 8-bit RGB; the first frame of an animation.

    `to_rgb` describes how each mode is converted. The file is closed on return.

    Raises:
        ImageError: the file does not exist, or is empty, truncated, damaged, too large, or not an
            image.
    """
    try:
        _check_file(path)
        with decoding():
            return _decode(path)
    except ImageError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        limit = (Image.MAX_IMAGE_PIXELS or 0) / 1e6
        raise ImageError(
            f"{str(path)!r} has more than {limit:.0f} million pixels; scale it down first"
        ) from error
    except UnidentifiedImageError as error:
        known = instead_of_data(path) or "not an image that Pillow can read"
        raise ImageError(f"{str(path)!r} is {known}") from error
    except Exception as error:  # damaged files make Pillow's decoders raise nearly anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(f"cannot read the image {str(path)!r}: {reason}") from error


def read_fitted(path: Path, fit: Callable[[Image.Image], T]) -> T:
    """Read an image file and apply ``fit``; one thread at a time if the image is large.

    Raises:
        ImageError: as in `read_image`.
    """
    with _READING_LARGE if _pixels(path) > _LARGE else contextlib.nullcontext():
        return fit(read_image(path))


def _pixels(path: Path) -> int:
    """Number of pixels of an image file, from its header; 0 if that cannot be read."""
    with contextlib.suppress(Exception), decoding():
        _check_file(path)
        with path.open("rb") as file, Image.open(file) as image:
            return int(image.width * image.height)
    return 0


class _Filters:
    """The warning filters in force while at least one thread is inside `decoding`."""

    lock = threading.Lock()
    holders = 0
    kept = contextlib.ExitStack()


@contextlib.contextmanager
def decoding() -> Iterator[None]:
    """Silence the decoders' warnings in all threads; the last thread to leave restores the filters.

    The warnings are about malformed metadata, which does not affect the pixels. The exception,
    Pillow's warning about a possible decompression bomb, is raised as an error. Warning filters are
    global to the process: if each thread saved and restored them, threads would undo each other's
    changes. Enter this context around a whole pool of reading threads.
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
    """Convert a loaded image to 8-bit RGB.

    Transparent pixels are composited on white. 16-bit greys are scaled so that 65535 becomes 255;
    Pillow calls these ``I;16``, or ``I`` when they come from a PNG or PNM file. Other 32-bit
    integers and floats have no defined white point: the image's finite minimum becomes 0 and its
    maximum 255; NaN becomes 0. CMYK, YCbCr, HSV and LAB are converted by Pillow.

    Example:
        >>> to_rgb(Image.new("RGBA", (1, 1), (255, 0, 0, 0))).getpixel((0, 0))
        (255, 255, 255)
    """
    low_high = (0.0, 65535.0)
    if image.mode in ("I", "F") and not (image.mode == "I" and image.format in ("PNG", "PPM")):
        low_high = _extremes(image)
    rgb = Image.new("RGB", image.size)
    is_16_bit = image.mode.startswith("I;16") or image.mode == "I"
    if is_16_bit and low_high == (0.0, 65535.0):
        rgb.info[PEAK] = _extremes(image)[1] / 65535
    for box in _strips(image):
        rgb.paste(_strip_to_rgb(image.crop(box), *low_high), box)
    return rgb


def _strips(image: Image.Image) -> Iterator[tuple[int, int, int, int]]:
    rows = max(1, _STRIP // max(1, image.width))
    for top in range(0, image.height, rows):
        yield 0, top, image.width, min(top + rows, image.height)


def _strip_to_rgb(strip: Image.Image, low: float, high: float) -> Image.Image:
    """A part of an image as RGB; in a grey one of more than 8 bits, ``low`` to 0, ``high`` to 255.

    NaN becomes 0.
    """
    if strip.mode in ("I", "F") or strip.mode.startswith("I;16"):
        values = np.asarray(strip).astype(np.float64)
        scaled = np.clip((values - low) / ((high - low) or 1.0), 0, 1) * 255
        grey = np.rint(np.where(np.isnan(scaled), 0.0, scaled))
        return Image.fromarray(grey.astype(np.uint8)).convert("RGB")
    if strip.has_transparency_data:
        white = Image.new("RGBA", strip.size, "white")
        return Image.alpha_composite(white, strip.convert("RGBA")).convert("RGB")
    return strip.convert("RGB")


def _expand(path: Path) -> list[ImageFile]:
    if path.is_dir():
        return _images_in(path)
    if path.suffix.lower() in _CHECKPOINTS:
        raise ImageError(
            f"{str(path)!r} is a checkpoint, not an image; quote a glob of checkpoints, so that "
            "the shell leaves it as it is: --checkpoint 'ckpt_*.pt'"
        )
    _check_exists(path)
    return [ImageFile(path, _as_text(path.name))]


def _as_text(name: str) -> str:
    return os.fsencode(name).decode(errors="replace")


def _images_in(folder: Path) -> list[ImageFile]:
    found = [
        ImageFile(path, _as_text(path.relative_to(folder).as_posix()), True)
        for path in _walk(folder)
    ]
    if not found:
        raise ImageError(
            f"no image in the folder {str(folder)!r} and its subfolders; looked for "
            f"{', '.join(IMAGE_SUFFIXES)}"
        )
    return found


def _walk(top: Path) -> Iterator[Path]:
    """The images at and below a folder, and the subfolders that cannot be listed.

    A folder to which several links lead is read once, so that links between folders end.
    """
    waiting, reached = [top], set()
    while waiting:
        folder = waiting.pop()
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in reached:
                continue
            reached.add((status.st_dev, status.st_ino))
            entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
            is_folder = {entry: entry.is_dir() for entry in sorted(entries, key=natural_order)}
        except OSError as error:
            if folder is not top:
                yield folder
                continue
            raise ImageError(f"cannot list the folder {str(folder)!r}: {error.strerror}") from error
        yield from (entry for entry in is_folder if not is_folder[entry] and _is_image(entry))
        waiting += reversed([entry for entry in is_folder if is_folder[entry]])


def _is_image(path: Path) -> bool:
    """True for a file with the suffix of an image, and for a link to nothing, which is named."""
    is_image = path.suffix.lower() in IMAGE_SUFFIXES
    return is_image and (path.is_file() or (path.is_symlink() and not path.exists()))


def natural_order(path: Path) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key that compares numbers in names by value; digits sort before letters, as in ASCII."""
    parts = re.findall(r"[0-9]+|[^0-9]+", path.name.casefold())
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts], path.name


def _check_exists(path: Path) -> None:
    if path.exists():
        return
    if url_of(path):
        raise ImageError(f"{url_of(path)!r} is a URL, which is not read; download the image first")
    if re.fullmatch(r"[\d.]+,?", str(path)):
        advice = "; write several numbers for one option with commas: --mean 0.485,0.456,0.406"
    else:
        advice = nearby(path)
    raise ImageError(f"no such file or folder: {str(path)!r}{advice}")


def _check_file(path: Path) -> None:
    _check_exists(path)
    if path.is_dir():
        try:
            next(path.iterdir(), None)
        except OSError as error:
            raise ImageError(f"cannot list the folder {str(path)!r}: {error.strerror}") from error
        raise ImageError(f"{str(path)!r} is a folder, not an image")
    if not path.is_file():
        raise ImageError(f"{str(path)!r} is a pipe or a device, not a file; save the image first")
    if path.stat().st_size == 0:
        raise ImageError(f"the image {str(path)!r} is empty: 0 bytes")


def _decode(path: Path) -> Image.Image:
    # Opened here, because a decoder that fails may leave the file open.
    with path.open("rb") as file, Image.open(file) as image:
        if image.format in _VECTOR_FORMATS:
            raise ImageError(
                f"{str(path)!r} is a vector drawing ({image.format}); save it as PNG first"
            )
        has_16_bits = _has_16_bit_colours(image)
        image.load()
        if 0 in image.size:
            raise ImageError(f"the image {str(path)!r} has no pixels: {image.size}")
        rgb, orientation = to_rgb(image), _orientation(image)
        if has_16_bits:
            rgb.info[PEAK] = _brightest(image) / 255
    del image  # frees the decoded pixels before `exif_transpose` makes another copy
    if orientation == 1:
        return rgb
    rgb.getexif()[ExifTags.Base.Orientation] = orientation
    return ImageOps.exif_transpose(rgb)


def _has_16_bit_colours(image: Image.Image) -> bool:
    """True if an image, not loaded yet, has colours of 16 bits, of which Pillow keeps the upper 8.

    Its mode does not say so, but the arguments of its decoder do.
    """
    said = "65535" if image.format == "PPM" else ";16"
    arguments = [str(tile[3]) for tile in getattr(image, "tile", ())]
    return image.mode in ("RGB", "RGBA", "LA") and any(said in each for each in arguments)


def _brightest(image: Image.Image) -> int:
    """The largest value in the channels but alpha, which have 8 bits."""
    colours = [image.getchannel(band) for band in image.getbands() if band != "A"]
    return max(int(np.asarray(colour).max()) for colour in colours)


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation, 1 to 8; 1 if the file has none or it cannot be read."""
    try:
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # damaged metadata raises nearly anything; the pixels are still usable
        return 1


def _extremes(image: Image.Image) -> tuple[float, float]:
    """The smallest and the largest finite value; (0, 0) if there is none."""
    found = []
    for box in _strips(image):
        values = np.asarray(image.crop(box)).astype(np.float64)
        finite = values[np.isfinite(values)]
        found += [float(finite.min()), float(finite.max())] if finite.size else []
    return min(found, default=0.0), max(found, default=0.0)
