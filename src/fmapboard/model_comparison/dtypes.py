"""Dtypes that two models compute in: tolerances, and the finer model in those of the coarser.

A layer in bfloat16 differs from the same layer in float32 by the rounding of its weights, its input
and its output, which hides smaller differences. Rounded in the same way, an equal layer returns
equal values.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

TOLERANCES = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 5e-4,
    torch.bfloat16: 4e-3,
}
"""Relative error of one layer above which it counts as different.

Equal layers add at most 4e-7 in float32 with another memory format or number of threads
(``tests/accuracy/first_difference.py --noise``). In the half-width dtypes, half of all values off
by one unit in the last place are an error of 5e-4 and 4e-3.
"""

_OTHER = 1e-5


def tolerance_of(dtypes: Iterable[torch.dtype]) -> float:
    """The default tolerance for models that compute in these dtypes: that of the coarsest."""
    return max((TOLERANCES.get(dtype, _OTHER) for dtype in dtypes), default=_OTHER)


def most_common(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    """The floating-point dtype that occurs most often; float32 if there is none."""
    counted = Counter(dtype for dtype in dtypes if dtype.is_floating_point)
    return counted.most_common(1)[0][0] if counted else torch.float32


def converted(model: nn.Module, like: nn.Module, default: torch.dtype) -> nn.Module:
    """A copy of a model in the dtypes of another one, on the device of the model.

    Args:
        model: The model to copy.
        like: Parameters and buffers of the same name determine the dtypes.
        default: Dtype of the floating-point tensors that ``like`` does not have.
    """
    twin, known = copy.deepcopy(model), {name: t.dtype for name, t in _named_tensors(like)}
    for name, tensor in _named_tensors(twin):
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(known.get(name, default))
    return twin


def _named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers; those that modules share occur under each of their names."""
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)
