"""Run functions in a process in which Triton interprets its kernels, on tensors of the CPU."""

from __future__ import annotations

import io
import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch


class TritonInterpreter:
    """A process with ``TRITON_INTERPRET=1``, which must be set before Triton is imported.

    Call it with a function of a helper module and its arguments; tensors keep their strides.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        before = os.environ.get("TRITON_INTERPRET")
        os.environ["TRITON_INTERPRET"] = "1"
        try:
            self._process.start()
        finally:
            del os.environ["TRITON_INTERPRET"]
            if before is not None:
                os.environ["TRITON_INTERPRET"] = before
        there.close()

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        """The function's result in that process."""
        self._here.send((function, _packed(args)))
        result, error = torch.load(io.BytesIO(self._here.recv()), weights_only=False)
        if error is not None:
            raise AssertionError(f"in the interpreter:\n{error}")
        return result

    def close(self) -> None:
        """End the process."""
        self._here.close()
        self._process.join()


def _serve(there: Connection) -> None:
    torch.set_num_threads(1)
    while True:
        try:
            function, args = there.recv()
        except EOFError:
            return
        try:
            answer = (function(*torch.load(io.BytesIO(args), weights_only=False)), None)
        except Exception:
            answer = (None, traceback.format_exc())
        there.send(_packed(answer))


def _packed(values: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(values, buffer)
    return buffer.getvalue()
