"""Pictures and gradient norms of attribution, and when it is too small to be shown.

The sum of ``relu(-dL/dA) * A`` is the first-order decrease of the loss per relative increase of the
activations that lower it, so it has the unit of the loss, whatever the scale of the activations.
The gradient of a cross entropy is a difference of probabilities, which float32 rounds at 6e-8 of 1:
at the layers it is known to about 1e-6 of the loss's unit per sample. Below ten times that, the map
would be rounding noise, stretched to full contrast. A mean over the batch divides the gradient of
each sample by the batch's size, and so the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fmapboard import tags
from fmapboard.records import Attribution, TaggedPictures
from fmapboard.render.heat import LEGEND, draw_heat
from fmapboard.summary.first_nonfinite import plain

NEGLIGIBLE = 1e-5
"""Sum of a sample's heat map times the batch's size, in units of the loss."""

NEGLIGIBLE_OF_LARGEST = 1e-6
"""Sum of a heat map as a fraction of the largest among the layers of the sample."""

SIDE = 56
"""Longer side of a picture in px, in training."""


def gain(found: Attribution) -> float:
    """Sum of the positive part of the heat map; NaN if a value is not finite."""
    if not np.isfinite(found.heat).all() or not np.isfinite(found.gradient):
        return float("nan")
    return float(np.maximum(found.heat, 0).sum(dtype=np.float64))


def negligible(found: Sequence[Attribution]) -> list[bool]:
    """For each attribution of a step, True if it is not to be drawn."""
    gains = [gain(one) for one in found]
    largest: dict[int, float] = {}
    for one, own in zip(found, gains, strict=True):
        largest[one.sample] = max(largest.get(one.sample, 0.0), 0.0 if np.isnan(own) else own)
    return [
        not own * one.batch > NEGLIGIBLE or own <= NEGLIGIBLE_OF_LARGEST * largest[one.sample]
        for one, own in zip(found, gains, strict=True)
    ]


class AttributionSummary:
    """Builds the pictures and scalars of attribution.

    Args:
        prefix: Prefix of every tag.
        side: Longer side of a picture in px.
    """

    def __init__(self, prefix: str, side: int = SIDE) -> None:
        self._prefix, self._side = prefix, side
        self._shown: dict[tuple[int, ...], str] = {}

    def __call__(
        self, found: Sequence[Attribution]
    ) -> tuple[list[TaggedPictures], dict[str, float]]:
        """The pictures of a step, and the norms of its gradients by tag."""
        pictures, norms = [], {}
        for one, is_negligible in self._chosen(found):
            name = tags.attribution(one.layer_call.label, one.sample)
            norms[self._prefix + tags.of(tags.ATTRIBUTION_GRADIENT, name)] = one.gradient
            if one.image is None:
                continue
            picture = draw_heat(one.image, None if is_negligible else one.heat, self._side)
            tag = self._prefix + tags.of(tags.ATTRIBUTION, name)
            text = _describe(one, is_negligible=is_negligible)
            pictures.append(TaggedPictures(tag, "attribution", (picture,), None, text))
        return pictures, norms

    def _chosen(self, found: Sequence[Attribution]) -> Iterator[tuple[Attribution, bool]]:
        """What is drawn, and whether it is negligible: of layers with tokens, only one.

        That is the last one with a gradient at the patches, at the first step that has one.
        """
        judged = list(zip(found, negligible(found), strict=True))
        for one, is_negligible in judged:
            if one.tokens and not is_negligible and one.heat.shape not in self._shown:
                last = [o for o, no in judged if o.heat.shape == one.heat.shape and not no]
                self._shown[one.heat.shape] = last[-1].layer_call.label
        for one, is_negligible in judged:
            shown = self._shown.get(one.heat.shape)
            if not one.tokens or shown == one.layer_call.label:
                yield one, is_negligible


def _describe(found: Attribution, *, is_negligible: bool) -> str:
    layer_call, (height, width) = found.layer_call, found.heat.shape
    why = " (negligible: grey)" if is_negligible else ""
    layer = f"attribution of `{plain(layer_call.label)}` ({layer_call.type}), {height}×{width}: "
    if found.score:
        effect = f"raises the score of {found.score} here"
        method = "LayerCAM of the score y in eval mode, relu(∂y/∂A)·A summed over channels"
        size = f"|∂y/∂A| = {found.gradient:.3g}{why}"
    else:
        effect = "lowers the loss here"
        method = "LayerCAM of this step's loss, relu(−∂L/∂A)·A summed over channels"
        size = (
            f"|∂L/∂A| = {found.gradient:.3g}{why} at the first logged step, later ones in "
            f"`{tags.ATTRIBUTION_GRADIENT}/`"
        )
    bright = f"{layer}where it is bright, a larger activation {effect}"
    return "; ".join([bright, method, size, LEGEND])
