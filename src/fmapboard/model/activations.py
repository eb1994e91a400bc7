"""Activation modules that have a floor, the value at which a channel is off."""

from __future__ import annotations

from torch import nn

from fmapboard.model.layers import named_layers


def floor_of(module: nn.Module) -> float | None:
    """The value an activation module returns where it is off; None where it has none.

    ReLU and its family: ReLU, ReLU6, Hardtanh, Threshold, Hardsigmoid, Hardswish, ELU, CELU, SELU.
    LeakyReLU, PReLU, GELU and SiLU pass something on everywhere and never die in this sense.
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
    """Can no output be below the floor, not by a rounding either? So of modules that clamp."""
    return type(module) in (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Hardsigmoid)


# Klambauer et al., Self-Normalizing Neural Networks (2017): minus scale times alpha.
_SELU_FLOOR = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717


def activations(model: nn.Module) -> dict[str, nn.Module]:
    """The model's activation modules that have a floor, by name, in definition order."""
    return {name: m for name, m in named_layers(model).items() if floor_of(m) is not None}
