"""One forward pass on one image, recorded as a logged step: what ``visualize`` is made of."""

from __future__ import annotations

import time
from typing import Any

from torch import nn

from fmapboard.capture.collector import Collection, Stopwatch
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.side_pass import run_probe
from fmapboard.capture.weights import read_kernels
from fmapboard.errors import CaptureError
from fmapboard.measure.reducer import Reducer, with_numbers
from fmapboard.model.activations import activations
from fmapboard.model.layers import Layers
from fmapboard.records import StepData


def snapshot(
    model: nn.Module,
    x: Any,
    reducer: Reducer,
    *,
    layers: Layers = None,
    step: int = 0,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    kernels: bool = False,
) -> StepData:
    """Everything a logged step holds, but gradients, from one pass in eval mode.

    The model comes back as it was (see `side_pass.run_probe`).

    Args:
        model: any module.
        x: what it is called with: a tensor, or a tuple of positional arguments.
        reducer: says what is drawn, and how.
        layers: which; None is every `Conv2d` with pictures and every activation module with a
            floor by its numbers.
        step: the number to record it under.
        mean: per channel, of the input's normalization, to draw the input as it was.
        std: per channel.
        kernels: also the convolution kernels.

    Raises:
        CaptureError: the model cannot run on ``x``, or a layer's output cannot be recorded.
        LayerNotFound, NoConvolution: as `layers.select` does.
    """
    also = activations(model) if layers is None else {}
    registry = HookRegistry(model, layers, also=also)
    errors: list[tuple[str, Exception]] = []
    seen = Collection(
        reducer,
        lambda about, error: errors.append((about, error)),
        set(),
        Stopwatch(),
        inputs_drawn=1,
        mean=mean,
        std=std,
    )
    registry.arm(seen)
    try:
        run_probe(model, x)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CaptureError(f"the model cannot run on this input: {reason}") from error
    finally:
        registry.disarm()
    if errors:
        raise CaptureError(f"{errors[0][0]}: {errors[0][1]}") from errors[0][1]
    return StepData(
        step,
        time.time(),
        measured=tuple(part.to_host() for part in with_numbers(seen.pending)),
        kernels=tuple(k.to_host() for k in read_kernels(registry.layers, None)) if kernels else (),
        photographs=tuple(photograph.to_host() for photograph in seen.photographs),
        training_thread_ms=seen.stopwatch.ms,
    )
