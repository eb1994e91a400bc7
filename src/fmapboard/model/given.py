"""Checks of the model, layers and input that a user passes; errors say what to pass instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.errors import ConfigurationError


def check_model(model: Any) -> None:
    """Check that the model is a module.

    Raises:
        ConfigurationError: it is not; the message says what it is and what to pass.
    """
    if isinstance(model, nn.Module):
        return
    if isinstance(model, type) and issubclass(model, nn.Module):
        raise ConfigurationError(
            f"model={model.__name__}: expected an instance, not the class; pass "
            f"{model.__name__}(...)"
        )
    raise ConfigurationError(
        f"model={described(model)}: expected a torch.nn.Module{_hint_for_model(model)}"
    )


def check_not_inference(model: nn.Module) -> None:
    """Refuse a model that cannot be trained because of where it was created.

    Raises:
        ConfigurationError: a parameter was created under ``torch.inference_mode()``.
    """
    own = model.named_parameters()
    name = next((name for name, p in own if not is_lazy(p) and p.is_inference()), None)
    if name is not None:
        raise ConfigurationError(
            f"model={type(model).__name__}: its parameter {name} was created under "
            "torch.inference_mode(), so the model cannot be trained; create the model outside of "
            "it, or use fmapboard.extract(model, images), which needs no training"
        )


def _hint_for_model(model: Any) -> str:
    if isinstance(model, Mapping):
        return "; load a state dict into one first: model.load_state_dict(state)"
    if isinstance(getattr(model, "model", None), nn.Module):
        return f"; pass its module, {type(model).__name__}.model"
    if hasattr(model, "param_groups"):
        return "; pass an optimizer as optimizer="
    if hasattr(model, "add_scalar"):
        return "; pass a SummaryWriter as writer="
    if isinstance(model, Tensor):
        return "; pass the model first, then its input"
    return ""


def check_no_modules(model: nn.Module, layers: Any) -> None:
    """Reject modules where layer names are expected.

    Raises:
        ConfigurationError: ``layers`` is or contains a module; the message gives the module's name.
    """
    for given in layers if isinstance(layers, (list, tuple)) else [layers]:
        if not isinstance(given, nn.Module):
            continue
        known = {id(module): name for name, module in model.named_modules()}
        name = known.get(id(given))
        fix = f"pass its name: layers={name!r}" if name else "this one is not part of the model"
        raise ConfigurationError(
            f"layers={type(given).__name__}: expected layer names, not a module; {fix}"
        )


def without_batch_axis(x: Any) -> str:
    """The shape of a tensor that is probably one image [C, H, W]; empty for anything else."""
    if not isinstance(x, Tensor) or x.dim() != 3:
        return ""
    is_image = x.shape[0] in (1, 3, 4) and min(x.shape[1:]) >= 4
    return str(list(x.shape)) if is_image else ""


def returned(value: Any) -> str:
    """Describe a returned value in an error message: a tensor by its shape, others by type."""
    return f"tensor {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def described(value: Any) -> str:
    """A short form of a value that the user passed, for an error message."""
    if value is None or isinstance(value, (str, int, float)):
        return repr(value)
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return str(value.__name__)
    return type(value).__name__
