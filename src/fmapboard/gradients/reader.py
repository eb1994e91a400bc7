"""Gradient norms, histogram samples and the size of updates, read when an optimizer steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer

from fmapboard.capture.compiled import is_capturing
from fmapboard.capture.guard import Guard
from fmapboard.capture.isolation import aside
from fmapboard.capture.module_calls import untraced
from fmapboard.formats.training_facts import Nonfinite
from fmapboard.gradients.loss_scale import FusedStep, found_on_device, is_skipped
from fmapboard.gradients.optimizer_hook import listen, stop_listening
from fmapboard.gradients.optimizers import OptimizerMembership, holds_copies, parameters_of
from fmapboard.gradients.outside_changes import PendingChanges
from fmapboard.gradients.update_ratios import PendingUpdates, UpdateReader
from fmapboard.measure.norms import NO_NORMS, Factor, GradientNorms, PendingNorms
from fmapboard.measure.packing import PackedSamples, SamplesByName
from fmapboard.measure.sample import PendingSample, samples
from fmapboard.model.distributed import local, local_parts, not_flattened, sharded_names
from fmapboard.model.layers import WatchedLayers, clean_name
from fmapboard.records import NONE, OutsideChange, Parameter, UpdateRatio

Samples = dict[str, tuple[PendingSample, PendingSample | None]]
"""By parameter name: the samples of the weight and of its gradient, None if it has none."""


def sample_parameters(
    parameters: Mapping[str, Tensor], scale: Tensor | None = None, *, gradients: bool = True
) -> Samples:
    """Sample parameters and their gradients; of sharded ones, this process's shard.

    Call it inside ``isolation.aside``. Parameters that are empty on this process are left out.

    Args:
        parameters: by name, all on one type of device.
        scale: factor by which the gradients are still multiplied (loss scaling); None for 1.
        gradients: also sample the gradients.
    """
    parts = local_parts([parameter.detach() for parameter in parameters.values()])
    weights = {name: part for name, part in zip(parameters, parts, strict=True) if part.numel()}
    with_gradient = dict[str, Tensor]()
    if gradients:
        for name in weights:
            gradient = parameters[name].grad
            if gradient is not None:
                with_gradient[name] = gradient
    parts = local_parts([gradient.detach() for gradient in with_gradient.values()])
    parts = [part.coalesce().values() if part.is_sparse else part for part in parts]
    own = list(weights.values())
    if scale is not None:
        found = samples(own)
        found += samples(parts, scale)
    else:  # one copy per dtype
        found = samples([*own, *parts])
    of_gradients = dict(zip(with_gradient, found[len(own) :], strict=True))
    by_name: Samples = {}
    for name, sample in zip(weights, found, strict=False):
        by_name[name] = (sample, of_gradients.get(name))
    return by_name


def read_norms(parameters: Mapping[str, Tensor], found: GradientNorms) -> None:
    """Add the norms of the gradients that some parameters, given by name, have now."""
    gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
    for kind, own in _by_device_type(gradients):
        with aside(kind):
            found.read(own)


@dataclass(frozen=True, slots=True)
class PendingParameters:
    """``records.Parameter`` data still on the device.

    Attributes:
        names: names of the parameters that were read, in the model's order.
        norms: gradient norms.
        samples: histogram samples of weight and gradient, by parameter name.
        nonfinite: counts of non-finite gradient values, by parameter name; already on the host
            (only gradients on the CPU are counted immediately).
        updates: how much the optimizers changed the parameters.
        changes: how much other code changed them before.
        listed: names of the parameters whose norms are listed; None for all.
    """

    names: tuple[str, ...] = ()
    norms: PendingNorms = NO_NORMS
    samples: SamplesByName | PackedSamples = field(default_factory=dict)
    nonfinite: Mapping[str, Nonfinite] = field(default_factory=dict)
    updates: tuple[PendingUpdates, ...] = ()
    changes: tuple[PendingChanges, ...] = ()
    listed: frozenset[str] | None = None

    def to_host(self) -> tuple[Parameter, ...]:
        """Wait for the device and copy to the host."""
        norms = self.norms.to_host()
        samples = self.samples
        if isinstance(samples, PackedSamples):
            samples = samples.unpack()
        ratios = dict[str, UpdateRatio]()
        for update in self.updates:
            ratios |= update.ratios(norms)
        changed = dict[str, OutsideChange]()
        for change in self.changes:
            for name, outside in change.found().items():
                if name not in changed or changed[name].ratio < outside.ratio:
                    changed[name] = outside
        found = list[Parameter]()
        for name in self.names:
            weight, gradient = samples.get(name, (None, None))
            parameter = Parameter(
                name,
                weight=None if weight is None else weight.to_host(),
                gradient=None if gradient is None else gradient.to_host(),
                norm=norms.get(name),
                nonfinite=self.nonfinite.get(name, NONE),
                is_listed=self.listed is None or name in self.listed,
                update=ratios.get(name),
                changed_outside=changed.get(name),
            )
            found.append(parameter)
        return tuple(found)


Complete = Callable[[Optimizer, Mapping[str, Tensor]], object]
"""Receives an optimizer and those of its parameters that are the model's, by name."""


class GradientReader:
    """Reads a model's gradients and weights in a logged step, right before the optimizer step.

    Only the model's own parameters are read, so several models in one process do not interfere. If
    several optimizers train one model, the parameters of each optimizer are read when that one
    steps. The gradients are those that the optimizer uses: accumulated, reduced over ranks,
    unscaled and clipped. With a closure (LBFGS) they are those of its first evaluation. If no torch
    optimizer holds the parameters, they are read when a backward pass has ended. Runs on the
    training thread; errors are reported by ``guard`` and do not reach the optimizer.

    Args:
        watched: the model whose parameters are read; those of its layers get histograms.
        guard: times the work and handles its errors, under ``"gradients"``.
        updates: also read the size of updates.

    Attributes:
        watched: as passed.
        stepped: True once an optimizer steps on the model's parameters; reset by ``forget`` and by
            ``pass_begins``.
        copies_stepped: an optimizer stepped on float32 copies of the parameters, whose gradients
            are not read.
        skipped: True if the GradScaler skipped the last step on these parameters.
        trainable: the parameters that required gradients at the last ``arm``, by name.
        read_after_backward: what was read is what the last backward pass has left.
        membership: which optimizers hold the parameters.
        fused: the steps of fused optimizers on an accelerator, which may have been skipped.
        names: ``id`` of each of the model's parameters -> its clean name, as of the last ``arm``.
    """

    def __init__(self, watched: WatchedLayers, guard: Guard, updates: bool = True) -> None:
        self.watched = watched
        self._model = watched.model
        self._guard = guard
        self._listed = watched.listed_parameters()
        self._hooks = untraced(self._before_step), untraced(self._after_step)
        self._is_armed = False
        self._in_closure = False
        self._samples: Samples = {}
        self._read_names = set[str]()
        self.stepped = False
        self.skipped = False
        self.copies_stepped = False
        self._updates = UpdateReader(self._model, enabled=updates)
        self.membership = OptimizerMembership()
        self.forget()
        self._list_parameters()

    def arm(self, about_to_step: Callable[[], object], complete: Complete) -> None:
        """Start listening to optimizer steps.

        Args:
            about_to_step: called before the first step on the model's parameters, and before the
                first one after a step was discarded by ``pass_begins``.
            complete: called in each step of any optimizer, once the gradients are final.
        """
        self._notify_step = about_to_step
        self._notify_complete = complete
        self._is_armed = True
        listen(*self._hooks)  # first: a rank without it would miss the collectives of the others
        self._list_parameters()

    def read_weights_at_start(self, *, is_marked: bool) -> None:
        """Copy a few values of each weight, to be compared with those before the optimizer step.

        Args:
            is_marked: the user ends the step.
        """
        self._updates.opens(self.trainable, is_marked=is_marked)

    def _list_parameters(self) -> None:
        """List the parameters, again for each logged step: they may have been replaced."""
        named = list(self._model.named_parameters())
        self.names = {id(p): clean_name(name) for name, p in named}
        self._parameters = {self.names[id(p)]: p for _, p in named}
        self.trainable = {name: p for name, p in self._parameters.items() if p.requires_grad}
        self._sharded = sharded_names(self._parameters)

    def disarm(self) -> None:
        """Stop listening to optimizer steps, also to one that has begun."""
        stop_listening(*self._hooks)
        self._is_armed = False

    def pass_begins(self) -> bool:
        """Called when a forward pass to be recorded begins.

        Discards what was read at an earlier optimizer step.

        Returns:
            True if there was such a step. Always False inside a closure, whose passes belong to the
            current step.
        """
        if self._in_closure or not self.stepped:
            return False
        self.forget()
        return True

    def backward_ended(self, scale: Factor | None) -> None:
        """Called when a backward pass of a step that the user marks has ended.

        Reads gradients and weights, in place of what was read after an earlier pass. An optimizer
        that steps later in the logged step reads them again.

        Args:
            scale: factor by which the loss was scaled; None for 1.
        """
        if not self._is_armed or self.stepped or self.skipped:
            return
        with self._guard("gradients"):
            if self.membership.knows(self.trainable):
                return
            self._forget_backward()
            own = not_flattened(self._parameters)
            if all(parameter.grad is None for parameter in own.values()):
                return
            self.read_after_backward = True
            for kind, subset in _by_device_type(own):
                with aside(kind, _nbytes(subset)):
                    if isinstance(scale, float):
                        first = next(iter(subset.values()))
                        like = local(first.detach())
                        scale = like.new_full((), scale, dtype=torch.float32)
                    self._read(subset, scale)

    def norms_now(self) -> PendingNorms:
        """The norms of the model's gradients at this moment.

        Collective if parameters are sharded: every rank must call it.
        """
        found = GradientNorms()
        with self._guard("gradients before clipping"):
            read_norms(not_flattened(self._parameters), found)
        return found.pending(self._sharded)

    def pending(self) -> PendingParameters:
        """Everything read in this logged step, in the model's order.

        Norms are of whole gradients, histogram samples of this process's shard. Collective if
        parameters are sharded: every rank must call it.
        """
        norms = NO_NORMS
        changes: tuple[PendingChanges, ...] = ()
        with self._guard("gradients"):
            if self.stepped:
                self._read_what_no_optimizer_holds()
            elif self.read_after_backward and self.membership.holds_any(self.trainable):
                self._forget_backward()  # an optimizer that has not stepped: gradients accumulate
            changes = self._updates.outside.closes()
        with self._guard("gradients"):  # on its own: what fails on one rank comes before
            norms = self._norms.pending(self._sharded)
        names = [name for name in self.names.values() if name in self._read_names]
        return PendingParameters(
            tuple(names),
            norms=norms,
            samples=self._samples,
            nonfinite=self._norms.nonfinite,
            updates=self._updates.pending(),
            changes=changes,
            listed=self._listed,
        )

    def own(self, optimizer: Optimizer) -> dict[str, Tensor]:
        """The optimizer's parameters that are the model's, by name."""
        names = self.names
        held = parameters_of(optimizer)
        return {names[id(parameter)]: parameter for parameter in held if id(parameter) in names}

    def _before_step(
        self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any] | None:
        """Called before an optimizer steps, on the thread that takes the step."""
        if is_capturing():
            return None
        is_positional = len(args) > 1
        closure = args[1] if is_positional else kwargs.get("closure")
        if not self._about_to_step(optimizer, callable(closure)):
            return None
        if not callable(closure):
            self._gradients_complete(optimizer)
            return None
        observed = self._observed(closure, optimizer)
        if is_positional:
            return (args[0], observed, *args[2:]), kwargs
        return args, {**kwargs, "closure": observed}

    def _observed(self, closure: Callable[[], Any], optimizer: Optimizer) -> Callable[[], Any]:
        """Wrap a closure so that the gradients are read after its first evaluation."""
        done = False

        def observed() -> Any:
            nonlocal done
            self._in_closure = True
            try:
                result = closure()
            finally:
                self._in_closure = False
            if not done:
                done = True
                self._gradients_complete(optimizer)
            return result

        return observed

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not is_capturing():
            self.step_ended(optimizer)

    def _about_to_step(self, optimizer: Optimizer, has_closure: bool) -> bool:
        """Called before an optimizer steps; False if it is known that the GradScaler skips it."""
        own = self.own(optimizer)
        if not own:
            if not self.copies_stepped:
                self.copies_stepped = holds_copies(optimizer, self.trainable)
            return True
        with self._guard("gradients"):
            if self.read_after_backward:
                self._forget_backward()
            self.skipped = is_skipped(optimizer)
            found = None if self.skipped else found_on_device(optimizer)
            if found is not None:
                unread = frozenset(own.keys() - self._read_names)
                self.fused.append((unread, found))
        if self.skipped:
            return False
        if not self.stepped:
            self.stepped = True
            with self._guard("gradients"):
                self._notify_step()
        with self._guard("update ratios"):
            parameters = own.values() if has_closure else ()
            self._updates.outside.updated_again(own)
            self._updates.announce(optimizer, parameters)
        return True

    def _gradients_complete(self, optimizer: Optimizer) -> None:
        """Called when the gradients are final: read the optimizer's parameters, each once."""
        if not self._is_armed:
            return
        with self._guard("gradients"):
            scale = getattr(optimizer, "grad_scale", None)  # fused optimizers unscale themselves
            own = self.own(optimizer)
            if own:
                self.membership.stepping(optimizer)
            self._notify_complete(optimizer, own)
            whole = not_flattened(own)
            fresh = {name: p for name, p in whole.items() if name not in self._read_names}
            for kind, subset in _by_device_type(fresh):
                with aside(kind, _nbytes(subset)):
                    updated = self._read(subset, scale)
                    with self._guard("update ratios"):
                        self._updates.before(optimizer, updated, scale)

    def step_ended(self, optimizer: Optimizer | None) -> None:
        """Called when an optimizer has updated the weights; None if all steps have ended."""
        with self._guard("update ratios"):
            self._updates.after(optimizer)

    def forget(self) -> None:
        """Discard what was read."""
        self._forget_backward()
        self._updates.forget()
        self.fused: list[FusedStep] = []
        self.stepped = False
        self.skipped = False
        self.copies_stepped = False

    def _forget_backward(self) -> None:
        self._norms = GradientNorms()
        self._samples = {}
        self.read_after_backward = False
        self._read_names = set[str]()

    def _read(self, parameters: dict[str, Tensor], scale: Tensor | None) -> dict[str, Tensor]:
        """Read parameters on one type of device; all norms are computed together.

        Returns:
            Those that have a gradient.
        """
        gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
        self._norms.read(gradients, scale)
        watched = self.watched.own_parameters()
        own = {name: p for name, p in parameters.items() if name in watched}
        self._samples |= sample_parameters(own, scale)
        self._read_names |= gradients.keys()
        self._read_names |= self._samples.keys()
        return {name: parameters[name] for name in gradients}

    def _read_what_no_optimizer_holds(self) -> None:
        """Sample weights that no optimizer updated in this step; their gradients are not read."""
        missing = self.watched.own_parameters() - self._samples.keys()
        if not missing:
            return
        known = not_flattened(self._parameters)
        left = {name: parameter for name, parameter in known.items() if name in missing}
        for kind, own in _by_device_type(left):
            with aside(kind):
                self._samples |= sample_parameters(own, gradients=False)
        self._read_names |= self._samples.keys()


def _by_device_type(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, dict[str, Tensor]]]:
    kinds = {tensor.device.type for tensor in tensors.values()}
    for kind in kinds - {"meta"}:
        own = {name: tensor for name, tensor in tensors.items() if tensor.device.type == kind}
        yield kind, own


def _nbytes(parameters: Mapping[str, Tensor]) -> int:
    """Size in bytes of what is read; of sharded parameters, of all shards."""
    return sum([parameter.nbytes for parameter in parameters.values()])
