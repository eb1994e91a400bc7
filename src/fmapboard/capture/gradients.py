"""Norms and histograms of parameter gradients, read at the moment the optimizer uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.guard import Guard
from fmapboard.capture.isolation import aside
from fmapboard.capture.loss_scale import is_skipped
from fmapboard.capture.optimizer_hook import OptimizerHook
from fmapboard.capture.optimizers import in_no_optimizer
from fmapboard.measure.norms import NO_NORMS, GradientNorms, PendingNorms
from fmapboard.measure.subsample import PendingSample, sample
from fmapboard.model.distributed import local
from fmapboard.model.layers import clean_name, unwrap
from fmapboard.records import NONE, Nonfinite, Parameter


@dataclass(frozen=True, slots=True)
class PendingParameters:
    """`records.Parameter`s still on the device.

    Attributes:
        names: of all parameters that something was read of, in the model's order.
        norms: of their gradients.
        samples: of weight and gradient, by name.
        nonfinite: what was counted at once, by name (on the CPU).
    """

    names: tuple[str, ...] = ()
    norms: PendingNorms = NO_NORMS
    samples: Mapping[str, tuple[PendingSample, PendingSample | None]] = field(default_factory=dict)
    nonfinite: Mapping[str, Nonfinite] = field(default_factory=dict)

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        yield from self.norms.tensors()
        for weight, gradient in self.samples.values():
            yield weight.values
            if gradient is not None:
                yield gradient.values

    def to_host(self) -> tuple[Parameter, ...]:
        """Wait for the device and copy."""
        norms = self.norms.to_host()
        parameters = []
        for name in self.names:
            weight, gradient = self.samples.get(name, (None, None))
            parameters.append(
                Parameter(
                    name,
                    None if weight is None else weight.to_host(),
                    None if gradient is None else gradient.to_host(),
                    norms.get(name),
                    self.nonfinite.get(name, NONE),
                )
            )
        return tuple(parameters)


NO_PARAMETERS = PendingParameters()


class GradientReader:
    """Reads a model's parameters once, when an optimizer is about to step on them.

    It looks only at the model's own parameters, so two models in one process stay apart. Of several
    optimizers on one model each is read when it steps. The gradient is the one that the optimizer
    uses: accumulated, reduced, unscaled, clipped. With a closure (LBFGS) it is that of the
    closure's first evaluation. An error never reaches the optimizer.

    Args:
        model: its parameters, by clean name.
        histograms: names of the parameters that get histograms of weight and gradient.
        guard: times the work and receives its errors, under ``"gradients"``.

    Attributes:
        stepped: an optimizer has stepped on the model's parameters since `arm`.
        skipped: the GradScaler made the last such step change nothing.
        trainable: the model's parameters that required gradients at the last `arm`.
    """

    def __init__(self, model: nn.Module, histograms: Iterable[str], guard: Guard) -> None:
        self._model = unwrap(model)
        self._histograms = frozenset(histograms)
        self._guard = guard
        self._hook = OptimizerHook(self)
        self._samples: dict[str, tuple[PendingSample, PendingSample | None]] = {}
        self.stepped = self.skipped = False
        self._names: dict[int, str] = {}
        self.trainable: tuple[nn.Parameter, ...] = ()
        self._act: Callable[[], None] = _nothing
        self._complete: Callable[[], None] = _nothing
        self._forget()

    def arm(
        self,
        about_to_step: Callable[[], None] | None = None,
        complete: Callable[[], None] | None = None,
    ) -> None:
        """Wait for optimizer steps.

        Args:
            about_to_step: called once, before the first step on the model's parameters.
            complete: called when gradients of the model are those that an optimizer uses.
        """
        # Anew each time: parameters may have been replaced since.
        named = list(self._model.named_parameters())
        self._names = {id(p): clean_name(name) for name, p in named}
        self.trainable = tuple(p for _, p in named if p.requires_grad)
        self._act, self._complete = about_to_step or _nothing, complete or _nothing
        self._forget()
        self._hook.arm()

    def disarm(self) -> None:
        """Stop reading at optimizer steps."""
        self._hook.disarm()

    def pass_begins(self) -> bool:
        """The recorded forward pass begins; forget what was read for the step before.

        Returns:
            True if there was such a step. A closure (LBFGS) runs its passes inside its step.
        """
        if self._hook.in_closure or not self.stepped:
            return False
        self._forget()
        return True

    def norms_now(self) -> PendingNorms:
        """Norms of the model's gradients as they are now.

        Where parameters are sharded all ranks must call this.
        """
        found = GradientNorms()
        gradients = {
            clean_name(name): parameter.grad
            for name, parameter in self._model.named_parameters()
            if parameter.grad is not None
        }
        for kind, own in _by_device_type(gradients):
            with aside(kind):
                found.read(own)
        return found.pending()

    def pending(self) -> PendingParameters:
        """What was read since `arm`, in the model's order.

        Where parameters are sharded all ranks must call this: norms are of the whole gradient.
        Samples for histograms are of this process's part.
        """
        if self.stepped:
            with self._guard("gradients"):
                self._read_what_no_optimizer_holds()
        names = tuple(name for name in self._names.values() if self._was_read(name))
        return PendingParameters(
            names, self._norms.pending(), dict(self._samples), dict(self._norms.nonfinite)
        )

    def unoptimized(self) -> list[str]:
        """Names of the trainable parameters that no optimizer of the process holds."""
        unseen = {
            clean_name(name): parameter
            for name, parameter in self._model.named_parameters()
            if parameter.requires_grad and id(parameter) not in self._held
        }
        return in_no_optimizer(unseen) if unseen else []

    def about_to_step(self, optimizer: Optimizer) -> bool:
        """An optimizer's ``step`` was called; False if its scaler skips the step."""
        if any(id(p) in self._names for group in optimizer.param_groups for p in group["params"]):
            self.skipped = is_skipped(optimizer)
            if self.skipped:
                return False
            if not self.stepped:
                self.stepped = True
                with self._guard("gradients"):
                    self._act()
        return True

    def gradients_complete(self, optimizer: Optimizer) -> None:
        """Read what the optimizer is about to use, each parameter once."""
        with self._guard("gradients"):
            scale = getattr(optimizer, "grad_scale", None)  # fused ones unscale in their kernel
            own = {
                self._names[id(p)]: p
                for group in optimizer.param_groups
                for p in group["params"]
                if id(p) in self._names
            }
            if own:
                self._held |= {id(parameter) for parameter in own.values()}
                self._complete()
            fresh = {name: p for name, p in own.items() if not self._was_read(name)}
            for kind, there in _by_device_type(fresh):
                with aside(kind, sum(local(parameter).nbytes for parameter in there.values())):
                    self._read(there, scale)

    def _forget(self) -> None:
        """Nothing was read, no optimizer has stepped."""
        self._norms = GradientNorms()
        self._samples, self._held = {}, set[int]()
        self.stepped = self.skipped = False

    def _was_read(self, name: str) -> bool:
        return name in self._norms or name in self._samples

    def _read(self, parameters: dict[str, Tensor], scale: Tensor | None) -> None:
        """Read parameters of one kind of device: all norms together."""
        gradients = {n: p.grad for n, p in parameters.items() if p.grad is not None}
        self._norms.read(gradients, scale)
        for name in self._histograms & parameters.keys():
            self._sample(name, parameters[name], scale)

    def _read_what_no_optimizer_holds(self) -> None:
        """Weights of which no optimizer has taken care in this step, and no gradient of them."""
        if self._samples.keys() >= self._histograms:
            return
        for name, parameter in self._model.named_parameters():
            clean = clean_name(name)
            if clean in self._histograms and clean not in self._samples:
                with aside(parameter.device.type):
                    self._sample(clean, parameter, None, with_gradient=False)

    def _sample(
        self, name: str, parameter: Tensor, scale: Tensor | None, *, with_gradient: bool = True
    ) -> None:
        part = local(parameter.detach())
        gradient = parameter.grad if with_gradient else None
        if not part.numel():
            return
        of_gradient = None
        if gradient is not None:
            own = local(gradient.detach())
            values = own.coalesce().values() if own.is_sparse else own
            of_gradient = _unscaled(sample(values), scale)
        self._samples[name] = (sample(part), of_gradient)


def _by_device_type(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, dict[str, Tensor]]]:
    for kind in {tensor.device.type for tensor in tensors.values()}:
        yield kind, {name: t for name, t in tensors.items() if t.device.type == kind}


def _unscaled(sampled: PendingSample, scale: Tensor | None) -> PendingSample:
    if scale is None:
        return sampled
    return replace(sampled, values=sampled.values / scale.to(sampled.values.device))


def _nothing() -> None:
    return
