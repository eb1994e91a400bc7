"""Forward passes that hooks cannot observe, and compiled ones that they can be made to."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch


def is_unobservable() -> bool:
    """Tracing, compiling, capturing a CUDA graph, or a checkpoint's second forward pass."""
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return True
    in_backward = getattr(torch._C, "_current_graph_task_id", None)
    if in_backward is not None and in_backward() != -1:
        return True
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch has no types here
        return False
    return torch.cuda.is_current_stream_capturing()


class _Stance:
    """Compiled code runs eager while any registry is armed; they may end in any order."""

    holders = 0
    kept = contextlib.ExitStack()
    lock = threading.RLock()


@contextlib.contextmanager
def force_eager() -> Iterator[None]:
    """Compiled models run their Python code inside, where hooks are called."""
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
