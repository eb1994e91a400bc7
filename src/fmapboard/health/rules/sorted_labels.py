"""Batches that are sorted by class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, quoted
from fmapboard.health.finding import Finding, whole_percent
from fmapboard.health.labels import labels_of
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class SortedLabelsCheck(Rule):
    """Batches of nearly one class each, and other classes at other logged steps.

    Why it hurts: each batch teaches one answer and forgets the others.

    Silent: if one class is as frequent in all of the data, for two classes, and for labels of
    pixels.

    Example: ``DataLoader(dataset, batch_size=32)`` of a dataset in folders, without shuffling.

    Attributes:
        least: number of logged steps.
        images: least number of labels per step.
        share: median share of the most frequent label in a batch from which it is reported.
    """

    least: int = thresholds.LOGGED_STEPS.value
    images: int = thresholds.SORTED_IMAGES.value
    share: float = thresholds.SORTED_SHARE.value
    kind: ClassVar[str] = "sorted_labels"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            labels = labels_of(steps)
            if labels is None or not labels.is_per_image or labels.classes <= 2:
                continue
            sizes = [sum(by_label.values()) for by_label in labels.counts]
            if len(sizes) < self.least or min(sizes) < self.images:
                continue
            shares = [
                max(by_label.values()) / size
                for by_label, size in zip(labels.counts, sizes, strict=True)
            ]
            share = float(np.median(shares))
            total = labels.total
            overall = max(total.values()) / total.total()
            if share < self.share or overall > thresholds.SORTED_OVERALL.value * share:
                continue
            yield Finding(
                message=f"{whole_percent(share)} of the labels of a batch are the same (median "
                f"of {len(sizes)} {evidence.record.steps_called}), and {len(total)} labels occur "
                f"at these steps, in the output{quoted(name)}",
                since_step=labels.first,
                value=share,
                healthy="batches of several classes",
                meaning="The data are sorted: each batch teaches one answer and forgets the others",
                advice="Shuffle the data: DataLoader(..., shuffle=True)",
            )
