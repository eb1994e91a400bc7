"""Select layers of a model, and give them clean names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

import torch
from torch import nn

from fmapboard.errors import ConfigurationError, LayerNotFound, NoConvolution, closest, log
from fmapboard.model.given import check_model, check_no_modules
from fmapboard.model.kernel_shapes import CONVOLUTIONS, by_kernel_shape, is_convolution, log_unused
from fmapboard.model.weak_table import WeakTable
from fmapboard.records import KernelShape

_WRAPPER_SEGMENTS = frozenset({"_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"})

Layers: TypeAlias = (
    "str | re.Pattern[str] | type[nn.Module] | int | slice | Callable[[str, nn.Module], bool]"
    " | Sequence[str | re.Pattern[str] | type[nn.Module] | int | slice] | None"
)
"""Which layers to select. One of:

- None: every convolution; every leaf module with parameters if the model has no convolution; every
  module if no leaf has parameters.
- A glob (``"layer1.*"``; ``*`` also matches dots) or a compiled regular expression (which may
  match anywhere in the name): the matching convolutions, or all matching modules if none is a
  convolution.
- A module type: its instances.
- An index or a slice: of the layers that None selects, in definition order. ``15`` is the 16th one,
  ``-1`` the last one, ``slice(0, 4)`` are the first four.
- A list of these: their union, without the layers that match a glob starting with ``!``.
- A predicate ``(name, module) -> bool``.
"""


_SINGLE = (str, re.Pattern, type, int, slice)


def unwrap(model: nn.Module) -> nn.Module:
    """The user's own module inside DistributedDataParallel, DataParallel or torch.compile."""
    while True:
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        elif isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod  # type: ignore[assignment]  # checked in the line above
        else:
            return model


@lru_cache(maxsize=1 << 14)
def clean_name(name: str) -> str:
    """A module's or parameter's name without the segments that wrappers insert.

    Lone surrogates, which cannot be encoded as UTF-8, are replaced by their escape sequences.
    """
    kept = ".".join(part for part in name.split(".") if part not in _WRAPPER_SEGMENTS)
    return kept.encode("utf-8", "backslashreplace").decode("utf-8")


def named_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Clean name -> module, for every module of the unwrapped model in definition order.

    A shared module is listed once; the root, whose own name is empty, under its type's name.
    """
    root = unwrap(model)
    return {clean_name(name) or type(root).__name__: m for name, m in root.named_modules()}


def kernel_groups(model: nn.Module, layers: Layers = None) -> dict[KernelShape, list[str]]:
    """The model's convolutions grouped by kernel shape, in definition order.

    >>> from torch import nn
    >>> kernel_groups(nn.Sequential(nn.Conv2d(3, 8, 5), nn.ReLU(), nn.Conv2d(8, 8, 3)))
    {KernelShape(8x3x5x5): ['0'], KernelShape(8x8x3x3): ['2']}

    Args:
        model: any module; DistributedDataParallel, DataParallel and torch.compile are unwrapped.
        layers: which layers, as in ``watch``. Layers that are not convolutions are left out.

    Returns:
        Weight shape -> layer names (see ``KernelShape``).

    Raises:
        ConfigurationError: ``model`` or ``layers`` is invalid; ``LayerNotFound`` or
            ``NoConvolution`` if ``layers`` selects nothing.
    """
    return by_kernel_shape(select(model, layers))


def select(
    model: nn.Module, layers: Layers = None, *, has_taps: Callable[[], bool] = lambda: False
) -> dict[str, nn.Module]:
    """The selected layers by name, in definition order (see ``Layers``).

    Args:
        model: any module.
        layers: which layers.
        has_taps: called if nothing is found; returns True if the model may name tensors with
            ``tap``, which are known in a pass only. A pattern may then match no layer.

    Raises:
        LayerNotFound: nothing is selected, or one of the patterns matches no layer.
        NoConvolution: ``layers`` names a convolution type and the model has no convolution of any
            type; or the default applies and the model has no layers with parameters to watch.
        ConfigurationError: ``model`` or ``layers`` is invalid, or the model is scripted.
    """
    check_model(model)
    check_no_modules(model, layers)
    own = _Capturable(model, has_taps)
    if layers is None:
        return own.default()
    if isinstance(layers, bool):
        layers = [layers]  # no index
    if callable(layers) and not isinstance(layers, type):
        kept = {name: module for name, module in own.named.items() if layers(name, module)}
        count = len(own.named)
        nothing = (
            f"the predicate layers={layers!r} accepts none of the {count} modules{own.hint}; it is "
            "called with the name and the module, and fmapboard.layers(model) lists both"
        )
    else:
        choices = [layers] if isinstance(layers, _SINGLE) else _listed(layers)
        excluded = [c[1:] for c in choices if isinstance(c, str) and c.startswith("!")]
        included = [c for c in choices if not (isinstance(c, str) and c.startswith("!"))]
        chosen = set[str]().union(*map(own.matching, included)) if included else {*own.default()}
        chosen = {n for n in chosen if not any(fnmatchcase(n, glob) for glob in excluded)}
        kept = {name: module for name, module in own.named.items() if name in chosen}
        nothing = (
            f"layers={layers!r} selects no layer: every matching layer is excluded by a '!' "
            "pattern; leave out a pattern with '!', or make it narrower"
        )
    if not kept and not has_taps():
        raise LayerNotFound(nothing)
    return kept


def followers(model: nn.Module) -> dict[str, tuple[str, ...]]:
    """Layer with kernels -> types of what is defined between it and the next one.

    Only normalizations, Tanh and Sigmoid are listed. The order of definition is nearly always that
    of calls.

    >>> followers(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Tanh()))
    {'0': ('BatchNorm2d', 'Tanh')}
    """
    found: dict[str, tuple[str, ...]] = {}
    last = ""
    for name, module in named_layers(model).items():
        kind = type(module).__name__
        if is_convolution(module) or isinstance(module, nn.Linear):
            last = name
        elif not last or next(module.children(), None) is not None:
            continue
        elif kind in ("Tanh", "Sigmoid") or "norm" in kind.lower():
            found[last] = (*found.get(last, ()), kind)
    return found


class WatchedLayers:
    """The watched layers of one model: which they are, and which parameters belong to them.

    Args:
        model: any module; its wrappers are unwrapped.
        chosen: which layers to watch.
        also: further layers by name, of which no pictures are drawn.
        has_taps: as for ``select``.

    Attributes:
        model: the unwrapped model.
        layers: the chosen layers by name; another dictionary once they were selected again.
        numbers_only: the further ones.
        followed_by: see ``followers``.

    Raises:
        ConfigurationError: as for ``select``.
    """

    def __init__(
        self,
        model: nn.Module,
        chosen: Layers = None,
        *,
        also: Mapping[str, nn.Module] = MappingProxyType({}),
        has_taps: Callable[[], bool] = lambda: False,
    ) -> None:
        self.model = unwrap(model)
        self._chosen = chosen
        self._has_taps = has_taps
        self._watch(select(self.model, chosen, has_taps=has_taps), also)

    def _watch(self, layers: dict[str, nn.Module], also: Mapping[str, nn.Module]) -> None:
        self.layers = layers
        self.numbers_only = {name: m for name, m in also.items() if name not in layers}
        own = {*layers.values(), *also.values()}
        self._followed = {name: m for name, m in self.model.named_modules() if m in own}
        self._own: frozenset[str] | None = None
        self.followed_by = followers(self.model)

    def select_again(self, also: Mapping[str, nn.Module] | None = None) -> None:
        """Select the layers again, after ``kernel_shapes.refuse`` or a replacement.

        If that fails, because a pattern matches nothing any more, those that are left stay watched.

        Args:
            also: the further layers; None for the same ones.
        """
        try:
            layers = select(self.model, self._chosen, has_taps=self._has_taps)
        except ConfigurationError:
            present = set(self.model.modules())
            layers = {name: module for name, module in self.layers.items() if module in present}
        self._watch(layers, self.numbers_only if also is None else also)

    def follow_replacements(
        self, also: Callable[[nn.Module], dict[str, nn.Module]]
    ) -> tuple[str, ...]:
        """Select the layers again if a watched one was replaced.

        Args:
            also: selects the layers of which no pictures are drawn.

        Returns:
            Names of the watched layers that are gone and have no replacement.
        """
        if dict(self.model.named_modules()).items() >= self._followed.items():
            return ()
        before = self.layers
        self.select_again(also(self.model))
        return tuple(name for name in before if name not in self.layers)

    def own_parameters(self) -> frozenset[str]:
        """Clean names of the parameters that belong directly to the chosen layers.

        Includes the parameters behind parametrizations. Looked up once per selection.
        """
        if self._own is None:
            self._own = self._named_parameters(inner=False)
        return self._own

    def listed_parameters(self) -> frozenset[str] | None:
        """Also those of the modules inside the layers; None if no layers were chosen."""
        return None if self._chosen is None else self._named_parameters(inner=True)

    def _named_parameters(self, *, inner: bool) -> frozenset[str]:
        own: set[int] = set()
        for module in self.layers.values():
            own |= {id(p) for p in module.parameters(recurse=inner)}
            own |= {id(p) for p in getattr(module, "parametrizations", nn.Module()).parameters()}
        named = self.model.named_parameters()
        return frozenset(clean_name(name) for name, p in named if id(p) in own)


def scripted_warning(model: nn.Module) -> str | None:
    """The warning about scripted and traced parts of a model; None if it has none."""
    names = [n for n, m in named_layers(model).items() if isinstance(m, torch.jit.ScriptModule)]
    outer = [n for n in names if not any(n.startswith(f"{other}.") for other in names)]
    if not outer:
        return None
    what = "hooks do not run inside scripted or traced modules, so these are not captured"
    return f"{what}: {', '.join(outer)}"


def _unregistered(root: nn.Module) -> str | None:
    """A sentence on modules in a list or dictionary of Python; None if there are none."""
    registered = set(root.modules())
    for owner in registered:
        for name, held in vars(owner).items():
            if name.startswith("_") or not isinstance(held, (list, tuple, dict)):
                continue
            values = held.values() if isinstance(held, dict) else held
            inner = [m for m in values if isinstance(m, nn.Module) and m not in registered]
            if inner:
                kind = "nn.ModuleDict" if isinstance(held, dict) else "nn.ModuleList"
                return (
                    f"the {type(held).__name__} {type(owner).__name__}.{name} holds modules "
                    f"({', '.join(sorted({type(m).__name__ for m in inner}))}) that torch does not "
                    f"register, so parameters() and to() omit them too; use {kind}"
                )
    return None


def _listed(layers: Any) -> list[Any]:
    expected = (
        "expected a glob, a compiled regex, a module type, an index, a slice, a list of these, or "
        "a predicate"
    )
    if isinstance(layers, Mapping) or not isinstance(layers, Iterable):
        raise ConfigurationError(f"layers={layers!r}: {expected}")
    choices = list(layers)
    for choice in choices:
        if not isinstance(choice, _SINGLE) or isinstance(choice, bool):
            raise ConfigurationError(f"layers contains {choice!r}: {expected}")
    if not choices:
        raise ConfigurationError("layers=[] selects nothing; omit it to watch every convolution")
    return choices


class _Capturable:
    """The layers of a model that hooks can observe.

    Args:
        model: any module.
        has_taps: as for ``select``.

    Attributes:
        named: the layers by name.
        hint: a note on the others, for error messages.

    Raises:
        ConfigurationError: the model is scripted.
    """

    def __init__(self, model: nn.Module, has_taps: Callable[[], bool]) -> None:
        self._root = unwrap(model)
        self._has_taps = has_taps
        kind = type(self._root).__name__
        if isinstance(self._root, torch.jit.ScriptModule):
            raise ConfigurationError(
                f"the model is scripted or traced ({kind}), so its layers cannot be captured; pass "
                "the nn.Module that it was made from"
            )
        named = named_layers(self._root)
        self.named = {n: m for n, m in named.items() if not isinstance(m, torch.jit.ScriptModule)}
        notes = (scripted_warning(self._root), _unregistered(self._root))
        self.hint = "".join(f"; {note}" for note in notes if note)

    def default(self) -> dict[str, nn.Module]:
        """Every convolution, or every leaf module with parameters if there is none."""
        root = self._root
        named = self.named
        hint = self.hint
        plain = {n: m for n, m in named.items() if "parametrizations" not in n.split(".")}
        is_first = not _logged.get(root)
        _logged[root] = True
        if is_first:
            log_unused(plain)
        found = {name: module for name, module in plain.items() if is_convolution(module)}
        if found:
            return found
        # MultiheadAttention reads its child's weight directly and never calls the child.
        attention = [m for m in named.values() if isinstance(m, nn.MultiheadAttention)]
        uncalled = {id(child) for m in attention for child in m.children()}
        held = {name: module for name, module in plain.items() if id(module) not in uncalled}
        found = {name: module for name, module in held.items() if _holds_parameters(module)}
        what = "its leaf layers with parameters"
        if not found:
            if self._has_taps():
                return found
            lists = (nn.ParameterList, nn.ParameterDict)  # never called
            found = {name: m for name, m in plain.items() if not isinstance(m, lists)}
            what = 'all of its modules, as layers="*" does,'
            if hint or next(root.parameters(), None) is None:
                raise NoConvolution(
                    f"{type(root).__name__} has no convolution and no other layer with parameters "
                    f"to watch; its modules are {_types(named)}"
                    + (hint or ". Select some by name or type with layers=")
                )
        if is_first and _is_of_keras(root):
            log.warning(
                "%s is a Keras model, whose layers are no torch.nn.Module: its input, output, loss "
                "and gradients are logged, but no feature maps of its layers",
                type(root).__name__,
            )
        elif is_first:
            log.info(
                "%s has no convolution: watching %s instead (%d: %s); use layers= to select "
                "others%s", type(root).__name__, what, len(found), _types(found), hint,
            )  # fmt: skip
        return found

    def matching(self, choice: str | re.Pattern[str] | type | int | slice) -> set[str]:
        """Names of what a choice selects: of a pattern's matches the convolutions."""
        if isinstance(choice, type):
            return self._of_type(choice)
        if isinstance(choice, (int, slice)):
            return self._at(choice)
        found = {name for name in self.named if matches(choice, name)}
        if not found and not self._has_taps():
            raise self._not_found(choice)
        return {name for name in found if is_convolution(self.named[name])} or found

    def _at(self, place: int | slice) -> set[str]:
        names = list(self.default())
        last = len(names) - 1
        if isinstance(place, slice):
            found = names[place]
        elif -len(names) <= place <= last:
            found = [names[place]]
        else:
            found = []
        if not found:
            raise LayerNotFound(
                f"layers={place!r} selects none of the {len(names)} layers that are watched by "
                f"default; they are numbered from 0 to {last}"
            )
        return set(found)

    def _of_type(self, kind: type) -> set[str]:
        found = {name for name, module in self.named.items() if isinstance(module, kind)}
        if found:
            return found
        own = {name: module for name, module in self.named.items() if is_convolution(module)}
        if issubclass(kind, CONVOLUTIONS) and not own:
            raise NoConvolution(
                f"no layer is a {kind.__name__}: the model has no convolution; its modules are "
                f"{_types(self.named)}. Omit layers= to watch every layer with parameters"
                f"{self.hint}"
            )
        is_of_torch = any(isinstance(module, CONVOLUTIONS) for module in own.values())
        if issubclass(kind, CONVOLUTIONS) and not is_of_torch:
            raise LayerNotFound(
                f"no layer is a torch.nn.{kind.__name__}: the model's convolutions are of the "
                f"type {_types(own)}{self.hint}; name that class, or omit layers="
            )
        raise self._not_found(kind.__name__)

    def _not_found(self, pattern: str | re.Pattern[str]) -> LayerNotFound:
        text = pattern if isinstance(pattern, str) else pattern.pattern
        near = _several(pattern, self.named) or closest(text, self.named, listed=12)
        near = near or "; for the names: fmapboard.layers(model), or visualize --list"
        return LayerNotFound(
            f"no layer matches {pattern!r} among {len(self.named)}{near}{self.hint}"
        )


_logged: WeakTable[nn.Module, bool] = WeakTable()
"""Models of which the log says already what is watched by default."""


def _holds_parameters(module: nn.Module) -> bool:
    """True for a leaf module with parameters; a MultiheadAttention counts as a leaf."""
    if isinstance(module, nn.MultiheadAttention):
        return True
    if isinstance(module, (nn.ParameterList, nn.ParameterDict)):
        return False  # never called
    inner = [name for name, _ in module.named_children() if name != "parametrizations"]
    return not inner and next(module.parameters(), None) is not None


def _is_of_keras(model: nn.Module) -> bool:
    """True for a model of Keras 3 with torch as its backend."""
    return any(base.__module__.split(".")[0] == "keras" for base in type(model).__mro__)


def _types(named: Mapping[str, nn.Module]) -> str:
    """The types of the leaf modules, for a message."""
    leaves = [m for m in named.values() if not list(m.children())] or list(named.values())
    return ", ".join(sorted({type(m).__name__ for m in leaves})) or "no modules"


def matches(choice: str | re.Pattern[str], name: str) -> bool:
    """True if a glob or a compiled regular expression matches a name."""
    if isinstance(choice, str):
        return fnmatchcase(name, choice)
    return choice.search(name) is not None


def _several(pattern: Any, named: Mapping[str, nn.Module]) -> str:
    """How to give several patterns, if one is a list of them, such as ``"conv1,conv2"``."""
    parts = re.split(r"[,;\s]+", pattern.strip()) if isinstance(pattern, str) else []
    if len(parts) < 2 or not any(fnmatchcase(name, part) for part in parts for name in named):
        return ""
    options = " ".join(f"--layers {shlex.quote(part)}" for part in parts)
    return f"; give each on its own: layers={parts!r}, or {options}"
