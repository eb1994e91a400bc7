"""``PassRecorder``: follows a model's forward passes and records the layers in those that count."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import torch
from torch import nn

from fmapboard.capture.attention import (
    ROWS,
    Attention,
    AttentionLayer,
    AttentionMode,
    Texts,
    batch_size,
    obstacle,
    stand_in,
)
from fmapboard.capture.attention_beside import attend_beside
from fmapboard.capture.compiled import hold_eager, is_unobservable, release_eager
from fmapboard.capture.layer_hook import (
    LayerHook,
    install_hooks,
    is_recorded_last,
    own_layers,
    remove_hooks,
)
from fmapboard.capture.module_calls import (
    Call,
    CallWatch,
    has_compiled_parts,
    is_compile_used,
    is_replica,
)
from fmapboard.capture.taps import TAP, Tap, TapChoice, receive_taps, stop_receiving, tap_label
from fmapboard.capture.texts import ids_by_length
from fmapboard.capture.twin import NoTwin, Twin
from fmapboard.errors import log
from fmapboard.interrupts import raise_interrupt, restoring
from fmapboard.model.kernel_shapes import (
    TRANSPOSED,
    fits,
    kernel_shape,
    may_differ,
    output_channels,
    refuse,
)
from fmapboard.model.layers import WatchedLayers
from fmapboard.model.roles import floor_of, is_off_at_zero
from fmapboard.model.tensors import first_tensor, tensors
from fmapboard.records import LayerCall

UNKNOWN = "it is computed in a way that is not known here"
"""Why attention is not seen that no reader has met."""
Side = Literal["output", "input"]
Hooked: TypeAlias = "Callable[[Twin], AbstractContextManager[None]]"
"""A block in which the layers of a twin are recorded."""
Aside: TypeAlias = "Callable[[nn.Module, Any, Any, Hooked], None]"
"""Records an uncompiled pass in place of a compiled one; see ``HookRegistry.arm``."""


class CaptureListener:
    """Receives what a registry's hooks observe in the recorded passes.

    Its methods are called inside the user's forward pass, on the thread that runs it. ``args``,
    ``kwargs`` and ``value`` are the live objects, and the next operation may overwrite them: copy
    what is needed before returning. An implementation must not raise, modify these objects or draw
    random numbers.
    """

    __slots__ = ()

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CaptureListener | None:
        """Called when the recorded forward pass of the root module begins.

        Discard what an earlier pass delivered.

        Returns:
            What receives the tensors of this pass; None for this listener.
        """
        return None

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Called when a watched layer of the recorded pass is about to run, or has returned.

        Args:
            layer_call: which layer, and which of its calls.
            side: ``"input"`` before the layer runs, ``"output"`` after it returned.
            value: ``(args, kwargs)`` for ``"input"``, the layer's output for ``"output"``.
            module: the layer.
        """


class Moment(Enum):
    """When a policy is asked."""

    BEGINS = "a forward pass of the root begins"
    RETURNS = "a forward pass of the root, recorded or not, has returned"
    PART_BEGINS = "a part of the root is called, and the root itself has not been"
    PART_RETURNS = "such a part has returned"
    LAYER_RUNS = "a layer runs for the first time, and no pass of the root is recorded"


class Decision(Enum):
    """What becomes of that which begins."""

    IGNORE = "nothing"
    RECORD = "it is recorded"
    TAKE_OVER = "it is recorded, and from now on only passes of this thread are"


class Progress(Enum):
    """How far a policy has come with the passes of the root."""

    WAITING = "none is recorded yet"
    RECORDING = "one is being recorded; if it raises, it does not count"
    RECORDED = "one was recorded"


@dataclass(frozen=True, slots=True)
class PassEvent:
    """What a policy decides about.

    Attributes:
        moment: what happens.
        value: ``(args, kwargs)`` of what begins, or the output of what has returned; for a layer,
            what it received or returned.
        module: the part that is called; None for the root and for layers.
        is_elsewhere: passes of another thread are recorded so far, and this pass begins in the
            thread that armed the registry.
    """

    moment: Moment
    value: Any = ()
    module: nn.Module | None = None
    is_elsewhere: bool = False


class PassPolicy(Protocol):
    """Decides which forward passes are recorded."""

    def decide(self, event: PassEvent) -> Decision:
        """Called inside the user's forward pass, for each event of `Moment`; must not raise.

        What returns for a moment at which something has returned is of no consequence. Only a pass
        of the root that begins elsewhere can take over.
        """


class FirstPass:
    """Records the first forward pass that returns, or the first call of each layer or part.

    The latter if the root is never called, but its parts are.

    Attributes:
        progress: how far it has come.
    """

    def __init__(self) -> None:
        self.progress = Progress.WAITING

    def decide(self, event: PassEvent) -> Decision:
        """Record until a pass has returned; take nothing over from another thread."""
        is_recording = self.progress is Progress.RECORDING
        if is_recording and event.moment is Moment.RETURNS:
            self.progress = Progress.RECORDED
        if self.progress is Progress.RECORDED or event.is_elsewhere:
            return Decision.IGNORE
        if event.moment is Moment.BEGINS:
            self.progress = Progress.RECORDING
        return Decision.RECORD


class CallNumbers:
    """Numbers the calls of layers in a pass."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, Side], int] = {}
        self._positions: dict[tuple[str, int], int] = {}

    def start_over(self) -> None:
        """A pass begins."""
        self._calls.clear()
        self._positions.clear()

    def has_run(self, layer: str, side: Side) -> bool:
        """True if a call of the layer was numbered."""
        return (layer, side) in self._calls

    def next(self, layer: str, side: Side) -> tuple[int, int]:
        """Number a call of a layer.

        Args:
            layer: its name.
            side: which of its tensors is delivered.

        Returns:
            The call's number for this layer, from 1, and its position among the calls of all
            layers, from 0. Input and output of a call share both.
        """
        number = self._calls.get((layer, side), 0) + 1
        self._calls[layer, side] = number
        last = len(self._positions)
        position = self._positions.setdefault((layer, number), last)
        return number, position


class LayerCalls:
    """Builds the ``LayerCall`` of each call of the watched layers; drops what is no convolution.

    Args:
        watched: the watched layers of a model.
        effective: as in ``HookRegistry``.
    """

    def __init__(self, watched: WatchedLayers, *, effective: bool) -> None:
        self.watched = watched
        self.effective = effective
        self._layers: dict[str, nn.Module] = {}
        self._known: dict[tuple[str, int, Side], LayerCall] = {}
        self._unproven = set[str]()
        self._dropped = set[str]()
        self._has_unseen_attention = False
        self.refuses_twins = False  # of attention

    def of(self, name: str, call: int, position: int, side: Side, module: nn.Module) -> LayerCall:
        """The record of a call.

        Args:
            name: of the layer.
            call: 1 for the layer's first call in the pass.
            position: in the order of calls.
            side: which of the layer's tensors is recorded.
            module: the layer, or a replica of it.
        """
        layers = self._layers
        own = layers.get(name)  # not a replica
        if own is None:
            own = self.watched.numbers_only.get(name, module)
        is_output = side == "output"
        received = is_output and (self.effective or is_recorded_last(own))
        key = (name, call, side)
        known = self._known.get(key)
        if known is not None:
            is_same = known.position == position and known.received == received
            weight = own._parameters.get("weight")
            if weight is not None and known.kernel_shape is not None:
                is_same = is_same and tuple(weight.shape) == known.kernel_shape
            if is_same:
                return known
        kind = type(module).__name__
        stride = None
        if isinstance(module, TRANSPOSED):
            stride = tuple(module.stride)
        part = module.part if isinstance(module, Attention) else self.watched.parts.get(name)
        if part is None and name in self.watched.numbers_only:
            part = self.watched.branches.get(name)
        floor = floor_of(module)
        if part is not None and floor is None and is_off_at_zero(part, module):
            floor = 0.0
        layer_call = LayerCall(
            layer=name,
            type=kind.removeprefix("FSDP"),
            kernel_shape=kernel_shape(own),
            call=call,
            position=position,
            pictures=name in layers or isinstance(module, (Tap, Attention)),
            floor=floor if is_output else None,
            transposed_stride=stride,
            received=received,
            followed_by=self.watched.followed_by.get(name, ()),
            part=part,
        )
        self._known[key] = layer_call
        return layer_call

    def selects(self, name: str, side: Side, value: Any) -> bool:
        """False for a layer that was dropped, because its output has other channels."""
        if self._layers is not self.watched.layers:
            self._layers = self.watched.layers
            self._known.clear()
            self._unproven.clear()
            for layer, module in self._layers.items():
                if may_differ(module):
                    self._unproven.add(layer)
        if side == "output" and name in self._unproven:
            self._prove(name, first_tensor(value))
        return name not in self._dropped

    def _prove(self, name: str, tensor: torch.Tensor | None) -> None:
        """Drop an own convolution if its output has other channels."""
        if tensor is None:
            return
        module = self._layers[name]
        self._unproven.discard(name)
        if fits(module, tensor):
            return
        channels = output_channels(module)
        refuse(module)
        self.watched.select_again()
        if name in self.watched.layers:  # chosen by its name or type
            return
        self._dropped.add(name)
        log.info(
            "%s (%s) is not watched as a convolution: its weight has %s output channels, and it "
            "returned %s", name, type(module).__name__, channels, list(tensor.shape),
        )  # fmt: skip

    def attention(self, layers: Mapping[str, nn.Module]) -> dict[nn.Module, AttentionLayer]:
        """Those of some layers that compute attention."""
        parts = self.watched.parts
        found = {}
        for name, module in layers.items():
            part = parts.get(name)
            if part is not None and part.heads is not None:
                found[module] = AttentionLayer(name, part.heads, stand_in(part.shape))
        return found

    def check_attention(self, name: str, numbers: CallNumbers) -> None:
        """Log once if an attention module has returned whose attention was not seen."""
        if numbers.has_run(name, "output") and not numbers.has_run(name + ROWS, "output"):
            self.attention_is_unseen(name, UNKNOWN)

    def attention_is_unseen(self, name: str, why: str) -> None:
        """Log once that the attention of a module is not recorded."""
        if not self._has_unseen_attention:
            self._has_unseen_attention = True
            log.info("the rows of attention in %s are not recorded: %s", name, why)


class _Turns:
    """Lets one thread at a time begin or end a pass, while the passes of several may count.

    An interrupt may leave the lock locked, so nobody waits for it longer than a second.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._acquired: dict[int, list[bool]] = {}  # thread -> its nested blocks

    def __enter__(self) -> None:
        acquired = self._lock.acquire(timeout=1.0)
        thread = threading.get_ident()
        nested = self._acquired.setdefault(thread, [])
        nested.append(acquired)

    def __exit__(self, *error: object) -> None:
        thread = threading.get_ident()
        if self._acquired[thread].pop():
            self._lock.release()


@dataclass(slots=True, eq=False)
class Placed:
    """What is placed outside of a recorder while it is open.

    Attributes:
        roots: the watches of the model and of what torch.compile made of it.
        parts: those of its parts.
        receiver: receives tapped tensors.
    """

    roots: list[CallWatch] = field(default_factory=list)
    parts: dict[nn.Module, CallWatch] = field(default_factory=dict)
    receiver: weakref.ref[PassRecorder] | None = None

    def take(self) -> None:
        """Take everything away; may be called again, also if it was interrupted."""
        for watch in self.roots:
            watch.take()
        self.roots.clear()
        self.take_parts()
        if self.receiver is not None:
            stop_receiving(self.receiver)
        release_eager(self)

    def take_parts(self) -> None:
        """Take the watches of the parts away."""
        for watch in self.parts.values():
            watch.take()
        self.parts.clear()


@dataclass(eq=False)
class PassRecorder:
    """Follows the calls of a model from ``begin`` until ``end``, and records those that count.

    Attributes:
        calls: the watched layers.
        wrappers: what torch.compile made of the model.
        placed: what is placed outside.
        taps: which tapped tensors are recorded.
        listener: as in ``HookRegistry.arm``, and so are the next four.
        policy: see there.
        sides: see there.
        thread: see there.
        aside: see there.
        twin: see there.
        attention: see there.
        failed: as in ``HookRegistry``.
        is_open: True from ``begin`` until ``end``.
        is_paused: all calls are ignored.
        root_ran: a pass of the root was recorded.
        was_called: a call of the model, or of a part of it, was seen.
    """

    calls: LayerCalls
    wrappers: list[nn.Module]
    placed: Placed
    taps: TapChoice
    listener: CaptureListener
    policy: PassPolicy = field(default_factory=FirstPass)
    sides: tuple[Side, ...] = ()
    thread: int | None = None
    aside: Aside | None = None
    twin: Twin | None = None
    attention: bool = False
    failed: Callable[[str, Exception], None] | None = None
    is_open: bool = False
    is_paused: bool = False
    root_ran: bool = False
    was_called: bool = False

    def __post_init__(self) -> None:
        self._model = self.calls.watched.model
        if self.twin is not None:
            self._model = self.twin.module
            self.wrappers = []
        self._home = threading.get_ident()
        self._turns = contextlib.nullcontext() if self.thread else _Turns()
        self._calls = CallNumbers()
        self._receiver = self.listener
        self._is_recording = False  # a pass of the root
        self._accepts_all = False  # layer calls are recorded, whatever each layer receives
        self._device = next((p.device for p in self._model.parameters()), None)
        self._running: dict[int, Call] = {}

    def begin(self, *, with_parts: bool) -> None:
        """Begin to follow calls of the model and, with ``with_parts``, of its parts as well."""
        self.is_open = True
        placed = self.placed
        if self.aside is None:
            hold_eager(placed)
        if "output" in self.sides:
            placed.receiver = weakref.ref(self)
            receive_taps(placed.receiver)
        model = self._model
        roots = list(self.wrappers)
        has_hooks = model._forward_hooks or model._forward_pre_hooks or model._backward_hooks
        # torch.compile does not look at the slot of a module inside, unless the module has hooks.
        if not (self.wrappers and has_hooks):
            roots.append(model)
        for module in roots:
            allows_hooks = self.aside is None or not self._is_compiled(module)
            watch = CallWatch(module, self, allows_hooks=allows_hooks)
            placed.roots.append(watch)
            watch.place()
        if with_parts:
            self._watch_parts()

    def end(self) -> None:
        """Record no more; may be called again, also if it was interrupted."""
        self.listener = self._receiver = CaptureListener()
        self.policy = FirstPass()
        self._is_recording = False
        self._unhook_running()
        self.placed.take()
        self.is_open = False

    def _unhook_running(self) -> None:
        for call in list(self._running.values()):
            self._unhook(call)
        self._running.clear()

    def _watch_parts(self) -> None:
        """Watch the calls of all parts of the model too: the user may not call the model itself."""
        allows_hooks = self.aside is None or not is_compile_used()
        parts = self.placed.parts
        for module in self._model.modules():
            if module is self._model or isinstance(module, torch.jit.ScriptModule):
                continue
            before = parts.get(module)  # an interrupt may have kept some from being taken
            if before is None or not before.is_placed:
                watch = CallWatch(module, self, allows_hooks=allows_hooks)
                parts[module] = watch
                watch.place()

    def call_begins(self, call: Call) -> bool:
        """Called when the root or, while the root does not run, a part of it is called."""
        thread = threading.get_ident()
        try:
            with self._turns:
                if not self._follows(call):
                    return False
                is_root = self._is_root(call.module)
                decision = Decision.IGNORE
                is_elsewhere = self._is_foreign_thread(call.of_replica)
                if is_elsewhere:
                    if not is_root or self._home != thread:
                        return False
                    decision = self._decision(call, is_elsewhere=True)
                    if decision is not Decision.TAKE_OVER:
                        return False
                    self._take_over()
                self.was_called = True
                self._running[thread] = call
                if is_root:
                    self._root_begins(call, decision)
                else:
                    self._part_begins(call)
        except Exception as error:
            self._report("", error)
        return self._running.get(thread) is call

    def call_returned(self, call: Call, output: Any) -> None:
        """Called when a call that is followed has returned."""
        try:
            with self._turns:
                if self._is_foreign_thread(call.of_replica):  # another thread has taken over
                    return
                if self._is_root(call.module):
                    self._is_recording = False
                    event = PassEvent(Moment.RETURNS, output)
                    self.policy.decide(event)
                elif not self.root_ran:
                    event = PassEvent(Moment.PART_RETURNS, output, call.module)
                    self.policy.decide(event)
        except Exception as error:
            self._report("", error)

    def call_left(self, call: Call) -> None:
        """Remove the hooks when a call has ended in any way."""
        if call.mode is not None:  # whichever thread has removed the hooks
            call.mode.leave()
        thread = threading.get_ident()
        if self._running.get(thread) is not call:
            return
        self._unhook(call)
        self._running.pop(thread, None)
        if call.puts_back and self.is_open:
            self._watch_parts()

    def _report(self, name: str, error: Exception) -> None:
        """Report an error that a hook on a layer raised; the name of the root is empty."""
        raise_interrupt(error)
        if self.failed is None:
            raise error
        self.failed(name or "forward pass", error)

    def _is_on_other_device(self, of_replica: bool, values: Any) -> bool:
        """True for a DataParallel replica on a device other than the model's own.

        Replicas share the hooks and run in their own threads; only the first device's is recorded.
        """
        if not of_replica:
            return False
        tensor = next(iter(tensors(values)), None)
        return tensor is not None and tensor.device != self._device

    def _is_foreign_thread(self, of_replica: bool) -> bool:
        """True if a thread whose passes do not count calls the model, and no replica of it."""
        return not of_replica and self.thread not in (None, threading.get_ident())

    def _follows(self, call: Call) -> bool:
        if not self.is_open or self.is_paused:
            return False
        if threading.get_ident() in self._running or is_unobservable():
            return False
        received = (call.args, call.kwargs)
        return not self._is_on_other_device(call.of_replica, received)

    def _take_over(self) -> None:
        """Record the passes of the thread that armed the registry instead of another thread's."""
        self.thread = self._home
        self._unhook_running()

    def _is_root(self, module: nn.Module) -> bool:
        return module is self._model or is_replica(module) or module in self.wrappers

    def _decision(self, call: Call, *, is_elsewhere: bool = False) -> Decision:
        received = (call.args, call.kwargs)
        event = PassEvent(Moment.BEGINS, received, is_elsewhere=is_elsewhere)
        return self.policy.decide(event)

    def _root_begins(self, call: Call, decision: Decision) -> None:
        """Record a pass of the root; ``TAKE_OVER`` was decided before, all else is decided now."""
        # What is called inside is not of interest, and torch.compile is not to see the watches.
        call.puts_back = bool(self.placed.parts)
        self.placed.take_parts()
        if decision is not Decision.TAKE_OVER:
            decision = self._decision(call)
        self._is_recording = decision is not Decision.IGNORE
        if not self._is_recording:
            return
        self._calls.start_over()
        self.root_ran = True
        call.puts_back = False
        if self.thread is None and not call.of_replica:
            self.thread = threading.get_ident()
        receiver = self.listener.begin(call.args, call.kwargs)
        if self.is_open:  # memory did not run out
            self._receiver = self.listener if receiver is None else receiver
            layers = self._layers()
            if call.of_replica:
                layers = own_layers(call.module, layers)
            self._record(call, layers)

    def _part_begins(self, call: Call) -> None:
        inside = set(call.module.modules())
        for part in inside - {call.module}:
            watch = self.placed.parts.pop(part, None)
            if watch is not None:
                watch.take()
        received = (call.args, call.kwargs)
        event = PassEvent(Moment.PART_BEGINS, received, call.module)
        if self.policy.decide(event) is Decision.RECORD:
            layers = self._layers().items()
            own = {name: layer for name, layer in layers if layer in inside}
            self._record(call, own)

    def _layers(self) -> dict[str, nn.Module]:
        watched = self.calls.watched
        layers = {**watched.layers, **watched.numbers_only}
        if self.twin is None:
            return layers
        return self.twin.layers(layers)

    def _record(self, call: Call, layers: dict[str, nn.Module]) -> None:
        """Record the call that begins, or an uncompiled one in its place if it is compiled."""
        call.layers = layers
        if self.aside is None or not (call.compiles or self._is_compiled(call.module)):
            self._hook_layers(call)
            return
        received = (call.args, call.kwargs)
        try:
            self._accepts_all = self._is_recording or self._is_accepted(received)
            if self._accepts_all:
                hooked = partial(self._hooked, call)
                self.aside(call.module, call.args, call.kwargs, hooked)
        finally:
            self._accepts_all = False
        call.is_recorded = True

    def _hooked(self, call: Call, twin: Twin) -> AbstractContextManager[None]:
        """A block in which the layers of a twin are recorded as those of the call."""
        call.layers = twin.layers(call.layers)
        hook = partial(self._hook_layers, call, is_own=True)
        unhook = partial(self._unhook, call)
        return restoring(hook, unhook)

    def _is_compiled(self, module: nn.Module) -> bool:
        """True if torch.compile must not see hooks inside the module."""
        if not is_compile_used():
            return False
        return module in self.wrappers or has_compiled_parts(module)

    def _hook_layers(self, call: Call, *, is_own: bool = False) -> None:
        """Put the hooks on; ``is_own``: on a twin, in a pass of fmapboard's own."""
        drawn = self.calls.watched.layers
        for side in self.sides:
            layers = call.layers
            if side == "input":
                layers = {name: module for name, module in layers.items() if name in drawn}
            is_last = self.calls.effective
            install_hooks(self._layer_runs, call, layers, side, is_last=is_last)
        if self.attention and self.calls.watched.parts:
            self._see_attention(call, is_own=is_own or self.twin is not None)

    def _see_attention(self, call: Call, *, is_own: bool) -> None:
        """Record the attention of the layers too, unless that would change what the pass does."""
        layers = self.calls.attention(call.layers)
        if not layers:
            return
        why = "" if is_own else obstacle(call.module)
        runs = partial(self._layer_runs, call)
        received = (call.args, call.kwargs)
        texts = Texts(ids_by_length(*received))
        mode = AttentionMode(layers, batch_size(received), texts, runs, self._report)
        can_run_beside = not is_own and self.aside is not None
        if can_run_beside and (why or is_compile_used()):
            for module, layer in layers.items():
                hook = LayerHook(self._attends, call, layer.name, mode)
                module.register_forward_pre_hook(hook, prepend=True, with_kwargs=True)
        elif why:
            self.calls.attention_is_unseen(next(iter(layers.values())).name, why)
        else:
            call.mode = mode
            mode.__enter__()  # type: ignore[no-untyped-call]  # torch has no types here

    def _attends(
        self, call: Call, name: str, mode: AttentionMode, module: nn.Module, args: Any, kwargs: Any
    ) -> None:
        """Read the attention of a layer that is about to run, in a pass of its own."""
        try:
            if self.calls.refuses_twins or not self._records(call, (args, kwargs)):
                return
            attend_beside(module, args, kwargs, mode)
            if not self._calls.has_run(name + ROWS, "output"):
                self.calls.attention_is_unseen(name, UNKNOWN)
        except NoTwin as error:
            self.calls.refuses_twins = True
            why = "torch.compile is used" if is_compile_used() else obstacle(module)
            self.calls.attention_is_unseen(name, f"{why}, and {error}")
        except Exception as error:
            self._report(name, error)

    def _unhook(self, call: Call) -> None:
        if call.mode is not None:
            call.mode.leave()
        remove_hooks(call, call.layers.values())

    def _layer_runs(
        self, call: Call, name: str, side: Side, module: nn.Module, *passed: Any
    ) -> None:
        """Called by the hooks on the layers, with arguments and, after the layer, its output."""
        try:
            if not self._records(call, passed):
                return
            value = passed if side == "input" else passed[-1]
            if call.mode is None:
                self._deliver(name, module, side, value)
                return
            with torch._C.DisableTorchFunction():  # the mode would see each operation of ours
                self._deliver(name, module, side, value)
            if module in call.mode.layers:
                self.calls.check_attention(name, self._calls)
        except Exception as error:
            self._report(name, error)

    def _records(self, call: Call, values: Any) -> bool:
        """True if what a layer receives or returns in this thread is recorded as part of a call."""
        thread = threading.get_ident()
        # Another thread may run the layer at the same time, or have taken over.
        if self._running.get(thread) is not call or call.is_recorded:
            return False
        if is_unobservable():
            return False
        if call.of_replica:
            return not self._is_on_other_device(True, values)
        return self.thread in (None, thread)

    def tapped(self, name: str, value: Any, running: list[nn.Module]) -> None:
        """Called with a tensor that the user names with ``tap``, in any thread.

        Args:
            name: the name.
            value: the tensor.
            running: the running modules, from the innermost on.
        """
        label = Tap.__name__
        try:
            module = self._running_part(running)
            if module is None or is_unobservable():
                return
            label = tap_label(name, self.calls.watched.layers)
            of_replica = is_replica(module)
            if self._is_foreign_thread(of_replica):
                return
            call = self._running.get(threading.get_ident())
            if call is not None and call.is_recorded:
                return
            if not self._is_on_other_device(of_replica, value) and self.taps(label):
                self._deliver(label, TAP, "output", value)
        except Exception as error:
            self._report(label, error)

    def _running_part(self, running: list[nn.Module]) -> nn.Module | None:
        """The root, or a copy of it on another device, if this thread makes a call of it.

        As long as the user calls parts of the model instead of the model, the innermost of them.
        """
        if threading.get_ident() in self._running:
            root = next(filter(self._is_root, running), None)
            if root is not None:
                return root
        if self.root_ran:
            return None
        own = set(self._model.modules())
        for module in running:
            if module in own:
                return module
        return None

    def _deliver(self, name: str, module: nn.Module, side: Side, value: Any) -> None:
        if self.is_paused or not self.calls.selects(name, side, value):
            return
        if not self._is_recording:
            if self._calls.has_run(name, side):
                return
            if not self._accepts_all and not self._is_accepted(value):
                return
        number, position = self._calls.next(name, side)
        layer_call = self.calls.of(name, number, position, side, module)
        self._receiver.captured(layer_call, side, value, module)

    def _is_accepted(self, value: Any) -> bool:
        """True if a layer is recorded although no pass of the root is."""
        event = PassEvent(Moment.LAYER_RUNS, value)
        return self.policy.decide(event) is Decision.RECORD
