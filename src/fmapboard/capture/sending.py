"""Sends a logged step from the devices to the worker thread, which finalizes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from fmapboard.capture.cpu_threads import one_thread
from fmapboard.capture.guard import CONSEQUENCE
from fmapboard.capture.step_parts import Failed, PendingStep, StepHeader, StepParts
from fmapboard.capture.transfer import Transfer
from fmapboard.errors import WarnOnce
from fmapboard.measure.pending import joined
from fmapboard.measure.thread_count import settle
from fmapboard.records import LayerMeasurement, StepData


class Exchange(Protocol):
    """Merges the statistics of one step over the ranks (see ``merge_ranks.RankExchange``)."""

    def merged(
        self, step: int, measured: tuple[LayerMeasurement, ...]
    ) -> tuple[LayerMeasurement, ...]:
        """The measurements with the statistics of the whole batch."""


def sent(
    parts: StepParts,
    header: StepHeader,
    transfer: Transfer,
    warn: WarnOnce,
    exchange: Exchange | None,
) -> PendingStep:
    """Start copying a step to the host.

    Args:
        parts: everything collected.
        header: the step's number and time.
        transfer: starts the copy.
        warn: where it is reported, in the worker thread, that a layer is left out.
        exchange: merges statistics over ranks; None if nothing is merged.
    """
    held = list(parts.tensors())
    failed = partial(warn.error, consequence=CONSEQUENCE)
    to_host = partial(finished, transfer(parts, held), header, failed, exchange)
    return PendingStep(header.step, sum(tensor.nbytes for tensor in held), to_host)


def finished(
    receive: Callable[[], StepParts], header: StepHeader, failed: Failed, exchange: Exchange | None
) -> StepData:
    """Wait for the devices, finalize a step, and merge its statistics over the ranks.

    Runs on one OpenMP thread. If the worker thread had a team of several, the process would have
    more OpenMP threads than cores; GNU's runtime then lets all of them sleep between operations
    instead of spin, those of training too.

    Args:
        receive: waits for the copy of the parts and returns them on the host.
        header: see ``StepParts.to_host``.
        failed: see ``StepParts.to_host``.
        exchange: merges statistics over ranks; the other ranks wait for this one, so it is called
            even after an error. None if nothing is merged.
    """
    measured: tuple[LayerMeasurement, ...] = ()
    settle()
    with one_thread():
        try:
            received = receive()
            measured = joined(received.measured, failed)
        finally:
            if exchange is not None:
                measured = exchange.merged(header.step, measured)
        return received.to_host(header, failed, measured)
