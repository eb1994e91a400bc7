"""Numbers of the heads of attention: scalars per layer, and arrays for the tab."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fmapboard.formats import tags
from fmapboard.records import Floats, HeadNumbers, LayerMeasurement


def head_scalars(measured: Iterable[LayerMeasurement]) -> dict[str, float]:
    """Tag -> mean over the heads of a layer, and the value of the most extreme one.

    A mean of entropies is over the heads whose entropy is known; without any there is no scalar.
    """
    scalars: dict[str, float] = {}
    for part in measured:
        heads = part.heads
        if heads is None:
            continue
        label = part.layer_call.label
        known = heads.entropy[~np.isnan(heads.entropy)]
        if known.size:
            entropy = tags.of(tags.ATTENTION_ENTROPY, label)
            scalars[entropy] = float(known.mean())
            scalars[tags.of(entropy, tags.LOWEST_HEAD)] = float(known.min())
        for group, values in (
            (tags.ATTENTION_LOGIT, heads.logit),
            (tags.ATTENTION_FIRST, heads.first),
        ):
            tag = tags.of(group, label)
            scalars[tag] = float(values.mean())
            scalars[tags.of(tag, tags.HIGHEST_HEAD)] = float(values.max())
    return scalars


def head_arrays(heads: HeadNumbers, drawn: int) -> dict[str, Floats]:
    """The arrays of a tab record (see ``formats.tab_records``) for the drawn heads."""
    return {
        "attention.entropy": heads.entropy[:drawn],
        "attention.logit": heads.logit[:drawn],
        "attention.first": heads.first[:drawn],
    }
