"""Rehearses a training with the loss that its framework computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from fmapboard.errors import first_line, log
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.distributed import rank
from fmapboard.printing import console
from fmapboard.rehearsal.result import Rehearsal
from fmapboard.rehearsal.run import rehearse_step


class FrameworkStep:
    """The loss of a batch, computed by objects of a framework that are not copied.

    Args:
        loss: a function of a copy of the network and a batch.
    """

    def __init__(self, loss: Callable[[nn.Module, Any], Any]) -> None:
        self._loss = loss

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        """The loss of a batch."""
        found: Tensor = self._loss(model, batch)
        return found

    def own(self, own: Callable[[Any], Any]) -> FrameworkStep:
        """The step itself: what it refers to reads the training and changes nothing."""
        return self


def rehearsed(
    model: nn.Module,
    optimizer: Any,
    batches: Any,
    loss: Callable[[nn.Module, Any], Any],
    *,
    scaler: Any = None,
) -> Rehearsal | None:
    """Rehearse on rank 0, and print the result; an error is logged and never raised.

    Args:
        model: the network.
        optimizer: that of the network.
        batches: the loader of the training.
        loss: the loss of a batch, as the framework computes it.
        scaler: the GradScaler; None for none.
    """
    if rank() != 0:
        return None
    try:
        found = rehearse_step(model, batches, FrameworkStep(loss), optimizer, scaler=scaler)
    except Exception as error:
        raise_interrupt(error)
        log.warning("the training was not rehearsed: %s", first_line(error))
        return None
    console().print(str(found), soft_wrap=True)
    return found


def not_rehearsed(why: str) -> None:
    """Log why there is no rehearsal."""
    log.warning("the training was not rehearsed: %s", why)
