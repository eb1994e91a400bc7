"""Files for TensorBoard's Projector, a file of its own: they are no logged step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from google.protobuf import text_format
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

from fmapboard.errors import WriteError, first_line
from fmapboard.records import Bytes8, Floats, Picture
from fmapboard.render import png
from fmapboard.writers.folder import file_stem

CONFIG = "projector_config.pbtxt"
"""Name of the file, in a run's directory, that lists its data sets."""

_SHEET = 4096
"""Maximum side in px of a sheet of thumbnails: what every graphics card can hold."""

_THUMBNAIL = 128
"""Maximum side in px of a thumbnail."""


def thumbnail_side(number: int) -> int:
    """Side in px of each of this many square thumbnails.

    Example:
        >>> thumbnail_side(12), thumbnail_side(10_000)
        (128, 40)
    """
    return max(1, min(_THUMBNAIL, _SHEET // math.ceil(math.sqrt(number))))


@dataclass(frozen=True, slots=True)
class ProjectorData:
    """One data set of the Projector.

    Attributes:
        name: Its name in the Projector.
        vectors: f32 [N, D].
        labels: One per vector.
        thumbnails: u8 [N, S, S, 3], or None.
    """

    name: str
    vectors: Floats
    labels: tuple[str, ...]
    thumbnails: Bytes8 | None = None


def write_projector(directory: Path, data: ProjectorData) -> Path:
    """Write a data set into a run's directory; one of the same name is replaced, others are kept.

    Returns:
        The folder of the data set's files, inside ``directory / "projector"``.

    Raises:
        WriteError: A file cannot be written, or the list of data sets cannot be read.
    """
    folder = directory / "projector" / file_stem(data.name)
    config = _listed(directory / CONFIG)
    kept = [one for one in config.embeddings if one.tensor_name != data.name]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.savetxt(folder / "vectors.tsv", data.vectors, fmt="%.9g", delimiter="\t")
        labels = "".join(f"{_one_line(label)}\n" for label in data.labels)
        (folder / "labels.tsv").write_text(labels, encoding="utf-8")
        entry = _entry(data, folder.relative_to(directory).as_posix())
        if data.thumbnails is not None:
            sheet = Picture(_sheet(data.thumbnails), compact=True)
            (folder / "thumbnails.png").write_bytes(png.encode(sheet))
        text = text_format.MessageToString(ProjectorConfig(embeddings=[*kept, entry]))
        (directory / CONFIG).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise WriteError(f"cannot write the Projector's files in {directory}: {reason}") from error
    return folder


def _listed(path: Path) -> ProjectorConfig:
    config = ProjectorConfig()
    try:
        if path.exists():
            text_format.Parse(path.read_text(encoding="utf-8"), config)
    except (OSError, ValueError, text_format.ParseError) as error:
        raise WriteError(f"cannot read {path}: {first_line(error)}; move it away") from error
    return config


def _entry(data: ProjectorData, folder: str) -> EmbeddingInfo:
    entry = EmbeddingInfo(
        tensor_name=data.name,
        tensor_shape=data.vectors.shape,
        tensor_path=f"{folder}/vectors.tsv",
        metadata_path=f"{folder}/labels.tsv",
    )
    if data.thumbnails is not None:
        entry.sprite.image_path = f"{folder}/thumbnails.png"
        entry.sprite.single_image_dim.extend(data.thumbnails.shape[1:3])
    return entry


def _sheet(thumbnails: Bytes8) -> Bytes8:
    """The thumbnails in rows on a square sheet, as the Projector expects them."""
    number, side = thumbnails.shape[:2]
    columns = math.ceil(math.sqrt(number))
    padded = np.zeros((columns * columns, side, side, 3), np.uint8)
    padded[:number] = thumbnails
    rows = padded.reshape(columns, columns, side, side, 3).swapaxes(1, 2)
    sheet: Bytes8 = rows.reshape(columns * side, columns * side, 3)
    return sheet


def _one_line(label: str) -> str:
    """A label as a line of its own; a tab would make the first line a header."""
    return " ".join(label.encode("utf-8", "backslashreplace").decode().split()) or "?"
