"""``FactRecorder``: records at each logged step what only the training process can know."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.inputs import PendingBatch
from fmapboard.capture.isolation import aside
from fmapboard.formats.training_facts import Idle, TrainingFacts
from fmapboard.gradients.optimizers import parameters_of
from fmapboard.gradients.reader import GradientReader
from fmapboard.model.distributed import PLAIN, is_sharded
from fmapboard.model.layers import clean_name
from fmapboard.model.tensors import Packed, packed
from fmapboard.records import RecordedFacts
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
        if module.training and _matters(module):
            return ()
    is_partly_frozen = any(not parameter.requires_grad for parameter in model.parameters())
    return tuple(
        clean_name(name)
        for name, module in model.named_modules()
        if depends_on_mode(module) and (_trains(module) or not is_partly_frozen)
    )


def _matters(module: nn.Module) -> bool:
    has_parameters = next(module.parameters(recurse=False), None) is not None
    return has_parameters or depends_on_mode(module)


def _trains(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters(recurse=False))


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
    return all(_is_positive(getattr(module, name, 1.0)) for name in ("p", "drop_prob"))


def _is_positive(probability: object) -> bool:
    return isinstance(probability, (int, float)) and probability > 0


@lru_cache(4096)
def _reads_mode(forward: Callable[..., Any]) -> bool:
    code = getattr(inspect.unwrap(forward), "__code__", None)
    names = frozenset(getattr(code, "co_names", ()))
    return "training" in names and not names.isdisjoint(_FUNCTIONS)


_PARAMETERS, _VALUES = 16, 64
"""Parameters of which values are read, spread over the model, and values read of each."""


@dataclass(frozen=True, slots=True)
class PendingIdle:
    """What a logged step without an optimizer step tells, in part still on the device.

    Attributes:
        values: values of the weights; empty if a parameter has changed since the last such step.
        is_held: some optimizer holds trainable parameters of the model; None if not looked for.
        is_cleared: no parameter had a gradient when the first backward pass began.
    """

    values: Packed
    is_held: bool | None
    is_cleared: bool

    def digest(self) -> bytes:
        """Wait for the device: a digest of the values."""
        found = hashlib.blake2b(digest_size=16)
        for one in self.values.pieces:
            found.update(one.cpu().view(torch.uint8).numpy().tobytes())
        return found.digest()


class IdleWeights:
    """Follows the backward passes of logged steps in which no optimizer steps.

    If no in-place operation has changed a parameter since the last such step, some values are
    copied, which tell whether the weights are still the same: the first 64 values in memory of at
    most 16 parameters, in one tensor per device and dtype.
    """

    def __init__(self) -> None:
        self._versions: Mapping[int, int] = {}
        self.opens()

    def opens(self) -> None:
        """Called when a logged step opens."""
        self._is_cleared: bool | None = None  # None: no backward pass has begun
        self._with_gradient: tuple[str, ...] = ()

    def backward_begins(self, trainable: Mapping[str, Tensor]) -> None:
        """Called when a backward pass begins, before it changes any gradient."""
        if self._is_cleared is None:
            self._is_cleared = not [p for p in trainable.values() if p.grad is not None]

    def backward_ends(self, trainable: Mapping[str, Tensor]) -> None:
        """Called when a backward pass has ended."""
        if self._is_cleared is not None and not self._with_gradient:
            own = [n for n, p in trainable.items() if p.grad is not None and type(p) in PLAIN]
            self._with_gradient = tuple(own)

    def closes(self, trainable: Mapping[str, Tensor], *, has_stepped: bool) -> tuple[str, ...]:
        """Called when a logged step closes.

        Returns:
            Names of the parameters whose values tell whether the weights change; empty if they are
            known to change, if an optimizer stepped, or if no parameter got a gradient.
        """
        versions = {id(p): p._version for p in trainable.values()}
        is_same, self._versions = versions == self._versions, versions
        if has_stepped or not is_same:
            return ()
        return tuple(name for name in self._with_gradient if name in trainable)

    def pending(self, parameters: Sequence[Tensor], is_held: bool | None) -> PendingIdle:
        """Copy values of some parameters."""
        stride = -(-len(parameters) // _PARAMETERS)
        with aside(parameters[0].device.type):
            copied = packed([_first_values(one.detach()) for one in parameters[::stride]])
        return PendingIdle(copied, is_held, bool(self._is_cleared))


def _first_values(parameter: Tensor) -> Tensor:
    """A view of the first values in memory, whatever the order of the axes."""
    held = parameter.untyped_storage().nbytes() // parameter.element_size()
    count = min(_VALUES, parameter.numel(), held - parameter.storage_offset())
    return parameter.as_strided((count,), (1,))


_VALUES = 64
"""At most twice as many values are read of each gradient, spread evenly."""


@dataclass(frozen=True, slots=True)
class GradientSamples:
    """Values of gradients, still on their devices.

    Attributes:
        names: the names of the parameters.
        values: the values of each.
    """

    names: tuple[str, ...]
    values: Packed

    def nonzero(self) -> frozenset[str]:
        """Wait for the device: names of the parameters with a value that is not 0."""
        named = zip(self.names, self.values.split(), strict=True)
        return frozenset(name for name, values in named if values.any())


def sample_gradients(gradients: Mapping[str, Tensor]) -> GradientSamples:
    """Read a few values of gradients, in one copy per device and dtype.

    Args:
        gradients: by name of the parameter, at least one. Sparse ones are left out.
    """
    with aside(next(iter(gradients.values())).device.type):
        parts = {}
        for name, gradient in gradients.items():
            if gradient.layout == torch.strided and gradient.numel():
                flat = gradient.detach().reshape(-1)
                parts[name] = flat[:: max(1, flat.numel() // _VALUES)]
        return GradientSamples(tuple(parts), packed(list(parts.values())))


# Finds gradients that are used in an optimizer step and not cleared before the next backward pass.
#
# Identities and version counters are compared, and a few values of the gradients that are
# suspected then, since version counters do not see operations on ``.data``. A gradient is
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

_MOST_SAMPLES = 8


class UnclearedGradients:
    """Follows the gradients of a model's parameters through one logged step after another."""

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
        self._samples: tuple[GradientSamples, ...] = ()
        self._stepped: dict[str, Mark] = {}
        self._used: set[str] = set()

    def backward_begins(self) -> None:
        """Called when a backward pass begins, before it changes any gradient."""
        kept = self._at_open if self._kept is None else self._kept
        self._kept = untouched(kept, self._parameters)
        if self._kept and len(self._samples) < _MOST_SAMPLES:
            gradients = {name: self._parameters[name].grad for name in self._kept}
            known = {name: gradient for name, gradient in gradients.items() if gradient is not None}
            self._samples = (*self._samples, sample_gradients(known))

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

    def take_samples(self) -> tuple[GradientSamples, ...]:
        """Values of the suspected gradients when each backward pass began, at most eight; once."""
        samples, self._samples = self._samples, ()
        return samples

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
    """``records.RecordedFacts`` in part still on the device.

    Attributes:
        of_step: without what depends on the rest.
        groups: the parameter groups that were updated.
        batch: the batch of images; None if the input is none.
        idle: what a step without an optimizer step tells; None of other steps.
        uncleared: values of the gradients that seem not to be cleared.
    """

    of_step: TrainingFacts
    groups: tuple[_Group, ...] = ()
    batch: PendingBatch | None = None
    idle: PendingIdle | None = None
    uncleared: tuple[GradientSamples, ...] = ()

    def to_host(self) -> RecordedFacts:
        """Wait for the device and copy to the host."""
        rates = [(float(group.rate), group.names) for group in self.groups]
        known = [rate for rate, _ in rates if math.isfinite(rate)]
        facts = replace(self.of_step, rates=(min(known), max(known)) if known else None)
        if facts.not_cleared:
            nonzero = [sampled.nonzero() for sampled in self.uncleared]
            found = tuple(n for n in facts.not_cleared if all(n in names for names in nonzero))
            facts = replace(facts, not_cleared=found)
        if self.batch is not None:
            constant, identical = self.batch.to_host()
            facts = replace(
                facts,
                batch=self.batch.size,
                constant_images=constant,
                identical_images=identical,
            )
        by_name = {n: rate for rate, names in rates if math.isfinite(rate) for n in names}
        digest = None
        if self.idle is not None:
            digest = self.idle.digest()
            facts = replace(facts, idle=Idle(0, 0, self.idle.is_held, self.idle.is_cleared))
        return RecordedFacts(facts, by_name, digest)


class FactRecorder:
    """Observes passes and optimizer steps; used on the training thread.

    Args:
        gradients: reports optimizer steps.
        selection: reports forward and backward passes.
    """

    def __init__(self, gradients: GradientReader, selection: PassSelection) -> None:
        self._gradients, self._selection = gradients, selection
        self._uncleared, self._membership = UnclearedGradients(), gradients.membership
        self._idle, self._gradient_is_none = IdleWeights(), dict[str, bool]()
        self._groups: dict[int, list[_Group]] = {}
        self._just_used: frozenset[int] = frozenset()
        self._accumulated = False
        self._modules: tuple[str, ...] | None = None
        gradients.observer = self._stepping

    def step_completed(self, optimizer: Optimizer) -> None:
        """Called when an optimizer has stepped, right before the next logged step opens."""
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

    def pending(self, step: int, live: ActivationCollector) -> PendingFacts | None:
        """What was recorded in a training step that closes; None after an error.

        Args:
            step: its number.
            live: what was collected in its pass.
        """
        with self._selection.guard("training facts"):
            return self._pending(step, live)
        return None  # after an error, which the guard has reported

    def _pending(self, step: int, live: ActivationCollector) -> PendingFacts:
        reader, chosen = self._gradients, self._selection.chosen
        uncleared = self._uncleared.closes(step)
        has_stepped = reader.stepped and not reader.skipped
        trainable = self._trainable()
        modules: tuple[str, ...] | None = None
        if has_stepped and chosen is None:  # the root's forward did not run, only its children's
            modules = self._modules
        elif has_stepped and chosen is not None and chosen.state is State.USED:
            modules = chosen.eval_modules
        found = TrainingFacts(
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
        idle = self._idle_weights(live, trainable)
        own = tuple(groups) if has_stepped else ()
        samples = self._uncleared.take_samples()
        return PendingFacts(found, own, live.batch, idle, samples if uncleared else ())

    def _idle_weights(
        self, live: ActivationCollector, trainable: Mapping[str, Tensor]
    ) -> PendingIdle | None:
        """None if an optimizer stepped, or the gradients may serve something before the model."""
        stepped = self._gradients.stepped or self._gradients.skipped
        names = self._idle.closes(trainable, has_stepped=stepped)
        is_fixed = live.input_trains is False
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
            _Group(rate, tuple([names[id(p)] for p in group["params"] if id(p) in names]))
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
