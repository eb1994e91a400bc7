"""Which modules eval mode changes; a file of its own, as it asks about a network, not a pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from torch import nn

from fmapboard.model.layers import clean_name

_FUNCTIONS = frozenset(
    {
        *("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"),
        *("feature_alpha_dropout", "batch_norm", "rrelu", "stochastic_depth", "drop_path"),
        *("drop_block2d", "drop_block3d", "multi_head_attention_forward"),
    }
)
"""Names of functions that compute something else in eval mode."""


def eval_modules(model: nn.Module) -> tuple[str, ...]:
    """Names of the modules that compute something else because the network is in eval mode.

    Empty unless every module with parameters, and every module that depends on the mode, is in eval
    mode: a network in which only some layers are (BatchNorm or dropout frozen on purpose, a frozen
    backbone with a head that trains) was set up that way. If some parameters are frozen, which is
    often combined with eval mode, only modules with trainable parameters of their own count.
    """
    for module in model.modules():
        if module.training and (_own_modes(module) or depends_on_mode(module)):
            return ()
    is_trained = all(parameter.requires_grad for parameter in model.parameters())
    found = list[str]()
    for name, module in model.named_modules():
        if not depends_on_mode(module):
            continue
        if is_trained or any(_own_modes(module)):
            found.append(clean_name(name))
    return tuple(found)


def _own_modes(module: nn.Module) -> list[bool]:
    """Whether each parameter of its own is trained."""
    return [parameter.requires_grad for parameter in module.parameters(recurse=False)]


def depends_on_mode(module: nn.Module) -> bool:
    """True if it is certain that a module computes something else in eval mode.

    That is read from the code of ``forward``: it uses ``training`` for dropout, batch norm and the
    like, with a probability above 0 or with running statistics.
    """
    if not _reads_mode(type(module).forward):
        return False
    if isinstance(module, nn.modules.batchnorm._NormBase):
        return module.running_mean is not None
    if isinstance(module, nn.MultiheadAttention):
        return bool(module.dropout)
    for name in ("p", "drop_prob"):
        probability = getattr(module, name, 1.0)
        if not isinstance(probability, (int, float)) or not probability > 0:
            return False
    return True


@lru_cache(4096)
def _reads_mode(forward: Callable[..., Any]) -> bool:
    function = inspect.unwrap(forward)
    code = getattr(function, "__code__", None)
    names = frozenset(getattr(code, "co_names", ()))
    return "training" in names and not names.isdisjoint(_FUNCTIONS)
