"""A model that trains in eval mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class EvalModeCheck(Rule):
    """The model was in eval mode in steps whose gradients were applied, the last two logged ones.

    Why it hurts: dropout is off, and BatchNorm uses running statistics that no longer follow the
    activations.

    A note if the loss falls all the same: some recipes fine-tune in eval mode.

    Silent: if BatchNorm layers alone are in eval mode, which is a usual way to fine-tune.

    Example: ``model.eval()`` in a validation, and no ``model.train()`` after it.
    """

    kind: ClassVar[str] = "eval_mode"
    leads_to: ClassVar[tuple[str, ...]] = effects.anything()
    cure: ClassVar[str] = "train_mode"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        since = evidence.since(lambda facts: facts.eval_mode is True)
        if since is None:
            return
        modules = [name or "the model" for name in evidence.newest.eval_modules]
        listed = f": {named(modules)}" if modules else ""
        yield Finding(
            class_="note" if evidence.falls() else "warning",
            message=f"the model is in eval mode while it trains, since step {since}{listed}",
            since_step=since,
            meaning="Dropout is off, and BatchNorm uses and keeps its running statistics",
            advice="Call model.train() before the training steps, also after each validation",
        )
