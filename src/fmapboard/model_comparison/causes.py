"""How two paired layers differ: in type, options, mode, dtype, device, parameters and buffers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch import Tensor, nn

from fmapboard.model_comparison.relative_error import error_between

_OPTION = re.compile(r", (?=\w+=)")
"""What separates the options in the text of a module, such as "3, 8, kernel_size=(3, 3)"."""


def causes(first: nn.Module, second: nn.Module) -> str:
    """What differs between two modules, in words; empty if nothing does that can be seen."""
    return "; ".join(_causes(first, second))


def _causes(first: nn.Module, second: nn.Module) -> Iterator[str]:
    types = [type(module).__name__ for module in (first, second)]
    has_other_options = types[0] != types[1] or first.extra_repr() != second.extra_repr()
    if types[0] != types[1]:
        yield f"{types[0]} in A, {types[1]} in B"
    elif first.extra_repr() != second.extra_repr():
        options = [_options(module) for module in (first, second)]
        own = [option for option in options[0] if option not in options[1]]
        other = [option for option in options[1] if option not in options[0]]
        yield f"{', '.join(own) or 'nothing'} in A, {', '.join(other) or 'nothing'} in B"
    if first.training != second.training:
        modes = ["train" if module.training else "eval" for module in (first, second)]
        yield f"{modes[0]} mode in A, {modes[1]} mode in B"
    yield from _tensors(first, second, with_shapes=not has_other_options)


def _options(module: nn.Module) -> list[str]:
    """The options, such as ``["Conv2d(3, 8)", "kernel_size=(3, 3)"]``."""
    found = _OPTION.split(module.extra_repr())
    if "=" not in found[0]:
        found[0] = f"{type(module).__name__}({found[0]})"
    return found


def _tensors(first: nn.Module, second: nn.Module, *, with_shapes: bool) -> Iterator[str]:
    """What differs between their tensors; shapes follow from the options if these differ."""
    mine, other = (_state(module) for module in (first, second))
    for name in [*mine, *(name for name in other if name not in mine)]:
        if name not in mine or name not in other:
            yield f"{name} only in {'A' if name in mine else 'B'}"
            continue
        one, two = mine[name], other[name]
        for what in ("dtype", "device"):
            if getattr(one, what) != getattr(two, what):
                values = [str(getattr(t, what)).removeprefix("torch.") for t in (one, two)]
                yield f"{name} is {values[0]} in A, {values[1]} in B"
        error = error_between([one], [two])
        if error.has_other_shapes and not with_shapes:
            continue
        if error.reason:
            yield f"{name}: {error.reason}"
        elif error.relative:
            yield f"relative error of {name} {error.relative:.2g}"


def _state(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, also those that are not saved."""
    found = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    # BatchNorm counts its batches for nothing but a momentum of None.
    return {name: t for name, t in found.items() if not name.endswith("num_batches_tracked")}
