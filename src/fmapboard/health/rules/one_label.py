"""Labels that are all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, OutputSteps, quoted
from fmapboard.health.finding import Finding
from fmapboard.health.labels import Labels, labels_of
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class OneLabelCheck(Rule):
    """All images have the same label, at all logged steps.

    Why it hurts: the network learns to give one answer, whatever the image.

    Silent: for batches of a critic, which have one label each (two classes with a loss that is not
    near 0); for losses over sampled candidates, whose label is always the first one; for masks
    with few pixels, which may be empty.

    Example: a dataset whose labels are lost, so that each is 0.

    Attributes:
        least: number of logged steps.
        images: least number of labels.
        pixels: least number of labels if they are pixels of nothing but background, of at least
            ``images`` images.
        loss: that of two classes up to which it counts; a critic is not as sure of a batch.
    """

    least: int = thresholds.LOGGED_STEPS.value
    images: int = thresholds.ONE_LABEL_IMAGES.value
    pixels: int = thresholds.ONE_LABEL_PIXELS.value
    loss: float = thresholds.ONE_LABEL_LOSS.value
    kind: ClassVar[str] = "one_label"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            labels = labels_of(steps)
            if labels is None or len(labels.counts) < self.least or len(labels.total) > 1:
                continue
            label, count = labels.total.most_common(1)[0]
            is_empty = label == 0 and not labels.is_per_image
            images = sum(output.shape[0] for output in steps.values() if output.labels)
            has_few = count < self.images
            if is_empty:
                has_few |= images < self.images or count < self.pixels
            if has_few or self._may_be_of_critic(evidence, labels, steps, is_empty):
                continue
            yield Finding(
                message=f"all {count:,} labels of the output{quoted(name)} at "
                f"{len(labels.counts)} {evidence.record.steps_called} are {label}, of "
                f"{max(labels.classes, 2)} classes",
                since_step=labels.first,
                value=label,
                healthy="several labels",
                meaning="The network learns to give one answer, whatever the image: the "
                "labels are lost on their way, or the data are sorted by class and not "
                "shuffled. Intended if the first column is the positive of sampled negatives",
                advice="Print the labels of a few batches; shuffle the data",
            )

    def _may_be_of_critic(
        self, evidence: Evidence, labels: Labels, steps: OutputSteps, is_empty: bool
    ) -> bool:
        """True if the output may tell two kinds of batches apart."""
        last = list(steps.values())[-1]
        if not labels.is_per_image:
            return labels.classes == 1 and not (is_empty and evidence.has_largest_maps(last))
        return labels.classes <= 2 and (last.loss is None or last.loss > self.loss)
