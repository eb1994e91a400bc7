"""One stored record, checked: what the tab's answers rely on is of the right type and shape."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmapboard.tab_format import FORMAT, Floats, FormatError, unpack

ROLES = ("feature_maps", "inputs", "gradients_of_maps", "kernels")
FLOORED = {
    "ReLU", "ReLU6", "Hardtanh", "Threshold", "Hardsigmoid", "Hardswish", "ELU", "CELU", "SELU",
}  # fmt: skip
"""Types of activation modules that can be dead (see `activations.floor_of`)."""
NONFINITE = ("nan", "positive_infinity", "negative_infinity")
_PLANES = ("lo", "hi", "flat")
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """One picture of a record's header. ``drawn`` is None for kernels."""

    role: str
    tag: str
    samples: int
    channels: int | None
    drawn: int | None


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a record.

    Attributes:
        raw: as it was stored.
        activation: label of the activation that follows the layer, where it is known.
    """

    raw: dict[str, Any]
    layer: str
    type: str
    kernel_shape: list[int] | None
    call: int
    position: int
    steps_written: int
    pictures: tuple[PictureFacts, ...]
    activation: str | None

    @property
    def maps(self) -> PictureFacts | None:
        """The picture of feature maps, else the first that has channels."""
        with_channels = [picture for picture in self.pictures if picture.drawn is not None]
        maps = [picture for picture in with_channels if picture.role == ROLES[0]]
        return next(iter([*maps, *with_channels]), None)

    @property
    def knows_dead(self) -> bool:
        """Would a dead channel be in the record?"""
        return self.activation is not None or self.type in FLOORED


@dataclass(frozen=True, slots=True)
class Record:
    """Header and arrays; the arrays are read-only."""

    header: Header
    arrays: Mapping[str, Floats]


def read_header(blob: bytes | None) -> Header:
    """Blob 0 of a record.

    Raises:
        FormatError: it is none, broken, or of a newer format; the text is for people.
    """
    if blob is None:
        raise FormatError("the record can no longer be read")
    try:
        return _header(json.loads(blob))
    except FormatError:
        raise
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"a record that is not in fmapboard's format: {error}") from error


def read_record(header: bytes | None, arrays: bytes | None) -> Record:
    """Blobs 0 and 1 of a record.

    Raises:
        FormatError: as for `read_header`; also for arrays that do not fit the header.
    """
    facts = read_header(header)
    if header is None or arrays is None:
        raise FormatError("a record that ends behind its header")
    _, numbers = unpack((header, arrays))
    for picture in facts.pictures:
        _check_shapes(picture, numbers)
    return Record(facts, numbers)


def statistics(record: Record, role: str) -> dict[str, Floats]:
    """A role's statistics, each f64 [drawn]; empty where the record has none.

    Flags and counts that the record leaves out are 0 here; ``dead``, which may be that of the
    activation that follows, is there only where it is known. ``nonfinite`` counts all kinds.
    """
    stored = record.arrays
    mean = stored.get(f"{role}.mean")
    if mean is None:
        return {}
    nothing = np.zeros(len(mean))

    def array(name: str, role: str = role) -> Floats:
        return np.asarray(stored.get(f"{role}.{name}", nothing), np.float64)

    counts = {name: array(name) for name in NONFINITE}
    found = {
        **{name: array(name) for name in ("minimum", "maximum", "mean", "std", "constant")},
        **counts,
        "nonfinite": counts["nan"] + counts["positive_infinity"] + counts["negative_infinity"],
    }
    follows = "activation.dead" in stored
    if role == "feature_maps" and (record.header.knows_dead or follows or f"{role}.dead" in stored):
        found["dead"] = array("dead", "activation" if follows else role)
    return found


def _header(raw: Any) -> Header:
    version = _whole(raw, "format")
    if version > FORMAT:
        raise FormatError(
            f"a record of format {version}; this fmapboard reads up to {FORMAT}: upgrade it where "
            "TensorBoard runs"
        )
    _check_plain(raw)
    shape = raw.get("kernel_shape")
    if shape is not None and not all(type(side) is int for side in shape):
        raise ValueError(f"kernel_shape {shape!r}")
    return Header(
        raw=raw,
        layer=_text(raw, "layer"),
        type=_text(raw, "type"),
        kernel_shape=shape,
        call=_whole(raw, "call"),
        position=_whole(raw, "position"),
        steps_written=_whole(raw, "steps_written"),
        pictures=tuple(_picture(picture) for picture in _list(raw["pictures"])),
        activation=_activation(raw.get("activation")),
    )


def _picture(raw: Any) -> PictureFacts:
    is_grid = raw["role"] != "kernels"
    return PictureFacts(
        role=_text(raw, "role"),
        tag=_text(raw, "tag"),
        samples=_whole(raw, "samples") if is_grid else 1,
        channels=_whole(raw, "channels") if is_grid else None,
        drawn=_whole(raw, "drawn") if is_grid else None,
    )


def _activation(raw: Any) -> str | None:
    return _text(raw, "label") if isinstance(raw, dict) and "label" in raw else None


def _check_shapes(picture: PictureFacts, arrays: Mapping[str, Floats]) -> None:
    """Planes' arrays are [samples, drawn], all others [drawn]."""
    for name, array in arrays.items():
        if not isinstance(name, str):
            raise FormatError(f"a record with an array named {name!r}")
        role, _, what = name.partition(".")
        if role == picture.role or (role, picture.role) == ("activation", ROLES[0]):
            wanted = (picture.samples, picture.drawn) if what in _PLANES else (picture.drawn,)
            if array.shape != wanted:
                raise FormatError(f"a record whose {name} is {array.shape}, not {wanted}")


def _check_plain(value: Any, depth: int = 0) -> None:
    """The header is sent on as JSON: no NaN, and no nesting that would exhaust the stack."""
    if depth > _DEEPEST or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("a header nested too deeply" if depth > _DEEPEST else f"{value} in it")
    for inner in value.values() if isinstance(value, dict) else ():
        _check_plain(inner, depth + 1)
    for inner in value if isinstance(value, list) else ():
        _check_plain(inner, depth + 1)


def _text(raw: Any, key: str) -> str:
    value = raw[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} is {value!r}")
    value.encode()  # half a surrogate pair cannot be asked for
    return value


def _whole(raw: Any, key: str) -> int:
    value = raw[key]
    if type(value) is not int or not 0 <= value < 2**53:
        raise TypeError(f"{key} is {value!r}")
    return value


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value
