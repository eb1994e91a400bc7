"""Which modules a pass called inside which, with shapes; and the layer that raised in a failed one.

The layer is found by running the pass again. ``check_input`` rejects what no model can run on.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.module_calls import MODULE_CALL, original_of
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.twin import Twin
from fmapboard.errors import ConfigurationError, FmapboardError, ForwardError, first_line
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.given import without_batch_axis
from fmapboard.model.layers import named_layers
from fmapboard.model.tensors import tensors
from fmapboard.records import LayerCall

TensorType = tuple[torch.dtype, tuple[int, ...]]
"""Dtype and shape of a tensor."""


@dataclass(slots=True, eq=False)
class TracedCall:
    """A call of a module, or a tensor named by ``tap``.

    Attributes:
        layer_call: Which call of which layer.
        outer: The call that it happened in; None for the outermost.
        received: The tensors among its arguments; None for a tensor named by ``tap``.
        returned: The tensors that it returned; None if it did not return.
        inner: The calls of modules that happened in it.
    """

    layer_call: LayerCall
    outer: TracedCall | None = None
    received: tuple[TensorType, ...] | None = None
    returned: tuple[TensorType, ...] | None = None
    inner: list[TracedCall] = field(default_factory=list)


class CallTrace(CaptureListener):
    """A ``CaptureListener`` that keeps the calls of modules; it needs their inputs and outputs.

    Attributes:
        calls: In the order in which they began.
        running: Those that have not ended, from the outermost on.
    """

    def __init__(self) -> None:
        self.calls: list[TracedCall] = []
        self.running: list[TracedCall] = []

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Drop what an earlier pass left."""
        self.calls.clear()
        self.running.clear()

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Keep the beginning or the end of a call."""
        found = tensor_types(value)
        running = self.running
        names = [call.layer_call.layer for call in running]
        if side == "output" and layer_call.layer in names:
            while names.pop() != layer_call.layer:
                running.pop()  # a call that raised, and whose error was caught, has no end
            call = running.pop()
            call.returned = found
            return
        outer = running[-1] if running else None
        call = TracedCall(layer_call, outer)
        self.calls.append(call)
        if side == "output":  # a tensor named by tap
            call.returned = found
            return
        call.received = found
        if outer is not None:
            outer.inner.append(call)
        running.append(call)


def tensor_types(value: Any) -> tuple[TensorType, ...]:
    """Dtypes and shapes of the tensors in a nested value."""
    found = []
    for tensor in tensors(value):
        shape = tuple(tensor.shape)
        found.append((tensor.dtype, shape))
    return tuple(found)


def in_words(found: tuple[TensorType, ...]) -> str:
    """Dtypes and shapes of tensors, such as ``float32 [1, 3, 8, 8]``."""
    listed = []
    for dtype, shape in found:
        name = str(dtype).removeprefix("torch.")
        listed.append(f"{name} {list(shape)}")
    return ", ".join(listed) or "no tensor"


_SHOWN = 60
"""Layers that ran right before the error and are listed in its message."""


@contextlib.contextmanager
def explained(
    model: nn.Module, run: Callable[[Twin], object], given: tuple[Any, ...] = ()
) -> Iterator[None]:
    """Raise an error of the forward pass inside the block as a ``ForwardError``.

    Only then, the pass runs a second time, with a hook on every module that notes shapes. Errors of
    fmapboard and of a lack of memory pass unchanged.

    Args:
        model: The unwrapped model.
        run: Runs a twin of it as the block did.
        given: The positional arguments, if the user passed them.

    Raises:
        ForwardError: The model raised an exception.
    """
    try:
        yield
    except (FmapboardError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise_interrupt(error)
        image = without_batch_axis(given[0]) if given else ""
        fix = f"; the input {image} has no batch axis: add one with x[None]" if image else ""
        raise _explanation(model, run, error, fix) from error


def run_recorded(
    registry: HookRegistry,
    listener: CaptureListener,
    run: Callable[[Twin], Any],
    given: tuple[Any, ...] = (),
    *,
    sides: tuple[Side, ...] = ("output",),
    attention: bool = False,
) -> Any:
    """Run a pass of a twin and deliver what its layers return to a listener.

    Args:
        registry: The layers.
        listener: Receives what they return.
        run: Runs the twin; after an error of the model, another one.
        given: As for ``explained``.
        sides: ``"output"``, ``"input"`` or both.
        attention: Deliver rows of attention, too.

    Returns:
        What ``run`` returned.

    Raises:
        ForwardError: The model raised an exception.
        NoTwin: The pass is refused.
    """
    twin = Twin(registry.model)
    with (
        explained(registry.model, run, given),
        registry.listening(listener, sides=sides, twin=twin, attention=attention),
    ):
        return run(twin)


def _explanation(
    model: nn.Module, run: Callable[[Twin], object], error: Exception, fix: str
) -> ForwardError:
    trace = CallTrace()
    try:
        registry = HookRegistry(model, lambda name, module: True)
        twin = Twin(model)
        with registry.listening(trace, sides=("output", "input"), twin=twin):
            run(twin)
    except Exception as again:
        raise_interrupt(again)
    where = _line_of(error)
    at = f" at {where}" if where else ""
    what = f"{type(error).__name__}: {first_line(error)}"
    ran = _ran(trace.calls) if trace.running else ()  # otherwise the second pass did not raise
    raising = _raising(model, error)
    if raising is None:
        summary = f"the forward pass raised {what}{at}{fix}"
        return ForwardError(summary, None, ran, shown=_SHOWN)
    name, kind, received = raising
    summary = f"{name} ({kind}) raised {what}{at}; it received {received}{fix}"
    return ForwardError(summary, name, ran, shown=_SHOWN)


def _raising(model: nn.Module, error: Exception) -> tuple[str, str, str] | None:
    """Name and type of the innermost module in the traceback, and the shapes of its arguments."""
    names = {id(module): name for name, module in named_layers(model).items()}
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is not MODULE_CALL:
            continue
        passed = frame.f_locals
        module = original_of(passed["self"])
        name = names.get(id(module))
        if name is not None:
            arguments = tensor_types((passed["args"], passed["kwargs"]))
            found = (name, type(module).__name__, in_words(arguments))
    return found


def _ran(calls: Iterable[TracedCall]) -> tuple[str, ...]:
    """One line per call that returned, and in which no other one did."""
    rows = []
    for call in calls:
        inner_returned = any(inner.returned is not None for inner in call.inner)
        if call.returned is None or inner_returned:
            continue
        layer_call = call.layer_call
        cells = (layer_call.label, layer_call.group, *_shapes(call))
        rows.append(cells)
    return aligned(rows)


def _shapes(call: TracedCall) -> tuple[str, str, str]:
    returned = in_words(call.returned or ())
    if call.received is None:  # a tensor that is no module's output
        return "", "", returned
    return in_words(call.received), "→", returned


def aligned(rows: Iterable[Sequence[str]], right: int | None = None) -> tuple[str, ...]:
    """One line per row of cells, with aligned columns; ``right`` is one that ends at the right."""
    columns = []
    for number, cells in enumerate(zip(*rows, strict=True)):
        width = max(map(len, cells))
        if number == right:
            column = [cell.rjust(width) for cell in cells]
        else:
            column = [cell.ljust(width) for cell in cells]
        columns.append(column)
    lines = map("  ".join, zip(*columns, strict=True))
    return tuple(line.rstrip() for line in lines)


def _line_of(error: Exception) -> str:
    """The last line of the traceback outside torch and fmapboard, such as ``net.py:31 (x + y)``."""
    inside = (Path(torch.__file__).parent, Path(__file__).parents[1])
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        path = Path(frame.filename)
        if any(path.is_relative_to(folder) for folder in inside):
            continue
        code = f" ({frame.line})" if frame.line else ""
        return f"{path.name}:{frame.lineno}{code}"
    return ""


def check_input(x: Any, *, what: str) -> None:
    """Reject values that a model cannot be called with: arrays, paths and untransformed images.

    Raises:
        ConfigurationError: it is one of these.
    """
    if isinstance(x, (str, bytes)) or hasattr(x, "__fspath__"):
        raise ConfigurationError(
            f"{what}={x!r}: expected tensors; to draw an image file, use the visualize command"
        )
    hint = _hint_for_input(x)
    if hint:
        raise ConfigurationError(f"{what}={type(x).__name__}: expected {hint}")


def _hint_for_input(x: Any) -> str:
    library = type(x).__module__.partition(".")[0]
    if library == "numpy":
        return "tensors; convert it with torch.from_numpy(x)"
    if library == "PIL":
        return "tensors; apply the transforms used in training first"
    if isinstance(x, DataLoader):
        return "the tensors of one batch; for all of them, use extract_batches(model, loader)"
    if isinstance(x, nn.Module):
        return "tensors, not a module; pass the model first, then its input"
    return ""
