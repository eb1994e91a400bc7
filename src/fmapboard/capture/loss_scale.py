"""Follows a GradScaler: the factor by which it scales the loss, and the steps that it skips."""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import Optimizer

from fmapboard.errors import ConfigurationError
from fmapboard.tags import SKIPPED_STEPS


class LossScale:
    """Tracks a GradScaler over the logged steps, and counts skipped steps.

    Args:
        scaler: a ``torch.amp.GradScaler``, or None if the loss is not scaled.
    """

    def __init__(self, scaler: Any = None) -> None:
        self._scaler = scaler
        self._skips_now = False
        self._count = 0
        self.at_forward: float | None = None
        """Factor by which the loss of the recorded pass is scaled; None without a scaler."""

    @property
    def now(self) -> float | None:
        """The scaler's current factor; None without a scaler."""
        return None if self._scaler is None else float(self._scaler.get_scale())

    def step_opens(self) -> None:
        """Called when a logged step opens: discard what is known of the one before."""
        self._skips_now, self.at_forward = False, None

    def pass_begins(self) -> None:
        """Called when the recorded forward pass begins: remember the current factor."""
        self.at_forward = self.now

    def skips(self, optimizer: Optimizer) -> bool:
        """True if the step that the optimizer has just taken changed nothing.

        A GradScaler calls a fused optimizer even when gradients are infinite; the optimizer then
        leaves the weights as they are.
        """
        if not is_skipped(optimizer):
            return False
        self._skips_now = True
        return True

    def was_skipped(self) -> bool:
        """True if the GradScaler skipped the step that the recorded pass was for; counts it.

        An optimizer that is not fused is not called at all for a skipped step. Such a step is
        detected by the scaler's factor, which it lowers whenever it skips.
        """
        if not self._skips_now and not self._has_halved():
            return False
        self._skips_now = False
        self._count += 1
        return True

    def _has_halved(self) -> bool:
        scale, before = self.now, self.at_forward
        return scale is not None and before is not None and scale < before

    def scalars(self) -> dict[str, float]:
        """The number of skipped steps so far, by tag; empty without a scaler."""
        return {} if self._scaler is None else {SKIPPED_STEPS: float(self._count)}


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

    Synchronizes with the device if the GradScaler has stored its result on the optimizer, as it
    does for fused optimizers only: others are not called at all for a skipped step.
    """
    found = getattr(optimizer, "found_inf", None)
    return found is not None and bool(found)
