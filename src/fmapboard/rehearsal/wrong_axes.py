"""Finds reshapes in place of a transpose, and attention that is normalized along a wrong axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from fmapboard.rehearsal.experiment import Answer, fault
from fmapboard.rehearsal.function_calls import FunctionCall, function_calls
from fmapboard.rehearsal.setup import Setup

_NAMES = ("view", "reshape", "softmax")
_COUNTS = (8, 7, 5)
"""Numbers of samples that are tried."""


class Operation(NamedTuple):
    """A function that a pass calls.

    Attributes:
        name: *view*, *reshape* or *softmax*.
        old: the shape that it gets.
        new: the shape that it returns.
        axis: of a softmax, from the end; 0 without one.
    """

    name: str
    old: tuple[int, ...]
    new: tuple[int, ...]
    axis: int = 0


def wrong_axes(setup: Setup) -> Answer | None:
    """A fault if a tensor is reshaped so that its axes look exchanged, and its values are not.

    Also if a softmax over attention, [N, heads, T, T], is not over the last axis. As many samples
    are passed as no axis of the input is long.
    """
    for count in _COUNTS:
        batch, size, axis, inputs = setup.samples(count)
        if not axis and not any(size in tensor.shape[1:] for tensor in inputs):
            return _wrong_axes(setup, batch, inputs, size)
    return None


def _wrong_axes(setup: Setup, batch: Any, inputs: Sequence[Tensor], size: int) -> Answer | None:
    lengths = {tensor.shape[1] for tensor in inputs if tensor.dim() in (2, 3)}
    operations = function_calls(setup, batch, _NAMES, _operation)
    over_keys = {operation.new for operation in operations if operation.axis == -1}
    for operation in operations:
        if operation.new[0] != size:
            continue
        if operation.name == "softmax":
            # linear attention has one over each of the two axes, on purpose
            if _is_over_queries(operation, lengths) and operation.new not in over_keys:
                return fault(
                    f"a softmax over attention {list(operation.new)} is over axis "
                    f"{operation.axis}, in place of the last one",
                    advice="Use dim=-1: the weights of each query must sum to 1",
                )
        elif operation.old[0] == size and _looks_exchanged(operation.old, operation.new):
            return fault(
                f"a tensor {list(operation.old)} is reshaped to {list(operation.new)} where its "
                "axes are to be exchanged: values of different places are mixed",
                advice="Use transpose() or permute() in place of view() or reshape()",
            )
    return None


def _operation(call: FunctionCall) -> Operation | None:
    """The shapes of a call, if they have three axes or more."""
    given = call.args[0] if call.args else None
    result = call.result
    if not isinstance(given, Tensor) or not isinstance(result, Tensor):
        return None
    if given.dim() < 3 or result.dim() < 3:
        return None
    axis = 0
    if call.name == "softmax":
        number = call.argument("dim", 1, None)
        if not isinstance(number, int):
            return None
        axis = number if number < 0 else number - result.dim()
    return Operation(call.name, tuple(given.shape), tuple(result.shape), axis)


def _is_over_queries(operation: Operation, lengths: set[int]) -> bool:
    """True for a softmax over the axis of queries of a square of attention."""
    *others, queries, keys = operation.new
    is_square = queries == keys > 2
    return is_square and operation.axis == -2 and (len(others) > 1 or queries in lengths)


def _looks_exchanged(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """True if a shape is another one whose second axis was moved to the end, or its last forward.

    Not where two axes are as long, and the two cannot be told from each other.
    """
    sides = old[1:]
    own = new[1:]
    if len(sides) not in (2, 3) or min(sides) < 2:
        return False
    are_distinct = len(set(sides)) == len(sides)
    if len(sides) == 2:
        return are_distinct and own == (sides[1], sides[0])
    channels, rows, columns = sides
    if channels in (rows, columns, rows * columns):
        return False
    if own in ((rows, columns, channels), (rows * columns, channels)):
        return True
    heads_joined = (rows, channels * columns)  # [N, heads, T, d] to [N, T, heads * d]
    is_clear = are_distinct and columns != channels * rows
    return is_clear and own in ((columns, channels, rows), heads_joined)
