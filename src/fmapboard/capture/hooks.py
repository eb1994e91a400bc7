"""``HookRegistry``: forward hooks that are on a model only while it runs a recorded pass."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from fmapboard.capture.compiled import hold_eager, is_unobservable, release_eager
from fmapboard.capture.isolation import block_begins, block_ended
from fmapboard.capture.layer_hook import LayerHook, install, is_recorded_last
from fmapboard.capture.module_calls import (
    CallWatch,
    compiled_wrappers,
    has_compiled_parts,
    is_compile_used,
    is_replica,
)
from fmapboard.capture.passes import CaptureListener, PassTracker, Side
from fmapboard.capture.taps import (
    Tap,
    TapChoice,
    has_taps,
    receive_taps,
    stop_receiving,
    tap_label,
    tap_module,
)
from fmapboard.errors import LayerNotFound, log, raise_interrupt
from fmapboard.model.kernel_shapes import (
    TRANSPOSED,
    by_kernel_shape,
    fits,
    kernel_shape,
    may_differ,
    output_channels,
    refuse,
)
from fmapboard.model.layers import Layers, WatchedLayers, clean_name, named_layers, unwrap
from fmapboard.model.roles import floor_of
from fmapboard.model.tensors import first_tensor, tensors
from fmapboard.records import KernelShape, LayerCall


class CallRecords:
    """Builds the ``LayerCall`` of each call of a registry's layers.

    Args:
        layers: the watched layers by name.
        numbers_only: further layers by name, of which no pictures are drawn.
        effective: as in ``HookRegistry``.
    """

    def __init__(
        self,
        layers: Mapping[str, nn.Module],
        numbers_only: Mapping[str, nn.Module],
        *,
        effective: bool,
    ) -> None:
        self._layers, self._numbers_only = layers, numbers_only
        self._effective = effective
        self._known: dict[tuple[str, int, Side], LayerCall] = {}

    def of(self, name: str, call: int, position: int, side: Side, module: nn.Module) -> LayerCall:
        """The record of a call.

        Args:
            name: of the layer.
            call: 1 for the layer's first call in the pass.
            position: in the order of calls.
            side: which of the layer's tensors is recorded.
            module: the layer, or a replica of it.
        """
        known = self._known.get((name, call, side))
        own = self._layers.get(name, self._numbers_only.get(name, module))  # not a replica
        received = side == "output" and (self._effective or is_recorded_last(own))
        if known is None or (known.position, known.received) != (position, received):
            known = self._known[name, call, side] = LayerCall(
                layer=name,
                type=type(module).__name__.removeprefix("FSDP"),
                kernel_shape=kernel_shape(own),
                call=call,
                position=position,
                pictures=name in self._layers or isinstance(module, Tap),
                floor=floor_of(module) if side == "output" else None,
                transposed_stride=tuple(module.stride) if isinstance(module, TRANSPOSED) else None,
                received=received,
            )
        return known


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
        failed: called with a layer's name and an error that was raised in a hook; None raises the
            error in the model's ``forward``.

    Attributes:
        model: the unwrapped model.
        watched: its watched layers.

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
        self.model, self._failed, self.effective = unwrap(model), failed, effective
        self.watched = WatchedLayers(
            model, layers, also=also or {}, has_taps=partial(has_taps, self.model)
        )
        self._dropped: set[str] = set()
        self._layers_changed()
        self.tap_choice = TapChoice.of(layers, named_layers(self.model))
        self._placed: _Placed | None = None
        self._finalizer: weakref.finalize[..., HookRegistry] | None = None
        self._listener: CaptureListener | None = None
        self._passes = PassTracker(CaptureListener())
        self._paused = False
        self._thread: int | None = None
        self._home = 0
        self._turns: contextlib.AbstractContextManager[object] = _NO_TURNS
        self._device: torch.device | None = None
        self.wrappers = compiled_wrappers(model)
        self.root_ran = self.was_called = False
        self._aside: Callable[[nn.Module, Any, Any], None] | None = None
        self._calls_running: dict[int, _Call] = {}

    def _layers_changed(self) -> None:
        watched = self.watched
        self._unproven = {name for name, module in self.layers.items() if may_differ(module)}
        self._calls = CallRecords(self.layers, watched.numbers_only, effective=self.effective)

    @property
    def layers(self) -> dict[str, nn.Module]:
        """The chosen layers by name."""
        return self.watched.layers

    def follow_replacements(
        self, also: Callable[[nn.Module], dict[str, nn.Module]]
    ) -> tuple[str, ...]:
        """Hook other layers if a watched one was replaced; see ``WatchedLayers``."""
        before, gone = self.layers, self.watched.follow_replacements(also)
        if self.layers is not before:
            self._layers_changed()
        return gone

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
        """True while forward passes are awaited and recorded."""
        return self._placed is not None

    def listening(
        self,
        listener: CaptureListener,
        *,
        sides: tuple[Side, ...] = ("output",),
    ) -> contextlib.AbstractContextManager[None]:
        """Record passes in a ``with`` block; for the arguments see ``arm``.

        Compiled models run eagerly in the block.
        """
        return _Listening(self, partial(self.arm, listener, sides=sides))

    def arm(
        self,
        listener: CaptureListener,
        *,
        sides: tuple[Side, ...] = ("output",),
        thread: int | None = None,
        aside: Callable[[nn.Module, Any, Any], None] | None = None,
    ) -> None:
        """Record forward passes from now on; an armed registry is disarmed first.

        Hooks are on the layers from the beginning of a recorded pass to its end only.

        Args:
            listener: chooses and receives the recorded passes.
            sides: ``"output"``, ``"input"`` or both.
            thread: identifier of the thread whose passes count; None selects the first thread that
                runs a recorded pass, until ``listener.takes_over``.
            aside: called with a compiled module and its arguments right before a recorded pass of
                it; calls ``hooked`` around an uncompiled pass, which is recorded instead. None runs
                all compiled code of the process uncompiled while the registry is armed.
        """
        self.disarm()
        self._listener, self._thread, self._aside = listener, thread, aside
        self._home, self._turns = threading.get_ident(), _NO_TURNS if thread else _Turns()
        self._sides, self._paused = sides, False
        self.was_called = False
        self._passes = PassTracker(listener)
        self._device = next((p.device for p in self.model.parameters()), None)
        self._placed = placed = _Placed(weakref.ref(self))
        self._finalizer = weakref.finalize(self, placed.take)
        try:
            if aside is None and "torch._dynamo" in sys.modules:  # else nothing is compiled
                hold_eager(placed)
            if "output" in sides:
                receive_taps(placed.registry)
            placed.roots = [self._watch_of(root) for root in self._roots()]
            for watch in placed.roots:
                watch.place()
            if not self.root_ran:
                self._watch_parts(placed.parts)
        except BaseException:
            self.disarm()
            raise
        self.root_ran = False

    def disarm(self) -> None:
        """Record no more; does nothing if the registry is not armed."""
        placed = self._placed
        if placed is None:
            return
        self._listener, self._passes = None, PassTracker(CaptureListener())
        self._unhook_all()
        placed.take()
        if self._finalizer is not None:
            self._finalizer.detach()
        self._placed = None  # last: if an interrupt cuts this short, the next call does all again

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
        tensor = next(iter(tensors(values)), None)
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

    def call_begins(
        self, key: object, module: nn.Module, args: Any, kwargs: Any, *, compiles: bool
    ) -> bool:
        """Called when the root or, while the root does not run, a part of it is called."""
        handled = sys.exc_info()[1]
        try:
            with self._turns:
                if not self._follows(module, args, kwargs):
                    return False
                self.was_called = True
                call = _Call(key, compiles=compiles, of_replica=is_replica(module))
                self._calls_running[threading.get_ident()] = call
                if self._is_root(module):
                    self._root_begins(call, module, args, kwargs)
                else:
                    self._part_begins(call, module, args, kwargs)
        except Exception as error:
            raise_interrupt(error, handled)
            self.failed("", error)
        return self._running_call(key) is not None

    def call_returned(self, module: nn.Module, output: Any) -> None:
        """Called when a call that is followed has returned."""
        handled = sys.exc_info()[1]
        try:
            with self._turns:
                listener = self._listener
                if listener is None or self.is_foreign_thread(module):  # since the call began
                    return
                if self._is_root(module):
                    self._passes.root_ends()
                    listener.pass_ended(output)
                elif not self.root_ran and module in self.model.children():
                    listener.pass_ended(output)
        except Exception as error:
            raise_interrupt(error, handled)
            self.failed("", error)

    def call_left(self, key: object) -> None:
        """Remove the hooks when a call has ended in any way."""
        call = self._running_call(key)
        if call is None:
            return
        self._unhook(call)
        self._calls_running.pop(threading.get_ident(), None)
        if call.puts_back and self._placed is not None:
            self._watch_parts(self._placed.parts)

    def _follows(self, module: nn.Module, args: Any, kwargs: Any) -> bool:
        if self._listener is None or self._paused or threading.get_ident() in self._calls_running:
            return False
        if is_unobservable() or self.is_on_other_device(module, (args, kwargs)):
            return False
        return not self.is_foreign_thread(module) or self._takes_over(module, (args, kwargs))

    def _takes_over(self, module: nn.Module, received: Any) -> bool:
        """Record this thread's passes instead of another's, if the thread counts more."""
        listener = self._listener
        if listener is None or self._home != threading.get_ident():
            return False
        if is_replica(module) or not self._is_root(module) or not listener.counts(received):
            return False
        if not listener.takes_over():
            return False
        self._thread = self._home
        self._unhook_all()
        self._passes = PassTracker(listener)
        return True

    def _running_call(self, key: object) -> _Call | None:
        call = self._calls_running.get(threading.get_ident())
        return call if call is not None and call.key is key else None

    def _is_root(self, module: nn.Module) -> bool:
        return module is self.model or is_replica(module) or module in self.wrappers

    def _roots(self) -> list[nn.Module]:
        """What to watch: the model, and what torch.compile made of it.

        torch.compile does not look at the slot of a module inside, unless the module has hooks.
        """
        model = self.model
        has_hooks = model._forward_hooks or model._forward_pre_hooks or model._backward_hooks
        return self.wrappers if self.wrappers and has_hooks else [*self.wrappers, model]

    def _watch_of(self, module: nn.Module) -> CallWatch:
        allows_hooks = self._aside is None or not self._is_compiled(module)
        return CallWatch(module, self, allows_hooks=allows_hooks)

    def _watch_parts(self, parts: dict[nn.Module, CallWatch]) -> None:
        """Watch the calls of all parts of the model too: the user may not call the model itself."""
        allows_hooks = self._aside is None or not is_compile_used()
        for module in self.model.modules():
            if module is self.model or isinstance(module, torch.jit.ScriptModule):
                continue
            before = parts.get(module)  # an interrupt may have kept some from being taken
            if before is None or not before.is_placed:
                watch = parts[module] = CallWatch(module, self, allows_hooks=allows_hooks)
                watch.place()

    def _root_begins(self, call: _Call, module: nn.Module, args: Any, kwargs: Any) -> None:
        # What is called inside is not of interest, and torch.compile is not to see the watches.
        parts = self._placed.parts if self._placed is not None else {}
        call.puts_back = bool(parts)
        _take_all(parts)
        if self._listener is None or not self._passes.root_begins((args, kwargs)):
            return
        self.root_ran, call.puts_back = True, False
        if self._thread is None and not is_replica(module):
            self._thread = threading.get_ident()
        self._listener.begin(args, kwargs)
        if self._listener is not None:
            root = module if is_replica(module) else self.model
            self._record(call, module, args, kwargs, self._own(root))

    def _part_begins(self, call: _Call, module: nn.Module, args: Any, kwargs: Any) -> None:
        inside = set(module.modules())
        parts = self._placed.parts if self._placed is not None else {}
        for part in inside - {module}:
            if (watch := parts.pop(part, None)) is not None:
                watch.take()
        if not self._passes.is_done:
            own = {name: layer for name, layer in self._own(self.model).items() if layer in inside}
            self._record(call, module, args, kwargs, own)

    def _own(self, root: nn.Module) -> dict[str, nn.Module]:
        """The layers to record of the model, or of a replica of it."""
        layers = {**self.layers, **self.watched.numbers_only}
        return layers if root is self.model else _own_layers(root, layers)

    def _record(
        self, call: _Call, module: nn.Module, args: Any, kwargs: Any, layers: dict[str, nn.Module]
    ) -> None:
        """Record the call that begins, or an uncompiled one in its place if it is compiled."""
        call.hooks = layers
        if self._aside is None or not (call.compiles or self._is_compiled(module)):
            self._hook_layers(call)
            return
        with self._passes.accepting((args, kwargs)) as counts:
            if counts:
                self._aside(module, args, kwargs)
        call.is_recorded = True

    def _is_compiled(self, module: nn.Module) -> bool:
        """True if torch.compile must not see hooks inside the module."""
        return is_compile_used() and (module in self.wrappers or has_compiled_parts(module))

    @contextlib.contextmanager
    def hooked(self) -> Iterator[None]:
        """Install the hooks for an uncompiled pass that is recorded in place of a compiled one."""
        call = self._calls_running[threading.get_ident()]
        self._hook_layers(call)
        try:
            yield
        finally:
            self._unhook(call)

    def _hook_layers(self, call: _Call) -> None:
        call.hooked, of_outputs = tuple(call.hooks.values()), []
        for name, module in call.hooks.items():
            if "input" in self._sides and name in self.layers:
                hook = LayerHook(partial(self._layer_runs, name, "input", call), call=call)
                module.register_forward_pre_hook(hook, with_kwargs=True)
            if "output" in self._sides:
                record = partial(self._layer_runs, name, "output", call)
                hook = LayerHook(record, runs_first=not self.effective, call=call)
                of_outputs.append((hook, module))
        install(of_outputs)

    def _unhook_all(self) -> None:
        for call in list(self._calls_running.values()):
            self._unhook(call)
        self._calls_running.clear()

    def _unhook(self, call: _Call) -> None:
        for module in call.hooked:
            for hooks, flags in (
                (module._forward_hooks, module._forward_hooks_with_kwargs),
                (module._forward_pre_hooks, module._forward_pre_hooks_with_kwargs),
            ):
                for key, hook in list(hooks.items()):
                    if isinstance(hook, LayerHook) and hook.call is call:
                        hooks.pop(key, None)
                        flags.pop(key, None)

    def _layer_runs(
        self,
        name: str,
        side: Side,
        call: _Call,
        module: nn.Module,
        args: Any,
        kwargs: Any,
        output: Any,
    ) -> None:
        """Called by the hooks on the layers."""
        handled, thread = sys.exc_info()[1], threading.get_ident()
        try:
            # Another thread may run the layer at the same time, or have taken over.
            if self._calls_running.get(thread) is not call or is_unobservable():
                return
            if call.of_replica:
                if self.is_on_other_device(module, (args, kwargs, output)):
                    return
            elif self._thread is not None and self._thread != thread:
                return
            if not call.is_recorded:
                self._deliver(name, module, side, (args, kwargs) if side == "input" else output)
        except Exception as error:
            raise_interrupt(error, handled)
            self.failed(name, error)

    def tapped(self, name: str, value: Any, running: list[nn.Module]) -> None:
        """Called with a tensor that the user names with ``tap``; see ``taps.TapReceiver``."""
        handled, label = sys.exc_info()[1], Tap.__name__
        try:
            module = self._running_part(running)
            if module is None or self.is_foreign_thread(module) or is_unobservable():
                return
            label = tap_label(name, self.layers)
            call = self._calls_running.get(threading.get_ident())
            if self.is_on_other_device(module, value) or (call is not None and call.is_recorded):
                return
            if self.tap_choice(label):
                self._deliver(label, tap_module(), "output", value)
        except Exception as error:
            raise_interrupt(error, handled)
            self.failed(label, error)

    def _running_part(self, running: list[nn.Module]) -> nn.Module | None:
        """The root, or a copy of it on another device, if this thread makes a call of it.

        As long as the user calls parts of the model instead of the model, the innermost of them.
        """
        is_followed = threading.get_ident() in self._calls_running
        root = next(filter(self._is_root, running), None) if is_followed else None
        if root is not None or self.root_ran:
            return root
        own = set(self.model.modules())
        return next((module for module in running if module in own), None)

    def _deliver(self, name: str, module: nn.Module, side: Side, value: Any) -> None:
        if self._listener is None or self._paused or name in self._dropped:
            return
        if side == "output" and name in self._unproven and not self._is_proven(name, value):
            return
        counted = self._passes.call(name, side, value)
        if counted is not None:
            layer_call = self._calls.of(name, *counted, side, module)
            self._listener.captured(layer_call, side, value, module)

    def _is_proven(self, name: str, output: Any) -> bool:
        """False if an own convolution is dropped, because its output has other channels."""
        module, tensor = self.layers[name], first_tensor(output)
        if tensor is None:
            return True
        self._unproven.discard(name)
        if fits(module, tensor):
            return True
        channels = output_channels(module)
        refuse(module)
        self.watched.select_again()
        self._layers_changed()
        if name in self.layers:  # chosen by its name or type
            return True
        self._dropped.add(name)
        log.info(
            "%s (%s) is not watched as a convolution: its weight has %s output channels, and it "
            "returned %s", name, type(module).__name__, channels, list(tensor.shape),
        )  # fmt: skip
        return False


class _Listening(contextlib.AbstractContextManager[None]):
    """A block in which a registry is armed."""

    def __init__(self, registry: HookRegistry, arm: Callable[[], None]) -> None:
        self._registry, self._arm = registry, arm

    def __enter__(self) -> None:
        block_begins(self)
        try:
            self._arm()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        self._registry.disarm()
        block_ended(self)


class _Turns:
    """Lets one thread at a time begin or end a pass, while the passes of several may count.

    An interrupt may leave the lock locked, so nobody waits for it longer than a second.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._acquired: dict[int, list[bool]] = {}  # thread -> its nested blocks

    def __enter__(self) -> None:
        acquired = self._lock.acquire(timeout=1.0)
        self._acquired.setdefault(threading.get_ident(), []).append(acquired)

    def __exit__(self, *error: object) -> None:
        if self._acquired[threading.get_ident()].pop():
            self._lock.release()


_NO_TURNS = contextlib.nullcontext()


@dataclass(slots=True)
class _Call:
    """A call of the root, or of a part of it, that is followed.

    Attributes:
        key: identifies the call.
        compiles: it runs inside a function that torch.compile has made.
        of_replica: it is of a copy of the model that DataParallel runs.
        hooks: the layers that are recorded, by name.
        hooked: the modules that may have hooks until it ends.
        is_recorded: an uncompiled pass was recorded in its place.
        puts_back: the parts of the model are watched again when it ends.
    """

    key: object
    compiles: bool
    of_replica: bool
    hooks: dict[str, nn.Module] = field(default_factory=dict)
    hooked: tuple[nn.Module, ...] = ()
    is_recorded: bool = False
    puts_back: bool = False


@dataclass(slots=True, eq=False)
class _Placed:
    """What an armed registry has placed outside of itself.

    Attributes:
        registry: receives tapped tensors.
        roots: the watches of the model and of what torch.compile made of it.
        parts: those of its parts.
    """

    registry: weakref.ref[HookRegistry]
    roots: list[CallWatch] = field(default_factory=list)
    parts: dict[nn.Module, CallWatch] = field(default_factory=dict)

    def take(self) -> None:
        """Take everything away; may be called again, also if it was interrupted."""
        for watch in self.roots:
            watch.take()
        _take_all(self.parts)
        stop_receiving(self.registry)
        release_eager(self)


def _take_all(watches: dict[nn.Module, CallWatch]) -> None:
    for watch in watches.values():
        watch.take()
    watches.clear()


def _own_layers(replica: nn.Module, layers: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """The layers of a replica, with hook dicts of their own instead of the original's."""
    found = {clean_name(n): m for n, m in replica.named_modules()}
    own = {name: found[name] for name in layers if name in found}
    for module in own.values():
        for name in _HOOK_DICTS:
            vars(module)[name] = vars(module)[name].copy()
    return own


_HOOK_DICTS = (
    *("_forward_hooks", "_forward_hooks_with_kwargs"),
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"),
)
"""Where a module keeps the hooks that are installed here."""
