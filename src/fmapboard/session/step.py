"""A logged step: while it is open, and everything that was collected, on its way to the worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from fmapboard.capture.attribution import PendingAttributions
from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import CONSEQUENCE
from fmapboard.capture.inputs import PendingInputImage
from fmapboard.capture.isolation import aside, settle
from fmapboard.capture.kernels import PendingKernels
from fmapboard.capture.texts import PendingTexts
from fmapboard.capture.transfer import Transfer
from fmapboard.errors import WarnOnce
from fmapboard.formats.tags import BATCHNORM_GAP, UPDATE_RATIO, of
from fmapboard.gradients.loss_scale import PendingSkips
from fmapboard.gradients.reader import PendingParameters
from fmapboard.measure.batchnorm_gaps import PendingGaps
from fmapboard.measure.merge_ranks import RankExchange
from fmapboard.measure.norms import NO_NORMS, PendingNorms
from fmapboard.measure.packing import (
    PackedMeasurements,
    PackedSamples,
    SamplesByName,
    pack,
    pack_samples,
    reduce_together,
)
from fmapboard.measure.reducer import PendingMeasurement, joined
from fmapboard.model.tensors import tensors
from fmapboard.records import LayerMeasurement, Parameter, StepData
from fmapboard.session.facts import PendingFacts
from fmapboard.session.selection import Passes


@dataclass(slots=True)
class OpenStep:
    """The logged step that is currently open.

    Attributes:
        step: its number.
        passes: which forward passes count.
        live: collects the current forward pass; replaced by the chosen pass once that is known.
        probed: holds the feature maps of the probe images; None until the probe has run.
        attributions: those of the probe, with ``attribution_loss=``.
        kernels: copies of convolution kernels; None until they were read.
        before_clipping: gradient norms read before the user clipped the gradients.
    """

    step: int
    passes: Passes
    live: ActivationCollector
    probed: ActivationCollector | None = None
    attributions: PendingAttributions | None = None
    kernels: tuple[PendingKernels, ...] | None = None
    before_clipping: PendingNorms = field(default=NO_NORMS)

    def discard(self) -> None:
        """Drop everything collected."""
        self.live.discard()
        if self.probed is not None:
            self.probed.discard()
        self.probed = None
        self.attributions = None
        self.kernels = ()
        self.before_clipping = NO_NORMS


Failed = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything collected in one logged step, still on its devices.

    Attributes:
        step: its number.
        milliseconds: returns the time in ms that fmapboard spent on the training thread; called in
            the worker thread. It must not keep the model alive.
        measured: one measurement per layer call and kind of tensor; those of the probe come last.
        parameters: histogram samples and gradient norms.
        before_clipping: gradient norms read before the user clipped the gradients.
        kernels: copies of convolution kernels.
        inputs: copies of the network's input images.
        texts: copies of the ids of its texts, if their tokens are named.
        skips: the steps that a GradScaler skipped. Parameters that it may have left as they are
            have gradients like the others until ``to_host``, which omits them.
        facts: what only the training process knows; None if it is not recorded.
        batch_norms: the running statistics of BatchNorm layers around the forward pass.
        attributions: where larger activations lower the loss, for the drawn samples.
        wall_time: seconds since the epoch.
    """

    step: int
    milliseconds: Callable[[], float]
    measured: tuple[PendingMeasurement, ...] | PackedMeasurements
    parameters: PendingParameters = field(default_factory=PendingParameters)
    before_clipping: PendingNorms = NO_NORMS
    kernels: tuple[PendingKernels, ...] = ()
    inputs: tuple[PendingInputImage, ...] = ()
    texts: tuple[PendingTexts, ...] = ()
    skips: PendingSkips = field(default_factory=PendingSkips)
    facts: PendingFacts | None = None
    batch_norms: PendingGaps | None = None
    attributions: PendingAttributions | None = None
    wall_time: float = field(default_factory=time.time)

    def to_host(
        self, failed: Failed, measured: tuple[LayerMeasurement, ...] | None = None
    ) -> StepData:
        """Wait for the devices and finalize all statistics.

        Args:
            failed: called with the label and the error of each layer that is left out.
            measured: ``self.measured`` in final form, if it has already been finalized.
        """
        skipped = self.skips.parameters()
        gaps, initial = ({}, ()) if self.batch_norms is None else self.batch_norms.to_host()
        inputs = tuple(image.to_host() for image in self.inputs)
        parameters = tuple(p for p in self.parameters.to_host() if p.name not in skipped)
        return StepData(
            self.step,
            self.wall_time,
            measured=joined(_unpacked(self.measured), failed) if measured is None else measured,
            parameters=parameters,
            norms_before_clipping=self.before_clipping.to_host(),
            kernels=tuple(kernels.to_host() for kernels in self.kernels),
            inputs=inputs,
            texts=tuple(texts.to_host() for texts in self.texts),
            scalars=self._scalars(skipped, parameters, gaps),
            training_thread_ms=self.milliseconds(),
            facts=None if self.facts is None else self.facts.to_host(initial),
            attributions=() if self.attributions is None else self.attributions.to_host(inputs),
        )

    def _scalars(
        self, skipped: frozenset[str], parameters: Iterable[Parameter], gaps: Mapping[str, float]
    ) -> dict[str, float]:
        """Scalars that are not gradient norms, by tag."""
        scalars = self.skips.scalars()
        for parameter in parameters:
            if parameter.update is not None:
                scalars[of(UPDATE_RATIO, parameter.name)] = parameter.update.value
        if self.facts is not None:
            scalars |= self.facts.learning_rates(skipped)
        return scalars | {of(BATCHNORM_GAP, name): gap for name, gap in gaps.items()}


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


def sent(
    collected: Collected, transfer: Transfer, warn: WarnOnce, exchange: RankExchange | None
) -> PendingStep:
    """Start copying a step to the host.

    Args:
        collected: everything collected.
        transfer: starts the copy.
        warn: where it is reported, in the worker thread, that a layer is left out.
        exchange: merges statistics over ranks; None if nothing is merged.
    """
    parameters = collected.parameters
    collected = replace(
        collected,
        measured=_packed(collected.measured),
        parameters=replace(parameters, samples=_packed_samples(parameters.samples)),
    )
    held = tensors(collected)
    step = collected.step
    failed = partial(warn.error, consequence=CONSEQUENCE)
    to_host = partial(finished, step, transfer(collected, held), failed, exchange)
    return PendingStep(step, sum([tensor.nbytes for tensor in held]), to_host)


def _unpacked(
    measured: tuple[PendingMeasurement, ...] | PackedMeasurements,
) -> tuple[PendingMeasurement, ...]:
    return measured.unpack() if isinstance(measured, PackedMeasurements) else measured


def _packed(
    measured: tuple[PendingMeasurement, ...] | PackedMeasurements,
) -> tuple[PendingMeasurement, ...] | PackedMeasurements:
    """Measurements on an accelerator joined, so that there are few tensors to copy."""
    if isinstance(measured, PackedMeasurements) or not measured:
        return measured
    first = next(iter(tensors(measured[0])), _NO_TENSOR)
    if first.is_cpu:
        return measured
    with aside(first.device.type):
        pending = list(measured)
        reduce_together(pending)
        return pack(pending)


def _packed_samples(samples: SamplesByName | PackedSamples) -> SamplesByName | PackedSamples:
    """Samples on an accelerator joined, as ``_packed``."""
    if isinstance(samples, PackedSamples) or not samples:
        return samples
    weight, _ = next(iter(samples.values()))
    first = weight.values
    if first.is_cpu:
        return samples
    with aside(first.device.type):
        return pack_samples(samples)


_NO_TENSOR = torch.empty(0, device="cpu")


def finished(
    step: int, receive: Callable[[], Collected], failed: Failed, exchange: RankExchange | None
) -> StepData:
    """Wait for the devices, finalize a step, and merge its statistics over the ranks.

    Runs on one OpenMP thread. If the worker thread had a team of several, the process would have
    more OpenMP threads than cores; GNU's runtime then lets all of them sleep between operations
    instead of spin, those of training too.

    Args:
        step: its number.
        receive: waits for the copy of what was collected and returns it on the host.
        failed: see ``Collected.to_host``.
        exchange: merges statistics over ranks; the other ranks wait for this one, so it is called
            even after an error. None if nothing is merged.
    """
    measured: tuple[LayerMeasurement, ...] = ()
    settle()
    with aside("cpu"):
        try:
            received = receive()
            measured = joined(_unpacked(received.measured), failed)
        finally:
            if exchange is not None:
                measured = exchange.merged(step, measured)
        return received.to_host(failed, measured)
