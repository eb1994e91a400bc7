"""Between the opening and the closing of one logged step: what is armed, read and collected."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.clipping import norms_before_clipping
from fmapboard.capture.collector import Collection, PendingPhotograph, Stopwatch
from fmapboard.capture.gradients import GradientReader, PendingParameters, is_void
from fmapboard.capture.hooks import HookRegistry, Side
from fmapboard.capture.side_pass import run_probe
from fmapboard.capture.transfer import send
from fmapboard.capture.weights import PendingKernels, read_kernels
from fmapboard.measure.axes import may_hold_patches
from fmapboard.measure.merge_ranks import over_ranks
from fmapboard.measure.reducer import Pending, Reducer, joined
from fmapboard.model.activations import activations
from fmapboard.model.layers import Layers, clean_name, scripted_warning
from fmapboard.options import Settings
from fmapboard.records import StepData
from fmapboard.writers.pipeline import Complaints

ERRORS_UNTIL_DISABLED = 3
_ALL = 1 << 30

Passes = Literal["all", "training", "evaluation"]
"""Which forward passes count: any, those in training mode, or those in evaluation mode, which
no optimizer step follows."""


@dataclass(slots=True)
class _Window:
    """The logged step that is open."""

    step: int
    live: Collection
    stopwatch: Stopwatch
    passes: Passes
    probed: list[Pending] = field(default_factory=list)
    kernels: tuple[PendingKernels, ...] = ()
    photographs: tuple[PendingPhotograph, ...] = ()
    scalars: dict[str, float] = field(default_factory=dict)
    void: bool = False


@dataclass(frozen=True, slots=True)
class _Parts:
    """What was collected in one logged step, still on its devices."""

    measured: tuple[Pending, ...]
    parameters: PendingParameters
    kernels: tuple[PendingKernels, ...]
    photographs: tuple[PendingPhotograph, ...]

    def tensors(self) -> Iterator[Tensor]:
        """Everything that they hold."""
        for measured in self.measured:
            yield from measured.tensors()
        yield from self.parameters.tensors()
        yield from (kernels.weight for kernels in self.kernels)
        yield from (photograph.values for photograph in self.photographs)


@dataclass(frozen=True, slots=True)
class PendingStep:
    """`records.StepData` before the work that can wait; ``to_host`` is for the worker thread.

    ``nbytes`` is what it holds meanwhile.
    """

    to_host: Callable[[], StepData]
    nbytes: int


class Observer:
    """Watches one model for the length of one logged step at a time.

    Args:
        model: the unwrapped model.
        layers: what to watch.
        settings: what to collect.
        scaler: a GradScaler whose skipped steps are counted, or None.
        complaints: where errors go, since none may reach the user's training.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        settings: Settings,
        scaler: Any,
        complaints: Complaints,
    ) -> None:
        self.registry = HookRegistry(model, layers, also=activations(model))
        self._model, self._settings = model, settings
        scripted = scripted_warning(model)
        if scripted is not None:
            complaints.warn("scripted", scripted)
        self._scaler, self._complaints = scaler, complaints
        self._reducer = _reducer(model, settings)
        self._gradients = GradientReader(model, _own_parameters(model, self.registry.layers))
        self._window: _Window | None = None
        self._errors: dict[str, int] = {}
        self._disabled: set[str] = set()
        self._closed_windows = 0
        self._skipped = 0
        self._sides: tuple[Side, ...] = ("output", "input") if settings.inputs else ("output",)

    @property
    def is_open(self) -> bool:
        """Is a logged step under way?"""
        return self._window is not None

    @property
    def open_step(self) -> int | None:
        """The number of the logged step that is under way."""
        return None if self._window is None else self._window.step

    def open(self, step: int, *, passes: Passes, probe_now: bool) -> None:
        """Begin a logged step: hooks go in.

        Args:
            step: its number.
            passes: which forward passes count.
            probe_now: draw the probe now, not when the optimizer is about to step.
        """
        self.abandon()
        stopwatch = Stopwatch()
        window = _Window(step, self._live(stopwatch), stopwatch, passes)
        self._window = window
        with stopwatch():
            try:
                if probe_now:
                    self._draw_probe(window)
                accept = None if passes == "all" else lambda: self._counts(passes)
                self.registry.arm(window.live, sides=self._sides, accept=accept)
                if passes != "evaluation":
                    self._gradients.arm(
                        lambda error: self._failed("gradients", error), self._act, stopwatch
                    )
            except Exception as error:
                self._failed("arming", error)

    def close(self) -> PendingStep | None:
        """End the logged step: hooks go, and what was collected begins to come to the host.

        Returns:
            None where nothing could be collected.
        """
        window = self._window
        assert window is not None  # callers ask `is_open` first
        pending = None
        with window.stopwatch():
            try:
                self.registry.disarm()
                self._gradients.disarm()
                self._read_kernels(window)
                self._explain(window)
                pending = self._pending(window)
            except Exception as error:
                self._failed("logged step", error)
        self.abandon()
        if pending is not None:
            self._closed_windows += 1
        return pending

    def was_void(self, optimizer: Optimizer) -> bool:
        """Was the step that the optimizer has just done none, in the window that is open?

        A fused optimizer is called by its GradScaler even when there are infinities. Such a step is
        one that the scaler skips: the window waits for the next.
        """
        if self._window is None or not is_void(optimizer):
            return False
        self._window.void = True
        return True

    def before_clipping(self) -> None:
        """Read the norms of the gradients as they are now; without a window this does nothing."""
        window = self._window
        if window is None:
            return
        with window.stopwatch():
            try:
                window.scalars |= norms_before_clipping(self._model)
            except Exception as error:
                self._failed("gradients before clipping", error)

    def abandon(self) -> None:
        """Remove every hook and forget what was collected; without a window this does nothing."""
        self.registry.disarm()
        self._gradients.disarm()
        window, self._window = self._window, None
        if window is not None:
            window.live.void()

    def _live(self, stopwatch: Stopwatch) -> Collection:
        settings = self._settings
        return Collection(
            self._reducer,
            self._failed,
            self._disabled,
            stopwatch,
            pictures=settings.probe is None,
            gradients=settings.activation_gradients,
            inputs_drawn=settings.samples if settings.probe is None else 0,
            mean=settings.input_mean,
            std=settings.input_std,
            start_over=self._was_skipped,
            begun=self._pass_begins,
            loss_scale=self._scale,
        )

    def _pass_begins(self) -> None:
        """What was read before this pass was read too early."""
        window = self._window
        if window is None or not self._gradients.pass_begins():
            return
        window.probed, window.kernels, window.photographs = [], (), ()
        self._complaints.warn(
            "steps last",
            f"step {window.step}: an optimizer stepped on the model's parameters after the one "
            "that was given; give optimizer= the one that steps last, or mark steps with "
            "board.step(i): norms are of what steps inside the window",
        )

    def _act(self) -> None:
        """Right before the optimizer changes the weights: the last moment to see them."""
        window = self._window
        if window is not None:
            with window.stopwatch():
                self._draw_probe(window)
                self._read_kernels(window)

    def _draw_probe(self, window: _Window) -> None:
        """The maps of the fixed images, in a forward pass of their own."""
        if self._settings.probe is None or window.probed:
            return
        seen = Collection(
            replace(self._reducer, samples=None),
            self._failed,
            self._disabled,
            window.stopwatch,
            numbers=False,
            inputs_drawn=_ALL,
            mean=self._settings.input_mean,
            std=self._settings.input_std,
        )
        layers = self.registry.layers
        registry = HookRegistry(self._model, lambda name, _: name in layers)
        try:
            with self.registry.paused():
                registry.arm(seen, sides=self._sides)
                run_probe(self._model, self._settings.probe)
        except Exception as error:
            self._failed("probe", error)
        finally:
            registry.disarm()
        window.probed, window.photographs = seen.pending, tuple(seen.photographs)

    def _read_kernels(self, window: _Window) -> None:
        every = self._settings.kernels_every
        if not every or self._closed_windows % every or window.kernels:
            return
        try:
            window.kernels = read_kernels(self.registry.layers, self._settings.max_channels)
        except Exception as error:
            self._failed("kernels", error)

    def _pending(self, window: _Window) -> PendingStep | None:
        parts = _Parts(
            (*window.live.pending, *window.probed),
            self._gradients.pending(),
            window.kernels,
            window.photographs or tuple(window.live.photographs),
        )
        if not parts.measured and not parts.parameters.names:
            return None
        skipped = {} if self._scaler is None else {"fmapboard/skipped_steps": float(self._skipped)}
        scalars, wall_time = skipped | window.scalars, time.time()
        held = list(parts.tensors())
        receive = send(parts, held)
        # All ranks must ask for sums in the same steps, so no worker may do that in its own time.
        left_out = partial(_left_out, self._complaints)
        reduces = self._settings.reduce_statistics
        measured = over_ranks(joined(receive().measured, left_out)) if reduces else None
        step, stopwatch = window.step, window.stopwatch  # the window itself holds the model

        def to_host() -> StepData:
            arrived = receive()
            return StepData(
                step,
                wall_time,
                measured=joined(arrived.measured, left_out) if measured is None else measured,
                parameters=arrived.parameters.to_host(),
                kernels=tuple(kernels.to_host() for kernels in arrived.kernels),
                photographs=tuple(photograph.to_host() for photograph in arrived.photographs),
                scalars=scalars,
                training_thread_ms=stopwatch.ms,
            )

        return PendingStep(to_host, sum(tensor.nbytes for tensor in held))

    def _explain(self, window: _Window) -> None:
        """Say once what a user would wonder about."""
        ran = bool(window.live.pending)
        if not ran and not self._errors:
            self._complaints.warn(
                "nothing ran",
                f"step {window.step}: no watched layer ran; was the model itself called (no "
                "scripted or traced copy of it), and in train() mode where fmapboard counts steps?",
            )
        if window.passes == "evaluation":
            return
        if not ran or self._gradients.stepped or self._was_skipped() or self._gradients.void:
            return
        self._complaints.warn(
            "no optimizer step",
            f"step {window.step}: no optimizer stepped on the model's parameters inside the "
            "window, so there are no gradient norms; put optimizer.step() inside board.step()",
        )

    def _was_skipped(self) -> bool:
        """Did the scaler skip the step that the window's forward pass was for? It halves then."""
        window = self._window
        if window is not None and window.void:
            window.void = False
            self._skipped += 1
            return True
        scale = self._scale()
        before = None if self._window is None else self._window.live.scale_then
        if scale is None or before is None or scale >= before:
            return False
        self._skipped += 1
        return True

    def _scale(self) -> float | None:
        return None if self._scaler is None else float(self._scaler.get_scale())

    def _counts(self, passes: Passes) -> bool:
        return self._model.training is (passes == "training")

    def _failed(self, about: str, error: Exception) -> None:
        count = self._errors[about] = self._errors.get(about, 0) + 1
        if count >= ERRORS_UNTIL_DISABLED:
            self._disabled.add(about)
        self._complaints.error(about, error, "it is left out, training goes on")


def _left_out(complaints: Complaints, about: str, error: Exception) -> None:
    complaints.error(about, error, "it is left out, training goes on")


def _reducer(model: nn.Module, settings: Settings) -> Reducer:
    has_sequences = any(isinstance(m, (nn.Conv1d, nn.ConvTranspose1d)) for m in model.modules())
    return Reducer(
        samples=settings.samples,
        max_channels=settings.max_channels,
        max_tile=settings.max_tile,
        scale=settings.scale,
        zero_centred=settings.colormap == "signed",
        channels_last_sequences=not has_sequences,
        tokens_are_patches=may_hold_patches(model),
    )


def _own_parameters(model: nn.Module, layers: Mapping[str, nn.Module]) -> set[str]:
    """Names of the parameters of the watched layers themselves, parametrized ones included."""
    own: set[int] = set()
    for module in layers.values():
        own |= {id(p) for p in module.parameters(recurse=False)}
        own |= {id(p) for p in getattr(module, "parametrizations", nn.Module()).parameters()}
    return {clean_name(name) for name, p in model.named_parameters() if id(p) in own}
