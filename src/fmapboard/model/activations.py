"""Activation modules with an off value: the output at which a channel counts as dead."""

from __future__ import annotations

from torch import nn

from fmapboard.model.layers import named_layers


def floor_of(module: nn.Module) -> float | None:
    """The off value of an activation module: its output for inputs it suppresses; None without one.

    Covers ReLU, ReLU6, Hardtanh, Threshold, Hardsigmoid, Hardswish, ELU, CELU and SELU. LeakyReLU,
    PReLU, GELU and SiLU have none, so their channels never count as dead.
    """
    if isinstance(module, nn.ReLU6) or type(module) in (nn.ReLU, nn.Hardsigmoid, nn.Hardswish):
        return 0.0
    if isinstance(module, nn.Hardtanh):
        return float(module.min_val)
    if isinstance(module, nn.Threshold):
        return float(module.value)
    if isinstance(module, (nn.ELU, nn.CELU)):
        return -float(module.alpha)
    return _SELU_FLOOR if isinstance(module, nn.SELU) else None


def is_bounded(module: nn.Module) -> bool:
    """True if no output can be below the off value, not even by rounding: modules that clamp."""
    return type(module) in (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Hardsigmoid)


# Klambauer et al., Self-Normalizing Neural Networks (2017): -scale * alpha.
_SELU_FLOOR = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717


def activations(model: nn.Module) -> dict[str, nn.Module]:
    """The model's activation modules that have an off value, by name, in definition order."""
    return {name: m for name, m in named_layers(model).items() if floor_of(m) is not None}
