"""Input images with large values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, ImageScale
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class ImagesNotScaledCheck(Rule):
    """Input images with values far above the usual range, in the median over the logged steps.

    Why it hurts: initial weights and learning rates are made for inputs with a standard deviation
    near 1.

    Silent: if the network scales them itself: its first layer responds with usual values, or a
    normalization follows it, and its output starts at usual magnitudes. BatchNorm and LayerNorm
    do not excuse bytes, which are forgotten more often than left to them.

    Example: images from 0 to 255 instead of 0 to 1.

    Attributes:
        largest: magnitude from which it is reported.
        widest: standard deviation from which it is reported.
        response: standard deviation of the first layer's output at the first logged step up to
            which the network scales large images itself.
        beyond: largest magnitude of an output of classes at that step, from which it does not.
    """

    largest: float = thresholds.IMAGE_MAGNITUDE.value
    widest: float = thresholds.IMAGE_SPREAD_HIGH.value
    response: float = thresholds.FIRST_RESPONSE.value
    beyond: float = thresholds.FIRST_OUTPUT.value
    kind: ClassVar[str] = "images_not_scaled"
    group: ClassVar[str] = "input_scale"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    cure: ClassVar[str] = "normalized_inputs"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        images = evidence.image_scale
        if images is None:
            return
        is_large = images.magnitude > self.largest
        is_wide = self.widest < images.spread < math.inf
        if not (is_large or is_wide) or self._is_scaled(evidence, images):
            return
        value = images.spread
        text = f"input images have a standard deviation of {value:.2g}"
        if is_large:
            value = images.magnitude
            text = f"the largest magnitude of the input images is {value:.3g}"
        meaning = "The images are not scaled: 0 to 255 instead of 0 to 1"
        if not images.are_bytes:
            meaning = (
                f"The images are not scaled: values from {images.low:.3g} to {images.high:.3g}"
            )
        yield Finding(
            message=f"{text} (median of {images.steps} logged steps) "
            f"{evidence.layers.since_text(images.since)}",
            since_step=images.since,
            value=value,
            healthy="magnitudes up to 5, standard deviation 0.2 to 1.5",
            meaning=meaning,
            advice="Normalize the images once, to a standard deviation near 1",
            picture=evidence.drawn_input,
        )

    def _is_scaled(self, evidence: Evidence, images: ImageScale) -> bool:
        """True if the network scales large images by itself."""
        if not evidence.largest_first_output <= self.beyond:
            return False
        if evidence.first_response <= self.response:
            return True
        rows = evidence.weighted_layers
        kinds = [kind.lower() for kind in rows[0].facts.followed_by] if rows else []
        norms = [kind for kind in kinds if "norm" in kind]
        if images.are_bytes:
            norms = [kind for kind in norms if not kind.startswith(("batch", "layer"))]
        return bool(norms)
