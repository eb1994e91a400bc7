"""NaN and infinite values: where they are first, and what the record tells about the cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fmapboard.health import effects
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.layer_findings import first_nonfinite, further
from fmapboard.health.nonfinite_causes import (
    FirstSeen,
    cause,
    is_input_lost,
    is_spared,
    not_finite,
    own_weights,
    recorded,
)
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class NonfiniteCheck(Rule):
    """NaN or infinite values in the activations of a layer or in a gradient, at any logged step.

    The cause that is named is the first of these that applies: a weight of the layer is not
    finite; the first layer received images that are not finite; the values arise in the layer or in
    code before it; all activations are finite, so that they arise in the loss or in the backward
    pass.

    Why it hurts: the optimizer writes such a gradient into all weights, which never recover.

    Silent: of gradients in steps without an optimizer step, such as those that a ``GradScaler``
    skips, which is how it finds its scale.

    Example: ``torch.log(probabilities)`` where one of them is 0.
    """

    kind: ClassVar[str] = "nonfinite"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything(after="nonfinite")
    cure: ClassVar[str] = "lower_rate"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        record = evidence.record
        table = evidence.layers
        if is_spared(evidence, table.first_nonfinite):
            table = replace(table, first_nonfinite=None)
        found = first_nonfinite(table)
        if found is None:
            return
        first = table.first_nonfinite
        if first is not None and (first.step, first.label or "") != (found.since, found.label):
            first = None  # the finding is from other numbers
        first_seen = FirstSeen(record, table, found.since, found.index, first)
        meaning, advice = cause(first_seen)
        own = own_weights(first_seen)
        message = found.message
        if own:
            meaning += recorded(evidence, first_seen)
            place = f"{found.place}, whose {not_finite(own)}"
            message = f"{found.began}, {place}{further(found.more)}"
        elif is_input_lost(first_seen):
            place = f"of the layers {found.place}"
            message = f"{found.began} in the network's input; {place}{further(found.more)}"
        yield Finding(
            class_="warning",
            message=message,
            since_step=found.since,
            layer=found.label or None,
            parameter=first.owner if first is not None and first.label is None else None,
            value=found.value,
            meaning=meaning,
            advice=advice,
            picture="" if found.index is None else record.picture(table.rows[found.index]),
        )
