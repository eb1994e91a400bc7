"""``OpenStep``: what is collected while a logged step is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import Stopwatch
from fmapboard.capture.weights import PendingKernels
from fmapboard.measure.norms import NO_NORMS, PendingNorms

Passes = Literal["all", "training", "evaluation"]
"""Selects the forward passes of a logged step that count.

``"all"`` passes, those that may be ``"training"`` the model, or those in ``"evaluation"`` mode,
which no optimizer step follows."""


@dataclass(slots=True)
class OpenStep:
    """The logged step that is currently open.

    Attributes:
        step: its number.
        passes: which forward passes count.
        live: receives the current forward pass, or holds the selected one.
        stopwatch: measures the time that fmapboard spends on the training thread.
        probed: holds the feature maps of the probe images; None before they were drawn.
        kernels: copies of convolution kernels.
        before_clipping: gradient norms read before the user clipped the gradients.
    """

    step: int
    passes: Passes
    live: ActivationCollector
    stopwatch: Stopwatch
    probed: ActivationCollector | None = None
    kernels: tuple[PendingKernels, ...] = ()
    before_clipping: PendingNorms = field(default=NO_NORMS)
