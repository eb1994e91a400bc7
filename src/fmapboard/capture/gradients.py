"""Norms and histograms of parameter gradients, read at the moment the optimizer uses them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from fmapboard.capture.isolation import aside
from fmapboard.measure.norms import dense, norms
from fmapboard.measure.subsample import PendingSample, sample
from fmapboard.model.distributed import Sharding, local, sharding, summed
from fmapboard.model.layers import clean_name, unwrap
from fmapboard.records import NONE, Nonfinite, Parameter


@dataclass(frozen=True, slots=True)
class PendingParameters:
    """`records.Parameter`s still on the device.

    Attributes:
        names: of all parameters that something was read of, in the model's order.
        normed: names of those that have a norm.
        norms: f64 [P], theirs, or None where there are none.
        samples: of weight and gradient, by name.
        nonfinite: what was counted at once, by name (on the CPU).
    """

    names: tuple[str, ...]
    normed: tuple[str, ...] = ()
    norms: Tensor | None = None
    samples: dict[str, tuple[PendingSample, PendingSample | None]] = field(default_factory=dict)
    nonfinite: dict[str, Nonfinite] = field(default_factory=dict)

    def tensors(self) -> Iterator[Tensor]:
        """Everything that it holds."""
        if self.norms is not None:
            yield self.norms
        for weight, gradient in self.samples.values():
            yield weight.values
            if gradient is not None:
                yield gradient.values

    def to_host(self) -> tuple[Parameter, ...]:
        """Wait for the device and copy."""
        values = [] if self.norms is None else self.norms.tolist()
        norm_of = dict(zip(self.normed, values, strict=True))
        parameters = []
        for name in self.names:
            weight, gradient = self.samples.get(name, (None, None))
            parameters.append(
                Parameter(
                    name,
                    None if weight is None else weight.to_host(),
                    None if gradient is None else gradient.to_host(),
                    norm_of.get(name),
                    self.nonfinite.get(name, NONE),
                )
            )
        return tuple(parameters)


class GradientReader:
    """Reads a model's parameters once, when an optimizer is about to step on them.

    It finds the moment through torch's global optimizer pre-hook while it is armed, and looks only
    at the model's own parameters, so two models in one process stay apart. Of several optimizers
    on one model each is read when it steps. The gradient is the one that the optimizer uses:
    accumulated, reduced, unscaled, clipped. With a closure (LBFGS) it is that of the closure's
    first evaluation.

    Args:
        model: its parameters, by clean name.
        histograms: names of the parameters that get histograms of weight and gradient.
    """

    def __init__(self, model: nn.Module, histograms: Iterable[str]) -> None:
        self._model = unwrap(model)
        self._names: dict[int, str] = {}
        self._wanted = frozenset(histograms)
        self._remove: Callable[[], object] = _nothing
        self._norms: dict[str, Tensor] = {}
        self._cuts: dict[str, Sharding | None] = {}
        self._samples: dict[str, tuple[PendingSample, PendingSample | None]] = {}
        self._nonfinite: dict[str, Nonfinite] = {}
        self._failed: Callable[[Exception], None] = _reraise
        self._timed: Callable[[], AbstractContextManager[None]] = nullcontext
        self._about_to_step: Callable[[], None] = _nothing
        self.stepped = False
        self.void = False
        self._in_closure = False

    def arm(
        self,
        failed: Callable[[Exception], None],
        about_to_step: Callable[[], None] | None = None,
        timed: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Wait for optimizer steps.

        Args:
            failed: is told of an error, which never reaches the optimizer.
            about_to_step: called once, before the first step on the model's parameters.
            timed: entered around everything that is done here.
        """
        self.disarm()
        self.forget()
        # Anew each time: parameters may have been replaced since.
        self._names = {id(p): clean_name(name) for name, p in self._model.named_parameters()}
        self._failed, self._about_to_step = failed, about_to_step or _nothing
        self._timed = timed
        reader = weakref.WeakMethod(self._before_step)

        def hook(optimizer: Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
            method = reader()
            return None if method is None else method(optimizer, args, kwargs)

        self._remove = weakref.finalize(self, register_optimizer_step_pre_hook(hook).remove)

    def disarm(self) -> None:
        """Stop waiting."""
        self._remove()

    def pass_begins(self) -> bool:
        """The observed forward pass begins: what was read before it belongs to the step before.

        Returns:
            Was there such a thing? A closure (LBFGS) runs its passes inside the step.
        """
        if self._in_closure or not self.stepped:
            return False
        self.forget()
        return True

    def forget(self) -> None:
        """Begin anew: nothing was read, no optimizer has stepped."""
        self._norms, self._cuts, self._samples, self._nonfinite = {}, {}, {}, {}
        self.stepped = self.void = False

    def pending(self) -> PendingParameters:
        """What was read since `arm`, in the model's order.

        Where parameters are sharded all ranks must call this: norms are of the whole gradient.
        Samples for histograms are of this process's part.
        """
        whole = summed(list(self._norms.values()), [self._cuts[name] for name in self._norms])
        stacked = torch.stack([n.to(whole[0].device) for n in whole]) if whole else None
        read = self._norms.keys() | self._samples.keys()
        names = tuple(name for name in self._names.values() if name in read)
        return PendingParameters(
            names, tuple(self._norms), stacked, dict(self._samples), dict(self._nonfinite)
        )

    def to_host(self) -> tuple[Parameter, ...]:
        """`pending` at once; waits for the device."""
        return self.pending().to_host()

    def _before_step(
        self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any] | None:
        if self._concerns(optimizer):
            self.void = is_void(optimizer)
            if self.void:
                return None
            if not self.stepped:
                self.stepped = True
                self._safely(self._about_to_step)
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if not callable(closure):
            self._safely(lambda: self._read(optimizer))
            return None
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
                self._safely(lambda: self._read(optimizer))
            return result

        if len(args) > 1:
            return (args[0], observed, *args[2:]), kwargs
        return args, {**kwargs, "closure": observed}

    def _concerns(self, optimizer: Optimizer) -> bool:
        groups = optimizer.param_groups
        return any(id(p) in self._names for group in groups for p in group["params"])

    def _safely(self, act: Callable[[], None]) -> None:
        with self._timed():
            try:
                act()
            except Exception as error:
                self._failed(error)

    def _read(self, optimizer: Optimizer) -> None:
        scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer unscales in its kernel
        fresh: dict[str, Tensor] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name = self._names.get(id(parameter))
                if name is not None and name not in self._norms and name not in self._samples:
                    fresh[name] = parameter
        for kind in {parameter.device.type for parameter in fresh.values()}:
            own = {n: p for n, p in fresh.items() if p.device.type == kind}
            with aside(kind, sum(local(parameter).nbytes for parameter in own.values())):
                self._read_all(own, scale)

    def _read_all(self, parameters: dict[str, Tensor], scale: Tensor | None) -> None:
        """Read parameters of one kind of device: all norms together."""
        gradients: dict[str, Tensor] = {}
        for name, parameter in parameters.items():
            if parameter.grad is not None:
                self._cuts[name] = sharding(parameter.grad)
                gradients[name] = dense(parameter.grad)
        found = norms(list(gradients.values()))
        for (name, gradient), norm in zip(gradients.items(), found, strict=True):
            self._norms[name] = norm if scale is None else norm / scale.to(norm.device)
            if norm.device.type == "cpu" and not math.isfinite(norm):
                self._nonfinite[name] = _count(gradient)
        for name in self._wanted & parameters.keys():
            self._sample(name, parameters[name], scale)

    def _sample(self, name: str, parameter: Tensor, scale: Tensor | None) -> None:
        part, gradient = local(parameter.detach()), parameter.grad
        if not part.numel():
            return
        of_gradient = None
        if gradient is not None:
            own = local(gradient.detach())
            values = own.coalesce().values() if own.is_sparse else own
            of_gradient = _unscaled(sample(values), scale)
        self._samples[name] = (sample(part), of_gradient)


def is_void(optimizer: Optimizer) -> bool:
    """Will a fused optimizer leave everything as it is, because its GradScaler found infinities?

    Waits for the device where a scaler has left its finding on the optimizer, as it does with fused
    ones alone: any other is not called at all.
    """
    found = getattr(optimizer, "found_inf", None)
    return found is not None and bool(found)


def _unscaled(sampled: PendingSample, scale: Tensor | None) -> PendingSample:
    if scale is None:
        return sampled
    return replace(sampled, values=sampled.values / scale.to(sampled.values.device))


def _count(gradient: Tensor) -> Nonfinite:
    """How many values of a dense, real gradient are NaN, +Inf and -Inf."""
    infinite = (int((gradient == end).sum()) for end in (torch.inf, -torch.inf))
    return Nonfinite(int(torch.isnan(gradient).sum()), *infinite)


def _nothing() -> None:
    return


def _reraise(error: Exception) -> None:
    raise error
