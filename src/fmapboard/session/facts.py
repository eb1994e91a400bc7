"""``FactRecorder``: records at each logged step what only the training process can know."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.optim.optimizer import Optimizer

from fmapboard.arithmetic import ceil_div
from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.inputs import PendingBatch
from fmapboard.capture.isolation import aside
from fmapboard.formats.tags import LEARNING_RATE, of
from fmapboard.formats.training_facts import Idle, OutputFacts, TrainingFacts
from fmapboard.gradients.given_loss import GivenLoss, with_given
from fmapboard.gradients.optimizers import parameters_of
from fmapboard.gradients.output_facts import OutputReader
from fmapboard.gradients.outputs import OutputRecorder, PendingOutput
from fmapboard.gradients.reader import GradientReader
from fmapboard.gradients.touched import UnclearedGradients
from fmapboard.measure.norms import PendingNorms
from fmapboard.measure.sample import PendingSample, samples
from fmapboard.model.distributed import PLAIN, is_sharded
from fmapboard.model.layers import clean_name
from fmapboard.model.modes import eval_modules
from fmapboard.records import HardImage, RecordedFacts
from fmapboard.session.selection import Candidate, PassSelection, State

Group = tuple[float | Tensor, tuple[str, ...]]
"""A parameter group at a step: its learning rate, [] on an accelerator if the optimizer keeps it
there, and its parameters of the model."""


@dataclass(frozen=True, slots=True)
class PendingFacts:
    """``records.RecordedFacts`` in part still on the device.

    Attributes:
        of_step: without what depends on the rest.
        groups: the parameter groups that were updated.
        batch: the batch of images; None if the input is none.
        weights: values of some weights in a step that has ``idle``; empty in others.
        uncleared: norms of the gradients that seem not to be cleared.
        outputs: what the network returned, with gradients.
        reader: reads these outputs.
        is_maximized: an optimizer goes up the gradient.
        given: loss and labels that the user gave; None for none.
    """

    of_step: TrainingFacts
    reader: OutputReader
    groups: tuple[Group, ...] = ()
    batch: PendingBatch | None = None
    weights: tuple[PendingSample, ...] = ()
    uncleared: tuple[PendingNorms, ...] = ()
    outputs: tuple[PendingOutput, ...] = ()
    given: GivenLoss | None = None
    is_maximized: bool = False

    def to_host(self, initial_norms: tuple[str, ...]) -> RecordedFacts:
        """Wait for the device and copy to the host.

        Args:
            initial_norms: as in ``TrainingFacts``.
        """
        rates = [(float(rate), names) for rate, names in self.groups]
        finite = [rate for rate, _ in rates if math.isfinite(rate)]
        ends = (min(finite), max(finite)) if finite else None
        facts = replace(self.of_step, rates=ends, initial_norms=initial_norms)
        if facts.not_cleared:
            norms = [pending.to_host() for pending in self.uncleared]
            found = [
                name for name in facts.not_cleared if all(by_name.get(name) for by_name in norms)
            ]
            facts = replace(facts, not_cleared=tuple(found))
        if self.batch is not None:
            constant, equal, digest = self.batch.to_host()
            facts = replace(
                facts, constant_images=constant, identical_images=equal, batch_digest=digest
            )
        outputs, no_loss, hardest = self._read_outputs()
        facts = replace(facts, outputs=outputs, no_loss=no_loss)
        weights = hashlib.blake2b(digest_size=16)
        for sample in self.weights:
            weights.update(sample.to_host().values.tobytes())
        digest_of_weights = weights.digest() if self.weights else None
        rate_of = dict[str, float]()
        for rate, names in rates:
            if math.isfinite(rate):
                rate_of |= dict.fromkeys(names, rate)
        return RecordedFacts(facts, rate_of, digest_of_weights, hardest)

    def _read_outputs(
        self,
    ) -> tuple[tuple[OutputFacts, ...], dict[str, str], dict[str, tuple[HardImage, ...]]]:
        """What the outputs tell, why no loss is known of some, and the images with the highest."""
        found = list[OutputFacts]()
        no_loss = dict[str, str]()
        hardest = dict[str, tuple[HardImage, ...]]()
        for output in self.outputs:
            facts, images, why = self.reader.read(output)
            if why is not None:
                no_loss[output.name] = why
            if images:
                hardest[output.name] = images
            if facts is not None:
                if self.is_maximized and facts.loss is not None:
                    facts = replace(facts, is_climbed=not facts.is_climbed)
                found.append(facts)
        outputs = tuple(found)
        if self.given is not None:
            outputs = with_given(outputs, self.outputs, self.given)
            for facts in outputs:
                if facts.given:
                    no_loss.pop(facts.name, None)
        return outputs, no_loss, hardest

    def learning_rates(self, skipped: frozenset[str]) -> dict[str, float]:
        """Tag -> learning rate of each parameter group, numbered in the order of their steps."""
        groups = [(str(n), rate) for n, (rate, own) in enumerate(self.groups) if {*own} - skipped]
        return {of(LEARNING_RATE, number): float(rate) for number, rate in groups}


_MOST_WEIGHTS = 16
"""Parameters of which a step without an optimizer step keeps values, spread over the model."""


@dataclass(slots=True)
class _Seen:
    """What was seen of a logged step.

    Attributes:
        versions: version counters of the trainable parameters when the step opened, by ``id``.
        groups: what each optimizer updates, by its ``id``.
        has_none: parameter of an optimizer that stepped -> it had no gradient.
        modules: what ``eval_modules`` returned when the first backward pass began; None before.
        is_cleared: no parameter had a gradient at that moment.
        is_maximized: a parameter group that was updated has ``maximize``.
        with_gradient: the parameters that have one after a backward pass.
    """

    versions: Mapping[int, int]
    groups: dict[int, list[Group]] = field(default_factory=dict)
    has_none: dict[str, bool] = field(default_factory=dict)
    modules: tuple[str, ...] | None = None
    is_cleared: bool = False
    is_maximized: bool = False
    with_gradient: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _PassSeen:
    """What was seen of a recorded pass.

    Attributes:
        modules: what ``eval_modules`` returned when it began.
        outputs: follows what it returns.
    """

    modules: tuple[str, ...]
    outputs: OutputRecorder


class FactRecorder:
    """Observes passes and optimizer steps; used on the training thread.

    Args:
        gradients: knows the parameters, and whether an optimizer has stepped.
        selection: knows the pass whose gradients were used.
    """

    def __init__(self, gradients: GradientReader, selection: PassSelection) -> None:
        self._gradients = gradients
        self._selection = selection
        self._first_versions = dict[int, int]()
        self._first_batches = dict[str, int]()
        own = {clean_name(n): m for n, m in selection.model.named_modules()}
        self._dropouts = {n: m for n, m in own.items() if isinstance(m, _DropoutNd)}
        norms = {n: m for n, m in own.items() if isinstance(m, _BatchNorm)}
        self._norms = {n: m for n, m in norms.items() if m.track_running_stats}
        self._uncleared = UnclearedGradients()
        self._membership = gradients.membership
        self._is_sharded = is_sharded(selection.model)
        self._seen = _Seen({})
        self._versions = dict[int, int]()
        self._live: ActivationCollector | None = None
        self._parts: OutputRecorder | None = None  # while parts of the model are called
        self._passes: dict[Candidate, _PassSeen] = {}
        self._outside: dict[str, Tensor] | None = None  # not known before the first pass
        self._given: GivenLoss | None = None
        self._reader = OutputReader()
        self._just_used: frozenset[int] = frozenset()

    def step_completed(self, optimizer: Optimizer) -> None:
        """Called when an optimizer has stepped, right before the next logged step opens."""
        self._just_used = frozenset(map(id, parameters_of(optimizer)))

    def step_opens(self, live: ActivationCollector) -> None:
        """Called when a logged step opens.

        Args:
            live: what collects the step until the model itself is called.
        """
        self._live = live
        self._passes = {}
        just_used = self._just_used
        self._just_used = frozenset()
        trainable = self._trainable()
        self._parts = None
        self._given = None
        self._seen = _Seen({id(p): p._version for p in trainable.values()})
        self._first_versions = {**self._seen.versions, **self._first_versions}
        self._first_batches = {**self._batches(), **self._first_batches}
        self._uncleared.opens({} if self._is_sharded else trainable, just_used)

    def forget(self) -> None:
        """Called when the logged step has ended: keep nothing that was recorded in it."""
        self._live = None
        self._parts = None
        self._passes = {}

    def pass_begins(self, candidate: Candidate, received: Any) -> None:
        """Called when a pass that is recorded begins, with what the model is called with."""
        candidate.collected.compares_images = True
        model = self._selection.model
        searched = model if self._outside is None and not self._is_sharded else None
        outputs = OutputRecorder(candidate.collected, received, searched)
        kept = {c: seen for c, seen in self._passes.items() if self._selection.holds(c)}
        self._passes = {**kept, candidate: _PassSeen(eval_modules(model), outputs)}

    def pass_returned(self, candidate: Candidate, output: Any) -> None:
        """Called when such a pass has returned, if a backward pass may follow."""
        seen = self._passes.get(candidate)
        if seen is not None:
            seen.outputs.returned(output)

    def given_loss(self, loss: Tensor | float, labels: Tensor | None) -> None:
        """Keep a loss and labels, unless some were given in this step."""
        if self._given is None:
            self._given = GivenLoss.copied(loss, labels)

    def part_begins(self, received: Any) -> None:
        """Called when a part is called instead of the model, with what it is called with."""
        if self._parts is not None:
            self._parts.received(received)

    def part_returned(self, part: nn.Module, output: Any) -> None:
        """Called when such a part has returned."""
        if self._parts is None:
            if self._live is None:
                return
            self._parts = OutputRecorder(self._live)
        names = (name for name, one in self._selection.model.named_modules() if one is part)
        self._parts.returned(output, clean_name(next(names, "")))

    def backward_begins(self) -> None:
        """Called when a backward pass begins, before it changes any gradient."""
        self._uncleared.backward_begins()
        if self._seen.modules is None:
            self._seen.modules = eval_modules(self._selection.model)
            kept = [p for p in self._trainable().values() if p.grad is not None]
            self._seen.is_cleared = not kept

    def backward_ends(self) -> None:
        """Called when a backward pass has ended."""
        self._uncleared.backward_ends()
        if self._seen.modules is not None and not self._seen.with_gradient:
            own = self._trainable().items()
            found = [n for n, p in own if p.grad is not None and type(p) in PLAIN]
            self._seen.with_gradient = tuple(found)

    def pending(self, step: int, live: ActivationCollector) -> PendingFacts:
        """What was recorded in a training step that closes.

        Args:
            step: its number.
            live: what was collected in its pass.
        """
        reader = self._gradients
        chosen = self._selection.chosen
        seen = self._seen
        chosen_pass = None if chosen is None else self._passes.get(chosen)
        uncleared = self._uncleared.closes(step)
        has_stepped = reader.stepped and not reader.skipped
        trainable = self._trainable()
        modules: tuple[str, ...] | None = None
        if has_stepped and (chosen is None or chosen.state is State.USED):
            # Without a pass, the root's forward did not run, only its children's.
            modules = seen.modules if chosen_pass is None else chosen_pass.modules
        no_gradient = tuple(name for name, is_none in seen.has_none.items() if is_none)
        if self._outside is None and has_stepped and chosen_pass is not None:
            self._outside = chosen_pass.outputs.outside
            self._first_versions |= {id(p): p._version for p in self._outside.values()}
        held = {**(self._outside or {}), **trainable}
        versions = {**self._first_versions, **seen.versions}
        not_held = self._membership.not_held(held, versions) if has_stepped else None
        if not_held:  # without a gradient they are not trained on purpose, as those of a target
            not_held = tuple(name for name in not_held if self._has_gradient(name, held[name]))
        idle, weights = self._idle(live, trainable)
        found = TrainingFacts(
            not_in_optimizer=not_held,
            not_cleared=uncleared,
            eval_mode=None if modules is None else bool(modules),
            eval_modules=modules or (),
            batch=None if live.batch is None else live.batch.size,
            no_gradient=no_gradient if has_stepped else None,
            not_called=() if chosen is None else self._not_called(live, no_gradient),
            dropouts={n: m.p for n, m in self._dropouts.items() if m.training and m.p >= 0.5},
            idle=idle,
        )
        groups = [group for groups in seen.groups.values() for group in groups if has_stepped]
        uncleared_norms = self._uncleared.take_norms()
        recorder = self._parts
        if chosen is not None:
            recorder = None if chosen_pass is None else chosen_pass.outputs
        outputs = () if recorder is None else recorder.pending()
        if not has_stepped:  # a gradient may still be expected
            outputs = tuple(output for output in outputs if output.gradient is not None)
        return PendingFacts(
            found,
            reader=self._reader,
            groups=tuple(groups),
            batch=live.batch,
            weights=weights,
            uncleared=uncleared_norms if uncleared else (),
            outputs=outputs,
            given=self._given,
            is_maximized=seen.is_maximized,
        )

    def _has_gradient(self, name: str, parameter: Tensor) -> bool:
        """True if a parameter has a gradient, or may have one that is not seen."""
        is_seen = name in self._seen.with_gradient or parameter.grad is not None
        return is_seen or type(parameter) not in PLAIN

    def _not_called(self, live: ActivationCollector, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the parameters that never had an effect, of watched layers that did not run."""
        ran = {measured.layer_call.layer for measured in live.pending} | live.unread.keys()
        idle = self._gradients.watched.layers.keys() - ran
        # BatchNorm layers that count batches, and have counted none since the first step.
        idle |= {layer for layer, _ in self._batches().items() & self._first_batches.items()}
        found = []
        for name in names:
            layer = name.rpartition(".")[0]
            parameter = self._gradients.trainable.get(name)
            if layer not in idle or parameter is None:
                continue
            if self._first_versions.get(id(parameter)) == parameter._version:
                found.append(name)
        return tuple(found)

    def _batches(self) -> dict[str, int]:
        """BatchNorm layer in training mode -> version of its counter of batches."""
        counts = {n: m.num_batches_tracked for n, m in self._norms.items() if m.training}
        return {name: count._version for name, count in counts.items() if count is not None}

    def _idle(
        self, live: ActivationCollector, trainable: Mapping[str, Tensor]
    ) -> tuple[Idle | None, tuple[PendingSample, ...]]:
        """What a step without an optimizer step tells, and values that tell if weights change.

        Nothing if an optimizer stepped, if an in-place operation has changed a parameter since the
        last logged step, if no parameter got a gradient, or if the gradients may serve something
        before the model.
        """
        versions = {id(p): p._version for p in trainable.values()}
        is_same = versions == self._versions
        self._versions = versions
        own = [trainable[name] for name in self._seen.with_gradient if name in trainable]
        if self._gradients.stepped or self._gradients.skipped or self._is_sharded:
            return None, ()
        if not is_same or not own or live.input_trains is not False:
            return None, ()
        is_held = self._membership.holds_any(trainable)
        with aside(own[0].device.type):
            weights = samples(own[:: ceil_div(len(own), _MOST_WEIGHTS)])
        return Idle(0, 0, is_held, self._seen.is_cleared), tuple(weights)

    def _trainable(self) -> dict[str, Tensor]:
        own = self._gradients.trainable.items()
        return {name: p for name, p in own if p.requires_grad and not p.is_meta}

    def stepping(self, optimizer: Optimizer, own: Mapping[str, Tensor]) -> None:
        """Called before an optimizer updates parameters of the model, given by name."""
        self._uncleared.stepping(own)
        seen = self._seen
        names = {id(parameter): name for name, parameter in own.items()}
        for name, parameter in own.items():
            is_none = parameter.requires_grad and parameter.grad is None
            seen.has_none[name] = is_none and seen.has_none.get(name, True)
        groups = [g for g in optimizer.param_groups if any(id(p) in names for p in g["params"])]
        if any(group.get("maximize") for group in groups):
            seen.is_maximized = True
        found = list[Group]()
        for group in groups:
            rate = _rate(optimizer, group.get("lr"))
            if rate is not None:
                updated = [names[id(p)] for p in group["params"] if id(p) in names]
                found.append((rate, tuple(updated)))
        seen.groups[id(optimizer)] = found


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
