"""Running statistics that stay the initial ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.formats.tags import BATCHNORM_GAP
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class BatchnormMomentumCheck(Rule):
    """A running variance that is still 90 % or more the initial one after 50 batches or more.

    At the last two logged steps.

    Why it hurts: in eval mode the network computes something else than in training.

    Silent: for loaded statistics, for layers in eval mode, and where the running variance fits the
    batches all the same.

    Example: a momentum of 0.999, meant as in Keras: in torch it is the weight of a new batch.
    """

    kind: ClassVar[str] = "batchnorm_momentum"
    group: ClassVar[str] = "batchnorm_gap"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        last = list(evidence.record.facts.values())[-2:]
        if len(last) < 2:
            return
        before, newest = last
        names = [
            name
            for name in newest.initial_norms
            if name in before.initial_norms and not _is_close(evidence, name)
        ]
        if not names:
            return
        facts = evidence.record.facts.items()
        since = next(step for step, known in facts if names[0] in known.initial_norms)
        count = len(names) + newest.left_out.get("initial_norms", 0)
        layers = "layer is" if count == 1 else "layers is"
        yield Finding(
            message=f"the running variance of {count} BatchNorm {layers} still 90 % or more the "
            f"initial value of 1 after 50 batches or more, since step {since}: "
            f"{named(names, count)}",
            since_step=since,
            layer=names[0],
            value=count,
            healthy="10 % or less after 50 batches, at the usual momentum of 0.1",
            meaning="The momentum is 0 or far too small (in torch it is the weight of a new batch)",
            advice="Use a momentum of 0.1 or 0.01; call eval() on layers that are to stay",
        )


def _is_close(evidence: Evidence, layer: str) -> bool:
    """True if a running variance fits the batches, whatever it is made of."""
    series = evidence.record.scalars.get(BATCHNORM_GAP, {}).get(layer)
    if series is None:
        return False
    known = series.values[np.isfinite(series.values)]
    if not known.size:
        return False
    newest = known[-max(1, known.size // thresholds.QUARTERS.value) :]
    return bool(np.median(np.abs(newest)) <= thresholds.BATCHNORM_CLOSE.value)
