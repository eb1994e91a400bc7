"""``prove``: whether a network learns once the cause that a verdict names is taken away."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.twin import NoTwin
from fmapboard.errors import first_line
from fmapboard.formats.checks import Outcome, Proof
from fmapboard.health.causes import causes_of
from fmapboard.health.cures import INCONCLUSIVE, NOT_TRIED, PROVEN, REFUTED, variants
from fmapboard.health.finding import Finding
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.distributed import world_size
from fmapboard.rehearsal.cures import CURES, IN_EVAL_MODE, OF_FACTS, Trial
from fmapboard.rehearsal.kept_loss import KeptLoss, NotSo, NotTried, kept_losses
from fmapboard.rehearsal.training_copy import TrainingCopy
from fmapboard.session.kept_batches import KeptBatches, Rates, named_state

STEPS = 50
"""Of each training."""
_LEAST_STEPS = 10
"""Fewer tell nothing."""
_LAST = 5
"""Steps over which the last loss is averaged, at least; otherwise one per batch."""
_CLEARLY = 0.02
"""Share of its first loss by which the loss must fall without the cause, to have learnt."""
_FURTHER = 0.6
"""As it is, the loss falls by less than this share of how far it falls without the cause."""
_MOST_CAUSES = 6
"""Of causes at once, those that are tried alone."""
_MOST_TOGETHER = 3
"""Of these, those that are tried beside each other."""
_LEVELS = 3
"""Maximum number of variants of a cure."""


class Training(NamedTuple):
    """The losses of a training of a copy, one per step, and whether its time was over."""

    losses: tuple[float, ...]
    is_cut: bool


@dataclass(slots=True)
class Experiments:
    """Trains copies of a network as it is and without causes, all from the same state.

    Attributes:
        model: the network.
        kept: what was kept of its training.
        scaler: its GradScaler, or None.
        seconds: how long all trainings may take.
        clock: time in s.
    """

    model: nn.Module
    kept: KeptBatches
    scaler: Any
    seconds: float
    clock: Callable[[], float] = time.monotonic
    _end: float = 0.0
    _trained: dict[frozenset[str], Training] = field(default_factory=dict)

    def prove(self, findings: Sequence[Finding]) -> dict[str, Proof]:
        """Try the cures of the causes of these findings, the first ones first.

        What was below a cause that is refuted is a cause, and is tried then.

        Returns:
            Kind of a finding -> what its experiment has shown.
        """
        self._end = self.clock() + self.seconds
        proofs: dict[str, Proof] = {}
        tried: list[Finding] = []
        try:
            setting = self._setting(findings)
        except Exception as error:
            why = _reason(error)
            causes = [cause.finding for cause in causes_of(findings)]
            return {f.kind: Proof(NOT_TRIED, f.cure, why=why) for f in causes if f.cure}
        while len(tried) < _MOST_CAUSES:
            known = [replace(f, proof=proofs.get(f.kind)) for f in findings]
            roots = [cause.finding for cause in causes_of(known)]
            due = [f for f in roots if f.cure and f.kind not in proofs]
            if not due:
                break
            left = len({finding.kind for finding in due}) + 1
            proofs[due[0].kind] = self._best(setting, due[0], left)
            tried.append(due[0])
        return {**proofs, **self._together(setting, tried, proofs)}

    def _together(
        self, setting: _Setting, tried: Sequence[Finding], proofs: Mapping[str, Proof]
    ) -> dict[str, Proof]:
        """What causes that do not help alone show once the others are taken away in both."""
        found: dict[str, Proof] = {}
        trained = [finding for finding in tried if proofs[finding.kind].steps]
        cures = {finding.kind: proofs[finding.kind].cure for finding in trained[:_MOST_TOGETHER]}
        first = {finding.kind: finding.cure or "" for finding in tried}
        weak = [kind for kind in cures if proofs[kind].outcome != PROVEN]
        for kind in weak if len(cures) > 1 else ():
            without = tuple(other for other in cures if other != kind)
            for level in range(_LEVELS):
                chosen = dict(cures)
                for other in weak:
                    chosen[other] = _variant(first[other], level)
                proof = self._proof(setting, chosen, kind, without, left=2)
                if proof.outcome == PROVEN and _ends_lower(proof, proofs[kind]):
                    found[kind] = proof
                    break
        return found

    def _best(self, setting: _Setting, cause: Finding, left: int) -> Proof:
        """The first variant of a cure that helps, else the last one that was tried."""
        best: Proof | None = None
        for cure in variants(cause.cure or ""):
            proof = self._proof(setting, {cause.kind: cure}, cause.kind, (), left)
            if best is None or proof.outcome != NOT_TRIED:
                best = proof
            if proof.outcome != REFUTED or not proof.steps:
                break
        assert best is not None
        return best

    def _proof(
        self,
        setting: _Setting,
        cures: Mapping[str, str],
        kind: str,
        without: tuple[str, ...],
        left: int,
    ) -> Proof:
        """What a cause does, beside others that are taken away in both trainings.

        Args:
            setting: of the trainings.
            cures: kind of each cause -> name of its cure.
            kind: of the cause.
            without: kinds of the others.
            left: number of trainings over which the rest of the time is shared.
        """
        cure = cures[kind]
        try:
            before = self._training(setting, [cures[other] for other in without], left, cure)
            after = self._training(setting, [*[cures[o] for o in without], cure], left - 1, cure)
        except NotSo as absent:
            return Proof(REFUTED, cure, why=str(absent))
        except Exception as error:
            return Proof(NOT_TRIED, cure, why=_reason(error))
        is_cut = before.is_cut or after.is_cut
        limit = f"{self.seconds:g} s were over"
        steps = max(len(before.losses), len(after.losses))
        if is_cut:
            steps = min(len(training.losses) for training in (before, after) if training.is_cut)
            if steps < _LEAST_STEPS:
                return Proof(NOT_TRIED, cure, why=f"{limit} after {steps} steps")
        as_it_is = _ends(before.losses, steps, len(setting.batches))
        cured = _ends(after.losses, steps, len(setting.batches))
        return Proof(
            _outcome(as_it_is, cured, cure),
            cure,
            steps,
            _known(as_it_is),
            _known(cured),
            why=limit if is_cut else "",
            without=without,
        )

    def _training(
        self, setting: _Setting, cures: Collection[str], left: int, shown: str
    ) -> Training:
        """The losses of a copy with cures, trained once."""
        is_in_eval = shown in IN_EVAL_MODE
        key = frozenset([*cures, "eval"] if is_in_eval else cures)
        if key in self._trained:
            return self._trained[key]
        trial = self._trial(setting)
        trial.is_shown_in_eval = is_in_eval
        for cure in cures:
            CURES[cure](trial)
        end = self.clock() + (self._end - self.clock()) / max(left, 1)

        def is_over(losses: Sequence[float]) -> bool:
            return self.clock() > end

        losses = trial.train(STEPS, is_over)
        has_ended = len(losses) == STEPS or not isfinite(losses[-1])
        is_cut = not has_ended and self.clock() > end
        self._trained[key] = Training(tuple(losses), is_cut)
        return self._trained[key]

    def _setting(self, causes: Sequence[Finding]) -> _Setting:
        """What all trainings have in common.

        Raises:
            NotTried: there can be none.
        """
        kept = self.kept
        if world_size() > 1:
            raise NotTried("several processes train, and a copy would train in one of them alone")
        known = [reference() for reference in kept.optimizers]
        if not known or kept.start is None:
            raise NotTried("no step of an optimizer was logged")
        if len(known) > 1:
            raise NotTried("several optimizers train the network")
        optimizer = known[0]
        if optimizer is None:
            raise NotTried("the optimizer is gone")
        batches = kept_losses(kept.batches)
        newest = batches[-1].batch
        return _Setting(optimizer, batches, self._rates(causes), newest.clears_gradients)

    def _rates(self, causes: Sequence[Finding]) -> Rates:
        """The learning rates of the step at which the first cause begins, or the highest ones."""
        rates = self.kept.rates
        for finding in causes:
            since = finding.since_step
            if finding.cure == "lower_rate" and since in rates:
                return rates[since]
        return max(rates.values(), key=lambda rate: max(map(float, rate)))

    def _trial(self, setting: _Setting) -> Trial:
        """A copy of the network in the state of the first logged step."""
        copied = TrainingCopy(self.model, setting.optimizer, scaler=self.scaler)
        start = self.kept.start
        assert start is not None
        with torch.no_grad():
            state = named_state(copied.model)
            shapes = {name: values.shape for name, values in start.values.items()}
            if {name: tensor.shape for name, tensor in state.items()} != shapes:
                raise NotTried("the network has other parameters than at the first logged step")
            for name, tensor in state.items():
                tensor.copy_(start.values[name])
        groups = copied.optimizer.param_groups
        copied.optimizer.state.clear()
        parameters = [parameter for group in groups for parameter in group["params"]]
        for parameter, saved in zip(parameters, start.optimizer_state, strict=False):
            if saved:
                copied.optimizer.state[parameter] = _on_device(saved, parameter)
        if len(setting.rates) == len(groups):
            for group, rate in zip(groups, setting.rates, strict=True):
                group["lr"] = rate
        newest = setting.batches[-1].batch
        for name, module in copied.model.named_modules():
            module.training = name not in newest.in_eval_mode
        return Trial(copied, setting.batches, clears_gradients=setting.clears_gradients)


class _Setting(NamedTuple):
    """What all trainings have in common.

    Attributes:
        optimizer: of the network.
        batches: on which copies are trained.
        rates: learning rate of each parameter group; empty if they are not known.
        clears_gradients: False if the training adds up the gradients of its steps.
    """

    optimizer: Optimizer
    batches: Sequence[KeptLoss]
    rates: Rates
    clears_gradients: bool


def _variant(cure: str, level: int) -> str:
    """A cure or, from level 1 on, a stronger variant, if there is one."""
    every = variants(cure)
    return every[min(level, len(every) - 1)]


class Ends(NamedTuple):
    """The first loss of a training, and the mean of its last ones."""

    first: float
    last: float


def _ends(losses: Sequence[float], steps: int, batches: int) -> Ends:
    """The ends of the first steps; a training that has broken off ends in its last loss."""
    shown = losses[:steps]
    if len(shown) < steps:
        return Ends(shown[0], float("nan"))
    last = shown[-max(_LAST, batches) :]
    return Ends(shown[0], sum(last) / len(last))


def _outcome(as_it_is: Ends, cured: Ends, cure: str) -> Outcome:
    """What two trainings show.

    A cause is there if its cure would have been refused otherwise, or if at the first step it costs
    more than all steps bring without it. Such a cause is not refuted where the network learns in
    spite of it, nor where the copy without it ends lower and does not learn, which has another
    cause.
    """
    if not isfinite(cured.last):
        return REFUTED
    first = min((loss for loss in (as_it_is.first, cured.first) if isfinite(loss)), default=0.0)
    gain = first - cured.last
    learns = gain > _CLEARLY * abs(first)
    if learns and not first - as_it_is.last >= _FURTHER * gain:  # NaN too
        return PROVEN
    ends_lower = not cured.last >= as_it_is.last
    costs_more = as_it_is.first - cured.first > gain
    if cure in OF_FACTS:
        return INCONCLUSIVE if learns or ends_lower else REFUTED
    return INCONCLUSIVE if learns and costs_more else REFUTED


def _ends_lower(without_all: Proof, alone: Proof) -> bool:
    """True if a copy without several causes ends lower than one as it is, with all of them.

    Otherwise the cure of one has spoilt the training, and the cure of the other makes up for that.
    """
    as_it_is = alone.as_it_is[1]
    cured = without_all.cured[1]
    return as_it_is is None or (cured is not None and cured < as_it_is)


def _known(ends: Ends) -> tuple[float | None, ...]:
    return tuple([loss if isfinite(loss) else None for loss in ends])


def _on_device(saved: Mapping[str, Any], parameter: nn.Parameter) -> dict[str, Any]:
    """A copy of an optimizer's state of a parameter; its counter of steps stays on the CPU."""
    state = {}
    for name, value in saved.items():
        is_like = isinstance(value, torch.Tensor) and value.shape == parameter.shape
        state[name] = value.to(parameter.device) if is_like else value
        if isinstance(value, torch.Tensor):
            state[name] = state[name].clone()
    return state


def _reason(error: Exception) -> str:
    """Why an experiment was not possible."""
    raise_interrupt(error)
    if isinstance(error, (NotTried, NoTwin)):
        return str(error)
    return f"a copy's training failed ({first_line(error)})"
