"""``HookRegistry``: forward hooks that are on a model only while it runs a recorded pass."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from torch import nn

from fmapboard.capture.module_calls import compiled_wrappers
from fmapboard.capture.passes import (
    Aside,
    CaptureListener,
    FirstPass,
    LayerCalls,
    PassPolicy,
    PassRecorder,
    Placed,
    Side,
)
from fmapboard.capture.taps import TapChoice, has_taps
from fmapboard.capture.twin import Twin
from fmapboard.errors import LayerNotFound
from fmapboard.interrupts import restoring
from fmapboard.model.kernel_shapes import by_kernel_shape
from fmapboard.model.layers import Layers, WatchedLayers, named_layers, unwrap
from fmapboard.model.routers import Routers
from fmapboard.records import KernelShape


class HookRegistry:
    """Selects layers of a model and records what they return, in forward passes that count.

    >>> from torch import nn
    >>> registry = HookRegistry(nn.Sequential(nn.Conv2d(3, 8, 5), nn.ReLU(), nn.Conv2d(8, 8, 3)))
    >>> registry.groups
    {KernelShape(8x3x5x5): ['0'], KernelShape(8x8x3x3): ['2']}

    Args:
        model: any module; DistributedDataParallel, DataParallel and torch.compile are unwrapped.
        layers: which layers to watch, as in ``watch``.
        also: further layers by name, for statistics only (activation modules).
        effective: record what the next layer receives, after all forward hooks on a layer, instead
            of what its ``forward`` returned. Under ``intervene`` that is always so.
        routers: routers of experts, see ``watch``.
        failed: called with a layer's name and an error that was raised in a hook; None raises the
            error in the model's ``forward``.

    Attributes:
        model: the unwrapped model.
        watched: its watched layers.
        tap_choice: which tapped tensors are recorded.

    Raises:
        ConfigurationError: as for ``kernel_groups``.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers = None,
        *,
        also: dict[str, nn.Module] | None = None,
        effective: bool = False,
        routers: Routers = (),
        failed: Callable[[str, Exception], None] | None = None,
    ) -> None:
        self.model = unwrap(model)
        self.effective = effective
        self.watched = WatchedLayers(
            model,
            layers,
            also=also or {},
            has_taps=partial(has_taps, self.model),
            routers=routers,
        )
        self.tap_choice = TapChoice.of(layers, named_layers(self.model))
        calls = LayerCalls(self.watched, effective=effective)
        self._placed = Placed()
        self._new = partial(
            PassRecorder, calls, compiled_wrappers(model), self._placed, failed=failed
        )
        self._recorder = self._new(self.tap_choice, CaptureListener())
        self._finalizer: weakref.finalize[..., HookRegistry] | None = None

    @property
    def layers(self) -> dict[str, nn.Module]:
        """The chosen layers by name."""
        return self.watched.layers

    def check_taps(self) -> None:
        """Check that each pattern that matches no module matched a tensor named by ``tap``.

        Raises:
            LayerNotFound: one matched none in the recorded passes.
        """
        missing = self.tap_choice.missing()
        if missing is not None:
            raise LayerNotFound(missing)

    @property
    def groups(self) -> dict[KernelShape, list[str]]:
        """Kernel shape -> names of the watched convolutions with that shape."""
        return by_kernel_shape(self.layers)

    @property
    def root_ran(self) -> bool:
        """True if a pass of the model itself was recorded since it was armed last."""
        return self._recorder.root_ran

    @property
    def was_called(self) -> bool:
        """True if a call of the model or of a part of it was seen since it was armed last."""
        return self._recorder.was_called

    def listening(
        self,
        listener: CaptureListener,
        *,
        policy: PassPolicy | None = None,
        sides: tuple[Side, ...] = ("output",),
        twin: Twin | None = None,
        attention: bool = False,
    ) -> AbstractContextManager[None]:
        """Record passes in a ``with`` block; for the arguments see ``arm``.

        Compiled models run eagerly in the block.
        """
        armed = partial(
            self.arm, listener, policy=policy, sides=sides, twin=twin, attention=attention
        )
        return restoring(armed, self.disarm)

    def arm(
        self,
        listener: CaptureListener,
        *,
        policy: PassPolicy | None = None,
        sides: tuple[Side, ...] = ("output",),
        thread: int | None = None,
        aside: Aside | None = None,
        twin: Twin | None = None,
        attention: bool = False,
    ) -> None:
        """Record forward passes from now on; an armed registry is disarmed first.

        Hooks are on the layers from the beginning of a recorded pass to its end only.

        Args:
            listener: receives the recorded passes.
            policy: chooses them; None records the first one (``FirstPass``).
            sides: ``"output"``, ``"input"`` or both.
            thread: identifier of the thread whose passes count; None selects the first thread that
                runs a recorded pass, until the policy takes over.
            aside: called with a compiled module and its arguments right before a recorded pass of
                it, and with what records an uncompiled pass of a twin instead. None runs
                all compiled code of the process uncompiled while the registry is armed.
            twin: whose passes are recorded instead of the model's; None for the model's.
            attention: deliver rows of the attention of watched attention modules, too.
        """
        self.disarm()
        with_parts = not self._recorder.root_ran
        self._recorder = self._new(
            self.tap_choice,
            listener,
            policy=FirstPass() if policy is None else policy,
            sides=sides,
            thread=thread,
            aside=aside,
            twin=twin,
            attention=attention,
        )
        self._finalizer = weakref.finalize(self, self._placed.take)
        try:
            self._recorder.begin(with_parts=with_parts)
        except BaseException:
            self.disarm()
            raise

    def disarm(self) -> None:
        """Record no more; does nothing if the registry is not armed."""
        if self._recorder.is_open:
            self._recorder.end()
        if self._finalizer is not None:
            self._finalizer.detach()  # an interrupt would be lost in it

    def paused(self) -> AbstractContextManager[None]:
        """Ignore all hook calls in a ``with`` block, for a pass that fmapboard runs itself."""
        pause = partial(setattr, self._recorder, "is_paused")
        return restoring(partial(pause, True), partial(pause, False))
