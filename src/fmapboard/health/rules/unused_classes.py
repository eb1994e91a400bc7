"""Classes that no label names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import MAX_NAMES
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, quoted
from fmapboard.health.finding import Finding
from fmapboard.health.labels import labels_of
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class UnusedClassesCheck(Rule):
    """Classes of the output that no label of the logged steps names.

    Reported if a class half as frequent as the rarest of those that occur, and one of a fifth of
    their mean frequency, would be missing by chance less often than the threshold.

    Why it hurts: the last layer has more outputs than classes, or classes are lost.

    Silent: for batches that are the same or sorted by class, and for pixels and words, most of
    which are rare.

    Example: labels from 0 to 9 and ``nn.Linear(512, 1000)``.

    Attributes:
        chance: 0 to 1.
    """

    chance: float = thresholds.UNUSED_CHANCE.value
    kind: ClassVar[str] = "unused_classes"
    unless: ClassVar[tuple[str, ...]] = ("sorted_labels",)
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        every = evidence.record.facts.values()
        digests = [facts.batch_digest for facts in every if facts.batch_digest is not None]
        if len(set(digests)) < len(digests):
            return
        for name, steps in evidence.outputs.items():
            labels = labels_of(steps)
            if labels is None or len(labels.total) < 2 or not labels.is_per_image:
                continue
            if max(map(len, labels.counts)) >= MAX_NAMES:
                continue  # of more labels than these, not all are known
            count = labels.total.total()
            used = len(labels.total)
            share = thresholds.UNUSED_FREQUENCY.value / used
            rare = min(min(labels.total.values()) / 2, -count * math.log1p(-share))
            if used >= labels.classes or math.exp(-rare) >= self.chance:
                continue
            yield Finding(
                message=f"the output{quoted(name)} has {labels.classes} classes, and "
                f"{count:,} labels at {len(labels.counts)} {evidence.record.steps_called} name "
                f"{used} of them",
                since_step=labels.first,
                value=labels.classes - used,
                healthy="each class occurs",
                meaning="The last layer has more outputs than classes, classes are lost, or their "
                "weight in the loss is 0",
                advice="Compare the number of outputs with the labels of the whole data set; "
                "nothing is wrong if some classes are rare or reserved",
            )
