"""``CallWatch``: observes the calls of a module without a hook on it.

torch keeps what ``module.compile()`` made in the module's own ``_compiled_call_impl``, and calls it
instead of the module. For as long as a call is awaited, a plain function is there, which calls what
was there before. Copies and pickles of the module leave the place empty, and neither torch.jit nor
torch.export minds it. The private names of torch that this needs are used in this file alone.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Protocol

from torch import nn
from torch.utils.hooks import RemovableHandle

from fmapboard.capture.layer_hook import InertInCopies

_SLOT = "_compiled_call_impl"
"""What torch calls instead of ``_call_impl``, which runs the hooks and ``forward``."""

_FORWARD = "forward"
"""The slot of a module that ``torch.compile(module)`` returned; copies of it get their own."""

_REPLICA = "_is_replica"
"""An attribute that DataParallel gives its copies of a module."""

ORIGINAL = "_fmapboard_original"
"""An attribute of a ``Twin``'s modules: a weak reference to the module that each is a copy of."""

MODULE_CALL = nn.Module.__call__.__code__
"""The code of every module's ``__call__``; its locals are ``self``, ``args`` and ``kwargs``."""


@dataclass(slots=True, eq=False)
class Call:
    """A call of a watched module; the listener sets what follows ``compiles``.

    Attributes:
        module: the watched module, or a copy of it that DataParallel runs.
        args: what it is called with.
        kwargs: likewise.
        of_replica: it is such a copy.
        compiles: the call runs inside a function that torch.compile has made.
        layers: the layers that are recorded, by name, which may have hooks until the call ends.
        is_recorded: an uncompiled pass was recorded in its place.
        puts_back: the parts of the model are watched again when it ends.
        mode: sees the attention of the layers on the thread of the call; None if it is not read.
    """

    module: nn.Module
    args: Any
    kwargs: Any
    of_replica: bool
    compiles: bool = False
    layers: dict[str, nn.Module] = field(default_factory=dict)
    is_recorded: bool = False
    puts_back: bool = False
    mode: ModeOfCall | None = None


class ModeOfCall(Protocol):
    """What is on the thread of a call until it ends.

    Attributes:
        layers: the modules that it follows.
    """

    layers: Mapping[nn.Module, Any]

    def leave(self) -> None:
        """Take it off the running thread; does nothing if it is not on."""


class CallListener(Protocol):
    """Receives the calls of a module, on the thread that makes them; torch.compile sees nothing.

    An exception that a method raises reaches the caller of the module.
    """

    def call_begins(self, call: Call) -> bool:
        """Called when a call begins; True if the listener follows it."""

    def call_returned(self, call: Call, output: Any) -> None:
        """Called when a call that is followed has returned."""

    def call_left(self, call: Call) -> None:
        """Called when a call, followed or not, has ended in any way."""


class CallWatch:
    """Tells a listener of a module's calls, from ``place`` until ``take``.

    A watch is placed once. Several may be on one module, placed and taken in any order. If
    something else is put into the slot meanwhile, as by ``module.compile()``, its calls are seen as
    if it had been there before.

    Args:
        module: any module that is not scripted; held by a weak reference.
        listener: held by a weak reference.
        allows_hooks: where the slot cannot be used, watch with hooks; False watches nothing there.

    Attributes:
        before: what was in the slot.
        calls: those that the hooks, if there are any, have seen begin, by thread.
        is_placed: True from ``place`` until ``take``.
    """

    def __init__(self, module: nn.Module, listener: CallListener, *, allows_hooks: bool) -> None:
        self._allows_hooks = allows_hooks
        self._slot = _FORWARD if "_orig_mod" in module._modules else _SLOT
        self.module = weakref.ref(module)
        self.listener = weakref.ref(listener)
        self.before: Callable[..., Any] | None = None
        self.is_placed = False
        self.calls = dict[int, Call]()
        self._displaced: weakref.ref[Callable[..., Any]] | None = None
        self._handles: tuple[RemovableHandle, ...] = ()

    def place(self) -> None:
        """Begin to watch the module."""
        module = self.module()
        if module is None:
            return
        self.is_placed = True
        if self._slot == _FORWARD or _has_slot(type(module)):
            self.before = vars(module).get(self._slot)
            function = _seeing(self)
            self._displaced = weakref.ref(function, self._place_again)
            vars(module)[self._slot] = function
        elif self._allows_hooks:
            begins = FallbackHook(self, begins=True)
            ends = FallbackHook(self, begins=False)
            self._handles = (
                module.register_forward_pre_hook(begins, prepend=True, with_kwargs=True),
                module.register_forward_hook(ends, with_kwargs=True),
            )

    def _place_again(self, function: object) -> None:
        """Called when nothing references the function in the slot any more; raises nothing."""
        module = self.module() if self.is_placed else None
        if module is not None and vars(module).get(self._slot) is not None:
            self.place()

    def take(self) -> None:
        """Stop watching; the module is as it would be if it had never been watched."""
        self.is_placed = False
        self._displaced = None
        for handle in self._handles:
            handle.remove()
        module = self.module()
        own = {} if module is None else vars(module)
        if getattr(own.get(self._slot), "fmapboard_watch", None) is not self:
            return
        before = self.before
        while (watch := getattr(before, "fmapboard_watch", None)) and not watch.is_placed:
            before = watch.before
        if before is None:
            del own[self._slot]
        else:
            own[self._slot] = before


def compiled_call(module: nn.Module) -> Callable[..., Any] | None:
    """What ``module.compile()`` has made, or None."""
    found = vars(module).get(_SLOT)
    while (watch := getattr(found, "fmapboard_watch", None)) is not None:
        found = watch.before
    return found


def _seeing(watch: CallWatch) -> Callable[..., Any]:
    """A plain function for the slot: with anything else there, torch.jit cannot script the module.

    What it calls while torch.compile is active is C code, or what the user has called.
    """
    set_compiler = _set_compiler()

    def fmapboard_sees_the_call(*args: Any, **kwargs: Any) -> Any:
        own = watch.module()
        frame = sys._getframe(1)
        # The module is not among the arguments, and it may be a copy of the watched one.
        module: Any = own if frame.f_code is not MODULE_CALL else frame.f_locals["self"]
        del frame
        call = module._call_impl
        if module is own:
            call = watch.before or call
        elif _REPLICA not in module.__dict__:
            return call(*args, **kwargs)  # a copy that was given all attributes
        listener = watch.listener() if watch.is_placed else None
        if listener is None:
            return call(*args, **kwargs)
        compiler = set_compiler(None)  # while our own functions run
        try:
            compiles = compiler is not None and compiler is not False
            seen = Call(module, args, kwargs, module is not own, compiles)
            try:
                is_followed = listener.call_begins(seen)
                set_compiler(compiler)
                output = call(*args, **kwargs)
                set_compiler(None)
                if is_followed:
                    listener.call_returned(seen, output)
                return output
            finally:
                set_compiler(None)
                try:
                    listener.call_left(seen)
                except BaseException:  # an interrupt, which may have come before its first line
                    listener.call_left(seen)
                    raise
        finally:
            set_compiler(compiler)

    fmapboard_sees_the_call.fmapboard_watch = watch  # type: ignore[attr-defined]  # of a function
    _skip(fmapboard_sees_the_call)
    return fmapboard_sees_the_call


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep torch.compile out of a function that torch calls, and of all that it calls.

    As ``torch.compiler.disable``, without importing torch._dynamo; the function itself, where this
    version of torch lacks something.
    """
    if not _torch_has_slot():
        return function
    set_compiler = _set_compiler()

    def runs_untraced(*args: Any, **kwargs: Any) -> Any:
        compiler = set_compiler(None)
        try:
            return function(*args, **kwargs)
        finally:
            set_compiler(compiler)

    _skip(runs_untraced)
    return runs_untraced


def _skip(function: Any) -> None:
    """Make torch.compile run a function as it is, and compile what it calls as before.

    Like ``torch._dynamo.decorators.skip``, without importing torch._dynamo: the model may be
    compiled after the function was placed.
    """
    _skip_code()(function.__code__)
    function._torchdynamo_disable = True


@functools.cache
def _skip_code() -> Callable[[Any], None]:
    from torch._C._dynamo import eval_frame

    found: Any = eval_frame
    if hasattr(found, "skip_code"):  # up to torch 2.6 or so
        return found.skip_code  # type: ignore[no-any-return]  # of C code
    action = found._FrameAction
    strategy = found._FrameExecStrategy(action.SKIP, action.DEFAULT)
    return lambda code: found.set_code_exec_strategy(code, strategy)


@functools.cache
def _set_compiler() -> Callable[[Any], Any]:
    """Sets what compiles the functions that this thread calls, and returns what did so before.

    None stands for nothing. torch.compiler.disable uses it.
    """
    from torch._C._dynamo import eval_frame

    found: Any = eval_frame
    return found.set_eval_frame  # type: ignore[no-any-return]  # of C code


@functools.cache
def _torch_has_slot() -> bool:
    """True if this version of torch has all that a function in the slot needs."""
    try:
        return _SLOT in vars(nn.Module) and callable(_skip_code()) and callable(_set_compiler())
    except (ImportError, AttributeError):
        return False


def _has_slot(kind: type[nn.Module]) -> bool:
    """True if a function can be in the slot of such a module.

    A class that itself decides what is copied and pickled would include the function, and a
    function inside another one cannot be pickled.
    """
    own = [getattr(kind, name, None) for name in _PICKLING]
    return _torch_has_slot() and own == [getattr(nn.Module, name, None) for name in _PICKLING]


_PICKLING = ("__getstate__", "__reduce__", "__reduce_ex__")


class FallbackHook(InertInCopies):
    """A hook on the module, where the slot cannot be used.

    A call that raised is left when the next one begins, or when the watch is taken.
    """

    def __init__(self, watch: CallWatch, *, begins: bool) -> None:
        self._watch = watch
        self._begins = begins

    @property
    def __name__(self) -> str:
        """torch.jit asks for the name of each hook, because it has to compile it."""
        raise AttributeError(
            "torch.jit.script: this model has a hook of fmapboard's, which cannot be scripted, "
            "until the logged step has ended; script the model before fmapboard.watch(), after "
            "board.close(), or in a step that is not logged"
        )

    def __call__(
        self, module: nn.Module, args: Any, kwargs: Any = None, output: Any = None
    ) -> None:
        """Notify the listener of the begin or the end of a call."""
        listener = self._watch.listener()
        calls = self._watch.calls
        thread = threading.get_ident()
        if listener is None or not self._watch.is_placed:
            return
        call = calls.pop(thread, None)
        if call is not None:
            if not self._begins:
                listener.call_returned(call, output)
            listener.call_left(call)
        if self._begins:
            calls[thread] = Call(module, args, kwargs, is_replica(module))
            listener.call_begins(calls[thread])


def original_of(module: nn.Module) -> nn.Module:
    """The module that a module of a ``Twin`` is a copy of; any other module itself."""
    reference = vars(module).get(ORIGINAL)
    original = None if reference is None else reference()
    return module if original is None else original


def is_replica(module: nn.Module) -> bool:
    """True for a copy of a module that DataParallel runs on one of its devices."""
    return _REPLICA in vars(module)


class _Process:
    """Whether anything was ever compiled in this process: never unlearned, unlike by torch."""

    compiles = False


def is_compile_used() -> bool:
    """True once something was passed to torch.compile in this process."""
    if not _Process.compiles and "torch._dynamo" in sys.modules:
        frames = sys.modules.get("torch._dynamo.eval_frame")
        backends = getattr(frames, "cached_backends", {0: is_compile_used})
        _Process.compiles = any(map(callable, list(backends.values())))
    return _Process.compiles


def compiled_wrappers(model: nn.Module) -> list[nn.Module]:
    """The modules that ``torch.compile(module)`` returned, among the wrappers of a model."""
    found: list[nn.Module] = []
    wrapped: Any = model
    while isinstance(wrapped, nn.Module):
        inner = vars(wrapped).get("_modules", {}).get("_orig_mod")
        if inner is not None:
            found.append(wrapped)
        elif isinstance(wrapped, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            inner = wrapped.module
        wrapped = inner
    return found


def has_compiled_parts(model: nn.Module) -> bool:
    """True if the model, a part of it, or a function that one of them holds is compiled."""
    waiting = [model]
    seen = set[nn.Module]()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        own = vars(module)
        if "_orig_mod" in own["_modules"] or compiled_call(module) is not None:
            return True
        if _any_compiled(own) or _holds_compiled(type(module)):  # type: ignore[arg-type]  # a class is hashable
            return True
        waiting += [child for child in own["_modules"].values() if child is not None]
    return False


@functools.lru_cache(maxsize=1024)
def _holds_compiled(kind: Any) -> bool:
    """True if a method of a class of modules is compiled."""
    own = [c for c in kind.__mro__ if issubclass(c, nn.Module) and c is not nn.Module]
    return any(_any_compiled(vars(c)) for c in own)


def _any_compiled(attributes: Any) -> bool:
    """True if one of the values is a function that torch.compile returned."""
    functions = [value for value in list(attributes.values()) if isinstance(value, FunctionType)]
    marks = [vars(function) for function in functions]
    return any("_torchdynamo_orig_callable" in m and "_torchdynamo_disable" not in m for m in marks)
