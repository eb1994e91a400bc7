"""The parts of a logged step on their way from the devices to the worker thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from fmapboard.capture.gradients import NO_PARAMETERS, PendingParameters
from fmapboard.capture.input_images import PendingInputImage
from fmapboard.capture.loss_scale import NO_SKIPS, PendingSkips
from fmapboard.capture.pending_attributions import NO_ATTRIBUTIONS, PendingAttributions
from fmapboard.capture.weights import PendingKernels
from fmapboard.measure.norms import NO_NORMS, PendingNorms
from fmapboard.measure.pending import PendingMeasurement, joined
from fmapboard.records import LayerMeasurement, StepData

Failed = Callable[[str, Exception], None]


class Exchange(Protocol):
    """Merges the statistics of one step over the ranks (see ``merge_ranks.RankExchange``)."""

    def merged(
        self, step: int, measured: tuple[LayerMeasurement, ...]
    ) -> tuple[LayerMeasurement, ...]:
        """The measurements with the statistics of the whole batch."""


@dataclass(frozen=True, slots=True)
class StepParts:
    """Everything collected in one logged step, still on its devices.

    Attributes:
        measured: one measurement per layer call and kind of tensor; those of the probe come last.
        parameters: histogram samples and gradient norms.
        before_clipping: gradient norms read before the user clipped the gradients.
        kernels: copies of convolution kernels.
        inputs: copies of the network's input images.
        skips: the steps that a GradScaler skipped. Parameters that it may have left as they are
            have gradients like the others until ``to_host``, which omits them.
        attributions: where larger activations lower the loss, for the drawn samples.
    """

    measured: tuple[PendingMeasurement, ...]
    parameters: PendingParameters = NO_PARAMETERS
    before_clipping: PendingNorms = NO_NORMS
    kernels: tuple[PendingKernels, ...] = ()
    inputs: tuple[PendingInputImage, ...] = ()
    skips: PendingSkips = NO_SKIPS
    attributions: PendingAttributions = NO_ATTRIBUTIONS

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        for measured in self.measured:
            yield from measured.tensors()
        yield from self.parameters.tensors()
        yield from self.before_clipping.tensors()
        yield from (kernels.weight for kernels in self.kernels)
        yield from (image.values for image in self.inputs)
        yield from self.skips.tensors()
        yield from self.attributions.tensors()

    def to_host(
        self,
        header: StepHeader,
        failed: Failed,
        measured: tuple[LayerMeasurement, ...] | None = None,
    ) -> StepData:
        """Wait for the devices and finalize all statistics.

        Args:
            header: the step's number and time.
            failed: called with the label and the error of each layer that is left out.
            measured: ``self.measured`` in final form, if it has already been finalized.
        """
        skipped = self.skips.parameters()
        inputs = tuple(image.to_host() for image in self.inputs)
        return StepData(
            header.step,
            header.wall_time,
            measured=joined(self.measured, failed) if measured is None else measured,
            parameters=tuple(p for p in self.parameters.to_host() if p.name not in skipped),
            norms_before_clipping=self.before_clipping.to_host(),
            kernels=tuple(kernels.to_host() for kernels in self.kernels),
            inputs=inputs,
            scalars=self.skips.scalars(),
            training_thread_ms=header.milliseconds(),
            attributions=self.attributions.to_host(inputs),
        )


@dataclass(frozen=True, slots=True)
class StepHeader:
    """What is known about a step apart from its measurements.

    Attributes:
        step: its number.
        milliseconds: returns the time in ms that fmapboard spent on the training thread; called in
            the worker thread.
        wall_time: seconds since the epoch.
    """

    step: int
    milliseconds: Callable[[], float]
    wall_time: float = field(default_factory=time.time)


def finished(
    receive: Callable[[], StepParts], header: StepHeader, failed: Failed, exchange: Exchange | None
) -> StepData:
    """Wait for the devices, finalize a step, and merge its statistics over the ranks.

    Args:
        receive: waits for the copy of the parts and returns them on the host.
        header: see ``StepParts.to_host``.
        failed: see ``StepParts.to_host``.
        exchange: merges statistics over ranks; the other ranks wait for this one, so it is called
            even after an error. None if nothing is merged.
    """
    measured: tuple[LayerMeasurement, ...] = ()
    try:
        received = receive()
        measured = joined(received.measured, failed)
    finally:
        if exchange is not None:
            measured = exchange.merged(header.step, measured)
    return received.to_host(header, failed, measured)


@dataclass(frozen=True, slots=True)
class PendingStep:
    """A logged step that is still to be copied to the host and finalized.

    Attributes:
        step: its number.
        nbytes: size in bytes of the tensors held until ``to_host`` is called.
        to_host: copies and finalizes; called once, from any thread.
    """

    step: int
    nbytes: int
    to_host: Callable[[], StepData]
