"""Weights that never change although the network trains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.checks.finding import Finding, named
from fmapboard.checks.run_record import RunRecord, has_zero_gradient
from fmapboard.checks.training_facts import newest
from fmapboard.formats import tags


@dataclass(frozen=True, slots=True)
class UnchangedWeightsCheck:
    """Weights that never change although the network trains.

    A warning: they are the same after several logged steps that an optimizer applied at a learning
    rate above 0 with a gradient that is not zero. Biases are left out: before a BatchNorm their
    gradient is rounding noise, which may be too small to change them.

    A note, if there is no warning, the first of these that applies: no optimizer steps although
    backward passes run; the learning rate is 0 at every logged step; no parameter has a gradient
    other than 0 when an optimizer steps; a layer that is used never gets a gradient for its weight.

    Attributes:
        steps: number of logged steps without a change, for a warning.
        idle: number of logged steps without an optimizer step over which the weights are the same.
        at_zero: number of logged steps at a rate of 0; the first ones of a warm-up have it too.
        without: number of logged steps without a gradient.
    """

    steps: int = 3
    idle: int = 3
    at_zero: int = 8
    without: int = 4
    kind: ClassVar[str] = "unchanged_weights"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        steps = list(record.training_facts())
        last = newest(record)
        found = {
            name: unchanged
            for name, unchanged in last.unchanged.items()
            if unchanged.steps >= self.steps
            and name.rpartition(".")[2] != "bias"
            and not has_zero_gradient(record, name)
        }
        if not found:
            rules = self._idle, self._at_zero, self._no_gradients, self._without
            return next((said for rule in rules if (said := rule(record))), [])
        first = min(found, key=lambda name: found[name].since)
        names = [first, *(name for name in found if name != first)]
        same_as = found[first].since
        since = next((step for step in steps if step > same_as), same_as)
        rate = f" at a learning rate of {last.rates[1]:.2g}" if last.rates else ""
        of = "weights" if len(found) == 1 else f"{len(found)} weights"
        return [
            Finding(
                kind=self.kind,
                class_="warning",
                message=f"{of} unchanged since step {since}, over {found[first].steps} logged "
                f"steps that the optimizer applied{rate}: {named(names)}",
                since_step=since,
                parameter=first,
                parameters=tuple(names),
                value=found[first].steps,
                meaning="Updates are lost: they are smaller than the weights' rounding (a tiny "
                "rate, or weights in half precision), or the weights are restored after it",
                advice="Keep the weights in float32, or raise the learning rate",
            )
        ]

    def _idle(self, record: RunRecord) -> list[Finding]:
        """Backward passes without an optimizer step, at the last logged steps."""
        idle = newest(record).idle
        every = [facts.idle for facts in record.training_facts().values()]
        if idle is None or idle.steps < self.idle or idle.is_held is None:
            return []
        in_a_row = [one for one in every[-1 - idle.steps :] if one is not None]
        if idle.is_held and not all(one.is_cleared for one in in_a_row):
            return []  # gradients are being accumulated
        why = (
            "An optimizer holds them, and none of its steps lies in a logged step"
            if idle.is_held
            else "No optimizer holds a parameter of this model: it may hold those of the model "
            "before it was copied or rebuilt"
        )
        return [
            self._note(
                f"no optimizer stepped on the model at the last {idle.steps + 1} logged steps, "
                f"and weights are the same since step {idle.since}, although backward passes run",
                idle.since,
                idle.steps,
                meaning=why,
                advice="Check that optimizer.step() is reached, and that the optimizer was created "
                "from the parameters of the model that runs",
            )
        ]

    def _at_zero(self, record: RunRecord) -> list[Finding]:
        """A rate of 0 at every logged step of the run."""
        rates = {at: of.rates for at, of in record.training_facts().items() if of.rates}
        if len(rates) < self.at_zero or any(high > 0 for _, high in rates.values()):
            return []
        return [
            self._note(
                f"the learning rate is 0 at each of {len(rates)} logged steps",
                min(rates),
                len(rates),
                meaning="Nothing is learned: the scheduler's factor is 0, such as a warm-up that "
                "is computed with an integer division or counts epochs",
                advice="Print scheduler.get_last_lr() over some steps; during a long warm-up from "
                "rate 0 this is intended",
            )
        ]

    def _no_gradients(self, record: RunRecord) -> list[Finding]:
        """Optimizer steps at which no parameter of the model has a gradient other than 0."""
        facts = [(at, of.no_gradient) for at, of in record.training_facts().items()]
        none = {at: set(names) for at, names in facts if names is not None}
        norms = record.scalars.get(tags.GRADIENT_NORM, {})
        if len(none) < self.without or any((series.values != 0).any() for series in norms.values()):
            return []
        if not norms and not set.intersection(*none.values()):
            return []
        return [
            self._note(
                f"no parameter has a gradient other than 0 at any of {len(none)} logged steps at "
                f"which an optimizer stepped",
                min(none),
                len(none),
                meaning="Nothing is learned: zero_grad() is called between backward() and step(), "
                "backward() is not called, or the loss does not depend on the parameters",
                advice="Call zero_grad() before backward() or after step(), and check that the "
                "loss is not detached or multiplied by 0",
            )
        ]

    def _without(self, record: RunRecord) -> list[Finding]:
        """Trainable weights of layers that run and that an optimizer holds, without a gradient."""
        facts = {at: set(of.no_gradient) for at, of in record.training_facts().items()
                 if of.no_gradient is not None}  # fmt: skip
        if len(facts) < self.without:
            return []
        names = [n for n in sorted(set.intersection(*facts.values())) if _is_used(record, n, facts)]
        if not names:
            return []
        are = "weights are" if len(names) > 1 else "weight is"
        return [
            self._note(
                f"{len(names)} trainable {are} without a gradient at each of {len(facts)} logged "
                f"steps, in layers that are used: {named(names)}",
                min(facts),
                len(names),
                names,
                meaning="They keep their values: the layer runs under torch.no_grad(), or its "
                "weight or its output is detached",
                advice="Remove the torch.no_grad() or detach(), or set requires_grad=False if the "
                "layer is to stay as it is",
            )
        ]

    def _note(
        self,
        message: str,
        since: int,
        value: int,
        names: Sequence[str] = (),
        *,
        meaning: str,
        advice: str,
    ) -> Finding:
        return Finding(
            kind=self.kind,
            class_="note",
            message=message,
            since_step=since,
            parameter=names[0] if names else None,
            parameters=tuple(names),
            value=value,
            healthy="each weight changes at each optimizer step",
            meaning=meaning,
            advice=advice,
        )


def _is_used(record: RunRecord, parameter: str, steps: Iterable[int]) -> bool:
    """True for a weight of a layer that is used, so that a gradient would be expected.

    Another parameter of the layer has a gradient, or the layer ran at these steps before every
    layer that has one: something cuts off the start of the network. Layers behind others with
    gradients may compute what the loss ignores. Biases and the like do not count: some are unused
    on purpose, such as the token of a mask.
    """
    layer, _, own = parameter.rpartition(".")
    if "weight" not in own or not layer:
        return False
    trained = {name.rpartition(".")[0] for name in record.scalars.get(tags.GRADIENT_NORM, {})}
    if layer in trained:
        return True
    table = record.health
    if table is None:
        return False
    layers = [row.facts.layer for row in table.rows]
    first = next((n for n, name in enumerate(layers) if name in trained), 0)
    rows = [n for n, name in enumerate(layers[:first]) if name == layer]
    at = np.isin(table.steps, list(steps))
    return bool(np.isfinite(table.columns["minimum"][at][:, rows]).any(1).all() and rows)
