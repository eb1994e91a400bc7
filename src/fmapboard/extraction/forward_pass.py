"""What ``extract`` and ``extract_gradients`` share: the arguments of a model, and its pass."""

from __future__ import annotations

from typing import Any

from torch import nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.errors import log
from fmapboard.model.given import check_input, check_model
from fmapboard.model.layers import Layers, scripted_warning


def hooked_layers(model: nn.Module, layers: Layers, *, effective: bool = False) -> HookRegistry:
    """The layers to extract; logs a warning if parts of the model are scripted.

    Args:
        model: Any module.
        layers: As in ``extract``.
        effective: As in ``extract``.

    Raises:
        ConfigurationError: As ``layers.select`` does.
    """
    check_model(model)
    registry = HookRegistry(model, layers, effective=effective)
    scripted = scripted_warning(registry.model)
    if scripted is not None:
        log.warning("%s", scripted)
    return registry


def positional(x: Any) -> tuple[Any, ...]:
    """The positional arguments of ``forward``: a tuple as it is, anything else as the only one.

    Raises:
        ConfigurationError: One of them is not what a model takes, such as a path or an array.
    """
    arguments = x if isinstance(x, tuple) else (x,)
    for argument in arguments:
        check_input(argument, what="x")
    return arguments
