"""A softmax over a single class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class SoftmaxOfOneClassCheck(Rule):
    """Every output is a single unit that is exactly 1 for every image, at every logged step.

    Why it hurts: a softmax over a single class is always 1, and passes no gradient.

    Silent: if the network ends in ``nn.Sigmoid``, all that its last layer returns is large, or the
    output was another one at some step: a sigmoid is saturated then. If the last layer is not
    watched, both causes are named.

    Example: ``nn.Linear(64, 1)`` followed by ``nn.Softmax(dim=1)``.
    """

    kind: ClassVar[str] = "softmax_of_one_class"
    group: ClassVar[str] = "constant_output"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    is_from_start: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        constant = evidence.constant_output()
        if constant is None or not constant.is_one or evidence.is_sigmoid_at_end:
            return
        meaning = "A softmax over a single class is always 1, and passes no gradient"
        advice = "Use a sigmoid, or two classes, instead of a softmax over one"
        if not evidence.ends_in_one_unit:
            meaning = (
                "A softmax over a single class is always 1, and so is a sigmoid of large values; "
                "neither passes a gradient, and the last layer is not watched"
            )
            advice += "; if it is a sigmoid, initialize the layer before it with smaller values"
        yield Finding(
            message="the output is exactly 1 for every input at every logged step",
            value=constant.spread,
            healthy="several values",
            meaning=meaning,
            advice=advice,
        )
