"""The attribution of one drawn sample at one layer call."""

from __future__ import annotations

from dataclasses import dataclass

from fmapboard.records.input_image import InputImage
from fmapboard.records.layer_call import ONE_PASS, Floats, LayerCall, PassCount


@dataclass(frozen=True, slots=True)
class Attribution:
    """Where larger activations of a layer lower the loss, or raise a score, for one sample.

    Attributes:
        layer_call: The layer call.
        sample: Index in the batch.
        heat: f32 [H, W], ``relu(-dL/dA) * A`` summed over channels, of the unscaled loss L. A pixel
            is negative where the activations themselves are.
        gradient: 2-norm of the sample's part of dL/dA.
        batch: Number of samples in the batch.
        image: The sample's input image; None if it is unknown.
        tokens: The layer returns tokens, of which other layers are alternatives.
        score: Name of the score, which is then -L; empty for a loss.
        of_probe: The loss is ``attribution_loss`` on the probe, instead of the training step's.
        passes: The backward passes that the gradient is the sum of.
        value: The score; None for a loss.
    """

    layer_call: LayerCall
    sample: int
    heat: Floats
    gradient: float
    batch: int
    image: InputImage | None = None
    tokens: bool = False
    score: str = ""
    of_probe: bool = False
    passes: PassCount = ONE_PASS
    value: float | None = None
