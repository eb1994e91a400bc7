"""Convert the finer of two models to the dtypes of the coarser one.

A layer in bfloat16 differs from the same layer in float32 by the rounding of its weights, its input
and its output, which hides smaller differences. Rounded in the same way, an equal layer returns
equal values.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn


def converted(model: nn.Module, like: nn.Module, default: torch.dtype) -> nn.Module:
    """A copy of a model in the dtypes of another one, on the device of the model.

    Args:
        model: The model to copy.
        like: Parameters and buffers of the same name determine the dtypes.
        default: Dtype of the floating-point tensors that ``like`` does not have.
    """
    twin = copy.deepcopy(model)
    known = {name: tensor.dtype for name, tensor in _state(like).items()}
    with torch.no_grad():
        for module_name, module in twin.named_modules():
            prefix = f"{module_name}." if module_name else ""
            for name, parameter in module._parameters.items():
                if parameter is not None and parameter.is_floating_point():
                    parameter.data = parameter.data.to(known.get(prefix + name, default))
            for name, buffer in module._buffers.items():
                if buffer is not None and buffer.is_floating_point():
                    module._buffers[name] = buffer.to(known.get(prefix + name, default))
    return twin


def _state(model: nn.Module) -> Mapping[str, Tensor]:
    return {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }
