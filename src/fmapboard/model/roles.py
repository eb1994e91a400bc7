"""Which role a layer has: activations, and the layers that attribution reads."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

import torch
from torch import Tensor, nn

from fmapboard.errors import LayerNotFound, closest
from fmapboard.model.kernel_shapes import is_convolution
from fmapboard.model.layers import named_layers, unwrap
from fmapboard.records import LayerPart


def floor_of(module: nn.Module) -> float | None:
    """The off value of an activation module: its output for inputs it suppresses; None without one.

    Covers ReLU, ReLU6, Hardtanh, Threshold, Hardsigmoid, Hardswish, ELU, CELU and SELU. LeakyReLU,
    PReLU, GELU and SiLU have none, so their channels count as dead in MLPs of blocks only, see
    `is_off_at_zero`.
    """
    if isinstance(module, nn.ReLU6) or type(module) in (nn.ReLU, nn.Hardsigmoid, nn.Hardswish):
        return 0.0
    if isinstance(module, nn.Hardtanh):
        return float(module.min_val)
    if isinstance(module, nn.Threshold):
        return float(module.value)
    if isinstance(module, (nn.ELU, nn.CELU)):
        return -float(module.alpha)
    if isinstance(module, nn.SELU):
        return _SELU_FLOOR
    return None


def is_off_at_zero(part: LayerPart, module: nn.Module) -> bool:
    """True for routers, and activations of MLPs: all of GELU is 0 where its inputs are far below 0.

    Args:
        part: what the module is in a block.
        module: the module; a layer with parameters of its own is no activation.
    """
    if part.unit == "expert":
        return True
    return part.unit == "unit" and next(module.parameters(), None) is None


# Klambauer et al., Self-Normalizing Neural Networks (2017): -scale * alpha.
_SELU_FLOOR = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717


def activations(model: nn.Module) -> dict[str, nn.Module]:
    """The model's activation modules that have an off value, by name, in definition order."""
    named = named_layers(model)
    return {name: module for name, module in named.items() if floor_of(module) is not None}


Role = Literal["activation", "norm", "block", "convolution", "linear", "chosen"]
"""``"chosen"``: by a glob, and shown whatever it is; ``"linear"``: not shown, tells the layout."""

_ACTIVATIONS = ("relu", "gelu", "silu", "swish", "mish", "elu", "hardtanh", "tanh", "softplus")
"""Parts of the class names of activations, of torch, timm and others, in lower case."""

_FUNCTIONAL = (
    *("Relu", "LeakyRelu", "Gelu", "Silu", "Mish", "Elu", "Hardswish", "Hardtanh", "Clamp"),
    *("Add", "Cat", "CheckpointFunction"),
)
"""Starts of the names of the graph nodes that end a block with an operation of its own."""


def role_of(module: nn.Module) -> Role | None:
    """The part that a module plays; None for pooling, dropout and others."""
    name = type(module).__name__.lower()
    if isinstance(module, (nn.MultiheadAttention, torch.jit.ScriptModule)):
        return None
    if is_convolution(module):
        return "convolution"
    if isinstance(module, nn.Linear):
        return "linear"
    if next(module.children(), None) is not None:
        return "block"
    if "norm" in name:
        return "norm"
    is_activation = any(word in name for word in _ACTIVATIONS)
    return "activation" if is_activation else None


def roles(model: nn.Module, chosen: bool | str) -> dict[str, Role]:
    """Clean name -> role of the modules whose outputs may be shown.

    Args:
        model: any module; wrappers are removed.
        chosen: True for the last activation of each resolution, which is known after a pass only;
            or a glob on names, which selects the activations among the modules that it matches, or
            all of them if none is an activation.

    Raises:
        LayerNotFound: the glob matches no module.
    """
    root = unwrap(model)
    found: dict[str, Role] = {}
    has_glob = isinstance(chosen, str)
    for name, module in named_layers(root).items():
        if module is root or "parametrizations" in name.split("."):
            continue
        role = role_of(module)
        if role is not None:
            found[name] = role
        elif has_glob:
            found[name] = "chosen"
    if isinstance(chosen, str):
        return _matching(found, chosen)
    return found


def _matching(known: Mapping[str, Role], glob: str) -> dict[str, Role]:
    matching = [name for name in known if fnmatchcase(name, glob)]
    if not matching:
        near = closest(glob, known) or "; for the names: fmapboard.layers(model)"
        raise LayerNotFound(f"attribution={glob!r} matches none of {len(known)} modules{near}")
    active = [name for name in matching if known[name] == "activation"]
    found: dict[str, Role] = {name: role for name, role in known.items() if role == "linear"}
    for name in active or matching:
        found[name] = "chosen"
    return found


def ends_in_function(output: Tensor) -> bool:
    """True if a block's output was made by an activation, sum or concatenation of its own."""
    operation = type(output.grad_fn).__name__
    return operation.startswith(_FUNCTIONAL)
