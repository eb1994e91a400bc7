"""Input images with hardly any contrast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats import tags
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule
from fmapboard.health.table import is_normalized


@dataclass(frozen=True, slots=True)
class FlatImagesCheck(Rule):
    """Input images whose values hardly vary, in the median over the logged steps.

    Why it hurts: what differs between the images is small beside the initial weights, and the
    network learns it slowly or not at all.

    Silent: if a normalization follows the first layer; BatchNorm in eval mode is none.

    Example: images divided by 255 twice.

    Attributes:
        spread: standard deviation up to which it is reported.
    """

    spread: float = thresholds.IMAGE_SPREAD_LOW.value
    kind: ClassVar[str] = "flat_images"
    group: ClassVar[str] = "input_scale"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    cure: ClassVar[str] = "normalized_inputs"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        images = evidence.image_scale
        if images is None or images.spread >= self.spread or _is_normalized(evidence):
            return
        yield Finding(
            message=f"input images have a standard deviation of {images.spread:.2g} (median of "
            f"{images.steps} logged steps) {evidence.layers.since_text(images.since)}",
            since_step=images.since,
            value=images.spread,
            healthy="magnitudes up to 5, standard deviation 0.2 to 1.5",
            meaning="The images were scaled twice, or have hardly any contrast",
            advice="Normalize the images once, to a standard deviation near 1",
            picture=evidence.drawn_input,
        )


def _is_normalized(evidence: Evidence) -> bool:
    """True if a normalization that adapts follows the first layer with kernels."""
    first = next(iter(evidence.weighted_layers), None)
    if first is None or not is_normalized(first):
        return False
    is_fixed = not evidence.record.scalars.get(tags.BATCHNORM_GAP)  # BatchNorm in eval mode
    return not (is_fixed and is_normalized(first, "batchnorm"))
