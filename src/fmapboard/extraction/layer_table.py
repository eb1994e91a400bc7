"""``layers``: a table of a model's modules, with the shapes that they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

from torch import nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.taps import TAP
from fmapboard.errors import LayerNotFound, closest, escaped
from fmapboard.extraction.call_trace import (
    CallTrace,
    TensorType,
    TracedCall,
    aligned,
    run_recorded,
)
from fmapboard.extraction.of_outputs import positional, run_twin
from fmapboard.model.given import check_model
from fmapboard.model.kernel_shapes import kernel_shape
from fmapboard.model.layers import Layers, named_layers, select, unwrap
from fmapboard.records import KernelShape

_NO_PASS: Any = object()
_HEADINGS = ("layer", "type", "kernel shape", "parameters", "output shape")


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One module of a model.

    Attributes:
        name: Its name, as ``layers=`` takes it; of the model itself, its type.
        type: Name of its class.
        kernel_shape: Shape of a convolution's weight; None for other modules.
        parameters: Number of its parameters, with those of the modules inside it; parameters of
            lazy modules that have not run do not count.
        output_shapes: After a pass, the shape of each tensor that its first call returned; empty if
            it did not run or is scripted.
        calls: How often it ran in the pass.
    """

    name: str
    type: str
    kernel_shape: KernelShape | None = None
    parameters: int = 0
    output_shapes: tuple[tuple[int, ...], ...] = ()
    calls: int = 0

    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of the table's columns."""
        name = escaped(self.name, keep="")
        kernel_shape = str(self.kernel_shape or "")
        parameters = f"{self.parameters:,}" if self.parameters else ""
        shapes = ", ".join(str(list(shape)) for shape in self.output_shapes)
        if self.calls > 1:
            shapes += f" ({self.calls} calls)"
        return name, self.type, kernel_shape, parameters, shapes


class LayerTable(Sequence[LayerRow]):
    """Rows of layers; prints itself in a terminal and in a notebook.

    Args:
        rows: In definition order.
        has_run: There are output shapes.
    """

    def __init__(self, rows: Sequence[LayerRow], *, has_run: bool) -> None:
        self._rows = tuple(rows)
        self._has_run = has_run

    @overload
    def __getitem__(self, index: int | str) -> LayerRow: ...

    @overload
    def __getitem__(self, index: slice) -> LayerTable: ...

    def __getitem__(self, index: int | str | slice) -> LayerRow | LayerTable:
        """The row with an index or a layer's name, or a table of some of the rows."""
        if isinstance(index, slice):
            return LayerTable(self._rows[index], has_run=self._has_run)
        if isinstance(index, int):
            return self._rows[index]
        by_name = {row.name: row for row in self._rows}
        if index not in by_name:
            near = closest(index, by_name) or "; print the table for the names"
            raise LayerNotFound(f"no layer {index!r}{near}")
        return by_name[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        numbers = _HEADINGS.index("parameters")
        lines = aligned(self._cells(), right=numbers)
        return "\n".join(lines)

    def _cells(self) -> list[tuple[str, ...]]:
        """The headings and the rows; without a pass, without the column of output shapes."""
        lines: list[tuple[str, ...]] = [_HEADINGS]
        for row in self._rows:
            lines.append(row.cells())
        if self._has_run:
            return lines
        return [line[:-1] for line in lines]


def layers(
    model: nn.Module,
    x: Any = _NO_PASS,
    only: Layers = None,
    *,
    forward_kwargs: Mapping[str, Any] | None = None,
) -> LayerTable:
    """List a model's modules: name, type, kernel shape, parameters and, after a pass, output shape.

    Args:
        model: Any module; DistributedDataParallel, DataParallel and torch.compile are unwrapped.
        x: Input of the model, as in ``extract``; without it, and without ``forward_kwargs``, the
            model does not run. The pass is in eval mode, without gradients, and leaves parameters,
            buffers, modes and random states as they were.
        only: Which modules to list, as ``layers=`` in ``extract``; None lists all of them.
        forward_kwargs: Keyword arguments of the model.

    Returns:
        A sequence of ``LayerRow`` in definition order, the model itself first; ``table["conv1"]``
        is the row of a layer. Tensors named by ``tap`` come last. It prints itself as a table, and
        a notebook displays it as one.

    Raises:
        LayerNotFound: A pattern in ``only`` matches no layer.
        ConfigurationError: An argument is invalid.
        ForwardError: The model raised an exception, as in ``extract``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> import fmapboard
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
        >>> fmapboard.layers(net, torch.zeros(1, 3, 8, 8))
        layer       type        kernel shape  parameters  output shape
        Sequential  Sequential                     3,114  [1, 10]
        0           Conv2d      8x3x3x3              224  [1, 8, 6, 6]
        1           ReLU                                  [1, 8, 6, 6]
        2           Flatten                               [1, 288]
        3           Linear                         2,890  [1, 10]
    """
    check_model(model)
    root = unwrap(model)
    chosen = named_layers(root) if only is None else select(root, only)
    has_input = x is not _NO_PASS
    runs = has_input or forward_kwargs is not None
    trace = CallTrace()
    if runs:
        args = positional(x) if has_input else ()
        kwargs = forward_kwargs or {}
        run = partial(run_twin, args=args, kwargs=kwargs, training=False)
        registry = HookRegistry(root, lambda name, module: True)
        run_recorded(registry, trace, run, args, sides=("output", "input"))
    calls: dict[str, list[TracedCall]] = {}
    for call in trace.calls:
        if call.returned is not None:
            name = call.layer_call.layer
            calls.setdefault(name, []).append(call)
    rows = []
    for name, module in chosen.items():
        own = calls.pop(name, [])
        rows.append(_row(name, module, own))
    if only is None:  # what is left are tensors named by tap
        rows += [_row(name, TAP, own) for name, own in calls.items()]
    return LayerTable(rows, has_run=runs)


def _row(name: str, module: nn.Module, calls: Sequence[TracedCall]) -> LayerRow:
    returned: tuple[TensorType, ...] = ()
    if calls:
        returned = calls[0].returned or ()
    initialized = [p for p in module.parameters() if not is_lazy(p)]
    return LayerRow(
        name=name,
        type=type(module).__name__,
        kernel_shape=kernel_shape(module),
        parameters=sum(p.numel() for p in initialized),
        output_shapes=tuple(shape for _, shape in returned),
        calls=len(calls),
    )
