"""What an overview says about each layer besides its numbers: blob 2 of a record."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from fmapboard.tab_format import FormatError

_MAX_LAYERS_TEXT = 16 * 2**20
"""Maximum size in bytes of blob 2 after decompression: about 60,000 layers."""
INVALID = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What parsing a damaged record may raise."""


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
        values: number of values per channel over the whole batch; of a record, at the first step
            with these layers (see the column of that name).
        drawn: number of channels drawn; 0 if the layer has no pictures.
        samples: number of samples drawn.
        roles: kinds of pictures.
        activation: label of the activation that directly follows, or None.
        transposed_stride: stride of a transposed convolution; None for other layers, and in records
            of earlier versions.
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
    transposed_stride: tuple[int, ...] | None = None


def pack_layers(layers: Sequence[LayerFacts]) -> bytes:
    """Blob 2 of a record."""
    listed = [asdict(layer) for layer in layers]
    return zlib.compress(json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode(), 6)


def digest(blob: bytes) -> str:
    """Tells blob 2 apart from others, for ``layers`` in the header."""
    return f"{zlib.crc32(blob):08x}-{len(blob)}"


def unpack_layers(blob: bytes) -> tuple[LayerFacts, ...]:
    """Parse blob 2 of a record.

    Raises:
        FormatError: it is damaged.
    """
    try:
        return tuple(map(_layer, json.loads(_decompressed(blob))))
    except (*INVALID, zlib.error) as error:
        raise FormatError(
            f"the overview's layers are not in fmapboard's format: {error}"
        ) from error


def _decompressed(blob: bytes) -> bytes:
    """Decompress at most `_MAX_LAYERS_TEXT` bytes, so that a hostile record cannot fill memory."""
    engine = zlib.decompressobj()
    text = engine.decompress(blob, _MAX_LAYERS_TEXT)
    if engine.unconsumed_tail or not engine.eof:
        raise ValueError("the list of layers is too long, or cut off")
    return text


_TEXTS = {"label", "layer", "type"}
_WHOLES = {"call", "position", "channels", "values", "drawn", "samples"}
_FIELDS = tuple(field.name for field in fields(LayerFacts))


def _layer(raw: Any) -> LayerFacts:
    """Validate one entry of blob 2; unknown keys are ignored."""
    known = {name: raw[name] for name in _FIELDS if name in raw}
    for name, value in known.items():
        if name in _TEXTS:
            known[name] = _text(value)
        elif name in _WHOLES:
            known[name] = whole(value)
    shape, activation = known.get("kernel_shape"), known.get("activation")
    stride = known.get("transposed_stride")
    known["kernel_shape"] = None if shape is None else tuple(map(whole, shape))
    known["transposed_stride"] = None if stride is None else tuple(map(whole, stride))
    known["roles"] = tuple(map(_text, known.get("roles", ())))
    known["activation"] = None if activation is None else _text(activation)
    return LayerFacts(**known)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    value.encode()  # raises for a lone surrogate, which cannot be sent
    return value


def whole(value: Any, below: int = 2**53) -> int:
    """A whole number from 0 to ``below`` - 1.

    Raises:
        TypeError: it is none.
    """
    if type(value) is not int or not 0 <= value < below:
        raise TypeError(f"{value!r} is not a whole number from 0 to {below - 1}")
    return value
