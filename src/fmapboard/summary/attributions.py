"""Attribution, a file of its own as few runs have it: pictures, norms, and what is negligible.

The sum of ``relu(-dL/dA) * A`` is the first-order decrease of the loss per relative increase of the
activations that lower it, so it has the unit of the loss, whatever the scale of the activations.
The gradient of a cross entropy is a difference of probabilities, which float32 rounds at 6e-8 of 1:
at the layers it is known to about 1e-6 of the loss's unit per sample. Below ten times that, the map
would be rounding noise, stretched to full contrast. A mean over the batch divides the gradient of
each sample by the batch's size, and so the limit. Measured with
``tests/accuracy/attribution_floor.py`` on three trained networks: from the limit on, float32 maps
correlate with those in float64 at 0.994 or better; below a thousandth of it,
many are noise (median 0.2 to 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import pack
from fmapboard.formats.training_facts import plain
from fmapboard.records import Attribution, Floats, Picture, StepData, TabRecord, TaggedPictures
from fmapboard.render import png
from fmapboard.render.heat import LEGEND, dimmed, heat_over

NEGLIGIBLE = 1e-5
"""Sum of a sample's heat map times the batch's size, in units of the loss."""

NEGLIGIBLE_OF_LARGEST = 1e-6
"""Sum of a heat map as a fraction of the largest among the layers of the sample."""

SIDE = 56
"""Length in px of the longer side of a picture of a training run; those of visualize are larger."""


def gain(found: Attribution) -> float:
    """Sum of the positive part of the heat map; NaN if a value is not finite."""
    if not np.isfinite(found.heat).all() or not np.isfinite(found.gradient):
        return float("nan")
    return float(np.maximum(found.heat, 0).sum(dtype=np.float64))


def negligible(found: Sequence[Attribution]) -> list[bool]:
    """For each attribution of a step, True if it is not to be drawn."""
    gains = [gain(attribution) for attribution in found]
    largest: dict[int, float] = {}
    for attribution, own in zip(found, gains, strict=True):
        known = largest.get(attribution.sample, 0.0)
        largest[attribution.sample] = max(known, own)  # the known one if its own is NaN
    result = []
    for attribution, own in zip(found, gains, strict=True):
        is_noise = not own * attribution.batch > NEGLIGIBLE
        least = NEGLIGIBLE_OF_LARGEST * largest[attribution.sample]
        result.append(is_noise or own <= least)
    return result


@dataclass(frozen=True, slots=True)
class AttributionState:
    """What is known from the stored steps; nothing in it is changed in place.

    Attributes:
        begun: the series that have a picture.
    """

    begun: frozenset[str] = frozenset()


def attributions(
    state: AttributionState, data: StepData, prefix: str, side: int = SIDE
) -> tuple[AttributionState, list[TaggedPictures], dict[str, float], list[TabRecord]]:
    """Build the pictures and scalars of attribution, and the first picture of each series again.

    TensorBoard keeps some steps of a series only, and the first one is the control of all others.

    Args:
        state: What is known from the steps before.
        data: The step.
        prefix: Prefix of every tag.
        side: Length in px of the longer side of a picture.

    Returns:
        The state after this step; the pictures; the norms of gradients by tag; and the records.
    """
    are_negligible = negligible(data.attributions)
    pictures = []
    norms = {}
    records = []
    below: dict[int, Floats] = {}  # of each sample, shared by its layers
    for found, is_negligible in zip(data.attributions, are_negligible, strict=True):
        sample = found.sample
        name = tags.attribution(found.layer_call.label, sample)
        norms[prefix + tags.of(tags.ATTRIBUTION_GRADIENT, name)] = found.gradient
        if found.image is None:
            continue
        if sample not in below:
            below[sample] = dimmed(found.image, side)
        heat = None if is_negligible else found.heat
        picture = heat_over(below[sample], heat)
        tag = prefix + tags.of(tags.ATTRIBUTION, name)
        text = _describe(found, is_negligible=is_negligible)
        pictures.append(TaggedPictures(tag, "attribution", (picture,), None, text))
        if name not in state.begun:
            state = replace(state, begun=state.begun | {name})
            first_tag = f"{prefix}{tags.FIRST_ATTRIBUTION}{name}"
            records.append(_first(first_tag, data.step, found, picture))
    for sample, scored in {found.sample: found for found in data.attributions}.items():
        if scored.score and scored.value is not None:
            score = {
                "name": scored.score,
                "value": scored.value if np.isfinite(scored.value) else None,
            }
            score_tag = f"{prefix}{tags.ATTRIBUTION_SCORE}{sample}"
            records.append(TabRecord(score_tag, pack(score, {})))
    return state, pictures, norms, records


def _first(tag: str, step: int, found: Attribution, picture: Picture) -> TabRecord:
    whose = "loss"
    if found.score:
        whose = "score"
    elif found.of_probe:
        whose = "probe"
    header = {
        "layer": found.layer_call.layer,
        "type": found.layer_call.type,
        "position": found.layer_call.position,
        "size": list(found.heat.shape),
        "of": whose,
        "step": step,
        "gradient": found.gradient if np.isfinite(found.gradient) else None,
    }
    blobs = pack(header, {}, [png.encode(picture)])
    return TabRecord(tag, blobs)


def _describe(found: Attribution, *, is_negligible: bool) -> str:
    layer_call = found.layer_call
    height, width = found.heat.shape
    why = " (map negligible: grey)" if is_negligible else ""
    layer = f"attribution of `{plain(layer_call.label)}` ({layer_call.type}), {height}×{width}: "
    if found.score:
        effect = f"raises the score of {found.score} here"
        method = "LayerCAM of the score y in eval mode, relu(∂y/∂A)·A summed over channels"
        size = f"|∂y/∂A| = {found.gradient:.3g}{why}"
    else:
        effect = "lowers the loss here"
        whose = "this step's loss"
        if found.of_probe:
            whose = "`attribution_loss` on the probe, in eval mode"
        method = f"LayerCAM of {whose}, relu(−∂L/∂A)·A summed over channels"
        size = (
            f"|∂L/∂A| = {found.gradient:.3g}{why} at the first logged step, later ones in "
            f"`{tags.ATTRIBUTION_GRADIENT}/`"
        )
    bright = f"{layer}where it is bright, a larger activation {effect}"
    parts = [bright, method, size]
    passes = str(found.passes)
    if passes:
        parts.append(passes)
    parts.append(LEGEND)
    return "; ".join(parts)
