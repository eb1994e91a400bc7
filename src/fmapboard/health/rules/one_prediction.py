"""One predicted class for every input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, lasting, quoted
from fmapboard.health.finding import Finding, whole_percent
from fmapboard.health.labels import labels_of
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class OnePredictionCheck(Rule):
    """The same class is predicted for every row, although the labels are of several classes.

    At the second half of the logged steps, which span 50 training steps or more, with eight rows or
    more at each.

    Why it hurts: the network tells the inputs apart, and its answer does not depend on them.

    Silent: if one class is so frequent that to predict it alone is a fair answer, and if the loss
    falls: a network learns first how frequent its labels are.

    Example: class weights that were inverted, so that the rarest class outweighs all others.

    Attributes:
        most: share of the most frequent label up to which it is reported.
        rows: least number of rows of each step.
    """

    most: float = thresholds.MOST_FREQUENT.value
    rows: int = thresholds.SORTED_IMAGES.value
    kind: ClassVar[str] = "one_prediction"
    unless: ClassVar[tuple[str, ...]] = ("constant_output",)
    leads_to: ClassVar[tuple[str, ...]] = effects.fading(after="one_prediction")

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        if evidence.falls():
            return
        for name, steps in evidence.outputs.items():
            logged = list(steps)
            if logged[-1] - logged[0] < thresholds.UPDATE_SPAN.value:
                continue
            labels = labels_of(steps)
            if labels is None:
                continue
            most = max(labels.total.values()) / labels.total.total()
            least = max(thresholds.LOGGED_STEPS.value, len(steps) // 2)
            since = lasting(steps, self._is_one, least)
            if since is None or most > self.most:
                continue
            yield Finding(
                message=f"the output{quoted(name)} predicts one class for all rows since step "
                f"{since}, and {len(labels.total)} classes are labels, the most frequent one of "
                f"{whole_percent(most)}",
                since_step=since,
                value=most,
                healthy="several predicted classes",
                meaning="The answer does not depend on the input: class weights are wrong, the "
                "last layer's bias outweighs what it receives, or the labels belong to others",
                advice="Print the class weights and the predictions of a few batches",
            )

    def _is_one(self, output: OutputFacts) -> bool:
        return output.predictions == 1 and output.rows >= self.rows
