"""An image that the network received."""

from __future__ import annotations

from dataclasses import dataclass

from fmapboard.records.layer_call import Floats, Normalization


@dataclass(frozen=True, slots=True)
class InputImage:
    """An input image of the network, as the network received it.

    Attributes:
        sample: Index in the batch.
        values: f32 [C, H, W].
        normalization: Mean and standard deviation per channel of the model's normalization; None if
            unknown.
        block: Side in px of the squares that were averaged into one pixel; 1 for none.
    """

    sample: int
    values: Floats
    normalization: Normalization | None = None
    block: int = 1
