"""Norms and histograms of parameter gradients, read at the moment the optimizer uses them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from fmapboard.distributed import Sharding, local, sharding, summed
from fmapboard.layers import clean_name, unwrap
from fmapboard.observe import aside
from fmapboard.records import NONE, Nonfinite, Parameter
from fmapboard.reduce import PendingSample, sample

_RUN = 4096
# Beyond these, squares of float32 may overflow or vanish.
_LARGE, _SMALL = 1e15, 1e-15


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
        self._about_to_step: Callable[[], None] = _nothing
        self.stepped = False
        self.void = False
        self._in_closure = False

    def arm(
        self,
        failed: Callable[[Exception], None],
        about_to_step: Callable[[], None] | None = None,
    ) -> None:
        """Wait for optimizer steps.

        Args:
            failed: is told of an error, which never reaches the optimizer.
            about_to_step: called once, before the first step on the model's parameters.
        """
        self.disarm()
        self.forget()
        # Anew each time: parameters may have been replaced since.
        self._names = {id(p): clean_name(name) for name, p in self._model.named_parameters()}
        self._failed, self._about_to_step = failed, about_to_step or _nothing
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

    def to_host(self) -> tuple[Parameter, ...]:
        """What was read since `arm`, in the model's order; one host sync for all norms.

        Where parameters are sharded all ranks must call this: norms are of the whole gradient.
        Samples for histograms are of this process's part.
        """
        whole = summed(list(self._norms.values()), [self._cuts[name] for name in self._norms])
        norms = _stacked(whole)
        of_name = dict(zip(self._norms, norms, strict=True))
        parameters = []
        for name in self._names.values():
            weight, gradient = self._samples.get(name, (None, None))
            if weight is not None or name in of_name:
                parameters.append(
                    Parameter(
                        name,
                        None if weight is None else weight.to_host(),
                        None if gradient is None else gradient.to_host(),
                        of_name.get(name),
                        self._nonfinite.get(name, NONE),
                    )
                )
        return tuple(parameters)

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
        try:
            act()
        except Exception as error:
            self._failed(error)

    def _read(self, optimizer: Optimizer) -> None:
        scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer unscales in its kernel
        new: dict[str, Tensor] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name = self._names.get(id(parameter))
                if name is None:
                    continue
                if name not in self._norms and name not in self._samples:
                    new[name] = parameter
                    with aside(parameter.device.type):
                        self._read_one(name, parameter, scale)
        self._count_nonfinite(new)

    def _count_nonfinite(self, parameters: dict[str, Tensor]) -> None:
        """Name what is wrong with the gradients whose norm is not finite; waits for the device."""
        names = [name for name in parameters if name in self._norms]
        norms = _stacked([self._norms[name] for name in names])
        for name, norm in zip(names, norms, strict=True):
            gradient = parameters[name].grad
            if not math.isfinite(norm) and gradient is not None:
                with aside(gradient.device.type):
                    self._nonfinite[name] = _count(_dense(gradient))

    def _read_one(self, name: str, parameter: Tensor, scale: Tensor | None) -> None:
        gradient = parameter.grad
        if gradient is not None:
            self._cuts[name] = sharding(gradient)
            gradient = _dense(gradient)
            self._norms[name] = _norm(gradient, scale)
        if name in self._wanted:
            part = local(parameter.detach())
            if part.numel():
                of_gradient = None if gradient is None else _unscaled(sample(gradient), scale)
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


def _dense(gradient: Tensor) -> Tensor:
    """This process's part of a gradient; of a sparse one the rows that it has, each once."""
    part = local(gradient.detach())
    return part.coalesce().values() if part.is_sparse else part


def _count(gradient: Tensor) -> Nonfinite:
    """How many values of a gradient are NaN, +Inf and -Inf, real and imaginary parts apart."""
    flat = torch.view_as_real(gradient) if gradient.is_complex() else gradient
    infinite = (int((flat == end).sum()) for end in (torch.inf, -torch.inf))
    return Nonfinite(int(torch.isnan(flat).sum()), *infinite)


def _norm(gradient: Tensor, scale: Tensor | None) -> Tensor:
    """The 2-norm, f64 [], on the gradient's device.

    Float32 sums over runs of values and float64 sums over the runs: one float32 sum of 25 million
    squares is wrong in the third digit.
    """
    if gradient.is_complex():
        gradient = torch.view_as_real(gradient)
    dtype = torch.float64 if gradient.dtype == torch.float64 else torch.float32
    flat = gradient.reshape(-1)
    whole = flat.numel() // _RUN * _RUN
    runs = torch.linalg.vector_norm(flat[:whole].view(-1, _RUN), dim=1, dtype=dtype)
    rest = torch.linalg.vector_norm(flat[whole:], dtype=dtype)
    norm: Tensor = torch.linalg.vector_norm(torch.cat([runs, rest[None]]).double())
    if norm.device.type == "cpu" and not _SMALL < norm.item() < _LARGE:
        norm = torch.linalg.vector_norm(flat, dtype=torch.float64)  # squares left float32
    return norm if scale is None else norm / scale.to(norm.device)


def _stacked(norms: list[Tensor]) -> list[float]:
    """Scalars of any device as floats: one transfer for each device that holds some."""
    if not norms:
        return []
    home = norms[0].device
    values: list[float] = torch.stack([norm.to(home).double() for norm in norms]).tolist()
    return values


def _nothing() -> None:
    return


def _reraise(error: Exception) -> None:
    raise error
