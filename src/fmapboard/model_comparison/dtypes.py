"""Dtypes that two models compute in: tolerances, and the finer model in those of the coarser.

A layer in bfloat16 differs from the same layer in float32 by the rounding of its weights, its
input and its output, which hides smaller differences. Rounded in the same way, an equal layer
returns equal values.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from fmapboard.extraction.call_trace import TracedCall

TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 5e-4, torch.bfloat16: 4e-3}
"""Relative error of one layer above which it counts as different.

Equal layers add at most 4e-7 in float32 with another memory format or number of threads
(``tests/accuracy/first_difference.py --noise``). In the half-width dtypes, half of all values off
by one unit in the last place are an error of 5e-4 and 4e-3.
"""

_OTHER = 1e-5


def tolerance_of(*dtypes: torch.dtype) -> float:
    """The default tolerance for models that compute in these dtypes: that of the coarsest."""
    return max(TOLERANCES.get(dtype, _OTHER) for dtype in dtypes)


def dtype_of(calls: Iterable[TracedCall]) -> torch.dtype:
    """The floating-point dtype that most calls return; float32 if there is none."""
    counts: Counter[torch.dtype] = Counter()
    for call in calls:
        for dtype, _ in call.returned or ():
            if dtype.is_floating_point:
                counts[dtype] += 1
    if not counts:
        return torch.float32
    [(dtype, _)] = counts.most_common(1)
    return dtype


def converted(model: nn.Module, like: nn.Module, default: torch.dtype) -> nn.Module:
    """A copy of a model in the dtypes of another one, on the device of the model.

    Args:
        model: The model to copy.
        like: Parameters and buffers of the same name determine the dtypes.
        default: Dtype of the floating-point tensors that ``like`` does not have.
    """
    dtypes = {name: tensor.dtype for name, tensor in _named_tensors(like)}
    twin = copy.deepcopy(model)
    for name, tensor in _named_tensors(twin):
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(dtypes.get(name, default))
    return twin


def _named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers; those that modules share occur under each of their names."""
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)
