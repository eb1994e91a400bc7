"""Rehearses a training with the loss that its framework computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from torch import nn

from fmapboard.errors import first_line, log
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.distributed import rank
from fmapboard.printing import console
from fmapboard.rehearsal.result import Rehearsal
from fmapboard.rehearsal.run import rehearse_step


class FrameworkLoss(Protocol):
    """The loss of a batch, computed by objects of a framework."""

    def __call__(self, model: Any, batch: Any, /) -> Any:
        """The loss of a copy of the network on a batch."""

    def own(self, own: Callable[[Any], Any], /) -> Any:
        """The same loss with copies of what computing it may change.

        Args:
            own: copies an object; modules of the network become those of its copy.
        """


def rehearsed(
    model: nn.Module,
    optimizer: Any,
    batches: Any,
    loss: FrameworkLoss,
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
        found = rehearse_step(model, batches, loss, optimizer, scaler=scaler)
    except Exception as error:
        raise_interrupt(error)
        log.warning("the training was not rehearsed: %s", first_line(error))
        return None
    console().print(str(found), soft_wrap=True)
    return found


def not_rehearsed(why: str) -> None:
    """Log why there is no rehearsal."""
    log.warning("the training was not rehearsed: %s", why)
