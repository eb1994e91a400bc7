"""Finds out whether a model, or a part of it, is compiled by torch.compile."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from torch import nn

from fmapboard.capture.module_calls import compiled_call
from fmapboard.model.weak_table import WeakTable


class _Process:
    """Whether anything was ever compiled in this process: never unlearned, unlike by torch."""

    compiles = False


def is_compile_used() -> bool:
    """True once something was passed to torch.compile in this process."""
    if not _Process.compiles and "torch._dynamo" in sys.modules:
        frames = sys.modules.get("torch._dynamo.eval_frame")
        backends = getattr(frames, "cached_backends", {0: is_compile_used})
        _Process.compiles = any(callable(backend) for backend in list(backends.values()))
    return _Process.compiles


def compiled_wrappers(model: nn.Module) -> list[nn.Module]:
    """The modules that ``torch.compile(module)`` returned, among the wrappers of a model."""
    found: list[nn.Module] = []
    wrapped: Any = model
    while isinstance(wrapped, nn.Module):
        inner = vars(wrapped).get("_modules", {}).get("_orig_mod")
        if inner is not None:
            found.append(wrapped)
        elif isinstance(wrapped, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            inner = wrapped.module
        wrapped = inner
    return found


def has_compiled_parts(model: nn.Module) -> bool:
    """True if the model, a part of it, or a function that one of them holds is compiled."""
    waiting, seen = [model], set[nn.Module]()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        own = vars(module)
        if "_orig_mod" in own["_modules"] or compiled_call(module) is not None:
            return True
        if _any_compiled(own) or _holds_compiled(type(module)):
            return True
        waiting += [child for child in own["_modules"].values() if child is not None]
    return False


_classes: WeakTable[type, bool] = WeakTable()
"""Class of modules -> whether a method of it is compiled."""


def _holds_compiled(kind: type) -> bool:
    found = _classes.get(kind)
    if found is None:
        own = [one for one in kind.__mro__ if issubclass(one, nn.Module) and one is not nn.Module]
        found = _classes[kind] = any(_any_compiled(vars(one)) for one in own)
    return found


def _any_compiled(attributes: Any) -> bool:
    """True if one of the values is a function that torch.compile returned."""
    functions = (value for value in list(attributes.values()) if isinstance(value, FunctionType))
    return any(
        "_torchdynamo_orig_callable" in function.__dict__
        and "_torchdynamo_disable" not in function.__dict__
        for function in functions
    )
