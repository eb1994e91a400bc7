"""Parameters that no optimizer holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.formats.training_facts import OUTSIDE
from fmapboard.health import effects
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class NotInOptimizerCheck(Rule):
    """Trainable parameters with a gradient that no optimizer holds, at the last two logged steps.

    Layers in a Python list or dict count too, since they are no part of the model.

    Why it hurts: these parameters keep their initial values, and the rest of the network has to
    learn around random layers.

    A note if the loss falls all the same, as with a frozen network inside the model that still gets
    gradients.

    Silent: if a second optimizer holds them, if they are frozen (``requires_grad=False``), or if
    they belong to a network that is only read, such as a target network.

    Example: ``model.fc = nn.Linear(512, 10)`` after ``optimizer = SGD(model.parameters())``.
    """

    kind: ClassVar[str] = "not_in_optimizer"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    cure: ClassVar[str] = "all_parameters"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        since = evidence.since(lambda facts: bool(facts.not_in_optimizer))
        if since is None:
            return
        names = evidence.newest.not_in_optimizer or ()
        count = evidence.newest.count("not_in_optimizer")
        is_outside = names[0].startswith(OUTSIDE)
        meaning = (
            "The optimizer was created before these layers, or from another model, or its "
            "parameter groups leave them out, so they keep their initial values"
        )
        advice = "Pass them to the optimizer, or set requires_grad=False if that is intended"
        if is_outside:
            meaning = "Layers in a Python list or dict, or made in forward(), are not part of the "
            meaning += "model, and not trained"
            advice = "Make them in __init__(), in an nn.ModuleList or nn.ModuleDict"
        elif next(iter(evidence.facts.values())).not_in_optimizer == ():
            meaning = "These layers were made after the first logged step: in forward(), at each "
            meaning += "call anew, or in place of others that the optimizer holds"
            advice = "Make them in __init__(), before the optimizer is created"
        parameters = "parameter is" if count == 1 else "parameters are"
        yield Finding(
            class_="note" if evidence.falls() else "warning",
            message=f"{count} trainable {parameters} in no optimizer "
            f"since step {since}: {named(names, count)}",
            since_step=since,
            parameter=None if is_outside else names[0],
            value=count,
            meaning=meaning,
            advice=advice,
            cure="" if is_outside else None,
        )
