"""Choose layers of a model, name them cleanly, and group convolutions by kernel shape."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import torch
from torch import nn

from fmapboard.errors import ConfigurationError, LayerNotFound, NoConvolution, closest, log
from fmapboard.model.given import check_model, check_no_modules
from fmapboard.records import KernelShape

CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
CONVOLUTIONS_1D = (nn.Conv1d, nn.ConvTranspose1d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_WRAPPER_SEGMENTS = frozenset({"_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"})

Predicate = Callable[[str, nn.Module], bool]
Layers: TypeAlias = (
    "str | re.Pattern[str] | type[nn.Module] | Predicate"
    " | Sequence[str | re.Pattern[str] | type[nn.Module]] | None"
)
"""How layers are chosen. None: every convolution of `CONVOLUTIONS`, transposed ones included; in a
model without any, every leaf module that has parameters. A glob (``"layer1.*"``, where ``*``
crosses dots) or a compiled regular expression (searched) selects the convolutions whose name it
matches; where it matches none, every module that it matches. A module type selects its instances.
A list joins them; a glob that starts with ``!`` excludes. A predicate ``(name, module) -> bool``
decides alone."""


def unwrap(model: nn.Module) -> nn.Module:
    """The user's own module inside DistributedDataParallel, DataParallel or a compiled wrapper."""
    while True:
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        elif isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod  # type: ignore[assignment]  # checked in the line above
        else:
            return model


def clean_name(name: str) -> str:
    """A module's or parameter's name without the segments that wrappers insert.

    A lone surrogate, which no file can hold, is written as its escape sequence.
    """
    kept = ".".join(part for part in name.split(".") if part not in _WRAPPER_SEGMENTS)
    return kept.encode("utf-8", "backslashreplace").decode("utf-8")


def named_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Every module of the unwrapped model by its clean name, in definition order, each once.

    A model that is itself one layer is named after its type.
    """
    root = unwrap(model)
    return {clean_name(name) or type(root).__name__: m for name, m in root.named_modules()}


def kernel_shape(module: nn.Module) -> KernelShape | None:
    """The shape of a convolution's weight, from the module's attributes; None for other modules.

    The weight itself is not touched: reading a spectral-norm weight changes its buffers.
    """
    if not isinstance(module, CONVOLUTIONS):
        return None
    outs, ins, groups = module.out_channels, module.in_channels, module.groups
    if isinstance(module, TRANSPOSED):
        return KernelShape((ins, outs // groups, *module.kernel_size))
    return KernelShape((outs, ins // groups, *module.kernel_size))


def kernel_groups(model: nn.Module, layers: Layers = None) -> dict[KernelShape, list[str]]:
    """The model's convolutions by kernel shape, both in definition order.

    >>> from torch import nn
    >>> kernel_groups(nn.Sequential(nn.Conv2d(3, 8, 5), nn.ReLU(), nn.Conv2d(8, 8, 3)))
    {KernelShape(8x3x5x5): ['0'], KernelShape(8x8x3x3): ['2']}

    Raises:
        LayerNotFound, NoConvolution, ConfigurationError: as `select` does.
    """
    return by_kernel_shape(select(model, layers))


def by_kernel_shape(layers: Mapping[str, nn.Module]) -> dict[KernelShape, list[str]]:
    """Kernel shape -> names of the convolutions among the layers that have it, in their order."""
    groups: dict[KernelShape, list[str]] = {}
    for name, module in layers.items():
        shape = kernel_shape(module)
        if shape is not None:
            groups.setdefault(shape, []).append(name)
    return groups


def select(model: nn.Module, layers: Layers = None) -> dict[str, nn.Module]:
    """The chosen layers by name, in definition order (see `Layers`).

    Raises:
        LayerNotFound: a pattern matches nothing; the text lists the closest names.
        NoConvolution: ``layers`` asks for a type of convolution and the model has none of any type;
            or ``layers`` is None and the model has neither convolutions nor other parameters.
        ConfigurationError: ``layers`` is none of the kinds that are understood.
    """
    check_model(model)
    check_no_modules(model, layers)
    named, hint = _capturable(model)
    if layers is None:
        return _default(model, named, hint)
    if callable(layers) and not isinstance(layers, type):
        return _by_predicate(layers, named, hint)
    choices = [layers] if isinstance(layers, (str, re.Pattern, type)) else _listed(layers)
    away = [c[1:] for c in choices if isinstance(c, str) and c.startswith("!")]
    wanted = [c for c in choices if not (isinstance(c, str) and c.startswith("!"))]
    chosen: set[str] = set() if wanted else set(_default(model, named, hint))
    for choice in wanted:
        chosen |= _matching(choice, named, hint)
    kept = {
        name: module
        for name, module in named.items()
        if name in chosen and not any(fnmatchcase(name, glob) for glob in away)
    }
    if not kept:
        raise LayerNotFound(f"layers={layers!r} leaves no layer: everything is taken away by '!'")
    return kept


def scripted_parts(model: nn.Module) -> list[str]:
    """Names of the outermost scripted and traced modules: no Python hook runs inside them."""
    names = [n for n, m in named_layers(model).items() if isinstance(m, torch.jit.ScriptModule)]
    return [n for n in names if not any(n.startswith(f"{outer}.") for outer in names)]


def scripted_warning(model: nn.Module) -> str | None:
    """What a user should hear about the scripted and traced parts of a model; None without any."""
    parts = ", ".join(scripted_parts(model))
    return f"{_SCRIPTED}: {parts}" if parts else None


_SCRIPTED = "scripted or traced, so nothing inside can be captured"


def _capturable(model: nn.Module) -> tuple[dict[str, nn.Module], str]:
    """The layers that hooks can see, and what an error should say about the others."""
    root = unwrap(model)
    if isinstance(root, torch.jit.ScriptModule):
        raise ConfigurationError(
            f"the model is scripted or traced ({type(root).__name__}): nothing inside it can be "
            "captured; give the nn.Module that it was made from"
        )
    named = named_layers(root)
    if not any(isinstance(module, torch.jit.ScriptModule) for module in named.values()):
        return named, ""
    kept = {n: m for n, m in named.items() if not isinstance(m, torch.jit.ScriptModule)}
    return kept, f"; {scripted_warning(root)}"


def _listed(layers: Any) -> list[Any]:
    wanted = "expected a glob, a compiled regex, a module type, a list of these, or a predicate"
    if isinstance(layers, Mapping) or not isinstance(layers, Iterable):
        raise ConfigurationError(f"layers={layers!r}: {wanted}")
    choices = list(layers)
    for choice in choices:
        if not isinstance(choice, (str, re.Pattern, type)):
            raise ConfigurationError(f"layers contains {choice!r}: {wanted}")
    if not choices:
        raise ConfigurationError("layers=[] selects nothing; leave it out for every convolution")
    return choices


def _default(model: nn.Module, named: Mapping[str, nn.Module], hint: str) -> dict[str, nn.Module]:
    found: dict[str, nn.Module] = {n: m for n, m in named.items() if isinstance(m, CONVOLUTIONS)}
    if found:
        return found
    # Attention reads the weight of its one child and never calls it.
    attention = [m for m in named.values() if isinstance(m, nn.MultiheadAttention)]
    uncalled = {id(child) for m in attention for child in m.children()}
    found = {
        name: module
        for name, module in named.items()
        if _holds_parameters(module)
        and id(module) not in uncalled
        and "parametrizations" not in name.split(".")
    }
    root = unwrap(model)
    if not found:
        raise NoConvolution(
            f"{type(root).__name__} has no convolution and no other layer with parameters to "
            f"watch; it has {_types(named)}. Choose by name or type with layers={hint}"
        )
    if root not in _told:
        _told.add(root)
        log.info(
            "%s has no convolution: watching its leaf layers with parameters instead, %d in all "
            "(%s); layers= chooses others%s", type(root).__name__, len(found), _types(found), hint,
        )  # fmt: skip
    return found


_told: weakref.WeakSet[nn.Module] = weakref.WeakSet()
"""Models without convolutions whose fallback was logged."""


def _holds_parameters(module: nn.Module) -> bool:
    """True for a leaf module with parameters that a forward pass calls."""
    if isinstance(module, nn.MultiheadAttention):
        return True
    if isinstance(module, (nn.ParameterList, nn.ParameterDict)):
        return False  # never called
    inner = [name for name, _ in module.named_children() if name != "parametrizations"]
    return not inner and next(module.parameters(), None) is not None


def _types(named: Mapping[str, nn.Module]) -> str:
    """The types of the leaf modules, for a message."""
    leaves = [m for m in named.values() if not list(m.children())] or list(named.values())
    return ", ".join(sorted({type(m).__name__ for m in leaves})) or "no modules"


def _by_predicate(
    wanted: Predicate, named: Mapping[str, nn.Module], hint: str
) -> dict[str, nn.Module]:
    chosen = {name: module for name, module in named.items() if wanted(name, module)}
    if not chosen:
        raise LayerNotFound(
            f"the predicate layers={wanted!r} accepts none of {len(named)} modules{hint}"
        )
    return chosen


def _matching(
    choice: str | re.Pattern[str] | type, named: Mapping[str, nn.Module], hint: str
) -> set[str]:
    if isinstance(choice, type):
        matching = {name for name, module in named.items() if isinstance(module, choice)}
    elif isinstance(choice, str):
        matching = {name for name in named if fnmatchcase(name, choice)}
    else:
        matching = {name for name in named if choice.search(name)}
    if not matching and _asks_in_vain(choice, named):
        raise NoConvolution(
            f"no layer is a {getattr(choice, '__name__', choice)}: the model has no convolution; "
            f"it has {_types(named)}. Leave layers= out to watch every layer with parameters{hint}"
        )
    if not matching:
        pattern = choice.__name__ if isinstance(choice, type) else choice
        near = closest(str(getattr(pattern, "pattern", pattern)), named)
        raise LayerNotFound(
            f"no layer matches {pattern!r} among {len(named)}; closest: {near}{hint}"
        )
    if isinstance(choice, type):
        return matching
    return {name for name in matching if isinstance(named[name], CONVOLUTIONS)} or matching


def own_parameters(model: nn.Module, layers: Mapping[str, nn.Module]) -> set[str]:
    """Clean names of the parameters of these layers themselves, parametrized ones included."""
    own: set[int] = set()
    for module in layers.values():
        own |= {id(p) for p in module.parameters(recurse=False)}
        own |= {id(p) for p in getattr(module, "parametrizations", nn.Module()).parameters()}
    return {clean_name(name) for name, p in model.named_parameters() if id(p) in own}


def _asks_in_vain(choice: str | re.Pattern[str] | type, named: Mapping[str, nn.Module]) -> bool:
    """Is the choice a type of convolution, and the model without convolutions of any type?"""
    if not isinstance(choice, type) or not issubclass(choice, CONVOLUTIONS):
        return False
    return not any(isinstance(module, CONVOLUTIONS) for module in named.values())
