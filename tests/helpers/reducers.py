"""Reducers with options of their parts, as tests of what they measure need them."""

from __future__ import annotations

from typing import Any

from fmapboard.measure.layout import Sequences
from fmapboard.measure.reducer import Reducer
from fmapboard.render.quantize import Quantizer

_OF_QUANTIZER = ("max_tile", "scale", "zero_centered")
_OF_SEQUENCES = ("channels_last", "tokens_are_patches", "tokens_are_rows")


def reducer_of(**options: Any) -> Reducer:
    """A reducer with options of its own, of its quantizer and of how it reads sequences."""
    quantize = {name: options.pop(name) for name in _OF_QUANTIZER if name in options}
    sequences = {name: options.pop(name) for name in _OF_SEQUENCES if name in options}
    return Reducer(**options, quantize=Quantizer(**quantize), sequences=Sequences(**sequences))
