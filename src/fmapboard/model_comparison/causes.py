"""What differs between two modules, in words: types, options, modes and tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch import Tensor, nn

from fmapboard.model_comparison.relative_error import error_between

_OPTION = re.compile(r", (?=\w+=)")
"""What separates the options in the text of a module, such as "3, 8, kernel_size=(3, 3)"."""


def causes(a: nn.Module, b: nn.Module) -> Iterator[str]:
    """What differs between two modules, in words; nothing if no difference can be seen."""
    type_a = type(a).__name__
    type_b = type(b).__name__
    has_other_options = a.extra_repr() != b.extra_repr()
    if type_a != type_b:
        yield f"{type_a} in A, {type_b} in B"
    elif has_other_options:
        yield f"{_options_without(a, b)} in A, {_options_without(b, a)} in B"
    if a.training != b.training:
        yield f"{_mode(a)} mode in A, {_mode(b)} mode in B"
    # Shapes follow from the type and the options.
    has_own_shapes = type_a == type_b and not has_other_options
    yield from _tensors(a, b, with_shapes=has_own_shapes)


def _options_without(module: nn.Module, other: nn.Module) -> str:
    """The options of a module that another one does not have."""
    known = _options(other)
    own = [option for option in _options(module) if option not in known]
    return ", ".join(own) or "nothing"


def _options(module: nn.Module) -> list[str]:
    """The options, such as ``["Conv2d(3, 8)", "kernel_size=(3, 3)"]``."""
    options = _OPTION.split(module.extra_repr())
    if "=" not in options[0]:
        options[0] = f"{type(module).__name__}({options[0]})"
    return options


def _mode(module: nn.Module) -> str:
    return "train" if module.training else "eval"


def _tensors(a: nn.Module, b: nn.Module, *, with_shapes: bool) -> Iterator[str]:
    """What differs between their parameters and buffers."""
    state_a = _state(a)
    state_b = _state(b)
    for name in state_a | state_b:
        if name not in state_b:
            yield f"{name} only in A"
        elif name not in state_a:
            yield f"{name} only in B"
        else:
            yield from _between(name, state_a[name], state_b[name], with_shapes=with_shapes)


def _between(name: str, a: Tensor, b: Tensor, *, with_shapes: bool) -> Iterator[str]:
    """What differs between two tensors of the same name."""
    if a.dtype != b.dtype:
        dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in (a, b)]
        yield f"{name} is {dtypes[0]} in A, {dtypes[1]} in B"
    if a.device != b.device:
        yield f"{name} is {a.device} in A, {b.device} in B"
    error = error_between([a], [b])
    if error.has_other_shapes and not with_shapes:
        return
    if error.reason:
        yield f"{name}: {error.reason}"
    elif error.relative:
        yield f"relative error of {name} {error.relative:.2g}"


def _state(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, also those that are not saved."""
    found = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    # BatchNorm counts its batches for nothing but a momentum of None.
    return {name: t for name, t in found.items() if not name.endswith("num_batches_tracked")}
