"""Whether a model's tensors are read with the fused kernels: the option ``fused`` of ``watch``."""

from __future__ import annotations

from itertools import chain

from torch import nn

from fmapboard.errors import WarnOnce
from fmapboard.measure.fused.reader import PASSED_ON_A_DEVICE, FusedReader
from fmapboard.options import Fused


def reader_for(model: nn.Module, fused: Fused, warn: WarnOnce) -> FusedReader | None:
    """A reader whose kernels are compiled for the model's devices; None to use plain operations.

    Args:
        model: The model, on its devices.
        fused: The option; with ``True``, a reason why the kernels cannot be used is reported.
        warn: Where failures are reported, now or in a later step.
    """
    if not fused or (fused == "auto" and not PASSED_ON_A_DEVICE):
        return None
    held = chain(model.parameters(), model.buffers())
    devices = {tensor.device for tensor in held if tensor.device.type == "cuda"}
    if not devices:
        if fused != "auto":
            warn.warn("fused", "fused=True has no effect: the model is not on a CUDA device")
        return None
    reader = FusedReader(lambda reason: warn.warn("fused", reason))
    return reader if all(map(reader.compile, devices)) else None
