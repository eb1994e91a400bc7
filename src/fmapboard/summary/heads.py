"""Numbers of the heads of attention: scalars per layer, and arrays for the tab."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health import thresholds
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
            if np.isnan(values).all():
                continue
            tag = tags.of(group, label)
            scalars[tag] = float(values.mean())
            scalars[tags.of(tag, tags.HIGHEST_HEAD)] = float(values.max())
    return scalars


def head_facts(facts: TrainingFacts, measured: Iterable[LayerMeasurement]) -> TrainingFacts:
    """The facts with what the heads of each layer see that they should not.

    Args:
        facts: with what is certain of the outputs.
        measured: the layers.
    """
    next_key: dict[str, float] = {}
    padding: dict[str, float] = {}
    off_one: dict[str, float] = {}
    samples: dict[str, float] = {}
    same_token: dict[str, float] = {}
    lengths: dict[str, int] = {}
    for part in measured:
        if part.heads is None:
            continue
        label = part.layer_call.label
        lengths[label] = part.shape[-1]
        for found, values in (
            (next_key, part.heads.next_key),
            (padding, part.heads.padding),
            (off_one, part.heads.off_one),
            (samples, part.heads.samples),
            (same_token, part.heads.same_token),
        ):
            largest = float(values.max())
            if math.isfinite(largest):
                found[label] = largest
    is_causal = _is_causal(facts.outputs, next_key, lengths)
    if not any(output.labels_ahead == 1 for output in facts.outputs):
        next_key = {}
    seen = {label: weight for label, weight in padding.items() if weight > thresholds.SEEN.value}
    # Of an output [T, N, C] it is not known which axis is the batch.
    batches = {output.shape[0] for output in facts.outputs if len(output.shape) not in (0, 3)}
    is_between = bool(samples) and batches.issuperset(samples.values())
    return replace(
        facts,
        outputs=tuple(_with_gaps(output, same_token, lengths) for output in facts.outputs),
        next_key=next_key,
        padding=seen,
        off_one=off_one,
        is_causal=is_causal,
        between_samples=tuple(samples) if is_between else (),
    )


def _is_causal(
    outputs: Sequence[OutputFacts], next_key: Mapping[str, float], lengths: Mapping[str, int]
) -> bool | None:
    """See ``TrainingFacts.is_causal``.

    Args:
        outputs: of the network.
        next_key: rows of attention over a text -> the weight of the next key.
        lengths: rows of attention -> number of keys.
    """
    if not next_key:
        return None
    answered = {
        output.shape[1]
        for output in outputs
        if output.labels_ahead is not None and len(output.shape) == 3
    }
    weights = [weight for label, weight in next_key.items() if lengths[label] in answered]
    return max(weights or next_key.values()) <= thresholds.SEEN.value


def _with_gaps(
    output: OutputFacts, same_token: Mapping[str, float], lengths: Mapping[str, int]
) -> OutputFacts:
    """The output with whether attention over its text gives equal tokens equal logits.

    Args:
        output: the output.
        same_token: rows of attention over a text -> ``HeadNumbers.same_token``, in the order of the
            calls.
        lengths: rows of attention -> number of keys.
    """
    gaps = [
        gap
        for label, gap in same_token.items()
        if len(output.shape) != 3 or lengths[label] == output.shape[1]
    ]
    if not gaps or output.ignores_places or not output.needs_places:
        return output
    return replace(output, attends_alike=gaps[0] <= thresholds.SAME_OUTPUT.value)


def head_arrays(heads: HeadNumbers, drawn: int) -> dict[str, Floats]:
    """The arrays of a tab record (see ``formats.tab_records``) for the drawn heads."""
    return {
        "attention.entropy": heads.entropy[:drawn],
        "attention.logit": heads.logit[:drawn],
        "attention.first": heads.first[:drawn],
    }
