"""The parts of a logged step on their way from the devices to the worker thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from torch import Tensor

from fmapboard.capture.fact_recorder import PendingFacts
from fmapboard.capture.input_images import PendingInputImage
from fmapboard.capture.loss_scale import NO_SKIPS, PendingSkips
from fmapboard.capture.pending_attributions import NO_ATTRIBUTIONS, PendingAttributions
from fmapboard.capture.pending_parameters import NO_PARAMETERS, PendingParameters
from fmapboard.capture.weights import PendingKernels
from fmapboard.measure.batch_norms import PendingGaps
from fmapboard.measure.norms import NO_NORMS, PendingNorms
from fmapboard.measure.pending import PendingMeasurement, joined
from fmapboard.records import LayerMeasurement, ModelGraph, StepData, TrainingFacts
from fmapboard.tags import BATCHNORM_GAP, UPDATE_RATIO, of

Failed = Callable[[str, Exception], None]


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
        facts: what only the training process knows; None if it is not recorded.
        batch_norms: the running statistics of BatchNorm layers around the forward pass.
        attributions: where larger activations lower the loss, for the drawn samples.
        graph: the network's graph, if it was recorded in this step.
    """

    measured: tuple[PendingMeasurement, ...]
    parameters: PendingParameters = NO_PARAMETERS
    before_clipping: PendingNorms = NO_NORMS
    kernels: tuple[PendingKernels, ...] = ()
    inputs: tuple[PendingInputImage, ...] = ()
    skips: PendingSkips = NO_SKIPS
    facts: PendingFacts | None = None
    batch_norms: tuple[PendingGaps, ...] = ()
    attributions: PendingAttributions = NO_ATTRIBUTIONS
    graph: ModelGraph | None = None

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        for measured in self.measured:
            yield from measured.tensors()
        yield from self.parameters.tensors()
        yield from self.before_clipping.tensors()
        yield from (kernels.weight for kernels in self.kernels)
        yield from (image.values for image in self.inputs)
        yield from self.skips.tensors()
        if self.facts is not None:
            yield from self.facts.tensors()
        for norms in self.batch_norms:
            yield from norms.tensors()
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
            scalars=self._scalars(skipped),
            training_thread_ms=header.milliseconds(),
            facts=self._facts(),
            attributions=self.attributions.to_host(inputs),
            graph=self.graph,
        )

    def _facts(self) -> TrainingFacts | None:
        if self.facts is None:
            return None
        found = self.facts.to_host()
        norms = tuple(name for norms in self.batch_norms for name in norms.initial())
        return replace(found, findings=replace(found.findings, initial_norms=norms))

    def _scalars(self, skipped: frozenset[str]) -> dict[str, float]:
        """Scalars that are not gradient norms, by tag."""
        scalars = self.skips.scalars()
        for update in self.parameters.updates:
            ratios = update.ratios().items()
            scalars |= {of(UPDATE_RATIO, n): r for n, r in ratios if n not in skipped}
        for batch_norm in self.batch_norms:
            scalars |= {of(BATCHNORM_GAP, name): gap for name, gap in batch_norm.gaps().items()}
        return scalars


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
