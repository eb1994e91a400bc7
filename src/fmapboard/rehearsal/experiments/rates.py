"""Which learning rates train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import ClassVar, Literal

from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.experiments.one_batch_is_learnt import lowest
from fmapboard.rehearsal.schedules import rates_ahead
from fmapboard.rehearsal.setup import Setup, sweep, warmed_up
from fmapboard.rehearsal.tried import losses_of, with_usual_settings

State = Literal["does nothing", "is slow", "trains", "breaks"]


@dataclass(frozen=True, slots=True)
class Rates(Experiment):
    """The first batch is trained for 20 steps at up to seven rates around the caller's.

    It costs 20 steps for each rate, less what other experiments have trained at it already.

    A fault: the caller's rate breaks or does next to nothing where a lower one brings the loss
    down; the caller's rate and ten times it do nothing where a hundred times it or more does; a
    scheduler that a hook of the optimizer steps leaves nothing of the rate in 40 steps. Where the
    caller's rate trains with the default settings of the optimizer, these are named in its place.

    The rate is that which a warm-up of a scheduler leads to (``initial_lr``).

    Not judged: a rate below that with which the optimizer was created: a warm-up by hand.

    Attributes:
        trains: the loss as a share of the first one, below which a rate trains.
        slow: the same, above which a rate does next to nothing.
        breaks: the same at the end, above which it breaks.
        steps: at each rate.
        left: share of its highest value that a schedule must leave of the rate.
    """

    trains: float = 0.8
    slow: float = 0.9
    breaks: float = 1.5
    steps: int = 20
    left: float = 1e-3
    kind: ClassVar[str] = "rates"
    question: ClassVar[str] = "Which rates train?"
    bound: ClassVar[str] = "the caller's among them"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        wrong = self._schedule(setup)
        if wrong is not None:
            return wrong
        found = sweep(setup, steps=self.steps)
        curves = {f"rate × {f:g}": tuple(losses) for f, losses in sorted(found.items())}
        if 1.0 not in found:
            return not_judged("no time was left", curves=curves)
        first = found[1.0][0]
        if not 0 < first < inf or min(map(lowest, found.values())) < 0:
            return not_judged("no share of a loss below zero is known", curves=curves)
        states = {factor: self.state(setup, losses) for factor, losses in found.items()}
        rate = _rate(setup)
        listed = [f"{'→ ' if f == 1 else ''}{rate * f:.2g} {states[f]}" for f in sorted(states)]
        text = ", ".join(listed)
        return self._judged(setup, found, states, rate, text, curves)

    def _schedule(self, setup: Setup) -> Answer | None:
        """A fault if a scheduler takes the rate away while this batch is trained."""
        for schedule in setup.schedules:
            rates = rates_ahead(setup.make_copy(), schedule, 2 * self.steps)
            if rates and max(rates[self.steps :]) < self.left * max(rates):
                return fault(
                    f"{type(schedule).__name__} takes the rate from {max(rates):.2g} to "
                    f"{rates[-1]:.2g} in {len(rates)} steps",
                    figure=rates[-1],
                    advice="It is stepped after each batch: step it once per epoch, or slower",
                )
        return None

    def _with_usual_settings(self, setup: Setup, first: float) -> Answer | None:
        """A fault if not the rate prevents the training, but other settings of the optimizer."""
        for trial in with_usual_settings(setup):
            losses = losses_of(setup, trial, self.steps, setup.remaining() / 4)
            if not losses or not isfinite(losses[-1]) or lowest(losses) >= self.trains * first:
                continue
            return fault(
                f"the loss stays at {first:.3g}, and falls to {lowest(losses):.3g} {trial.phrase}",
                advice=trial.advice,
            )
        return None

    def state(self, setup: Setup, losses: Sequence[float]) -> State:
        """What a rate does."""
        first = losses[0]
        if not isfinite(losses[-1]):
            return "breaks"
        end = sorted(losses[-5:])[2] if len(losses) >= 5 else losses[-1]
        if end > self.breaks * first:
            return "breaks"
        if lowest(losses) < self.trains * first:
            return "trains"
        return "does nothing" if setup.is_still(losses) else "is slow"

    def _judged(
        self,
        setup: Setup,
        found: dict[float, list[float]],
        states: dict[float, State],
        rate: float,
        text: str,
        curves: dict[str, tuple[float, ...]],
    ) -> Answer:
        own = states[1.0]
        first = found[1.0][0]
        shares = {factor: lowest(losses) / first for factor, losses in found.items()}
        lower = {f: share for f, share in shares.items() if f < 1 and states[f] != "breaks"}
        least = min(lower.values(), default=inf)
        is_broken = own == "breaks" and least < 0.97
        is_stuck = shares[1.0] > self.slow and least < self.trains
        if is_broken or is_stuck:
            other = self._with_usual_settings(setup, first)
            if other is not None:
                return replace(other, figure=rate, curves=curves)
            best = min(lower, key=lambda factor: lower[factor])
            verb = "breaks" if own == "breaks" else "does next to nothing"
            return fault(
                f"the rate {rate:.2g} {verb}, and {rate * best:.2g} brings the loss down ({text})",
                figure=rate,
                advice=f"Divide the learning rate by {1 / best:.0f}",
                curves=curves,
            )
        higher = [f for f, state in states.items() if f >= 100 and shares[f] < self.slow]
        if own == "does nothing" and states.get(10.0) == "does nothing" and higher:
            if _is_below_default(setup):
                return not_judged(f"the rate may be that of a warm-up ({text})", rate, curves)
            return fault(
                f"the rate {rate:.2g} does nothing in {self.steps} steps ({text})",
                figure=rate,
                advice=f"Multiply the learning rate by {min(higher):.0f}",
                curves=curves,
            )
        return fine(text, rate, curves)


def _rate(setup: Setup) -> float:
    """The largest rate of the caller's optimizer, after its warm-up."""
    groups = setup.make_copy().optimizer.param_groups
    return max(float(warmed_up(group)) for group in groups)


def _is_below_default(setup: Setup) -> bool:
    """True if each rate is below that with which the optimizer was created."""
    optimizer = setup.make_copy().optimizer
    created = float(optimizer.defaults.get("lr", 0.0))
    return all(float(warmed_up(group)) < created for group in optimizer.param_groups)
