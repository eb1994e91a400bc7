"""Write pictures as PNG files into a folder."""

from __future__ import annotations

import contextlib
import re
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from fmapboard.errors import not_written
from fmapboard.records import LoggedStep
from fmapboard.render import png
from fmapboard.render.grid import enlargement
from fmapboard.writers.remote import local_directory, make_directory


@dataclass(slots=True)
class MemoryWriter:
    """Keeps every logged step in a list.

    Attributes:
        steps: The steps written so far, as ``fmapboard.records.LoggedStep``, in step order.

    Example:
        >>> import fmapboard
        >>> import torch
        >>> from torch import nn
        >>> model, writer = nn.Sequential(nn.Conv2d(3, 8, 3)), MemoryWriter()
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1):
        ...     model(torch.zeros(1, 3, 6, 6)).sum().backward()
        ...     optimizer.step()
        >>> [tagged.tag for tagged in writer.steps[0].pictures]
        ['feature_maps_8x3x3x3/0', 'kernels_8x3x3x3/0', 'network_input/sample_0']
    """

    steps: list[LoggedStep] = field(default_factory=list)

    def write(self, step: LoggedStep) -> None:
        """Append the step to ``steps``."""
        self.steps.append(step)

    def flush(self) -> None:
        """Do nothing: steps are available when ``write`` returns."""

    def close(self) -> None:
        """Do nothing: ``steps`` remain available."""


_UNSAFE = re.compile(r"[^\w.-]")

_DEVICE = re.compile(
    r"^(con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?=\.|$)", re.IGNORECASE
)
"""Names that Windows reserves for devices, with any extension."""


@dataclass(slots=True)
class FolderWriter:
    """Writes every picture as ``<layer>.png``; tiles below 32 px are enlarged by an integer factor.

    Pictures of another kind have it as a prefix (``kernels_<layer>.png``), and samples after the
    first have their index as a suffix (``<layer>_sample1.png``), so the files of a step never
    collide. A step overwrites the files of the previous one unless ``per_step`` is set.

    Attributes:
        folder: Created if it does not exist.
        per_step: Write each step into its own folder, ``folder/step<number>``.
        files: Tag -> files of the last written step.
        replaced: Number of files overwritten that this object had not written.

    Raises:
        WriteError: The folder cannot be created.
        ConfigurationError: The folder is a URL.
    """

    folder: Path
    per_step: bool = False
    files: dict[str, list[Path]] = field(default_factory=dict)
    replaced: int = 0
    _own: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.folder = local_directory(self.folder, "a folder of PNG files")
        make_directory(self.folder)

    def write(self, step: LoggedStep) -> None:
        """Write the step's pictures."""
        folder = self.folder / f"step{step.step}" if self.per_step else self.folder
        make_directory(folder)
        self.files = {}
        taken: set[str] = set()
        for tagged in step.pictures:
            kind = "" if tagged.kind == "feature_maps" else f"{tagged.kind}_"
            stem = file_stem(kind + tagged.tag.partition("/")[2])
            paths = self.files[tagged.tag] = []
            for number, picture in enumerate(tagged.samples):
                sample = f"{stem}_sample{number}" if number else stem
                path = folder / f"{free_name(sample, taken)}.png"
                if path not in self._own and path.exists():
                    self.replaced += 1
                self._own.add(path)
                store(path, png.encode(picture, enlargement(picture)))
                paths.append(path)

    def flush(self) -> None:
        """Do nothing: files are complete when ``write`` returns."""

    def close(self) -> None:
        """Do nothing: no file is kept open."""


def store(path: Path, data: bytes) -> None:
    """Write a file atomically; on failure an existing file is left unchanged."""
    # Several processes may write into the folder, so temporary names must be unique.
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise not_written(str(path), error) from error


def file_stem(layer: str) -> str:
    """A file name, without its suffix, from a layer's name.

    Anything but letters, digits and ``_ . -`` is replaced by ``_``, as are letters that the file
    system encoding lacks (any ``é`` in the C locale).
    """
    encoding = sys.getfilesystemencoding()
    name = layer.encode(encoding, "replace").decode(encoding)
    return _UNSAFE.sub("_", name).lstrip(".")[:150] or "layer"


def free_name(stem: str, taken: set[str]) -> str:
    """A unique file name: the stem, numbered if necessary; it is added to ``taken``.

    Names are compared without regard to case, as some file systems do. A name that Windows reserves
    for a device gets an underscore: ``aux.0`` becomes ``aux_.0``.
    """
    stem = _DEVICE.sub(r"\1_", stem, count=1)
    candidate = stem
    number = 2
    while candidate.lower() in taken:
        candidate = f"{stem}-{number}"
        number += 1
    taken.add(candidate.lower())
    return candidate
