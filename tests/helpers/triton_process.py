"""Run functions in a process of their own, in which Triton interprets or compiles its kernels."""

from __future__ import annotations

import io
import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch


class TritonProcess:
    """A process with environment variables that must be set before Triton is imported.

    Call it with a function of a helper module and its arguments; tensors keep their strides.
    """

    def __init__(self, **environment: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        before = dict(os.environ)
        os.environ.update(environment)
        try:
            self._process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        there.close()

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        """The function's result in that process."""
        self._here.send((function, _packed(args)))
        result, error = torch.load(io.BytesIO(self._here.recv()), weights_only=False)
        if error is not None:
            raise AssertionError(f"in the other process:\n{error}")
        return result

    def close(self) -> None:
        """End the process."""
        self._here.close()
        self._process.join()


def interpreter() -> TritonProcess:
    """A process in which kernels are interpreted, on tensors of the CPU."""
    return TritonProcess(TRITON_INTERPRET="1")


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
