"""Find the layer that raised in a forward pass, and what ran before it, by running it again."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.module_calls import MODULE_CALL
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.errors import FmapboardError, ForwardError, first_line, raise_interrupt
from fmapboard.model.given import without_batch_axis
from fmapboard.model.layers import named_layers
from fmapboard.model.tensors import tensors
from fmapboard.records import LayerCall

_SHOWN = 60
"""Layers that ran right before the error and are listed in its message."""


@contextlib.contextmanager
def explained(
    model: nn.Module, run: Callable[[], object], given: tuple[Any, ...] = ()
) -> Iterator[None]:
    """Raise an error of the forward pass inside the block as a ``ForwardError``.

    Only then, the pass runs a second time, with a hook on every module that notes shapes. Errors of
    fmapboard and of a lack of memory pass unchanged.

    Args:
        model: The unwrapped model.
        run: Runs the pass again as the block did.
        given: The positional arguments, if the user passed them.

    Raises:
        ForwardError: The model raised an exception.
    """
    handled = sys.exc_info()[1]
    try:
        yield
    except (FmapboardError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise_interrupt(error, handled)
        image = without_batch_axis(given[0]) if given else ""
        fix = f"; the input {image} has no batch axis: add one with x[None]" if image else ""
        raise _explanation(model, run, error, fix) from error


def _explanation(
    model: nn.Module, run: Callable[[], object], error: Exception, fix: str
) -> ForwardError:
    trail = _Trail()
    try:
        registry = HookRegistry(model, lambda name, module: True)
        with registry.listening(trail, sides=("output", "input")):
            run()
    except Exception as again:
        raise_interrupt(again, error)
    where = _line_of(error)
    at = f" at {where}" if where else ""
    what = f"{type(error).__name__}: {first_line(error)}"
    ran = _table(trail.ran) if trail.running else ()  # otherwise the second pass did not raise
    name, kind, received = _raising(model, error)
    if name is None:
        return ForwardError(f"the forward pass raised {what}{at}{fix}", None, ran, shown=_SHOWN)
    summary = f"{name} ({kind}) raised {what}{at}; it received {received}{fix}"
    return ForwardError(summary, name, ran, shown=_SHOWN)


def _raising(model: nn.Module, error: Exception) -> tuple[str | None, str, str]:
    """Name and type of the innermost module in the traceback, and the shapes of its arguments."""
    names = {id(module): name for name, module in named_layers(model).items()}
    found: tuple[str | None, str, str] = None, "", ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is MODULE_CALL and id(module := frame.f_locals["self"]) in names:
            arguments = frame.f_locals["args"], frame.f_locals["kwargs"]
            found = names[id(module)], type(module).__name__, shapes(arguments)
    return found


@dataclass(frozen=True, slots=True)
class _Running:
    """A layer call that has begun.

    Attributes:
        layer_call: The layer call.
        received: The shapes of its arguments, as text.
        ran_before: How many calls had returned when it began.
    """

    layer_call: LayerCall
    received: str
    ran_before: int


@dataclass(frozen=True, slots=True)
class _Ran:
    """A layer call without inner calls that has returned."""

    layer_call: LayerCall
    received: str
    returned: str


@dataclass(slots=True)
class _Trail(CaptureListener):
    """A ``CaptureListener`` that notes shapes, in order of execution.

    Attributes:
        ran: The innermost layer calls that returned.
        running: The layer calls that began and did not return, from the outermost on.
    """

    ran: list[_Ran] = field(default_factory=list)
    running: list[_Running] = field(default_factory=list)

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.ran.clear()
        self.running.clear()

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        if side == "input":
            self.running.append(_Running(layer_call, shapes(value), len(self.ran)))
            return
        labels = [begun.layer_call.label for begun in self.running]
        if layer_call.label not in labels:  # a tensor that is no module's output
            self.ran.append(_Ran(layer_call, "", shapes(value)))
            return
        index = labels.index(layer_call.label)
        begun = self.running[index]
        del self.running[index:]  # also calls that raised, if the model caught the exception
        if begun.ran_before == len(self.ran):
            self.ran.append(_Ran(layer_call, begun.received, shapes(value)))


def shapes(value: Any) -> str:
    """The dtypes and shapes of the tensors in a value, such as ``float32 [1, 3, 8, 8]``."""
    return ", ".join(map(_shape, tensors(value))) or "no tensor"


def _shape(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _table(ran: list[_Ran]) -> tuple[str, ...]:
    """One line per call, with aligned columns."""
    if not ran:
        return ()
    rows = [
        (r.layer_call.label, r.layer_call.group, r.received, "→" if r.received else "", r.returned)
        for r in ran
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return tuple(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _line_of(error: Exception) -> str:
    """The last line of the traceback outside torch and fmapboard, such as ``net.py:31 (x + y)``."""
    inside = (Path(torch.__file__).parent, Path(__file__).parents[1])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not any(Path(frame.filename).is_relative_to(folder) for folder in inside):
            name = Path(frame.filename).name
            code = f" ({frame.line})" if frame.line else ""
            return f"{name}:{frame.lineno}{code}"
    return ""
