"""A loss that falls without an end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence, quoted
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class UnboundedLossCheck(Rule):
    """A loss far below 0 that falls faster and faster.

    By more in the second half of the logged steps than in the first. The loss is known if the
    network returns it, or from ``board.loss``.

    Why it hurts: the loss has no least value, and the network only makes its outputs larger.

    Silent: above the threshold, and while the fall slows down, as that of a log-likelihood does.

    Example: the mean score of a network as its loss, ``loss = -net(x).mean()``.

    Attributes:
        low: the last loss is below it.
        least: number of logged steps.
    """

    low: float = thresholds.UNBOUNDED.value
    least: int = thresholds.LOGGED_STEPS.value
    kind: ClassVar[str] = "unbounded_loss"
    group: ClassVar[str] = "loss_climbed"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for name, steps in evidence.outputs.items():
            known = [
                (step, output.loss) for step, output in steps.items() if output.loss is not None
            ]
            if len(known) < self.least:
                continue
            (first, start), (last, end) = known[0], known[-1]
            middle = known[len(known) // 2][1]
            is_falling_faster = middle - end > start - middle > 0
            if not end < self.low or not is_falling_faster:
                continue
            since = next(step for step, loss in known if loss < 0)
            yield Finding(
                message=f"the loss of the output{quoted(name)} falls faster and faster, from "
                f"{start:.3g} at step {first} to {end:.3g} at step {last}",
                since_step=since,
                value=end,
                healthy="a loss with a least value",
                meaning="The loss has no least value: the network makes its outputs larger and "
                "larger",
                advice="Use a loss with a least value, or bound the output, for example by a tanh",
            )
