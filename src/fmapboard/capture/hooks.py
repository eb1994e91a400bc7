"""``HookRegistry``: forward hooks that are installed only while a step is logged."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from fmapboard.capture.call_records import CallRecords
from fmapboard.capture.compiled import force_eager
from fmapboard.capture.hook_order import installed
from fmapboard.capture.layer_hook import LayerHook, is_replica
from fmapboard.capture.listener import CaptureListener
from fmapboard.capture.passes import PassTracker, Side
from fmapboard.capture.taps import TapChoice, has_taps, receiving_taps, tap_module
from fmapboard.errors import ConfigurationError, LayerNotFound
from fmapboard.model.kernel_shapes import by_kernel_shape
from fmapboard.model.layers import Layers, named_layers, select, unwrap
from fmapboard.model.membership import Membership
from fmapboard.model.tensors import tensors
from fmapboard.records import KernelShape


class HookRegistry:
    """Selects layers of a model and installs forward hooks on them for one logged step.

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
        failed: called with a layer's name and an error that was raised in a hook; None raises the
            error in the model's ``forward``.

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
        failed: Callable[[str, Exception], None] | None = None,
    ) -> None:
        self.model, self._failed = unwrap(model), failed
        self._chosen, self.effective = layers, effective
        self._watch(self._selected(), also or {})
        self.tap_choice = TapChoice.of(layers, named_layers(self.model))
        self._hooks: contextlib.ExitStack | None = None
        self._listener: CaptureListener | None = None
        self._passes = PassTracker(_always, bool)  # bool() is False: never restart
        self._paused = False
        self._ended: Callable[[Any], None] = _ignored
        self._thread: int | None = None
        self._device: torch.device | None = None
        self.root_ran = self._root_runs = False

    def _watch(self, layers: dict[str, nn.Module], also: dict[str, nn.Module]) -> None:
        self.layers = layers
        self._numbers_only = {name: m for name, m in also.items() if name not in layers}
        self._calls = CallRecords(layers, self._numbers_only, effective=self.effective)
        self._membership = Membership(self.model, [*layers.values(), *also.values()])

    def _selected(self) -> dict[str, nn.Module]:
        return select(self.model, self._chosen, has_taps=partial(has_taps, self.model))

    def follow_replacements(
        self, also: Callable[[nn.Module], dict[str, nn.Module]]
    ) -> tuple[str, ...]:
        """Select the layers again if a watched one was replaced.

        Args:
            also: selects the layers that are hooked for statistics only.

        Returns:
            Names of the watched layers that are gone and have no replacement.
        """
        if self._membership.is_unchanged():
            return ()
        before, present = self.layers, set(self.model.modules())
        try:
            layers = self._selected()
        except ConfigurationError:  # a pattern matches nothing any more: keep what is left
            layers = {name: module for name, module in before.items() if module in present}
        self._watch(layers, also(self.model))
        return tuple(name for name in before if name not in layers)

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
    def armed(self) -> bool:
        """True while hooks are installed."""
        return self._hooks is not None

    @contextlib.contextmanager
    def listening(
        self,
        listener: CaptureListener,
        *,
        sides: tuple[Side, ...] = ("output",),
        accept: Callable[[Any], bool] | None = None,
    ) -> Iterator[None]:
        """Install the hooks for the duration of a ``with`` block; for the arguments see ``arm``."""
        self.arm(listener, sides=sides, accept=accept)
        try:
            yield
        finally:
            self.disarm()

    def arm(
        self,
        listener: CaptureListener,
        *,
        sides: tuple[Side, ...] = ("output",),
        accept: Callable[[Any], bool] | None = None,
        ended: Callable[[Any], None] | None = None,
        thread: int | None = None,
    ) -> None:
        """Install the hooks; an armed registry is disarmed first.

        Args:
            listener: receives the recorded forward pass (see ``passes.PassTracker``).
            sides: ``"output"``, ``"input"`` or both.
            accept: returns True if a forward pass counts (see ``passes.PassTracker``).
            ended: called with the output of every forward pass of the root, recorded or not; as
                long as the root's ``forward`` has never run, with those of its children instead.
            thread: identifier of the thread whose passes count; None selects the first thread that
                runs a recorded pass.
        """
        self.disarm()
        self._listener, self._thread = listener, thread
        self._ended, self._root_runs = ended or _ignored, False
        self._passes = PassTracker(accept or _always, listener.again)
        self._device = next((p.device for p in self.model.parameters()), None)
        hooks = contextlib.ExitStack()
        try:
            if "torch._dynamo" in sys.modules:  # otherwise nothing is compiled
                hooks.enter_context(force_eager())
            if "output" in sides:
                hooks.enter_context(receiving_taps(weakref.ref(self)))
            if ended is not None and not self.root_ran:
                for child in self.model.children():
                    if isinstance(child, torch.jit.ScriptModule):  # takes no hook
                        continue
                    hook = LayerHook(self, "_child_ends", "")
                    _remove_with(hooks, child.register_forward_hook(hook, with_kwargs=True))
            for name, module in {**self.layers, **self._numbers_only}.items():
                self._hook_layer(hooks, name, module, sides)
            self._hook_root(hooks)  # last: the end of the pass comes after its last layer
        except BaseException:
            hooks.close()
            raise
        self._hooks = hooks
        self._finalizer = weakref.finalize(self, hooks.close)

    def disarm(self) -> None:
        """Remove all hooks; does nothing if none are installed."""
        hooks, self._hooks, self._listener = self._hooks, None, None
        self._ended = _ignored
        self._passes = PassTracker(_always, bool)  # the old tracker references the listener
        if hooks is not None:
            self._finalizer.detach()
            hooks.close()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Ignore all hook calls inside the block, for a forward pass that fmapboard runs itself."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def is_on_other_device(self, module: nn.Module, values: Any) -> bool:
        """True for a DataParallel replica on a device other than the model's own.

        Replicas share the hooks and run in their own threads; only the first device's is recorded.
        """
        if not is_replica(module):
            return False
        tensor = next(tensors(values), None)
        return tensor is not None and tensor.device != self._device

    def is_foreign_thread(self, module: nn.Module) -> bool:
        """True if a thread whose passes do not count calls the module; False for replicas."""
        if self._thread is None or self._thread == threading.get_ident():
            return False
        return not is_replica(module)

    def failed(self, name: str, error: Exception) -> None:
        """Called when a hook on a layer raised an error; the name of the root is empty."""
        if self._failed is None:
            raise error
        self._failed(name or "forward pass", error)

    def _hook_root(self, hooks: contextlib.ExitStack) -> None:
        before = LayerHook(self, "_root_begins", "", runs_first=True)
        after = LayerHook(self, "_root_ends", "")
        _remove_with(
            hooks,
            self.model.register_forward_pre_hook(before, prepend=True, with_kwargs=True),
            self.model.register_forward_hook(after, with_kwargs=True),
        )

    def _hook_layer(
        self, hooks: contextlib.ExitStack, name: str, module: nn.Module, sides: tuple[Side, ...]
    ) -> None:
        if "input" in sides and name in self.layers:
            hook = LayerHook(self, "_layer_begins", name)
            _remove_with(hooks, module.register_forward_pre_hook(hook, with_kwargs=True))
        if "output" in sides:
            hook = LayerHook(self, "_layer_ends", name, runs_first=not self.effective)
            _remove_with(hooks, installed(hook, module))

    def _root_begins(self, name: str, module: nn.Module, args: Any, kwargs: Any, _: Any) -> None:
        if not self._paused:
            self.root_ran = self._root_runs = True
        if self._listener is None or self._paused:
            return
        if self._passes.root_begins((args, kwargs)):
            if self._thread is None and not is_replica(module):
                self._thread = threading.get_ident()
            self._listener.begin(args, kwargs)

    def _root_ends(self, name: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        self._root_runs = False
        if not self._paused:
            self._passes.root_ends()
            self._ended(output)

    def _child_ends(
        self, name: str, module: nn.Module, args: Any, kwargs: Any, output: Any
    ) -> None:
        if not self._root_runs and not self._paused:
            self._ended(output)

    def _layer_begins(self, name: str, module: nn.Module, args: Any, kwargs: Any, _: Any) -> None:
        self._deliver(name, module, "input", (args, kwargs))

    def _layer_ends(
        self, name: str, module: nn.Module, args: Any, kwargs: Any, output: Any
    ) -> None:
        self._deliver(name, module, "output", output)

    def _tapped(self, name: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self.tap_choice(name):
            self._deliver(name, tap_module(), "output", output)

    def _deliver(self, name: str, module: nn.Module, side: Side, value: Any) -> None:
        if self._listener is None or self._paused:
            return
        counted = self._passes.call(name, side, value)
        if counted is not None:
            layer_call = self._calls.of(name, *counted, side, module)
            self._listener.captured(layer_call, side, value, module)


def _always(received: Any) -> bool:
    return True


def _ignored(output: Any) -> None:
    return


def _remove_with(hooks: contextlib.ExitStack, *handles: RemovableHandle) -> None:
    for handle in handles:
        hooks.callback(handle.remove)
