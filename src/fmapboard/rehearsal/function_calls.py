"""``function_calls``: the functions of torch that a pass of a copy calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from fmapboard.interrupts import blocks
from fmapboard.rehearsal.setup import Setup
from fmapboard.rehearsal.task import Task


class FunctionCall(NamedTuple):
    """A call of a function of torch.

    Attributes:
        name: of the function.
        args: positional arguments.
        kwargs: keyword arguments.
        result: what it has returned.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any

    def argument(self, name: str, place: int, default: Any) -> Any:
        """An argument that is passed by its name or at its place."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[place] if len(self.args) > place else default


def function_calls(
    setup: Setup, batch: Any, names: Collection[str], read: Callable[[FunctionCall], Any]
) -> list[Any]:
    """What is read of each call of some functions, in a pass in eval mode.

    Args:
        setup: the training.
        batch: that is passed.
        names: of the functions.
        read: takes what is wanted of a call, whose tensors are not kept; None to leave it out.
    """
    copy = setup.make_copy()
    run = partial(_run, copy.own(setup.task), frozenset(names), read)
    found: list[Any] = copy.call(run, batch, training=False)
    return found


def _run(
    task: Task,
    names: Collection[str],
    read: Callable[[FunctionCall], Any],
    model: nn.Module,
    batch: Any,
) -> list[Any]:
    found: list[Any] = []
    with _Calls(names, read, found):
        if task.step is not None:
            task(model, batch)
        else:
            task.output(model, batch)
    return found


class _Calls(TorchFunctionMode):
    """Reads the calls of functions by their names; a ``Block`` of ``fmapboard.interrupts``."""

    def __init__(
        self, names: Collection[str], read: Callable[[FunctionCall], Any], found: list[Any]
    ) -> None:
        super().__init__()
        self._names = names
        self._read = read
        self._found = found

    def __enter__(self) -> _Calls:
        blocks.open.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]  # torch has no types here
        return self

    def __exit__(self, *error: object) -> None:
        for place in range(torch._C._len_torch_function_stack()):
            if torch._C._get_function_stack_at(place) is self:
                super().__exit__(None, None, None)  # type: ignore[no-untyped-call]  # as above
                break
        blocks.ended(self)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See ``TorchFunctionMode``."""
        named = kwargs or {}
        result = func(*args, **named)
        name = getattr(func, "__name__", "")
        if name in self._names:
            read = self._read(FunctionCall(name, tuple(args), named, result))
            if read is not None:
                self._found.append(read)
        return result
