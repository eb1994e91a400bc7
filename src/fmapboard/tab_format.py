"""The stored format of the Feature maps tab's records: what writer and tab agree on.

A record is a blob sequence. Blob 0 is a JSON header; blob 1 holds the arrays that the header
lists, one after the other, little-endian float32. A first-step record goes on with one PNG a sample
and picture, in the header's order. Readers ignore keys they do not know; a change that old readers
would misread gets a new number.

Header keys: ``format``, ``layer``, ``type``, ``kernel_shape`` (list or null), ``call``,
``position``, ``step``, ``steps_written``, ``training_thread_ms``, ``pictures`` and ``arrays``.
A picture: ``kind``, ``tag`` (of its Images series), ``shape`` (the tensor's own), ``channels``
(all of them), ``drawn`` (channels drawn: 0 … drawn - 1), ``samples``, ``tile`` ([height, width]
px), ``columns``, ``padding``, ``block`` (px averaged into one), ``view``, ``palette``, ``scale``.
``activation`` ({``label``, ``type``}) is there where an activation module with a floor comes next.
A picture of kernels has ``peak`` (the largest magnitude: its scale is -peak … peak) instead.

Format 2 adds ``layout`` to pictures; without it, and in format 1, a picture is a grid of tiles.
``"rows"`` is one picture of sequences [C, L]: a row of pixels per channel, a column per position
(``block`` positions averaged into one), so ``tile`` is [1, columns], ``columns`` 1 and ``padding``
0. Kernels of sequences in ``"rows"`` are one tile, 1 px high, per output (down) and input (across).
A record without such a picture is still written as format 1.

An array: ``name``, ``shape``. Names: ``<role>.lo`` and ``<role>.hi`` [samples, drawn];
``<role>.flat`` [samples, drawn] 0 or 1; ``<role>.<statistic>`` [drawn], the statistics of
`records.Statistics` (counts are float32 too: exact up to 2^24). Flags and counts that are 0
throughout are left out; so is ``dead`` where the layer is no activation module.
``activation.dead`` [drawn]: that activation module returned nothing but its floor.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fmapboard.errors import FmapboardError

Floats = npt.NDArray[np.floating[Any]]
FORMAT = 2
"""The newest format that this version reads and writes."""
PLUGIN_NAME = "feature_maps"


class FormatError(FmapboardError):
    """A stored record that this version cannot read."""


def pack(
    header: Mapping[str, Any], arrays: Mapping[str, Floats], more: Sequence[bytes] = ()
) -> tuple[bytes, ...]:
    """Header and arrays as blobs; ``more`` follows them as it is.

    Raises:
        ValueError: the header holds NaN or infinity, which JSON has no word for.
    """
    listed = [{"name": name, "shape": list(array.shape)} for name, array in arrays.items()]
    has_layout = any("layout" in picture for picture in header.get("pictures", ()))
    whole = {"format": FORMAT if has_layout else 1, **header, "arrays": listed}
    text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    with np.errstate(over="ignore"):  # a float64 model's values beyond float32 become infinite
        numbers = b"".join(np.ascontiguousarray(a, "<f4").tobytes() for a in arrays.values())
    return (text.encode(), numbers, *more)


def unpack(blobs: Sequence[bytes]) -> tuple[dict[str, Any], dict[str, Floats]]:
    """The header and the arrays of a stored record; the arrays are read-only views of blob 1.

    Raises:
        FormatError: the record is broken, or of a newer format than this version knows.
    """
    try:
        header: dict[str, Any] = json.loads(blobs[0])
        version = header["format"]
        if version > FORMAT:
            raise FormatError(
                f"a record of format {version}; this fmapboard reads up to {FORMAT}: upgrade it"
            )
        arrays, offset = {}, 0
        for entry in header["arrays"]:
            shape = entry["shape"]
            if not all(isinstance(side, int) and side >= 0 for side in shape):
                raise ValueError(f"an array of shape {shape}")
            flat = np.frombuffer(blobs[1], "<f4", math.prod(shape), offset)
            arrays[entry["name"]] = flat.reshape(shape)
            offset += flat.nbytes
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise FormatError(f"a record that is not in fmapboard's format: {error}") from error
    return header, arrays
