"""What one logged step collects on the training thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.hooks import Side
from fmapboard.capture.isolation import aside
from fmapboard.measure.reducer import Pending, Reducer
from fmapboard.model.tensors import first_tensor, is_observable, tensors
from fmapboard.records import Photograph, Role, Site
from fmapboard.render.quantize import shrink

MAX_INPUT_SIDE = 256
"""The network's input is averaged down to this many px a side."""

Failed = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class PendingPhotograph:
    """`records.Photograph` still on the device: f32 [C, H, W], a copy of the input's size."""

    sample: int
    values: Tensor
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None

    def to_host(self) -> Photograph:
        """Wait for the device and average down."""
        drawn, block = shrink(self.values.cpu().numpy(), MAX_INPUT_SIDE)
        return Photograph(self.sample, drawn, self.mean, self.std, block)


class Stopwatch:
    """Adds up the milliseconds that fmapboard spends on the training thread.

    ``with stopwatch():`` times a block; a block inside a timed block is not counted twice.
    """

    __slots__ = ("_begun", "_depth", "ms")

    def __init__(self) -> None:
        self.ms = self._begun = 0.0
        self._depth = 0

    def __call__(self) -> Stopwatch:
        """Itself: ``with stopwatch():`` reads better."""
        return self

    def __enter__(self) -> None:
        if self._depth == 0:
            self._begun = time.perf_counter()
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.ms += (time.perf_counter() - self._begun) * 1e3


class _Observing:
    """Times a block, and hands its exceptions on instead of raising them."""

    __slots__ = ("_about", "_failed", "_stopwatch")

    def __init__(self, about: str, stopwatch: Stopwatch, failed: Failed) -> None:
        self._about, self._stopwatch, self._failed = about, stopwatch, failed

    def __enter__(self) -> None:
        self._stopwatch.__enter__()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        try:
            if isinstance(error, Exception):
                self._failed(self._about, error)
                return True
            return False
        finally:
            self._stopwatch.__exit__()


def _nothing() -> None:
    return None


@dataclass(slots=True)
class Collection:
    """The sink of a registry: reduces what it is told and keeps the little that remains.

    Attributes:
        reduce: the reducer.
        failed: is told of a layer's label and what went wrong; nothing is raised here.
        disabled: labels of layers that are passed over.
        pictures: draw maps (False where a probe supplies the pictures).
        numbers: statistics and histogram samples (False in a probe's pass).
        gradients: also follow the outputs' gradients.
        inputs_drawn: how many samples of the network's input are kept.
        start_over: asked at a later forward pass whether the first one is void.
        begun: is told that the pass that is recorded begins.
        loss_scale: what a GradScaler multiplies the loss by, or None; read when a pass begins.
    """

    reduce: Reducer
    failed: Failed
    disabled: set[str]
    stopwatch: Stopwatch
    pictures: bool = True
    numbers: bool = True
    gradients: bool = False
    inputs_drawn: int = 1
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    start_over: Callable[[], bool] = bool
    begun: Callable[[], None] = _nothing
    loss_scale: Callable[[], float | None] = _nothing
    scale_then: float | None = None
    pending: list[Pending] = field(default_factory=list)
    photographs: list[PendingPhotograph] = field(default_factory=list)
    _generation: int = 0

    def void(self) -> None:
        """Ignore gradients that are still to come."""
        self._generation += 1

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Forget what a broken pass left, and keep the network's input."""
        self._generation += 1
        self.pending.clear()
        self.photographs.clear()
        with self._observing("forward pass"):
            self.begun()
        with self._observing("loss scale"):
            self.scale_then = self.loss_scale()
        with self._observing("network input"):
            if self.inputs_drawn:
                self._keep_input((*args, *kwargs.values()))

    def again(self) -> bool:
        """A later pass begins."""
        return self.start_over()

    def captured(self, site: Site, side: Side, value: Any, module: nn.Module) -> None:
        """Reduce a layer's output or input at once: the next operation may overwrite it."""
        if site.layer in self.disabled:
            return
        with self._observing(site.layer):
            tensor = first_tensor(value)
            if tensor is None or not is_observable(tensor):
                return
            role: Role = "feature_maps" if side == "output" else "inputs"
            self._keep(site, role, tensor, module, pictures=self.pictures)
            if self.gradients and side == "output" and site.pictures and tensor.requires_grad:
                self._follow(site, tensor, module)

    def _keep(
        self, site: Site, role: Role, tensor: Tensor, module: nn.Module, *, pictures: bool
    ) -> None:
        with aside(tensor.device.type, tensor.nbytes):
            reduced = self.reduce(
                site, role, tensor, module, pictures=pictures, numbers=self.numbers
            )
        self.pending.append(reduced)

    def _follow(self, site: Site, tensor: Tensor, module: nn.Module) -> None:
        """Reduce the gradient of an output when the backward pass reaches it, once."""
        site = replace(site, floor=None)
        generation, seen = self._generation, False

        def hook(gradient: Tensor) -> None:
            nonlocal seen
            if seen or generation != self._generation:
                return
            seen = True
            with self._observing(site.layer):
                if is_observable(gradient):
                    true = self._unscale(gradient)
                    self._keep(site, "gradients_of_maps", true, module, pictures=True)

        tensor.register_hook(hook)  # type: ignore[no-untyped-call]  # torch has no types here

    def _unscale(self, gradient: Tensor) -> Tensor:
        """The gradient of the loss itself, at least float32 where there was a scale."""
        if self.scale_then is None:
            return gradient
        with aside(gradient.device.type):
            wide = gradient if gradient.dtype == torch.float64 else gradient.detach().float()
            return wide / self.scale_then

    def _keep_input(self, values: tuple[Any, ...]) -> None:
        image = next(tensors(values), None)
        if image is None or not is_observable(image) or image.is_complex():
            return
        if image.dim() == 3 and not self.reduce.channels_last_sequences:
            return  # [N, C, L] of a model that works on sequences is no image [C, H, W]
        batch = image[None] if image.dim() == 3 else image
        if batch.dim() != 4 or batch.shape[1] not in (1, 3) or batch.dtype == torch.bool:
            return
        known = self.mean if self.mean is not None and len(self.mean) == batch.shape[1] else None
        std = self.std if known is not None else None
        with aside(image.device.type):
            kept = batch[: self.inputs_drawn].detach().to(torch.float32, copy=True)
        for number, sample in enumerate(kept.unbind()):
            self.photographs.append(PendingPhotograph(number, sample, known, std))

    def _observing(self, about: str) -> _Observing:
        return _Observing(about, self.stopwatch, self.failed)
