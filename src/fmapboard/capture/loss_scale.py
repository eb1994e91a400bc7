"""What a GradScaler multiplies the loss by, and the optimizer steps that it skips."""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import Optimizer

from fmapboard.errors import ConfigurationError
from fmapboard.tags import SKIPPED_STEPS


class LossScale:
    """Follows a GradScaler through one logged step after the other, and counts skipped steps.

    Args:
        scaler: a `torch.amp.GradScaler`, or None where the loss is not scaled.
    """

    def __init__(self, scaler: Any = None) -> None:
        self._scaler = scaler
        self._skips_now = False
        self._count = 0
        self.at_forward: float | None = None
        """What the loss of the recorded pass is multiplied by; None without a scaler."""

    @property
    def now(self) -> float | None:
        """What the scaler multiplies the loss by now; None without a scaler."""
        return None if self._scaler is None else float(self._scaler.get_scale())

    def step_opens(self) -> None:
        """A logged step opens: nothing is known of its pass."""
        self._skips_now, self.at_forward = False, None

    def pass_begins(self) -> None:
        """The recorded forward pass begins."""
        self.at_forward = self.now

    def skips(self, optimizer: Optimizer) -> bool:
        """True if the step that the optimizer has just taken changed nothing.

        A fused optimizer is called by its GradScaler even when there are infinities.
        """
        if not is_skipped(optimizer):
            return False
        self._skips_now = True
        return True

    def was_skipped(self) -> bool:
        """True if the step that the recorded pass was for has been skipped; counts it.

        A scaler that skips halves its scale, which is how a step of an optimizer that was not
        called at all is noticed.
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
    """Accept a GradScaler, or None.

    Raises:
        ConfigurationError: it is something else.
    """
    if scaler is not None and not callable(getattr(scaler, "get_scale", None)):
        raise ConfigurationError(
            f"scaler={type(scaler).__name__}: expected a torch.amp.GradScaler or None"
        )


def is_skipped(optimizer: Optimizer) -> bool:
    """True if a fused optimizer leaves everything as it is because its GradScaler found infinities.

    Waits for the device where a scaler has left its finding on the optimizer, as it does with fused
    ones alone: any other is not called at all.
    """
    found = getattr(optimizer, "found_inf", None)
    return found is not None and bool(found)
