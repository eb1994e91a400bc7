"""BatchNorm over two values per channel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.tags import BATCHNORM_GAP
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule
from fmapboard.health.table import is_normalized


@dataclass(frozen=True, slots=True)
class BatchnormFewValuesCheck(Rule):
    """A BatchNorm that sees at most two values per channel and step.

    Why it hurts: normalized, nothing is left of two values but which one is larger.

    Silent: from three values on.

    Example: maps of 1×1 behind a pooling, and batches of two images.

    Attributes:
        values: largest number of values per channel.
        least: number of logged steps.
    """

    values: int = thresholds.FEW_VALUES.value
    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "batchnorm_few_values"
    group: ClassVar[str] = "batchnorm_small_batch"
    unless: ClassVar[tuple[str, ...]] = ("batchnorm_small_batch",)
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        if not evidence.has_batchnorm_gaps or len(evidence.facts) < self.least:
            return
        table = evidence.layers
        most = table.columns["values"].max(0).tolist()
        names = []
        largest = 0.0
        for row, values in zip(table.rows, most, strict=True):
            if values <= self.values and is_normalized(row, "batchnorm"):
                names.append(row.facts.layer)
                largest = max(largest, values)
        if not names:
            return
        every = evidence.record.group(BATCHNORM_GAP).values()
        since = min(int(series.steps[0]) for series in every)
        yield Finding(
            message=f"BatchNorm sees at most {largest:.0f} values per channel behind "
            f"{named(names)} since step {since}",
            since_step=since,
            value=largest,
            healthy="8 values or more",
            meaning="The statistics of so few values are far from the running ones of eval mode",
            advice="Use larger batches or GroupNorm; intended if never in eval mode, as pix2pix",
        )
