"""Detects calls that hooks must ignore, and makes compiled models run eagerly so that hooks run."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
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
    return is_capturing()


def is_capturing() -> bool:
    """True while the current stream captures a CUDA graph.

    Whatever is launched then becomes part of the user's graph, and allocating pinned memory or
    waiting for the device breaks the capture.
    """
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch has no types here
        return False
    return torch.cuda.is_current_stream_capturing()


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
    """Run compiled models eagerly, so that their hooks are called, until ``release_eager``."""
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


@contextlib.contextmanager
def force_eager() -> Iterator[None]:
    """Run compiled models eagerly inside the block, so that their hooks are called.

    That holds for the whole process. Does nothing as long as nothing can be compiled.
    """
    if "torch._dynamo" not in sys.modules:
        yield
        return
    holder = object()
    try:
        try:
            hold_eager(holder)
            yield
        finally:
            release_eager(holder)
    except BaseException:  # an interrupt may have come right before that call
        release_eager(holder)
        raise
