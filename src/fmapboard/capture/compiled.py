"""Detects calls that hooks must ignore, and makes compiled models run eagerly so that hooks run."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch


def is_unobservable() -> bool:
    """True while tracing, compiling or capturing a CUDA graph, and inside a backward pass.

    A forward call inside a backward pass is the recomputation of a checkpointed segment.
    """
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return True
    in_backward = getattr(torch._C, "_current_graph_task_id", None)
    if in_backward is not None and in_backward() != -1:
        return True
    return torch.cuda.is_initialized() and is_capturing()  # type: ignore[no-untyped-call]  # torch has no types here


def is_capturing() -> bool:
    """True while the current stream captures a CUDA graph.

    Whatever is launched then becomes part of the user's graph, and allocating pinned memory or
    waiting for the device breaks the capture.
    """
    is_used: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # torch has no types here
    return is_used and torch.cuda.is_current_stream_capturing()


class _Stance:
    """Shared by all armed registries, which may be disarmed in any order.

    Attributes:
        holders: identities of what currently needs eager execution.
        set: sets the stance, and restores it once nothing needs it.
    """

    holders: ClassVar[set[int]] = set()
    set: Any = None
    lock = threading.RLock()


def hold_eager(holder: object) -> None:
    """Run compiled models eagerly, so that their hooks are called, until ``release_eager``.

    That holds for the whole process. Does nothing as long as nothing can be compiled.
    """
    if "torch._dynamo" not in sys.modules:
        return
    with _Stance.lock:
        _Stance.holders.add(id(holder))
        if _Stance.set is None:
            _Stance.set = torch.compiler.set_stance("force_eager")


def release_eager(holder: object) -> None:
    """Compiled models run compiled again, unless something else needs eager execution.

    A second call, also after one that an interrupt has cut short, does no harm.
    """
    with _Stance.lock:
        _Stance.holders.discard(id(holder))
        if not _Stance.holders and _Stance.set is not None:
            _Stance.set.__exit__(None, None, None)
            _Stance.set = None


LIMIT = 60.0
"""Seconds after which a wait of this module ends: longer than any capture, shorter than forever."""


class Captures:
    """Keeps the captures of CUDA graphs in this process and the waits of worker threads apart.

    In a capture of mode ``"global"``, the default, no thread of the process may wait for an event
    or query one: the capture would fail in the user's code (pytorch#104487, pytorch#148594).
    A capture begins once the waits under way are over, and no wait begins before the last capture
    ends. Captures are known from ``follow`` on. All methods may be called from any thread.

    Args:
        limit: maximum time in seconds that a capture waits for a wait, or a wait for captures.
    """

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._open: set[int] = set()  # the identities of the graphs
        self._waits = 0

    def follow(self, kind: Any) -> None:
        """Note the captures of a class of graphs, by wrapping the methods that begin and end one.

        A class that does not have these methods, or whose methods cannot be replaced, is left as it
        is, and its captures are not known.
        """
        begin, end = (getattr(kind, name, None) for name in ("capture_begin", "capture_end"))
        if begin is None or end is None:
            return
        with contextlib.suppress(TypeError):  # a class of C cannot be changed
            kind.capture_begin = self._beginning(begin)
            kind.capture_end = self._ending(end)
            if hasattr(kind, "capture_end_pre"):  # which torch's own block calls instead
                kind.capture_end_pre = self._ending(kind.capture_end_pre)

    @contextlib.contextmanager
    def none_open(self) -> Iterator[None]:
        """Wait for the end of all captures; none begins inside the block, which should be short.

        Raises:
            TimeoutError: a capture did not end within the limit. It is not waited for again.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: not self._open, self._limit):
                self._open.clear()
                raise TimeoutError(f"a CUDA graph was still being captured after {self._limit} s")
            self._waits += 1
        try:
            yield
        finally:
            with self._changed:
                self._waits -= 1
                self._changed.notify_all()

    def _beginning(self, begin: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(begin)
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                with self._changed:
                    self._open.add(id(graph))
                    self._changed.wait_for(lambda: not self._waits, self._limit)
                return begin(graph, *args, **kwargs)
            except BaseException:
                self._ended(graph)
                raise

        return capture_begin

    def _ending(self, end: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(end)
        def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return end(graph, *args, **kwargs)
            finally:
                self._ended(graph)

        return capture_end

    def _ended(self, graph: Any) -> None:
        with self._changed:
            self._open.discard(id(graph))
            self._changed.notify_all()


CAPTURES = Captures()
"""The captures of this process."""


@functools.cache
def _follow_all() -> None:
    """Follow every class of graphs that this version of torch has, once per process."""
    CAPTURES.follow(getattr(torch.cuda, "CUDAGraph", None))
    CAPTURES.follow(getattr(torch.xpu, "XPUGraph", None))
    CAPTURES.follow(getattr(torch.accelerator, "Graph", None))


def follow_captures() -> None:
    """From the first call in a process that uses an accelerator, note every capture."""
    if torch.cuda.is_initialized() or torch.xpu.is_initialized():  # type: ignore[no-untyped-call]  # torch has no types here
        _follow_all()
