"""What is collected while a logged step is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import Stopwatch
from fmapboard.capture.weights import PendingKernels
from fmapboard.measure.norms import NO_NORMS, PendingNorms

Passes = Literal["all", "training", "evaluation"]
"""Which forward passes count: any, those in training mode, or those in evaluation mode, which
no optimizer step follows."""


@dataclass(slots=True)
class OpenStep:
    """The logged step that is open.

    Attributes:
        step: its number.
        passes: which forward passes count.
        live: receives the pass that runs, or holds the one that was chosen.
        stopwatch: what fmapboard spends on the training thread.
        probed: the maps of the fixed images.
        kernels: copies of convolution kernels.
        before_clipping: gradient norms before the user clipped them.
    """

    step: int
    passes: Passes
    live: ActivationCollector
    stopwatch: Stopwatch
    probed: ActivationCollector | None = None
    kernels: tuple[PendingKernels, ...] = ()
    before_clipping: PendingNorms = field(default=NO_NORMS)
