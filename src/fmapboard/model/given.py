"""What users give as a model, its layers or its input, refused with the fix where it is not one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from fmapboard.errors import ConfigurationError


def check_model(model: Any) -> None:
    """Accept a module.

    Raises:
        ConfigurationError: it is something else; the text says what it is and what to give.
    """
    if isinstance(model, nn.Module):
        return
    if isinstance(model, type) and issubclass(model, nn.Module):
        raise ConfigurationError(
            f"model={model.__name__}: that is the class; give a model: {model.__name__}(...)"
        )
    raise ConfigurationError(
        f"model={described(model)}: expected a torch.nn.Module{_hint_for_model(model)}"
    )


def _hint_for_model(model: Any) -> str:
    if isinstance(model, Mapping):
        return "; load a state dict into one first: model.load_state_dict(state)"
    if isinstance(getattr(model, "model", None), nn.Module):
        return f"; give {type(model).__name__}.model, which is one"
    if hasattr(model, "param_groups"):
        return "; an optimizer goes to optimizer="
    if hasattr(model, "add_scalar"):
        return "; a SummaryWriter goes to writer="
    if isinstance(model, Tensor):
        return "; the model comes first, then its input"
    return ""


def check_no_modules(model: nn.Module, layers: Any) -> None:
    """Refuse modules where names of layers are expected.

    Raises:
        ConfigurationError: ``layers`` is or holds a module; the text says its name.
    """
    for given in layers if isinstance(layers, (list, tuple)) else [layers]:
        if not isinstance(given, nn.Module):
            continue
        known = {id(module): name for name, module in model.named_modules()}
        name = known.get(id(given))
        fix = f"give its name: layers={name!r}" if name else "it is no part of the model"
        raise ConfigurationError(f"layers={type(given).__name__}: that is a module; {fix}")


def check_input(x: Any, *, what: str) -> None:
    """Refuse what no model is called with: arrays, paths and images that are not tensors yet.

    Raises:
        ConfigurationError: it is one of these.
    """
    kind = type(x)
    if isinstance(x, (str, bytes)) or hasattr(x, "__fspath__"):
        raise ConfigurationError(
            f"{what}={x!r}: expected tensors; the command visualize reads image files"
        )
    if kind.__module__.partition(".")[0] == "numpy":
        raise ConfigurationError(f"{what}={kind.__name__}: expected tensors: torch.from_numpy(x)")
    if kind.__module__.partition(".")[0] == "PIL":
        raise ConfigurationError(
            f"{what}={kind.__name__}: expected tensors: transform the image first, as in training"
        )
    if isinstance(x, nn.Module):
        raise ConfigurationError(
            f"{what}={kind.__name__}: that is a module; the model comes first, then its input"
        )


def described(value: Any) -> str:
    """A short form of what a user gave, for an error message."""
    if value is None or isinstance(value, (str, int, float)):
        return repr(value)
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return str(value.__name__)
    return type(value).__name__
