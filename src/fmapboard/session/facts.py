"""``FactRecorder``: records at each logged step what only the training process can know."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

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
from fmapboard.interrupts import WeakTable
from fmapboard.measure.norms import Factor, PendingNorms
from fmapboard.measure.sample import PendingSample, samples
from fmapboard.model.distributed import PLAIN, is_sharded
from fmapboard.model.layers import clean_name
from fmapboard.model.modes import eval_modules
from fmapboard.records import HardImage, RecordedFacts
from fmapboard.session.selection import Candidate, PassSelection, State

M = TypeVar("M", bound=nn.Module)
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
        loss_scale: factor of the GradScaler; None for 1.
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
    loss_scale: Factor | None = None

    def to_host(self, initial_norms: tuple[str, ...]) -> RecordedFacts:
        """Wait for the device and copy to the host.

        Args:
            initial_norms: as in ``TrainingFacts``.
        """
        rates = dict[str, float]()
        finite = list[float]()
        for group_rate, names in self.groups:
            rate = float(group_rate)
            if math.isfinite(rate):
                finite.append(rate)
                rates |= dict.fromkeys(names, rate)
        facts = replace(self.of_step, initial_norms=initial_norms)
        if finite:
            facts = replace(facts, rates=(min(finite), max(finite)))
        if facts.not_cleared:
            not_cleared = self._with_values(facts.not_cleared)
            facts = replace(facts, not_cleared=not_cleared)
        if self.batch is not None:
            constant, equal, digest = self.batch.to_host()
            facts = replace(
                facts, constant_images=constant, identical_images=equal, batch_digest=digest
            )
        facts, hardest = self._with_outputs(facts)
        return RecordedFacts(facts, rates, self._digest_of_weights(), hardest)

    def _with_values(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those whose gradient was not 0 when each backward pass began."""
        for pending in self.uncleared:
            norms = pending.to_host()
            names = tuple(name for name in names if norms.get(name))
        return names

    def _digest_of_weights(self) -> bytes | None:
        if not self.weights:
            return None
        digest = hashlib.blake2b(digest_size=16)
        for sample in self.weights:
            values = sample.to_host().values
            digest.update(values.tobytes())
        return digest.digest()

    def _with_outputs(
        self, facts: TrainingFacts
    ) -> tuple[TrainingFacts, dict[str, tuple[HardImage, ...]]]:
        """The facts with those of the outputs, and each output's images with the highest loss."""
        found = list[OutputFacts]()
        no_loss = dict[str, str]()
        hardest = dict[str, tuple[HardImage, ...]]()
        for output in self.outputs:
            read = self.reader.read(output)
            own = read.facts
            if read.no_loss is not None:
                no_loss[output.name] = read.no_loss
            if read.hardest:
                hardest[output.name] = read.hardest
            if own is None:
                continue
            if self.loss_scale is not None and own.factor is not None:
                own = replace(own, factor=own.factor / float(self.loss_scale))
            if self.is_maximized and own.loss is not None:
                own = replace(own, is_climbed=not own.is_climbed)
            found.append(own)
        outputs = tuple(found)
        if self.given is not None:
            outputs = with_given(outputs, self.outputs, self.given)
        for own in outputs:
            if own.given:
                no_loss.pop(own.name, None)
        return replace(facts, outputs=outputs, no_loss=no_loss), hardest

    def learning_rates(self, skipped: frozenset[str]) -> dict[str, float]:
        """Tag -> learning rate of each parameter group, numbered in the order of their steps."""
        rates = dict[str, float]()
        for number, (rate, names) in enumerate(self.groups):
            if not skipped.issuperset(names):
                tag = of(LEARNING_RATE, str(number))
                rates[tag] = float(rate)
        return rates


_AVERAGES = frozenset({"betas", "alpha", "rho"})
"""What optimizers call how fast their averages follow."""

_MOST_WEIGHTS = 16
"""Parameters of which a step without an optimizer step keeps values, spread over the model."""


@dataclass(slots=True)
class _Seen:
    """What was seen of a logged step.

    Attributes:
        versions: version counters of the trainable parameters when the step opened, by ``id``.
        groups: what each optimizer updates, by its ``id``.
        optimizers: name of the class of each, by its ``id``.
        new_optimizers: names of the classes of those that keep averages and had none.
        weight_decays: of the parameter groups that were updated, by their ``id``.
        has_none: parameter of an optimizer that stepped -> it had no gradient.
        modules: what ``eval_modules`` returned when the first backward pass began; None before.
        is_cleared: no parameter had a gradient at that moment.
        is_maximized: a parameter group that was updated has ``maximize``.
        with_gradient: the parameters that have one after a backward pass.
    """

    versions: Mapping[int, int]
    groups: dict[int, list[Group]] = field(default_factory=dict)
    optimizers: dict[int, str] = field(default_factory=dict)
    new_optimizers: list[str] = field(default_factory=list)
    weight_decays: dict[int, float] = field(default_factory=dict)
    has_none: dict[str, bool] = field(default_factory=dict)
    modules: tuple[str, ...] | None = None
    is_cleared: bool = False
    is_maximized: bool = False
    with_gradient: tuple[str, ...] = ()

    @property
    def no_gradient(self) -> tuple[str, ...]:
        """The parameters of optimizers that stepped which had no gradient at any step."""
        return tuple(name for name, is_none in self.has_none.items() if is_none)

    def idle_group(self, no_gradient: Iterable[str]) -> tuple[str, ...]:
        """The parameters of groups, of several of an optimizer, in which none had a gradient."""
        found = list[str]()
        none = set(no_gradient)
        for groups in self.groups.values():
            for _, names in groups:
                if len(groups) > 1 and none.issuperset(names):
                    found += names
        return tuple(found)

    def add_groups(self, optimizer: Optimizer, names: Mapping[int, str]) -> None:
        """Add what an optimizer that steps updates, given names of parameters by ``id``."""
        found = list[Group]()
        for group in optimizer.param_groups:
            updated = [names[id(p)] for p in group["params"] if id(p) in names]
            if not updated:
                continue
            decay = group.get("weight_decay")
            if isinstance(decay, (int, float)) and math.isfinite(decay):
                self.weight_decays[id(group)] = float(decay)
            if group.get("maximize"):
                self.is_maximized = True
            rate = _rate(optimizer, group.get("lr"))
            if rate is not None:
                found.append((rate, tuple(updated)))
        self.groups[id(optimizer)] = found
        self.optimizers[id(optimizer)] = type(optimizer).__name__


@dataclass(frozen=True, slots=True)
class _PassSeen:
    """What was seen of a recorded pass.

    Attributes:
        modules: what ``eval_modules`` returned when it began.
        outputs: follows what it returns.
    """

    modules: tuple[str, ...]
    outputs: OutputRecorder


def _unchanged(
    names: Iterable[str], parameters: Mapping[str, Tensor], versions: Mapping[int, int]
) -> tuple[str, ...]:
    """Those of the parameters that still have the version which they had first."""
    found = []
    for name in names:
        parameter = parameters.get(name)
        if parameter is not None and versions.get(id(parameter)) == parameter._version:
            found.append(name)
    return tuple(found)


class _Parts:
    """What is seen of the parts of a model in a step in which the model itself is not called.

    Args:
        live: what collects the step; None between steps.

    Attributes:
        outputs: follows what they return; None before one was called.
    """

    def __init__(self, live: ActivationCollector | None = None) -> None:
        self._live = live
        self._has_input = False
        self.outputs: OutputRecorder | None = None

    def begins(self, part: nn.Module, received: Any) -> None:
        """Called when a part begins; the first that may train receives what the model would.

        It has parameters, unlike an augmentation, and gradients are enabled, unlike for a teacher.
        """
        live = self._live
        may_train = torch.is_grad_enabled() and next(part.parameters(), None) is not None
        if live is not None and may_train and not self._has_input:
            self._has_input = True
            if not live.pending:
                live.compares_images = True
                live.begin(*received)
            self.outputs = OutputRecorder(live, received)
        if self.outputs is not None:
            self.outputs.received(received)

    def returned(self, output: Any, name: str) -> None:
        """Called when a part has returned."""
        if self._live is None:
            return
        if self.outputs is None:
            self.outputs = OutputRecorder(self._live)
        self.outputs.returned(output, name)

    def ended(self) -> None:
        """Called when the backward pass begins."""
        if self._live is not None and self.outputs is not None:
            self._live.ended()


def _name_of(part: nn.Module, model: nn.Module) -> str:
    names = (name for name, module in model.named_modules() if module is part)
    return clean_name(next(names, ""))


def _some_values(weights: list[Tensor]) -> tuple[PendingSample, ...]:
    """Values of some of the weights, to see whether they change."""
    step = ceil_div(len(weights), _MOST_WEIGHTS)
    with aside(weights[0].device.type):
        return tuple(samples(weights[::step]))


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
        self._dropouts = _modules_of(selection.model, _DropoutNd)
        norms = _modules_of(selection.model, _BatchNorm)
        self._norms = {name: norm for name, norm in norms.items() if norm.track_running_stats}
        self._uncleared = UnclearedGradients()
        self._membership = gradients.membership
        self._is_sharded = is_sharded(selection.model)
        self._seen = _Seen({})
        self._versions = dict[int, int]()
        self._parts = _Parts()
        self._passes = dict[Candidate, _PassSeen]()
        self._outside: dict[str, Tensor] | None = None  # not known before the first pass
        self._given: GivenLoss | None = None
        self._reader = OutputReader()
        self._just_used: frozenset[int] = frozenset()
        self._begun: WeakTable[Optimizer, bool] = WeakTable()

    def step_completed(self, optimizer: Optimizer) -> None:
        """Called when an optimizer has stepped, right before the next logged step opens."""
        self._just_used = frozenset(map(id, parameters_of(optimizer)))

    def step_opens(self, live: ActivationCollector) -> None:
        """Called when a logged step opens.

        Args:
            live: what collects the step until the model itself is called.
        """
        self._passes = {}
        just_used = self._just_used
        self._just_used = frozenset()
        trainable = _trainable(self._gradients)
        self._parts = _Parts(live)
        self._given = None
        versions = {id(p): p._version for p in trainable.values()}
        self._seen = _Seen(versions)
        self._first_versions = {**versions, **self._first_versions}
        self._first_batches = {**_counted_batches(self._norms), **self._first_batches}
        followed = {} if self._is_sharded else trainable
        self._uncleared.opens(followed, just_used)

    def forget(self) -> None:
        """Called when the logged step has ended: keep nothing that was recorded in it."""
        self._parts = _Parts()
        self._passes = {}

    def pass_begins(self, candidate: Candidate, received: Any) -> None:
        """Called when a pass that is recorded begins, with what the model is called with."""
        candidate.collected.compares_images = True
        model = self._selection.model
        is_searched = self._outside is None and not self._is_sharded
        searched = model if is_searched else None
        outputs = OutputRecorder(candidate.collected, received, searched)
        kept = {c: seen for c, seen in self._passes.items() if self._selection.holds(c)}
        kept[candidate] = _PassSeen(eval_modules(model), outputs)
        self._passes = kept

    def pass_returned(self, candidate: Candidate, output: Any) -> None:
        """Called when such a pass has returned, if a backward pass may follow."""
        seen = self._passes.get(candidate)
        if seen is not None:
            seen.outputs.returned(output)

    def given_loss(self, loss: Tensor | float, labels: Tensor | None) -> None:
        """Keep a loss and labels, unless some were given in this step."""
        self._given = self._given or GivenLoss.copied(loss, labels)

    def part_begins(self, part: nn.Module, received: Any) -> None:
        """Called when a part is called instead of the model, with what it is called with."""
        self._parts.begins(part, received)

    def part_returned(self, part: nn.Module, output: Any) -> None:
        """Called when such a part has returned."""
        self._parts.returned(output, _name_of(part, self._selection.model))

    def backward_begins(self) -> None:
        """Called when a backward pass begins, before it changes any gradient."""
        self._uncleared.backward_begins()
        self._parts.ended()
        seen = self._seen
        if seen.modules is None:
            seen.modules = eval_modules(self._selection.model)
            kept = [p for p in _trainable(self._gradients).values() if p.grad is not None]
            seen.is_cleared = not kept

    def backward_ends(self) -> None:
        """Called when a backward pass has ended."""
        self._uncleared.backward_ends()
        seen = self._seen
        if seen.modules is None or seen.with_gradient:
            return
        own = _trainable(self._gradients).items()
        found = [n for n, p in own if p.grad is not None and type(p) in PLAIN]
        seen.with_gradient = tuple(found)

    def pending(self, step: int, live: ActivationCollector) -> PendingFacts:
        """What was recorded in a training step that closes.

        Args:
            step: its number.
            live: what was collected in its pass.
        """
        chosen = self._selection.chosen
        seen = self._seen
        uncleared = self._uncleared.closes(step)
        uncleared_norms = self._uncleared.take_norms()
        trainable = _trainable(self._gradients)
        idle, weights = self._idle(live, trainable)
        facts = TrainingFacts(
            batch=None if live.batch is None else live.batch.size,
            not_cleared=uncleared,
            dropouts=_strong_dropouts(self._dropouts),
            dtypes=tuple(sorted({str(p.dtype).removeprefix("torch.") for p in trainable.values()})),
            idle=idle,
        )
        chosen_pass: _PassSeen | None = None
        recorder = self._parts.outputs
        # Without a pass, the root's forward did not run, only its children's.
        if chosen is not None:
            facts = replace(facts, not_called=self._not_called(live, seen.no_gradient))
            chosen_pass = self._passes.get(chosen)
            recorder = None if chosen_pass is None else chosen_pass.outputs
        outputs = () if recorder is None else recorder.pending()
        groups = list[Group]()
        if self._gradients.stepped and not self._gradients.skipped:
            facts = self._with_update(facts, trainable, chosen_pass)
            for own in seen.groups.values():
                groups += own
        else:  # a gradient may still be expected
            outputs = tuple(output for output in outputs if output.gradient is not None)
        return PendingFacts(
            facts,
            reader=self._reader,
            groups=tuple(groups),
            batch=live.batch,
            weights=weights,
            uncleared=uncleared_norms if uncleared else (),
            outputs=outputs,
            given=self._given,
            is_maximized=seen.is_maximized,
            loss_scale=live.loss_scale,
        )

    def _with_update(
        self, facts: TrainingFacts, trainable: Mapping[str, Tensor], chosen_pass: _PassSeen | None
    ) -> TrainingFacts:
        """The facts with those of a step in which an optimizer has updated the weights."""
        seen = self._seen
        no_gradient = seen.no_gradient
        facts = replace(
            facts,
            not_in_optimizer=self._not_held(trainable, chosen_pass),
            no_gradient=no_gradient,
            idle_group=seen.idle_group(no_gradient),
            optimizers=tuple(dict.fromkeys(seen.optimizers.values())),
            new_optimizers=tuple(dict.fromkeys(seen.new_optimizers)),
            weight_decays=_range(seen.weight_decays.values()),
        )
        chosen = self._selection.chosen
        modules = seen.modules if chosen_pass is None else chosen_pass.modules
        is_used = chosen is None or chosen.state is State.USED
        if is_used and modules is not None:
            facts = replace(facts, eval_mode=bool(modules), eval_modules=modules)
        return facts

    def _not_held(
        self, trainable: Mapping[str, Tensor], chosen_pass: _PassSeen | None
    ) -> tuple[str, ...] | None:
        """Parameters with a gradient that no optimizer holds; None if that is not known.

        Those without a gradient are not trained on purpose, as those of a target network.
        """
        if self._outside is None and chosen_pass is not None:
            self._outside = chosen_pass.outputs.outside
            outside_versions = {id(p): p._version for p in self._outside.values()}
            self._first_versions.update(outside_versions)
        outside = self._outside or {}
        held = {**outside, **trainable}
        versions = {**self._first_versions, **self._seen.versions}
        not_held = self._membership.not_held(held, versions)
        if not not_held:
            return not_held
        return _with_gradient({name: held[name] for name in not_held}, self._seen.with_gradient)

    def _not_called(self, live: ActivationCollector, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the parameters that never had an effect, of watched layers that did not run."""
        ran = {measured.layer_call.layer for measured in live.pending}
        ran |= live.unread.keys()
        idle = self._gradients.watched.layers.keys() - ran
        # BatchNorm layers that count batches, and have counted none since the first step.
        batches = _counted_batches(self._norms).items() & self._first_batches.items()
        idle |= dict(batches).keys()
        own = [name for name in names if name.rpartition(".")[0] in idle]
        return _unchanged(own, self._gradients.trainable, self._first_versions)

    def _idle(
        self, live: ActivationCollector, trainable: Mapping[str, Tensor]
    ) -> tuple[Idle | None, tuple[PendingSample, ...]]:
        """What a step without an optimizer step tells, and values that tell if weights change.

        Nothing if an optimizer stepped, a parameter was changed in place since the last logged
        step, none got a gradient, or the gradients may serve something before the model.
        """
        versions = {id(p): p._version for p in trainable.values()}
        is_same = versions == self._versions
        self._versions = versions
        if self._gradients.stepped or self._gradients.skipped or self._is_sharded:
            return None, ()
        own = [trainable[name] for name in self._seen.with_gradient if name in trainable]
        if not is_same or not own or live.input_trains is not False:
            return None, ()
        is_held = self._membership.holds_any(trainable)
        idle = Idle(0, 0, is_held, self._seen.is_cleared)
        return idle, _some_values(own)

    def stepping(self, optimizer: Optimizer, own: Mapping[str, Tensor]) -> None:
        """Called before an optimizer updates parameters of the model, given by name."""
        self._uncleared.stepping(own)
        seen = self._seen
        names = {id(parameter): name for name, parameter in own.items()}
        for name, parameter in own.items():
            is_none = parameter.requires_grad and parameter.grad is None
            if is_none:
                is_none = seen.has_none.get(name, True)
            seen.has_none[name] = is_none
        seen.add_groups(optimizer, names)
        if not optimizer.state and _begins(optimizer) and self._begun.get(optimizer) is None:
            self._begun[optimizer] = True
            seen.new_optimizers.append(type(optimizer).__name__)


def _modules_of(model: nn.Module, kind: type[M]) -> dict[str, M]:
    """The modules of a class, by name."""
    found = dict[str, M]()
    for name, module in model.named_modules():
        if isinstance(module, kind):
            found[clean_name(name)] = module
    return found


def _trainable(gradients: GradientReader) -> dict[str, Tensor]:
    """The parameters that require a gradient and hold values, by name."""
    own = gradients.trainable.items()
    return {name: p for name, p in own if p.requires_grad and not p.is_meta}


def _range(values: Collection[float]) -> tuple[float, float] | None:
    """The lowest and the highest value; None if there is none."""
    return (min(values), max(values)) if values else None


def _with_gradient(parameters: Mapping[str, Tensor], known: Collection[str]) -> tuple[str, ...]:
    """Names of the parameters that have a gradient, may have one that is not seen, or are known."""
    found = list[str]()
    for name, parameter in parameters.items():
        has_gradient = name in known or parameter.grad is not None
        if has_gradient or type(parameter) not in PLAIN:
            found.append(name)
    return tuple(found)


def _strong_dropouts(dropouts: Mapping[str, _DropoutNd]) -> dict[str, float]:
    """Dropout layer in training mode -> its probability, where that is at least 0.5."""
    found = dict[str, float]()
    for name, module in dropouts.items():
        if module.training and module.p >= 0.5:
            found[name] = module.p
    return found


def _counted_batches(norms: Mapping[str, _BatchNorm]) -> dict[str, int]:
    """BatchNorm layer in training mode -> version of its counter of batches."""
    versions = dict[str, int]()
    for name, norm in norms.items():
        count = norm.num_batches_tracked
        if norm.training and count is not None:
            versions[name] = count._version
    return versions


def _begins(optimizer: Optimizer) -> bool:
    """True if an optimizer that has no state yet will have a momentum or averages."""
    groups = optimizer.param_groups
    return any(group.get("momentum") or not _AVERAGES.isdisjoint(group) for group in groups)


def _rate(optimizer: Optimizer, given: object) -> float | Tensor | None:
    """A learning rate; None if it is not known by how much the optimizer moves a weight."""
    if isinstance(optimizer, torch.optim.LBFGS):  # a line search, which may end where it began
        return None
    if isinstance(given, Tensor) and not given.is_cpu:
        with aside(given.device.type):
            return given.detach().clone()
    if isinstance(given, (int, float, Tensor)):
        return float(given)
    return None
