"""PNG files in a folder, small maps enlarged."""

from __future__ import annotations

import contextlib
import re
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from fmapboard.errors import WriteError
from fmapboard.records import LoggedStep, TaggedPictures
from fmapboard.render import png
from fmapboard.render.grid import enlargement
from fmapboard.writers.log_dirs import local_directory

_UNSAFE = re.compile(r"[^\w.-]")

_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?=\.|$)", re.IGNORECASE
)
"""What Windows takes for a device, whatever follows the dot."""


@dataclass(slots=True)
class FolderWriter:
    """Writes every picture as ``<layer>.png``; maps under 32 px are enlarged by whole factors.

    Pictures of another role get it in front (``kernels_<layer>.png``), samples after the first
    their number behind (``<layer>_sample1.png``), so files of one step never collide. A later step
    overwrites the files of the one before, unless ``per_step`` puts each into a folder of its own.

    Attributes:
        folder: is made where it is missing.
        per_step: write below ``folder/step<number>``.
        files: tag -> the files of the last written step.

    Raises:
        WriteError: the folder cannot be made.
        ConfigurationError: the folder is a URL.
    """

    folder: Path
    per_step: bool = False
    files: dict[str, list[Path]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = local_directory(self.folder, "a folder of PNG files")
        _make(self.folder)

    def write(self, step: LoggedStep) -> None:
        """Write the step's pictures."""
        folder = self.folder / f"step{step.step}" if self.per_step else self.folder
        _make(folder)
        self.files = {}
        taken: set[str] = set()
        for tagged in step.pictures:
            self.files[tagged.tag] = self._write(folder, tagged, taken)

    def flush(self) -> None:
        """Files are complete when `write` returns."""

    def close(self) -> None:
        """Nothing is held open."""

    def _write(self, folder: Path, tagged: TaggedPictures, taken: set[str]) -> list[Path]:
        paths = []
        for number, picture in enumerate(tagged.samples):
            suffix = f"_sample{number}" if number else ""
            path = folder / f"{free_name(_stem(tagged) + suffix, taken)}.png"
            _store(path, png.encode(picture, enlargement(picture)))
            paths.append(path)
        return paths


def _store(path: Path, data: bytes) -> None:
    """Write a file whole; where that fails, one that stood there before still does."""
    # Two processes may write one folder at a time: each needs a temporary file of its own.
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error


def _stem(tagged: TaggedPictures) -> str:
    """A file name from the tag's layer; anything but letters, digits, ``_ . -`` becomes ``_``.

    So does a letter that the file system's encoding lacks, as any ``é`` in the C locale.
    """
    layer = tagged.tag.partition("/")[2]
    kind = "" if tagged.kind == "feature_maps" else f"{tagged.kind}_"
    encoding = sys.getfilesystemencoding()
    name = (kind + layer).encode(encoding, "replace").decode(encoding)
    return _UNSAFE.sub("_", name).lstrip(".")[:150] or "layer"


def free_name(stem: str, taken: set[str]) -> str:
    """The stem, numbered where it is taken (file systems may not tell case apart); now taken.

    One that Windows takes for a device gets an underscore: ``aux.0`` becomes ``aux_.0``.
    """
    stem = _DEVICE.sub(r"\1_", stem, count=1) if _DEVICE.match(stem) else stem
    candidate, number = stem, 2
    while candidate.lower() in taken:
        candidate, number = f"{stem}-{number}", number + 1
    taken.add(candidate.lower())
    return candidate


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write to {folder}: {error.strerror or error}") from error
