"""``FactRecorder``: records at each logged step what only the training process can know."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer

from fmapboard.capture.batch_images import PendingBatch
from fmapboard.capture.eval_mode import eval_modules
from fmapboard.capture.gradient_samples import GradientSamples
from fmapboard.capture.gradients import GradientReader
from fmapboard.capture.idle_weights import IdleWeights, PendingIdle
from fmapboard.capture.isolation import aside
from fmapboard.capture.open_step import OpenStep
from fmapboard.capture.optimizers import parameters_of
from fmapboard.capture.pass_observer import PassObserver
from fmapboard.capture.pass_selection import Candidate, PassSelection
from fmapboard.capture.uncleared import UnclearedGradients
from fmapboard.findings_format import Findings, Idle
from fmapboard.model.distributed import is_sharded
from fmapboard.records import TrainingFacts


class _Group(NamedTuple):
    """A parameter group at the time of a step.

    Attributes:
        rate: its learning rate; [] on an accelerator if the optimizer keeps it there.
        names: its parameters of the model.
    """

    rate: float | Tensor
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PendingFacts:
    """``records.TrainingFacts`` in part still on the device.

    Attributes:
        findings: without what depends on the rest.
        groups: the parameter groups that were updated.
        batch: the batch of images; None if the input is none.
        idle: what a step without an optimizer step tells; None of other steps.
        uncleared: values of the gradients that seem not to be cleared.
    """

    findings: Findings
    groups: tuple[_Group, ...] = ()
    batch: PendingBatch | None = None
    idle: PendingIdle | None = None
    uncleared: tuple[GradientSamples, ...] = ()

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        yield from (group.rate for group in self.groups if isinstance(group.rate, Tensor))
        if self.batch is not None:
            yield from self.batch.tensors()
        if self.idle is not None:
            yield from self.idle.values
        for sampled in self.uncleared:
            yield from sampled.values

    def to_host(self) -> TrainingFacts:
        """Wait for the device and copy to the host."""
        rates = [(float(group.rate), group.names) for group in self.groups]
        known = [rate for rate, _ in rates if math.isfinite(rate)]
        findings = replace(self.findings, rates=(min(known), max(known)) if known else None)
        if findings.not_cleared:
            nonzero = [sampled.nonzero() for sampled in self.uncleared]
            found = tuple(n for n in findings.not_cleared if all(n in names for names in nonzero))
            findings = replace(findings, not_cleared=found)
        if self.batch is not None:
            constant, identical = self.batch.to_host()
            findings = replace(
                findings,
                batch=self.batch.size,
                constant_images=constant,
                identical_images=identical,
            )
        by_name = {n: rate for rate, names in rates if math.isfinite(rate) for n in names}
        digest = None
        if self.idle is not None:
            digest = self.idle.digest()
            findings = replace(findings, idle=Idle(0, 0, self.idle.is_held, self.idle.is_cleared))
        return TrainingFacts(findings, by_name, digest)


class FactRecorder(PassObserver):
    """Observes passes and optimizer steps; used on the training thread.

    Args:
        gradients: reports optimizer steps.
        selection: reports forward and backward passes.
        enabled: False records nothing.
    """

    def __init__(
        self, gradients: GradientReader, selection: PassSelection, enabled: bool = True
    ) -> None:
        self._gradients, self._selection, self._is_enabled = gradients, selection, enabled
        self._uncleared, self._membership = UnclearedGradients(), gradients.membership
        self._idle, self._gradient_is_none = IdleWeights(), dict[str, bool]()
        self._groups: dict[int, list[_Group]] = {}
        self._just_used: frozenset[int] = frozenset()
        self._accumulated = False
        self._modules: tuple[str, ...] | None = None
        if enabled:
            selection.observer = self
            gradients.observer = self._stepping

    def step_completed(self, optimizer: Optimizer) -> None:
        """Called when an optimizer has stepped, right before the next logged step opens."""
        if self._is_enabled:
            self._just_used = frozenset(map(id, parameters_of(optimizer)))

    def step_opens(self) -> None:
        """Called when a logged step opens."""
        just_used, self._just_used = self._just_used, frozenset()
        self._groups, self._accumulated = {}, False
        self._modules, self._gradient_is_none = None, {}
        trainable = self._trainable()
        self._idle.opens()
        self._membership.opens(trainable)
        self._uncleared.opens({} if is_sharded(self._selection.model) else trainable, just_used)

    def pass_begins(self, candidate: Candidate) -> None:
        """Called when a pass that is recorded begins."""
        candidate.collected.compares_images = True
        candidate.eval_modules = eval_modules(self._selection.model)

    def backward_begins(self) -> None:
        """Called when a backward pass begins."""
        self._uncleared.backward_begins()
        self._idle.backward_begins(self._trainable())
        if self._modules is None:
            self._modules = eval_modules(self._selection.model)

    def backward_ends(self) -> None:
        """Called when a backward pass has ended."""
        self._uncleared.backward_ends()
        self._idle.backward_ends(self._trainable())

    def pending(self, opened: OpenStep) -> PendingFacts | None:
        """What was recorded in a logged step that closes; None if it was no training step."""
        if not self._is_enabled or opened.passes == "evaluation":
            return None
        with self._selection.guard("findings"):
            return self._pending(opened)
        return None  # after an error, which the guard has reported

    def _pending(self, opened: OpenStep) -> PendingFacts:
        reader, chosen = self._gradients, self._selection.chosen
        uncleared = self._uncleared.closes(opened.step)
        has_stepped = reader.stepped and not reader.skipped
        trainable = self._trainable()
        modules: tuple[str, ...] | None = None
        if has_stepped and chosen is None:  # the root's forward did not run, only its children's
            modules = self._modules
        elif has_stepped and chosen is not None and chosen.is_used:
            modules = chosen.eval_modules
        found = Findings(
            not_in_optimizer=self._membership.closes(trainable) if has_stepped else None,
            not_cleared=uncleared,
            eval_mode=None if modules is None else bool(modules),
            eval_modules=modules or (),
            frozen=tuple(name for name in reader.names.values() if name not in trainable),
            accumulated=self._accumulated and chosen is not None,  # children are no passes
            no_gradient=tuple(n for n, is_none in self._gradient_is_none.items() if is_none)
            if has_stepped
            else None,
        )
        groups = [group for groups in self._groups.values() for group in groups]
        idle = self._idle_weights(opened, trainable)
        own = tuple(groups) if has_stepped else ()
        samples = self._uncleared.take_samples()
        return PendingFacts(found, own, opened.live.batch, idle, samples if uncleared else ())

    def _idle_weights(
        self, opened: OpenStep, trainable: Mapping[str, Tensor]
    ) -> PendingIdle | None:
        """None if an optimizer stepped, or the gradients may serve something before the model."""
        stepped = self._gradients.stepped or self._gradients.skipped
        names = self._idle.closes(trainable, has_stepped=stepped)
        is_fixed = opened.live.input_trains is False
        if not names or not is_fixed or is_sharded(self._selection.model):
            return None
        is_held = self._membership.holds_any(trainable)
        return self._idle.pending([trainable[name] for name in names], is_held)

    def _trainable(self) -> dict[str, Tensor]:
        names = self._gradients.names
        own = self._gradients.trainable
        return {names[id(p)]: p for p in own if p.requires_grad and not p.is_meta}

    def _stepping(self, optimizer: Optimizer, own: Mapping[str, Tensor]) -> None:
        """Called before an optimizer updates parameters of the model, given by name."""
        self._uncleared.stepping(own)
        self._accumulated |= self._selection.fed > 1
        for name, parameter in own.items():
            is_none = parameter.requires_grad and parameter.grad is None
            self._gradient_is_none[name] = is_none and self._gradient_is_none.get(name, True)
        names = {id(parameter): name for name, parameter in own.items()}
        self._groups[id(optimizer)] = [
            _Group(rate, tuple(names[id(p)] for p in group["params"] if id(p) in names))
            for group in optimizer.param_groups
            if (rate := _rate(optimizer, group.get("lr"))) is not None
        ]


def _rate(optimizer: Optimizer, given: object) -> float | Tensor | None:
    """A learning rate; None if it is not known by how much the optimizer moves a weight."""
    if isinstance(optimizer, torch.optim.LBFGS):  # a line search, which may end where it began
        return None
    if isinstance(given, Tensor):
        if given.is_cpu:
            return float(given)
        with aside(given.device.type):
            return given.detach().clone()
    return float(given) if isinstance(given, (int, float)) else None
