"""Layers that the network's forward pass leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats import tags
from fmapboard.health import effects, thresholds
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class NeverCalledCheck(Rule):
    """Trainable parameters that never had a gradient, in watched layers that never ran.

    Why it hurts: they keep their initial values, and a layer that should compute something does
    not.

    Silent: if they are few compared with the layers that are trained, as spare parts of a
    library's network are, and if something else changes them.

    Example: ``forward`` calls ``self.conv2`` twice and ``self.conv3`` never.

    Attributes:
        least: number of logged steps.
        span: number of training steps between the first and the last of them.
        share: number of such layers over that of the layers with gradients.
    """

    least: int = thresholds.LOGGED_STEPS.value
    span: int = thresholds.NEVER_CALLED_SPAN.value
    share: float = thresholds.NEVER_CALLED_SHARE.value
    kind: ClassVar[str] = "never_called"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        every = evidence.facts.items()
        steps = {step: facts for step, facts in every if facts.no_gradient is not None}
        if len(steps) < self.least or max(steps) - min(steps) < self.span:
            return
        last = list(steps.values())[-1]
        lost = set.intersection(*(set(facts.not_called) for facts in steps.values()))
        names = [name for name in last.not_called if name in lost]
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
        parameters = [name for name in evidence.gradient_norms if name != tags.TOTAL]
        trained = {name.rpartition(".")[0] for name in parameters}
        if not names or len(layers) < self.share * len(trained):
            return
        noun = "layer"
        pronoun = "it"
        if len(layers) > 1:
            noun = "layers"
            pronoun = "them"
        yield Finding(
            message=f"{len(layers)} {noun} with trainable parameters never ran and never had "
            f"a gradient at {len(steps)} {evidence.record.steps_called}, and nothing has changed "
            f"{pronoun}: {named(layers)}",
            since_step=min(steps),
            parameter=names[0],
            parameters=tuple(names),
            value=len(names),
            healthy="each layer runs",
            meaning="The network's forward does not call them, or calls another layer twice "
            "instead; they keep their initial values",
            advice="Call them in forward(), or remove them, unless a later phase uses them",
        )
