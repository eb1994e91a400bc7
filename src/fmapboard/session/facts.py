"""``FactRecorder``: records at each logged step what only the training process can know."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.optim.optimizer import Optimizer

from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.inputs import PendingBatch
from fmapboard.capture.isolation import aside
from fmapboard.formats.tags import LEARNING_RATE, of
from fmapboard.formats.training_facts import Idle, OutputFacts, TrainingFacts
from fmapboard.gradients.given_loss import GivenLoss, with_given
from fmapboard.gradients.optimizers import parameters_of
from fmapboard.gradients.output_facts import OutputReader
from fmapboard.gradients.outputs import OutputRecorder, PendingOutput
from fmapboard.gradients.reader import GradientReader, read_norms
from fmapboard.measure.norms import GradientNorms, PendingNorms
from fmapboard.measure.sample import PendingSample, samples
from fmapboard.model.distributed import PLAIN, is_sharded
from fmapboard.model.layers import clean_name
from fmapboard.records import HardImage, RecordedFacts
from fmapboard.session.selection import (
    Candidate,
    Mark,
    PassSelection,
    State,
    marks,
    same,
    untouched,
)

_FUNCTIONS = frozenset(
    {
        *("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"),
        *("feature_alpha_dropout", "batch_norm", "rrelu", "stochastic_depth", "drop_path"),
        *("drop_block2d", "drop_block3d", "multi_head_attention_forward"),
    }
)
"""Names of functions that compute something else in eval mode."""


def eval_modules(model: nn.Module) -> tuple[str, ...]:
    """Names of the modules that compute something else because the network is in eval mode.

    Empty unless every module with parameters, and every module that depends on the mode, is in eval
    mode: a network in which only some layers are (BatchNorm or dropout frozen on purpose, a frozen
    backbone with a head that trains) was set up that way. If some parameters are frozen, which is
    often combined with eval mode, only modules with trainable parameters of their own count.
    """
    for module in model.modules():
        if module.training and (_own_modes(module) or depends_on_mode(module)):
            return ()
    is_partly_frozen = any(not parameter.requires_grad for parameter in model.parameters())
    found = [(name, module) for name, module in model.named_modules() if depends_on_mode(module)]
    return tuple(clean_name(n) for n, m in found if any(_own_modes(m)) or not is_partly_frozen)


def _own_modes(module: nn.Module) -> list[bool]:
    """Whether each parameter of its own is trained."""
    return [parameter.requires_grad for parameter in module.parameters(recurse=False)]


def depends_on_mode(module: nn.Module) -> bool:
    """True if it is certain that a module computes something else in eval mode.

    That is read from the code of ``forward``: it uses ``training`` for dropout, batch norm and the
    like, with a probability above 0 or with running statistics.
    """
    if not _reads_mode(type(module).forward):
        return False
    if isinstance(module, nn.modules.batchnorm._NormBase):
        return module.running_mean is not None
    if isinstance(module, nn.MultiheadAttention):
        return bool(module.dropout)
    probabilities = [getattr(module, name, 1.0) for name in ("p", "drop_prob")]
    return all(isinstance(one, (int, float)) and one > 0 for one in probabilities)


@lru_cache(4096)
def _reads_mode(forward: Callable[..., Any]) -> bool:
    code = getattr(inspect.unwrap(forward), "__code__", None)
    names = frozenset(getattr(code, "co_names", ()))
    return "training" in names and not names.isdisjoint(_FUNCTIONS)


# Finds gradients that are used in an optimizer step and not cleared before the next backward pass.
#
# Identities and version counters are compared, and norms of the gradients that are suspected then,
# since version counters do not see operations on ``.data``. A gradient is
# *uncleared* if all of this holds:
#
# - When the first backward pass of the logged step begins, it is what it was when the step opened.
# - It is changed by nothing but backward passes until the last of them has ended, and is the same
#   tensor when its optimizer steps. In a GAN, the generator's backward pass leaves gradients in
#   the discriminator that are cleared before its own backward pass: these are not uncleared.
# - The optimizer's step and what follows it in the logged step do not change it.
# - When the step opened, it had been used by a completed optimizer step: one that has just ended,
#   or one in the previous logged step, since when it is either unchanged or, in each of the steps
#   between that were not logged, its version has advanced by as much as in this one. Steps that
#   clear it in between advance it further or replace the tensor.
# - A value of it was not 0 when each of these backward passes began.

_MOST_READ = 8
"""Norms are read at the beginning of at most this many backward passes of a logged step."""


class UnclearedGradients:
    """Follows the gradients of a model's parameters through one logged step after another.

    Attributes:
        norms: of the suspected gradients when each backward pass of the step began.
    """

    def __init__(self) -> None:
        self._last: Mapping[str, Mark] = {}
        self._last_step: int | None = None
        self.opens({})

    def opens(self, parameters: Mapping[str, Tensor], just_used: Collection[int] = ()) -> None:
        """Called when a logged step opens, before its first pass.

        Args:
            parameters: the trainable ones, by name.
            just_used: ``id`` of the parameters that an optimizer has updated right before.
        """
        self._parameters = dict(parameters)
        self._at_open = marks(parameters)
        self._just_used = {name for name in self._at_open if id(parameters[name]) in just_used}
        self._kept: dict[str, Mark] | None = None  # None: no backward pass has begun
        self.norms: tuple[PendingNorms, ...] = ()
        self._stepped: dict[str, Mark] = {}
        self._used: set[str] = set()

    def backward_begins(self) -> None:
        """Called when a backward pass begins, before it changes any gradient."""
        kept = self._at_open if self._kept is None else self._kept
        self._kept = untouched(kept, self._parameters)
        if self._kept and len(self.norms) < _MOST_READ:
            found = GradientNorms()
            read_norms({name: self._parameters[name] for name in self._kept}, found)
            self.norms = (*self.norms, found.pending())

    def backward_ends(self) -> None:
        """Called when a backward pass has ended."""
        if self._kept is not None:
            self._kept = same(self._kept, self._parameters)

    def stepping(self, names: Iterable[str]) -> None:
        """Called before an optimizer updates these parameters, when gradients are complete."""
        fresh = [name for name in names if name in self._parameters and name not in self._stepped]
        self._stepped |= marks({name: self._parameters[name] for name in fresh})
        self._used |= same(self._kept or {}, self._parameters).keys() & fresh

    def closes(self, step: int) -> tuple[str, ...] | None:
        """Called when the logged step closes.

        Args:
            step: its number.

        Returns:
            Names of the parameters with an uncleared gradient, also if all of its values were 0;
            None if that is not known, because no backward pass or no optimizer step was seen, or
            because it is not known whether gradients that were there before belong to a completed
            step.
        """
        unchanged = untouched(self._stepped, self._parameters)
        candidates = [name for name in unchanged if name in self._used]
        found = tuple(name for name in candidates if self._was_used(name, step))
        is_known = self._kept is not None and bool(self._stepped)
        self._last, self._last_step = unchanged, step
        return found if found or (is_known and not candidates) else None

    def _was_used(self, name: str, step: int) -> bool:
        """True if an optimizer had used the gradient that was there when the step opened."""
        if name in self._just_used:
            return True
        opened, last = self._at_open[name], self._last.get(name)
        if last is None or self._last_step is None or last.gradient() is not opened.gradient():
            return False
        advance = self._stepped[name].version - opened.version
        between = max(step - self._last_step - 1, 0)
        return opened.version - last.version in (0, between * advance)


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
        rates = [(rate, ns) for given, ns in self.groups if math.isfinite(rate := float(given))]
        known = [rate for rate, _ in rates]
        ends = (min(known), max(known)) if known else None
        facts = replace(self.of_step, rates=ends, initial_norms=initial_norms)
        if facts.not_cleared:
            norms = [one.to_host() for one in self.uncleared]
            found = tuple(n for n in facts.not_cleared if all(one.get(n) for one in norms))
            facts = replace(facts, not_cleared=found)
        if self.batch is not None:
            constant, equal, digest = self.batch.to_host()
            facts = replace(
                facts, constant_images=constant, identical_images=equal, batch_digest=digest
            )
        outputs, no_loss, hardest = self._read_outputs()
        facts = replace(facts, outputs=outputs, no_loss=no_loss)
        weights = hashlib.blake2b(digest_size=16)
        for one in self.weights:
            weights.update(one.to_host().values.tobytes())
        by_name = {name: rate for rate, names in rates for name in names}
        return RecordedFacts(facts, by_name, weights.digest() if self.weights else None, hardest)

    def _read_outputs(
        self,
    ) -> tuple[tuple[OutputFacts, ...], dict[str, str], dict[str, tuple[HardImage, ...]]]:
        """What the outputs tell, why no loss is known of some, and the images with the highest."""
        found = list[OutputFacts]()
        no_loss, hardest = dict[str, str](), dict[str, tuple[HardImage, ...]]()
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


class FactRecorder:
    """Observes passes and optimizer steps; used on the training thread.

    Args:
        gradients: knows the parameters, and whether an optimizer has stepped.
        selection: knows the pass whose gradients were used.
    """

    def __init__(self, gradients: GradientReader, selection: PassSelection) -> None:
        self._gradients, self._selection = gradients, selection
        self._first_versions, self._first_batches = dict[int, int](), dict[str, int]()
        own = {clean_name(n): m for n, m in selection.model.named_modules()}
        self._dropouts = {n: m for n, m in own.items() if isinstance(m, _DropoutNd)}
        norms = {n: m for n, m in own.items() if isinstance(m, _BatchNorm)}
        self._norms = {n: m for n, m in norms.items() if m.track_running_stats}
        self._uncleared, self._membership = UnclearedGradients(), gradients.membership
        self._is_sharded = is_sharded(selection.model)
        self._seen, self._versions = _Seen({}), dict[int, int]()
        self._parts: OutputRecorder | None = None  # while parts of the model are called
        self._outside: dict[str, Tensor] | None = None  # not known before the first pass
        self._given: GivenLoss | None = None
        self._reader = OutputReader()
        self._just_used: frozenset[int] = frozenset()

    def step_completed(self, optimizer: Optimizer) -> None:
        """Called when an optimizer has stepped, right before the next logged step opens."""
        self._just_used = frozenset(map(id, parameters_of(optimizer)))

    def step_opens(self) -> None:
        """Called when a logged step opens."""
        just_used, self._just_used = self._just_used, frozenset()
        trainable, self._parts, self._given = self._trainable(), None, None
        self._seen = _Seen({id(p): p._version for p in trainable.values()})
        self._first_versions = {**self._seen.versions, **self._first_versions}
        self._first_batches = {**self._batches(), **self._first_batches}
        self._uncleared.opens({} if self._is_sharded else trainable, just_used)

    def pass_begins(self, candidate: Candidate, received: Any) -> None:
        """Called when a pass that is recorded begins, with what the model is called with."""
        candidate.collected.compares_images = True
        candidate.eval_modules = eval_modules(self._selection.model)
        model = self._selection.model if self._outside is None and not self._is_sharded else None
        candidate.outputs = OutputRecorder(candidate.collected, received, model)

    def given_loss(self, loss: Tensor | float, labels: Tensor | None) -> None:
        """Keep a loss and labels, unless some were given in this step."""
        if self._given is None:
            self._given = GivenLoss.copied(loss, labels)

    def part_begins(self, received: Any) -> None:
        """Called when a part is called instead of the model, with what it is called with."""
        if self._parts is not None:
            self._parts.received(received)

    def part_ended(self, live: ActivationCollector, part: nn.Module, output: Any) -> None:
        """Called when such a part has returned, with what collects the step."""
        self._parts = self._parts or OutputRecorder(live)
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
        reader, chosen, seen = self._gradients, self._selection.chosen, self._seen
        uncleared = self._uncleared.closes(step)
        has_stepped = reader.stepped and not reader.skipped
        trainable = self._trainable()
        modules: tuple[str, ...] | None = None
        if has_stepped and (chosen is None or chosen.state is State.USED):
            # Without a pass, the root's forward did not run, only its children's.
            modules = seen.modules if chosen is None else chosen.eval_modules
        no_gradient = tuple(name for name, is_none in seen.has_none.items() if is_none)
        if self._outside is None and has_stepped and chosen is not None and chosen.outputs:
            self._outside = chosen.outputs.outside
            self._first_versions |= {id(p): p._version for p in self._outside.values()}
        held, versions = (
            {**(self._outside or {}), **trainable},
            {**self._first_versions, **seen.versions},
        )
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
        norms = self._uncleared.norms
        self._uncleared.norms = ()  # not to be held any longer
        recorder = self._parts if chosen is None else chosen.outputs
        outputs = () if recorder is None else recorder.pending()
        if not has_stepped:  # a gradient may still be expected
            outputs = tuple(output for output in outputs if output.gradient is not None)
        return PendingFacts(
            found,
            reader=self._reader,
            groups=tuple(groups),
            batch=live.batch,
            weights=weights,
            uncleared=norms if uncleared else (),
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
        ran = {one.layer_call.layer for one in live.pending} | live.unread.keys()
        idle, versions = self._gradients.watched.layers.keys() - ran, self._first_versions
        idle |= {n for n, _ in self._batches().items() & self._first_batches.items()}
        own = [(n, self._gradients.trainable.get(n)) for n in names if n.rpartition(".")[0] in idle]
        return tuple(n for n, p in own if p is not None and versions.get(id(p)) == p._version)

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
        is_same, self._versions = versions == self._versions, versions
        own = [trainable[name] for name in self._seen.with_gradient if name in trainable]
        stepped = self._gradients.stepped or self._gradients.skipped
        if stepped or not is_same or not own or live.input_trains is not False or self._is_sharded:
            return None, ()
        is_held = self._membership.holds_any(trainable)
        with aside(own[0].device.type):
            weights = samples(own[:: -(-len(own) // _MOST_WEIGHTS)])
        return Idle(0, 0, is_held, self._seen.is_cleared), tuple(weights)

    def _trainable(self) -> dict[str, Tensor]:
        own = self._gradients.trainable.items()
        return {name: p for name, p in own if p.requires_grad and not p.is_meta}

    def stepping(self, optimizer: Optimizer, own: Mapping[str, Tensor]) -> None:
        """Called before an optimizer updates parameters of the model, given by name."""
        self._uncleared.stepping(own)
        seen, names = self._seen, {id(parameter): name for name, parameter in own.items()}
        for name, parameter in own.items():
            is_none = parameter.requires_grad and parameter.grad is None
            seen.has_none[name] = is_none and seen.has_none.get(name, True)
        groups = [g for g in optimizer.param_groups if any(id(p) in names for p in g["params"])]
        seen.is_maximized |= any(group.get("maximize") for group in groups)
        seen.groups[id(optimizer)] = [
            (rate, tuple([names[id(p)] for p in group["params"] if id(p) in names]))
            for group in groups
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
