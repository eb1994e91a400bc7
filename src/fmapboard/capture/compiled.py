"""Detects calls that hooks must ignore, and makes compiled models run eagerly so that hooks run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

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
        holders: number of registries that currently need eager execution.
        kept: restores the stance once the last of them is done.
    """

    holders = 0
    kept = contextlib.ExitStack()
    lock = threading.RLock()


@contextlib.contextmanager
def force_eager() -> Iterator[None]:
    """Run compiled models eagerly inside the block, so that their hooks are called."""
    with _Stance.lock:
        if _Stance.holders == 0:
            _Stance.kept.enter_context(torch.compiler.set_stance("force_eager"))
        _Stance.holders += 1
    try:
        yield
    finally:
        with _Stance.lock:
            _Stance.holders -= 1
            if _Stance.holders == 0:
                _Stance.kept.close()
