"""Which modules are convolutions, the shapes of their kernels, and layers grouped by them.

A module is a convolution if it is one of torch's, or if it owns a tensor called ``weight`` and

- its class name contains "conv" and the weight has at least three axes, or
- its own ``forward``, or a method whose name ends in ``_forward``, uses ``conv1d`` to ``conv3d`` or
  ``conv_transpose1d`` to ``conv_transpose3d``, and the weight has at least two axes.

That an own convolution returns as many channels as its kernel has outputs is seen in a pass only:
``fits`` checks it, and ``refuse`` makes the module an ordinary one.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.errors import few, log
from fmapboard.interrupts import WeakTable
from fmapboard.model.distributed import is_dtensor
from fmapboard.records import KernelShape, TransposedShape


def functions(module: nn.Module) -> dict[str, types.FunctionType]:
    """The functions that a module's class and its bases define, and those set on the module itself.

    Without those of torch's own classes. Decorated functions that name the original are unwrapped.
    """
    kind: Any = type(module)  # a type is hashable, and mypy's stubs of lru_cache say otherwise
    found = dict(of_class(kind))
    for name, value in vars(module).items():
        if not callable(value):
            continue
        function = _function(value)
        if function is not None:
            found[name] = function
    return found


@lru_cache(maxsize=1024)
def of_class(kind: type) -> Mapping[str, types.FunctionType]:
    """The functions by name that a class and its bases define, without those of torch."""
    found: dict[str, types.FunctionType] = {}
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "torch":
            continue
        for name, value in vars(base).items():
            function = _function(value)
            if function is not None:
                found.setdefault(name, function)
    return found


def names_in(code: types.CodeType) -> frozenset[str]:
    """The global names and attributes that a function's code uses, functions inside it included."""
    names = frozenset((*code.co_names, *code.co_freevars))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_in(constant)
    return names


def _function(value: Any) -> types.FunctionType | None:
    """The Python function behind a method, a decorated or a static one; None for other values."""
    for _ in range(8):
        is_wrapper = hasattr(value, "__wrapped__")
        if isinstance(value, types.FunctionType) and not is_wrapper:
            return value
        value = value.__wrapped__ if is_wrapper else getattr(value, "__func__", None)
    return None


TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, *TRANSPOSED)
"""Those of torch; see ``is_convolution`` for all."""
_CALL = re.compile(r"conv(_transpose)?([123])d")

_refused: WeakTable[nn.Module, bool] = WeakTable()
"""Modules that look like convolutions and returned something else."""


class _Code(NamedTuple):
    """What a class says about being a convolution.

    Attributes:
        is_named: its name contains "conv".
        named_axes: the number of spatial axes in its name, as in ModulatedConv2d; None without one.
        axes: numbers of spatial axes of the convolutions that its ``forward`` calls.
        transposed: only transposed ones are called or, if none is, the name says so.
    """

    is_named: bool
    named_axes: int | None
    axes: frozenset[int]
    transposed: bool


class _Convolution(NamedTuple):
    """What is known of a convolution.

    Attributes:
        weight: the shape of its weight.
        axes: number of spatial axes of its maps; None if unknown.
        is_kernel: the weight is the kernel, not something that the kernel is computed from.
        transposed: the first axis of the kernel is the input channel.
    """

    weight: tuple[int, ...]
    axes: int | None
    is_kernel: bool = True
    transposed: bool = False


def is_convolution(module: nn.Module) -> bool:
    """True for torch's convolutions and those of other classes (see the module's docstring)."""
    return _convolution(module) is not None


def kernel_shape(module: nn.Module) -> KernelShape | None:
    """The shape of a convolution's weight; None for other modules and if it is not drawn.

    It is that of the attributes or of the tensors from which the weight is computed. The weight
    itself is not read: reading a spectral-norm weight changes its buffers.
    """
    own = _convolution(module)
    if own is None:
        return None
    if not own.is_kernel and len(own.weight) != 2:
        return None
    return TransposedShape(own.weight) if own.transposed else KernelShape(own.weight)


def groups_of(module: nn.Module) -> int:
    """Number of groups of a convolution; 1 if it is not known."""
    groups = getattr(module, "groups", 1)
    return groups if isinstance(groups, int) else 1


def spatial_axes(module: nn.Module) -> int | None:
    """Number of spatial axes of a convolution's maps; None for other modules."""
    own = _convolution(module)
    return None if own is None else own.axes


def output_channels(module: nn.Module) -> int | None:
    """Number of output channels of a convolution's kernel; None if the weight does not say it."""
    own = _convolution(module)
    if own is None or not own.is_kernel:
        return None
    if own.transposed:
        return own.weight[1] * groups_of(module)
    return own.weight[0]


def may_differ(module: nn.Module) -> bool:
    """True for an own convolution that ``fits`` may refuse.

    Never with a sharded weight: all ranks must watch the same layers.
    """
    if isinstance(module, CONVOLUTIONS) or output_channels(module) is None:
        return False
    weight = module._parameters.get("weight")
    return weight is None or not is_dtensor(weight)


def fits(module: nn.Module, output: Tensor) -> bool:
    """True unless an own convolution's output has other channels than its kernel has outputs."""
    if isinstance(module, CONVOLUTIONS):
        return True
    axes = spatial_axes(module)
    channels = output_channels(module)
    if axes is None or channels is None:
        return True
    axis = output.dim() - axes - 1  # of the channels, in [N, C, ...] or [C, ...]
    return axis in (0, 1) and output.shape[axis] == channels


def refuse(module: nn.Module) -> None:
    """Treat a module as any other one from now on, although it looks like a convolution."""
    _refused[module] = True


def unused_convolutions(named: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
    """The modules that look like convolutions, but are none and contain none.

    Such as one whose weight has another name, one that is quantized, or a norm called ConvNorm.
    """
    found = dict[str, nn.Module]()
    for name, module in named.items():
        if not _looks_like_one(module):
            continue
        if not any(map(is_convolution, module.modules())):
            found[name] = module
    return found


def log_unused(named: Mapping[str, nn.Module]) -> None:
    """Log which modules look like convolutions and are not watched as such."""
    by_type: dict[str, list[str]] = {}
    for name, module in unused_convolutions(named).items():
        by_type.setdefault(type(module).__name__, []).append(name)
    if by_type:
        listed = ", ".join(f"{kind} ({few(names, 1)})" for kind, names in by_type.items())
        log.info(
            "not watched as convolutions, since they own no kernel called weight: %s; name them "
            "with layers= to watch them", listed,
        )  # fmt: skip


def by_kernel_shape(layers: Mapping[str, nn.Module]) -> dict[KernelShape, list[str]]:
    """Group the convolutions among the layers: kernel shape -> names, in their given order."""
    groups: dict[KernelShape, list[str]] = {}
    for name, module in layers.items():
        shape = kernel_shape(module)
        if shape is not None:
            groups.setdefault(shape, []).append(name)
    return groups


def _convolution(module: nn.Module) -> _Convolution | None:
    if isinstance(module, CONVOLUTIONS):
        outputs = module.out_channels
        inputs = module.in_channels
        transposed = isinstance(module, TRANSPOSED)
        if transposed:
            channels = (inputs, outputs // module.groups)
        else:
            channels = (outputs, inputs // module.groups)
        axes = len(module.kernel_size)
        return _Convolution((*channels, *module.kernel_size), axes, transposed=transposed)
    code = _code(module)
    if not code.is_named and not code.axes:
        return None
    if _refused.get(module):
        return None
    shape = _weight_shape(module)
    least_axes = 2 if code.axes else 3
    if shape is None or len(shape) < least_axes:
        return None
    if not code.axes and math.prod(shape[:-1]) == 1:
        return None  # a factor per channel of [N, H, W, C], as in ConvNextV2GRN
    axes = len(shape) - 2
    is_kernel = axes <= 3 and code.named_axes in (None, axes)
    if code.axes:
        is_kernel = axes in code.axes
    if is_kernel:
        return _Convolution(shape, axes, True, code.transposed)
    known_axes = code.named_axes
    if len(code.axes) == 1:
        (known_axes,) = code.axes
    return _Convolution(shape, known_axes, False, code.transposed)


def _code(module: nn.Module) -> _Code:
    kind: Any = type(module)  # a type is hashable, and mypy's stubs of lru_cache say otherwise
    if "forward" in vars(module):
        return _code_in(kind.__name__, functions(module))
    return _code_of_class(kind)


@lru_cache(maxsize=1024)
def _code_of_class(kind: type) -> _Code:
    return _code_in(kind.__name__, of_class(kind))


def _code_in(name: str, own: Mapping[str, Any]) -> _Code:
    used = set[str]()
    for method, function in own.items():
        if method == "forward" or method.endswith("_forward"):
            used |= names_in(function.__code__)
    calls = list(filter(None, map(_CALL.fullmatch, used)))
    axes = frozenset(int(call[2]) for call in calls)
    name = name.lower()
    transposed = all(call[1] for call in calls) if calls else "transpose" in name
    number = re.search(r"conv\w*?([123])d", name)
    named_axes = int(number[1]) if number else None
    return _Code("conv" in name, named_axes, axes, transposed)


def _weight_shape(module: nn.Module) -> tuple[int, ...] | None:
    """The shape of a module's own weight, or of what it is computed from; None without one."""
    for place in (module._parameters, module._buffers, vars(module)):
        weight = place.get("weight")
        if isinstance(weight, Tensor):
            return None if is_lazy(weight) else tuple(weight.shape)
    parametrizations = module._modules.get("parametrizations")
    parametrized = getattr(parametrizations, "weight", None)
    if not isinstance(parametrized, nn.Module):
        return None
    parameters = parametrized.parameters(recurse=False)
    buffers = parametrized.buffers(recurse=False)
    shapes = [tuple(tensor.shape) for tensor in (*parameters, *buffers) if not is_lazy(tensor)]
    return max(shapes, key=math.prod, default=None)  # of weight_norm: the direction


def _looks_like_one(module: nn.Module) -> bool:
    code = _code(module)
    own = [p for p in module._parameters.values() if p is not None and not is_lazy(p)]
    if code.axes:
        return bool(own)  # not a fixed filter
    if not code.is_named:
        return False
    is_quantized = callable(getattr(type(module), "weight", None))  # a method of torch's
    return is_quantized or any(parameter.dim() > 2 for parameter in own)
