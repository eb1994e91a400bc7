"""Read image files of any mode that Pillow supports as upright 8-bit RGB."""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from fmapboard.errors import ImageError, instead_of_data, nearby, url_of
from fmapboard.runs.find import folders

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

_16_BIT = ("PNG", "PPM")
"""Formats whose images of Pillow's mode ``I`` have 16 bits."""

_DECODERS = r"PIL\b|fmapboard\.imaging\.images\b"
"""Regular expression of the modules whose warnings are about the image file."""

_LARGE = 2**24
"""Images with more pixels than this are read one at a time."""

_READING_LARGE = threading.Lock()


class ImageFile(NamedTuple):
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


def evenly(images: Sequence[ImageFile], most: int | None) -> list[ImageFile]:
    """At most that many images, as many from each folder as from the others, in the order given.

    Files that were given by name count as one folder. None takes all images.
    """
    counts: Counter[Path | None] = Counter()
    ranks = []
    for number, image in enumerate(images):
        folder = image.path.parent if image.in_folder else None
        ranks.append((counts[folder], number))
        counts[folder] += 1
    first = sorted(ranks)[:most]
    numbers = sorted(number for _, number in first)
    return [images[number] for number in numbers]


def read_image(path: Path) -> Image.Image:
    """The image in a file, upright, as 8-bit RGB; the first frame of an animation.

    `to_rgb` describes how each mode is converted. The file is closed on return.

    Raises:
        ImageError: the file does not exist, or is empty, truncated, damaged, too large, or not an
            image.
    """
    return read_fitted(path, lambda image: image)


def read_fitted(path: Path, fit: Callable[[Image.Image], T]) -> T:
    """Read an image file and apply ``fit``; one thread at a time if the image is large.

    Raises:
        ImageError: as in `read_image`.
    """
    with contextlib.ExitStack() as held:
        return fit(_read(path, held))


def _read(path: Path, held: contextlib.ExitStack) -> Image.Image:
    """Read an image; ``held`` then holds the lock of large ones."""
    try:
        _check_file(path)
        # Opened here, because a decoder that fails may leave the file open.
        with path.open("rb") as file, Image.open(file) as image:
            if image.format in _VECTOR_FORMATS:
                raise ImageError(
                    f"{str(path)!r} is a vector drawing ({image.format}); save it as PNG first"
                )
            pixels = image.width * image.height
            if pixels > (Image.MAX_IMAGE_PIXELS or math.inf):
                raise Image.DecompressionBombError
            if pixels > _LARGE:
                held.enter_context(_READING_LARGE)
            image.load()
            with contextlib.suppress(Exception):  # damaged metadata; the pixels are still usable
                ImageOps.exif_transpose(image, in_place=True)
            return to_rgb(image)
    except ImageError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        limit = (Image.MAX_IMAGE_PIXELS or 0) / 1e6
        raise ImageError(
            f"{str(path)!r} has more than {limit:.0f} million pixels; scale it down first"
        ) from error
    except UnidentifiedImageError as error:
        known = instead_of_data(path) or "not an image that Pillow can read; save it as PNG"
        raise ImageError(f"{str(path)!r} is {known}") from error
    except Exception as error:  # damaged files make Pillow's decoders raise nearly anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(
            f"cannot read the image {str(path)!r}: {reason}; copy or save it again"
        ) from error


@contextlib.contextmanager
def decoding() -> Iterator[None]:
    """Silence the decoders' warnings about malformed metadata, which does not affect the pixels.

    Warning filters are global to the process, so threads that change them would undo each other's
    changes: enter this context around a whole pool of reading threads.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=_DECODERS)
        yield


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
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _grey_to_rgb(image)
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")


def _grey_to_rgb(image: Image.Image) -> Image.Image:
    """A grey image of more than 8 bits as RGB."""
    values = np.asarray(image).astype(np.float64)
    finite = values[np.isfinite(values)]
    low = finite.min() if finite.size else 0.0
    high = finite.max() if finite.size else 0.0
    is_16_bit = image.mode.startswith("I;") or (image.mode == "I" and image.format in _16_BIT)
    peak = high / 65535
    if is_16_bit:
        low = 0.0
        high = 65535.0
    extent = (high - low) or 1.0
    scaled = np.clip((values - low) / extent, 0, 1) * 255
    scaled[np.isnan(scaled)] = 0.0
    grey = np.rint(scaled).astype(np.uint8)
    rgb = Image.fromarray(grey).convert("RGB")
    if is_16_bit:
        rgb.info[PEAK] = float(peak)
    return rgb


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


def _images_in(top: Path) -> list[ImageFile]:
    unlisted: list[OSError] = []
    paths = []
    for _, inside in folders(top, unlisted):
        for entry in inside:
            path = Path(entry.path)
            if _is_image(path):
                paths.append(path)
    paths += [Path(error.filename) for error in unlisted]
    if top in paths:
        raise ImageError(
            f"cannot list the folder {str(top)!r}: {unlisted[0].strerror}; give a folder that you "
            "may read"
        )
    places = []  # below the folder
    for path in dict.fromkeys(paths):
        place = path.relative_to(top)
        is_hidden = any(part.startswith(".") for part in place.parts)
        if not is_hidden:
            places.append(place)
    if not places:
        suffixes = ", ".join(IMAGE_SUFFIXES)
        raise ImageError(
            f"no image in the folder {str(top)!r} and its subfolders; looked for {suffixes}; "
            "give another folder, or the files themselves"
        )
    places.sort(key=_folder_order)
    return [ImageFile(top / place, _as_text(place.as_posix()), True) for place in places]


def _folder_order(path: Path) -> list[tuple[bool, object]]:
    """Sort key of a path in a folder: by natural order, files before subfolders."""
    above = [(True, natural_order(folder)) for folder in [*path.parents][-2::-1]]
    return [*above, (False, natural_order(path))]


def _is_image(path: Path) -> bool:
    """True for a file with the suffix of an image, and for a link to nothing, which is named."""
    is_image = path.suffix.lower() in IMAGE_SUFFIXES
    return is_image and (path.is_file() or (path.is_symlink() and not path.exists()))


def natural_order(path: Path) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key that compares numbers in names by value; digits sort before letters, as in ASCII."""
    order = []
    for part in re.findall(r"[0-9]+|[^0-9]+", path.name.casefold()):
        key = (0, int(part), "") if part.isdecimal() else (1, 0, part)
        order.append(key)
    return order, path.name


def _check_exists(path: Path) -> None:
    if path.exists():
        return
    if url_of(path):
        raise ImageError(f"{url_of(path)!r} is a URL, which is not read; download the image first")
    advice = nearby(path) or "; check the path"
    if re.fullmatch(r"[\d.]+,?", str(path)):
        advice = "; write several numbers for one option with commas: --mean 0.485,0.456,0.406"
    raise ImageError(f"no such file or folder: {str(path)!r}{advice}")


def _check_file(path: Path) -> None:
    _check_exists(path)
    if path.is_dir():
        raise ImageError(
            f"{str(path)!r} is a folder, not an image, or cannot be listed; give an image file"
        )
    if not path.is_file():
        raise ImageError(f"{str(path)!r} is a pipe or a device, not a file; save the image first")
