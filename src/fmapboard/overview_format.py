"""Stored format of a run's overview series, shared by writer and plugin.

One record per logged step in the series ``tags.OVERVIEW``, with numbers of every layer call whose
feature maps were measured, drawn or not. Blob 0 is a JSON header as in ``tab_format``, with the
keys ``format``, ``step``, ``steps_written``, ``columns``, ``since`` and ``arrays``; blob 1 holds
one array, ``numbers`` [layers, columns] of float32; blob 2 is a zlib-compressed JSON list of what
is known about each layer (``LayerFacts``), in the order of calls. A reader takes columns by name,
and ignores columns and keys that it does not know.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from fmapboard.tab_format import Floats, FormatError, pack, unpack

COLUMNS = (
    "minimum", "maximum", "mean", "std",
    "nonfinite", "constant", "dead", "dead_lasting", "change", "weights_change",
)  # fmt: skip
"""Numbers of a layer at one step; NaN where a number is not known.

``minimum`` and ``maximum`` are those of all finite values, ``mean`` and ``std`` of all channels
with equal weight. ``nonfinite``, ``constant`` and ``dead`` are shares of all channels of the layer,
0 to 1; ``dead`` is that of the activation that directly follows, if there is one, and is NaN if the
layer is not followed by an activation and is none. ``dead_lasting`` is the share of channels that
were dead at each of the last `LASTING` logged steps. ``change`` is the mean change of the drawn
maps, in standard deviations, and ``weights_change`` that of the weights, relative to their norm
(see ``summary.channel_change``).
"""
KINDS = ("nonfinite", "large", "dead", "constant", "unchanged")
"""States that are faults, the most severe first; also the keys of ``since``."""
LARGE = 1e4
"""Magnitude from which a value is called large; the front end has the same."""
MINOR, MAJOR = 0.1, 0.5
"""Shares of dead or constant channels from which a layer is in that state, and severely so."""
LASTING = 4
"""Number of logged steps after which a dead channel is lastingly dead."""
_MAX_LAYERS_TEXT = 64 * 2**20
"""Maximum size in bytes of blob 2 after decompression."""


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """What is known about a layer call besides its numbers.

    Attributes:
        label: name of the layer, and of the call if it is not the first.
        layer: name of the layer.
        type: class of the module.
        kernel_shape: shape of the kernels; None for layers without.
        call: number of the call within the forward pass, from 1.
        position: position in the order of calls.
        channels: number of channels.
        values: number of values per channel over the whole batch.
        drawn: number of channels drawn; 0 if the layer has no pictures.
        samples: number of samples drawn.
        roles: kinds of pictures.
        activation: label of the activation that directly follows, or None.
    """

    label: str
    layer: str
    type: str
    kernel_shape: tuple[int, ...] | None
    call: int
    position: int
    channels: int
    values: int
    drawn: int = 0
    samples: int = 1
    roles: tuple[str, ...] = ()
    activation: str | None = None


@dataclass(frozen=True, slots=True)
class OverviewStep:
    """The overview at one logged step.

    Attributes:
        step: number of the step.
        steps_written: number of steps logged so far.
        layers: facts about each layer.
        numbers: column -> its value for each layer, float [layers].
        since: kind of `KINDS` -> index of each layer in that state now -> first of the logged steps
            at which it has been in that state without interruption.
    """

    step: int
    steps_written: int
    layers: tuple[LayerFacts, ...]
    numbers: Mapping[str, Floats]
    since: Mapping[str, Mapping[int, int]]


def pack_overview(of: OverviewStep) -> tuple[bytes, ...]:
    """The three blobs of a record; columns that are missing in ``numbers`` are stored as NaN."""
    unknown = np.full(len(of.layers), np.nan)
    table = np.stack([of.numbers.get(name, unknown) for name in COLUMNS], axis=-1)
    since = {
        kind: {str(index): step for index, step in sorted(layers.items())}
        for kind, layers in of.since.items()
        if layers
    }
    header = {
        "step": of.step,
        "steps_written": of.steps_written,
        "columns": list(COLUMNS),
        "since": since,
    }
    listed = [asdict(layer) for layer in of.layers]
    text = json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode()
    return pack(header, {"numbers": table}, [zlib.compress(text, 6)])


def unpack_overview(blobs: Sequence[bytes | None]) -> OverviewStep:
    """Parse the blobs of a record.

    Raises:
        FormatError: a blob is None or damaged, or the record's format is newer.
    """
    if len(blobs) < 3 or any(blob is None for blob in blobs):
        raise FormatError("the overview can no longer be read")
    header, arrays = unpack([blob for blob in blobs if blob is not None])
    try:
        layers = tuple(map(_layer, json.loads(_decompressed(blobs[2] or b""))))
        columns, table = header["columns"], arrays["numbers"]
        if table.shape != (len(layers), len(columns)):
            raise ValueError(f"numbers have shape {table.shape}")
        if not all(isinstance(name, str) for name in columns):
            raise ValueError("a column's name is not a string")
        since = {
            kind: {_whole(int(index), len(layers)): _whole(step) for index, step in among.items()}
            for kind, among in header["since"].items()
            if kind in KINDS
        }
        return OverviewStep(
            _whole(header["step"]),
            _whole(header["steps_written"]),
            layers,
            dict(zip(columns, table.T, strict=True)),
            since,
        )
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        zlib.error,
    ) as error:
        raise FormatError(f"the overview is not in fmapboard's format: {error}") from error


def _decompressed(blob: bytes) -> bytes:
    """Decompress at most `_MAX_LAYERS_TEXT` bytes, so that a hostile record cannot fill memory."""
    engine = zlib.decompressobj()
    text = engine.decompress(blob, _MAX_LAYERS_TEXT)
    if engine.unconsumed_tail or not engine.eof:
        raise ValueError("the list of layers is too long, or cut off")
    return text


_TEXTS = {"label", "layer", "type"}
_WHOLES = {"call", "position", "channels", "values", "drawn", "samples"}


def _layer(raw: Any) -> LayerFacts:
    """Validate one entry of blob 2; unknown keys are ignored."""
    known = {field.name: raw[field.name] for field in fields(LayerFacts) if field.name in raw}
    for name, value in known.items():
        if name in _TEXTS:
            known[name] = _text(value)
        elif name in _WHOLES:
            known[name] = _whole(value)
    shape, activation = known.get("kernel_shape"), known.get("activation")
    known["kernel_shape"] = None if shape is None else tuple(map(_whole, shape))
    known["roles"] = tuple(map(_text, known.get("roles", ())))
    known["activation"] = None if activation is None else _text(activation)
    return LayerFacts(**known)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    value.encode()  # raises for a lone surrogate, which cannot be sent
    return value


def _whole(value: Any, below: int = 2**53) -> int:
    if type(value) is not int or not 0 <= value < below:
        raise TypeError(f"{value!r} is not a whole number from 0 to {below - 1}")
    return value
