"""BatchNorm over batches that are too small."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.formats.tags import BATCHNORM_GAP
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, over_steps
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class BatchnormSmallBatchCheck(Rule):
    """BatchNorm over batches of one or two images, whose variances are not those of eval mode.

    Why it hurts: the statistics of so few values are far from the running ones of eval mode.

    Silent: if the variances agree with the running ones. Intended if the network is never in eval
    mode, as pix2pix, so it is a note.

    Example: batches of two images for a large network, to save memory.

    Attributes:
        batch: largest number of images, or else of rows of the output.
        gap: |log(batch variance / running variance)| from which it is reported, median over the
            layers and the second half of the logged steps.
        least: number of logged steps.
    """

    batch: int = thresholds.SMALL_BATCH.value
    gap: float = thresholds.SMALL_BATCH_GAP.value
    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "batchnorm_small_batch"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        if not evidence.has_batchnorm_gaps:
            return
        sizes = [_batch_size(facts) for facts in evidence.facts.values()]
        batch = max(sizes)
        if len([size for size in sizes if size]) < self.least or batch > self.batch:
            return
        steps, gaps = over_steps(evidence.record.group(BATCHNORM_GAP).values())
        late = np.abs(gaps[len(steps) // 2 :])
        late = late[:, np.isfinite(late).any(0)]  # [steps, layers]
        value = float(np.nanmedian(late)) if late.size else 0.0
        if value < self.gap:
            return
        inputs = "1 input" if batch == 1 else f"{batch} inputs"
        factor = math.exp(min(value, thresholds.LARGEST_LOGARITHM.value))
        yield Finding(
            message=f"BatchNorm sees {inputs} per step, whose variance differs by a factor of "
            f"{factor:.2g} from its running variance (median of {late.shape[1]} layers), since "
            f"step {steps[0]}",
            since_step=int(steps[0]),
            value=value,
            healthy="8 inputs or more",
            meaning="The statistics of so few values are far from the running ones of eval mode",
            advice="Use larger batches or GroupNorm; intended if never in eval mode, as pix2pix",
        )


def _batch_size(facts: TrainingFacts) -> int:
    """Number of images, or else of rows of the first output; 0 if it is not known."""
    if facts.batch:
        return facts.batch
    return next((output.shape[0] for output in facts.outputs if output.shape), 0)
