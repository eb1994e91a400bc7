"""``OpenStep``: the data of a logged step while it is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fmapboard.capture.attribution import PendingAttributions
from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import Stopwatch
from fmapboard.capture.kernels import PendingKernels
from fmapboard.measure.norms import NO_NORMS, PendingNorms

Passes = Literal["all", "training", "evaluation"]
"""Which forward passes of a logged step count.

- ``"all"``: every pass.
- ``"training"``: every pass that could train the model.
- ``"evaluation"``: every pass in eval mode; no optimizer step is expected.
"""


@dataclass(slots=True)
class OpenStep:
    """The logged step that is currently open.

    Attributes:
        step: its number.
        passes: which forward passes count.
        live: collects the current forward pass; replaced by the chosen pass once that is known.
        stopwatch: measures the time that fmapboard spends on the training thread.
        probed: holds the feature maps of the probe images; None until the probe has run.
        attributions: those of the probe, with ``attribution_loss=``.
        kernels: copies of convolution kernels; None until they were read.
        before_clipping: gradient norms read before the user clipped the gradients.
    """

    step: int
    passes: Passes
    live: ActivationCollector
    stopwatch: Stopwatch
    probed: ActivationCollector | None = None
    attributions: PendingAttributions | None = None
    kernels: tuple[PendingKernels, ...] | None = None
    before_clipping: PendingNorms = field(default=NO_NORMS)

    def discard(self) -> None:
        """Drop everything collected."""
        self.live.discard()
        if self.probed is not None:
            self.probed.discard()
        self.probed, self.attributions = None, None
        self.kernels, self.before_clipping = (), NO_NORMS
