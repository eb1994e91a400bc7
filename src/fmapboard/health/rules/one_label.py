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

    Why it hurts: the network learns to give one answer, whatever the input.

    Silent: for two classes, as batches of a critic have one label each; for maps of a critic, which
    are smaller than the images; and if the label is 0 and several classes are predicted in the
    second half of the logged steps: the first of several candidates is the right one, as with
    sampled negatives.

    Example: a dataset whose labels are lost, so that each is 0.

    Attributes:
        least: number of logged steps.
        images: least number of labels, and of images that have them.
    """

    least: int = thresholds.LOGGED_STEPS.value
    images: int = thresholds.ONE_LABEL_IMAGES.value
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
            images = sum(output.shape[0] for output in steps.values() if output.labels)
            if min(images, count) < self.images or _may_be_of_critic(evidence, labels, steps):
                continue
            yield Finding(
                message=f"all {count:,} labels of the output{quoted(name)} at "
                f"{len(labels.counts)} {evidence.record.steps_called} are {label}, of "
                f"{max(labels.classes, 2)} classes",
                since_step=labels.first,
                value=label,
                healthy="several labels",
                meaning="The network learns to give one answer, whatever the input: the "
                "labels are lost on their way, the data are sorted by class and not "
                "shuffled, or the weight of all other classes in the loss is 0. "
                "Intended if the first column is the positive of sampled negatives",
                advice="Print the labels of a few batches; shuffle the data",
            )


def _may_be_of_critic(evidence: Evidence, labels: Labels, steps: OutputSteps) -> bool:
    """True if the output may tell two kinds of batches apart."""
    last = list(steps.values())[-1]
    return labels.classes <= 2 and (labels.is_per_image or not evidence.has_largest_maps(last))
