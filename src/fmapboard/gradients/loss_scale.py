"""Follows a GradScaler: the factor by which it scales the loss, and the steps that it skips.

On the CPU both are read at once. On an accelerator reading would make the training thread wait for
the device, so the factor, and whether a step was skipped, stay on the device and travel to the
worker thread with the logged step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.optim.optimizer import Optimizer

from fmapboard.capture.isolation import aside
from fmapboard.errors import ConfigurationError
from fmapboard.formats.tags import SKIPPED_STEPS
from fmapboard.measure.norms import Factor

FusedStep = tuple[frozenset[str], Tensor]
"""Names of the parameters that a fused optimizer updates on an accelerator, and ``found_inf``."""


@dataclass(frozen=True, slots=True)
class PendingSkips:
    """What a GradScaler skipped, in part still on the device.

    Attributes:
        count: how many steps were skipped so far; None without a scaler.
        on_device: f32 [], the number of further steps, counted on an accelerator, if any.
        fused: the steps of fused optimizers on an accelerator in this logged step.
    """

    count: int | None = None
    on_device: Tensor | None = None
    fused: tuple[FusedStep, ...] = ()

    def scalars(self) -> dict[str, float]:
        """The number of skipped steps so far, by tag; waits for the device."""
        if self.count is None:
            return {}
        more = 0.0 if self.on_device is None else self.on_device.item()
        return {SKIPPED_STEPS: float(self.count + more)}

    def parameters(self) -> frozenset[str]:
        """The parameters that were not updated, because their step was skipped; waits."""
        return frozenset().union(*(names for names, found in self.fused if found.item()))


class LossScale:
    """Tracks a GradScaler over the logged steps, and counts skipped steps.

    Args:
        scaler: a ``torch.amp.GradScaler``, or None if the loss is not scaled. Of a scaler that
            keeps its factor elsewhere than in ``_scale``, ``get_scale`` is called; that may wait
            for the device.

    Attributes:
        at_forward: factor by which the loss of the recorded pass is scaled; None without a scaler
            and once the step was counted.
    """

    def __init__(self, scaler: Any) -> None:
        self._scaler = scaler
        self._count = 0
        self._count_on_device: Tensor | None = None
        self._updates: object = None
        self.at_forward: Factor | None = None

    def step_opens(self) -> None:
        """Called when a logged step opens: discard what is known of the one before."""
        self.at_forward = self._updates = None

    def pass_begins(self) -> None:
        """Called when the recorded forward pass begins: remember the current factor."""
        factor = self._now()
        if isinstance(factor, Tensor):  # the scaler changes its own tensor in place
            with aside(factor.device.type):
                factor = factor.clone()
        self.at_forward = factor
        self._updates = self._marker()

    def was_skipped(self, *, stepped: bool = False) -> bool:
        """True if the GradScaler skipped the step that the recorded pass was for; counts it.

        A skipped step is detected by the scaler's factor, which it lowers then. On an accelerator
        the factors are compared there, for the count alone; the answer is True if the scaler was
        updated since the pass, as it is at the end of an iteration, although no optimizer stepped.

        Args:
            stepped: an optimizer stepped on the model's parameters.
        """
        if self._tensor() is not None:
            if stepped or self.at_forward is None or self._marker() is self._updates:
                return False
            self._count_there(())
            return True
        scale = self._now()
        before = self.at_forward
        if scale is None or before is None or not scale < before:
            return False
        self._count += 1
        return True

    def step_closes(self, fused: Sequence[FusedStep] = ()) -> PendingSkips:
        """Called when a logged step closes: how many steps were skipped so far.

        Args:
            fused: as in ``PendingSkips``.
        """
        self._count_there([found for _, found in fused])
        count = None if self._scaler is None else self._count
        return PendingSkips(count, self._count_on_device, tuple(fused))

    def _now(self) -> Factor | None:
        """The scaler's current factor; its own tensor if that is on an accelerator."""
        if self._scaler is None:
            return None
        on_device = self._tensor()
        return float(self._scaler.get_scale()) if on_device is None else on_device

    def _tensor(self) -> Tensor | None:
        """The scaler's own factor if it is on an accelerator; None if reading it does not wait."""
        held = getattr(self._scaler, "_scale", None)
        return held.detach() if isinstance(held, Tensor) and not held.is_cpu else None

    def _marker(self) -> object:
        """An object that the scaler replaces by another one in each ``update()``."""
        return getattr(self._scaler, "_per_optimizer_states", None)

    def _count_there(self, found: Sequence[Tensor]) -> None:
        """Count the step of the recorded pass on the device if it was skipped, and only once."""
        now = self._tensor()
        before = self.at_forward
        self.at_forward = self._updates = None
        if now is None or before is None:
            return
        with aside(now.device.type):
            skipped = now < before
            for found_inf in found:
                skipped = skipped | (found_inf.to(now.device, non_blocking=True) != 0)
            counted = self._count_on_device
            self._count_on_device = skipped.float() if counted is None else counted + skipped


def check_scaler(scaler: Any) -> None:
    """Check that the scaler is a GradScaler or None.

    Raises:
        ConfigurationError: it is something else.
    """
    if scaler is not None and not callable(getattr(scaler, "get_scale", None)):
        raise ConfigurationError(
            f"scaler={type(scaler).__name__}: expected a torch.amp.GradScaler or None"
        )


def is_skipped(optimizer: Optimizer) -> bool:
    """True if a fused optimizer skips its step because its GradScaler found non-finite gradients.

    A GradScaler calls a fused optimizer for such a step too, which then leaves the weights as they
    are, and stores its result on it: others are not called at all. A result on an accelerator is
    not read, and the answer is False (see ``found_on_device``).
    """
    found = getattr(optimizer, "found_inf", None)
    return found is not None and found.is_cpu and bool(found)


def found_on_device(optimizer: Optimizer) -> Tensor | None:
    """A copy of what the GradScaler of a fused optimizer has found, if it is on an accelerator.

    Returns:
        f32 []: 0 if all gradients are finite; otherwise the optimizer skips its step.
    """
    found = getattr(optimizer, "found_inf", None)
    if not isinstance(found, Tensor) or found.is_cpu:
        return None
    with aside(found.device.type):
        return found.detach().clone()
