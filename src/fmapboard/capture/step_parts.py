"""Everything that one logged step collected, on its way from the devices to the worker thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from fmapboard.capture.gradients import NO_PARAMETERS, PendingParameters
from fmapboard.capture.input_images import PendingInputImage
from fmapboard.capture.weights import PendingKernels
from fmapboard.measure.norms import NO_NORMS, PendingNorms
from fmapboard.measure.reducer import PendingMeasurement, joined
from fmapboard.records import LayerMeasurement, StepData

Failed = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class StepParts:
    """What was collected in one logged step, still on its devices.

    Attributes:
        measured: of each call of a layer; a probe's pictures behind the numbers of the batch.
        parameters: samples and gradient norms.
        before_clipping: gradient norms read before the user clipped them.
        kernels: copies of convolution kernels.
        inputs: copies of the network's input.
    """

    measured: tuple[PendingMeasurement, ...]
    parameters: PendingParameters = NO_PARAMETERS
    before_clipping: PendingNorms = NO_NORMS
    kernels: tuple[PendingKernels, ...] = ()
    inputs: tuple[PendingInputImage, ...] = ()

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        for measured in self.measured:
            yield from measured.tensors()
        yield from self.parameters.tensors()
        yield from self.before_clipping.tensors()
        yield from (kernels.weight for kernels in self.kernels)
        yield from (image.values for image in self.inputs)

    def to_host(
        self,
        header: StepHeader,
        failed: Failed,
        measured: tuple[LayerMeasurement, ...] | None = None,
    ) -> StepData:
        """Wait for the devices and finalize all numbers.

        Args:
            header: what is known of the step besides.
            failed: called with the label of a layer that is left out, and the error.
            measured: ``self.measured``, where it has been finalized before.
        """
        return StepData(
            header.step,
            header.wall_time,
            measured=joined(self.measured, failed) if measured is None else measured,
            parameters=self.parameters.to_host(),
            norms_before_clipping=self.before_clipping.to_host(),
            kernels=tuple(kernels.to_host() for kernels in self.kernels),
            inputs=tuple(image.to_host() for image in self.inputs),
            scalars=header.scalars,
            training_thread_ms=header.milliseconds(),
        )


@dataclass(frozen=True, slots=True)
class StepHeader:
    """What is known of a step besides what was collected.

    ``milliseconds`` is asked in the worker thread: the time spent until the step has closed.
    """

    step: int
    milliseconds: Callable[[], float]
    wall_time: float = field(default_factory=time.time)
    scalars: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PendingStep:
    """`records.StepData` before the work that can wait.

    ``to_host`` is called once, in any thread; ``nbytes`` is what the step holds until then.
    """

    step: int
    nbytes: int
    to_host: Callable[[], StepData]
