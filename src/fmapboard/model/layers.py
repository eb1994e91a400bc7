"""Select layers of a model, and give them clean names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

import torch
from torch import nn

from fmapboard.errors import (
    ConfigurationError,
    LayerNotFound,
    NoConvolution,
    closest,
    for_shell,
    log,
)
from fmapboard.interrupts import WeakTable
from fmapboard.model.blocks import Blocks, find_blocks
from fmapboard.model.given import check_model, check_no_modules
from fmapboard.model.kernel_shapes import CONVOLUTIONS, by_kernel_shape, is_convolution, log_unused
from fmapboard.model.routers import Routers, router_parts
from fmapboard.records import KernelShape, LayerPart

_WRAPPER_SEGMENTS = frozenset({"_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"})

Layers: TypeAlias = (
    "str | re.Pattern[str] | type[nn.Module] | int | slice | Callable[[str, nn.Module], bool]"
    " | Sequence[str | re.Pattern[str] | type[nn.Module] | int | slice] | None"
)
"""Which layers to select. One of:

- None: every convolution and, of a network of blocks such as a transformer, the blocks, their
  attention and the hidden activations of their MLPs (see ``model.blocks``). If the model has no
  convolution, also the leaf modules with parameters that are in no block; every module if no leaf
  has parameters.
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
        original = getattr(model, "_orig_mod", None)  # of torch.compile
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        elif isinstance(original, nn.Module):
            model = original
        else:
            return model


@lru_cache(maxsize=1 << 14)
def clean_name(name: str) -> str:
    """A module's or parameter's name without the segments that wrappers insert.

    Lone surrogates, which cannot be encoded as UTF-8, are replaced by their escape sequences.
    """
    segments = [part for part in name.split(".") if part not in _WRAPPER_SEGMENTS]
    kept = ".".join(segments)
    return kept.encode("utf-8", "backslashreplace").decode("utf-8")


def named_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Clean name -> module, for every module of the unwrapped model in definition order.

    A shared module is listed once; the root, whose own name is empty, under its type's name.
    """
    root = unwrap(model)
    name_of_root = type(root).__name__
    return {clean_name(name) or name_of_root: module for name, module in root.named_modules()}


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
    return _Capturable(model, has_taps).select(layers)


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
        routers: routers of experts, which are watched too.

    Attributes:
        model: the unwrapped model.
        layers: the chosen layers by name; another dictionary once they were selected again.
        numbers_only: the further ones.
        followed_by: see ``followers``.
        parts: what the modules are that are blocks or parts of them.
        branches: likewise, the last layers of MLPs.

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
        routers: Routers = (),
    ) -> None:
        self.model = unwrap(model)
        self._chosen = chosen
        self._has_taps = has_taps
        check_model(self.model)
        check_no_modules(self.model, chosen)
        self._routers = router_parts(named_layers(self.model), routers)
        own = self._capturable()
        self._watch(own, own.select(chosen), also)

    def _capturable(self) -> _Capturable:
        return _Capturable(self.model, self._has_taps, self._routers)

    def _watch(
        self, own: _Capturable, layers: dict[str, nn.Module], also: Mapping[str, nn.Module]
    ) -> None:
        self.layers = layers
        self.branches = own.blocks.branches
        self.numbers_only: dict[str, nn.Module] = {}
        for name, module in also.items():
            is_inside = any(name.startswith(f"{outer}.") for outer in layers)
            if name not in layers and (is_inside or name not in self.branches):
                self.numbers_only[name] = module
        followed = {*layers.values(), *also.values()}
        named = self.model.named_modules()
        self._followed = {name: module for name, module in named if module in followed}
        self._own: frozenset[str] | None = None
        self.followed_by = followers(self.model)
        self.parts = own.blocks.parts

    def select_again(self, also: Mapping[str, nn.Module] | None = None) -> None:
        """Select the layers again, after ``kernel_shapes.refuse`` or a replacement.

        If that fails, because a pattern matches nothing any more, those that are left stay watched.

        Args:
            also: the further layers; None for the same ones.
        """
        own = self._capturable()
        try:
            layers = own.select(self._chosen)
        except ConfigurationError:
            present = set(self.model.modules())
            layers = {name: module for name, module in self.layers.items() if module in present}
        if also is None:
            also = self.numbers_only
        self._watch(own, layers, also)

    def follow_replacements(
        self, also: Callable[[nn.Module], dict[str, nn.Module]]
    ) -> tuple[str, ...]:
        """Select the layers again if a watched one was replaced.

        Args:
            also: selects the layers of which no pictures are drawn.

        Returns:
            Names of the watched layers that are gone and have no replacement.
        """
        named = dict(self.model.named_modules())
        if named.items() >= self._followed.items():
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
        own = set[nn.Parameter]()
        for module in self.layers.values():
            own.update(module.parameters(recurse=inner))
            parametrizations = getattr(module, "parametrizations", None)
            if parametrizations is not None:
                own.update(parametrizations.parameters())
        named = self.model.named_parameters()
        return frozenset(clean_name(name) for name, parameter in named if parameter in own)


def scripted_warning(model: nn.Module) -> str | None:
    """The warning about scripted and traced parts of a model; None if it has none."""
    outer = list[str]()
    for name, module in named_layers(model).items():
        is_inner = any(name.startswith(f"{other}.") for other in outer)
        if isinstance(module, torch.jit.ScriptModule) and not is_inner:
            outer.append(name)
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
            if not inner:
                continue
            kinds = {type(module).__name__ for module in inner}
            remedy = "nn.ModuleDict" if isinstance(held, dict) else "nn.ModuleList"
            return (
                f"the {type(held).__name__} {type(owner).__name__}.{name} holds modules "
                f"({', '.join(sorted(kinds))}) that torch does not register, so parameters() and "
                f"to() omit them too; use {remedy}"
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
        routers: name -> what the module is, for routers that the user has named.

    Attributes:
        named: the layers by name.
        hint: a note on the others, for error messages.

    Raises:
        ConfigurationError: the model is scripted.
    """

    def __init__(
        self,
        model: nn.Module,
        has_taps: Callable[[], bool],
        routers: Mapping[str, LayerPart] = MappingProxyType({}),
    ) -> None:
        self._root = unwrap(model)
        self._routers = routers
        self._has_taps = has_taps
        kind = type(self._root).__name__
        if isinstance(self._root, torch.jit.ScriptModule):
            raise ConfigurationError(
                f"the model is scripted or traced ({kind}), so its layers cannot be captured; pass "
                "the nn.Module that it was made from"
            )
        self.named = dict[str, nn.Module]()
        for name, module in named_layers(self._root).items():
            if not isinstance(module, torch.jit.ScriptModule):
                self.named[name] = module
        self.hint = ""
        for note in (scripted_warning(self._root), _unregistered(self._root)):
            if note is not None:
                self.hint += f"; {note}"

    def select(self, layers: Layers) -> dict[str, nn.Module]:
        """The selected layers, as the function ``select`` returns them, and the user's routers."""
        kept = self.default() if layers is None else self._selected(layers)
        if not self._routers:
            return kept
        named = self.named.items()
        return {name: module for name, module in named if name in kept or name in self._routers}

    def _selected(self, layers: Any) -> dict[str, nn.Module]:
        named = self.named
        if isinstance(layers, bool):
            layers = [layers]  # no index
        if callable(layers) and not isinstance(layers, type):
            kept = {name: module for name, module in named.items() if layers(name, module)}
            nothing = (
                f"the predicate layers={layers!r} accepts none of the {len(named)} modules"
                f"{self.hint}; it is called with the name and the module, and "
                "fmapboard.layers(model) lists both"
            )
        else:
            choices = [layers] if isinstance(layers, _SINGLE) else _listed(layers)
            chosen = self._chosen(choices)
            kept = {name: module for name, module in named.items() if name in chosen}
            nothing = (
                f"layers={layers!r} selects no layer: every matching layer is excluded by a '!' "
                "pattern; leave out a pattern with '!', or make it narrower"
            )
        if not kept and not self._has_taps():
            raise LayerNotFound(nothing)
        return kept

    def _chosen(self, choices: list[Any]) -> set[str]:
        """Names of the layers that a list of choices selects, without those it excludes."""
        chosen = set[str]()
        excluded = list[str]()
        for choice in choices:
            if isinstance(choice, str) and choice.startswith("!"):
                excluded.append(choice[1:])
            else:
                chosen |= self._matching(choice)
        if len(excluded) == len(choices):
            chosen = set(self.default())
        for glob in excluded:
            chosen = {name for name in chosen if not fnmatchcase(name, glob)}
        return chosen

    @cached_property
    def blocks(self) -> Blocks:
        """Its blocks, and the routers that the user has named."""
        blocks = find_blocks(self._plain)
        if not self._routers:
            return blocks
        known = {**blocks.parts, **self._routers}
        parts = {name: known[name] for name in self._plain if name in known}
        return blocks._replace(parts=parts)

    @cached_property
    def _plain(self) -> dict[str, nn.Module]:
        """The layers without the modules of parametrizations."""
        plain = dict[str, nn.Module]()
        for name, module in self.named.items():
            if "parametrizations" not in name.split("."):
                plain[name] = module
        return plain

    def default(self) -> dict[str, nn.Module]:
        """Every convolution and the parts of blocks; see ``Layers`` for models without any."""
        root = self._root
        plain = self._plain
        is_first = not _logged.get(root)
        _logged[root] = True
        if is_first:
            log_unused(plain)
        blocks = self.blocks
        convolutions = {name for name, module in plain.items() if is_convolution(module)}
        if convolutions:
            return {n: m for n, m in plain.items() if n in convolutions or n in blocks.parts}
        leaves = self._with_parameters(plain)
        found = dict[str, nn.Module]()
        for name, module in plain.items():
            is_outside = name in leaves and not blocks.hold(name)
            if is_outside or name in blocks.parts:
                found[name] = module
        what = "its leaf layers with parameters"
        if blocks.names:
            what = (
                "its blocks, their attention and MLPs, and the layers with parameters around them"
            )
        if not found:
            if self._has_taps():
                return found
            found = {name: m for name, m in plain.items() if not isinstance(m, _NEVER_CALLED)}
            what = 'all of its modules, as layers="*" does,'
            if self.hint or next(root.parameters(), None) is None:
                advice = self.hint or ". Select some by name or type with layers="
                raise NoConvolution(
                    f"{type(root).__name__} has no convolution and no other layer with parameters "
                    f"to watch; its modules are {_types(self.named)}{advice}"
                )
        if is_first:
            self._log_default(found, what)
        return found

    def _with_parameters(self, plain: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
        """Those of the layers that hold parameters and are called."""
        uncalled = set[nn.Module]()
        for module in self.named.values():
            # It reads its child's weight directly and never calls the child.
            if isinstance(module, nn.MultiheadAttention):
                uncalled.update(module.children())
        found = dict[str, nn.Module]()
        for name, module in plain.items():
            if module not in uncalled and _holds_parameters(module):
                found[name] = module
        return found

    def _log_default(self, found: Mapping[str, nn.Module], what: str) -> None:
        """Log what is watched of a model without convolutions, and what it is."""
        kind = type(self._root).__name__
        if _is_of_keras(self._root):
            log.warning(
                "%s is a Keras model, whose layers are no torch.nn.Module: its input, output, loss "
                "and gradients are logged, but no feature maps of its layers",
                kind,
            )
            return
        log.info(
            "%s has no convolution: watching %s instead (%d: %s); use layers= to select others%s",
            kind, what, len(found), _types(found), self.hint,
        )  # fmt: skip

    def _matching(self, choice: str | re.Pattern[str] | type | int | slice) -> set[str]:
        """Names of what a choice selects: of a pattern's matches the convolutions."""
        if isinstance(choice, type):
            return self._of_type(choice)
        if isinstance(choice, (int, slice)):
            return self._at(choice)
        found = {name for name in self.named if matches(choice, name)}
        if not found and not self._has_taps():
            raise self._not_found(choice)
        convolutions = {name for name in found if is_convolution(self.named[name])}
        return convolutions or found

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
        if not issubclass(kind, CONVOLUTIONS):
            raise self._not_found(kind.__name__)
        own = {name: module for name, module in self.named.items() if is_convolution(module)}
        if not own:
            raise NoConvolution(
                f"no layer is a {kind.__name__}: the model has no convolution; its modules are "
                f"{_types(self.named)}. Omit layers= to watch every layer with parameters"
                f"{self.hint}"
            )
        is_of_torch = any(isinstance(module, CONVOLUTIONS) for module in own.values())
        if not is_of_torch:
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


_NEVER_CALLED = (nn.ParameterList, nn.ParameterDict)

_logged: WeakTable[nn.Module, bool] = WeakTable()
"""Models of which the log says already what is watched by default."""


def _holds_parameters(module: nn.Module) -> bool:
    """True for a leaf module with parameters; a MultiheadAttention counts as a leaf."""
    if isinstance(module, nn.MultiheadAttention):
        return True
    if isinstance(module, _NEVER_CALLED):
        return False
    inner = [name for name, _ in module.named_children() if name != "parametrizations"]
    return not inner and next(module.parameters(), None) is not None


def _is_of_keras(model: nn.Module) -> bool:
    """True for a model of Keras 3 with torch as its backend."""
    packages = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    return "keras" in packages


def _types(named: Mapping[str, nn.Module]) -> str:
    """The types of the leaf modules, for a message."""
    modules = list(named.values())
    leaves = [module for module in modules if not list(module.children())]
    names = {type(module).__name__ for module in leaves or modules}
    return ", ".join(sorted(names)) or "no modules"


def matches(choice: str | re.Pattern[str], name: str) -> bool:
    """True if a glob or a compiled regular expression matches a name."""
    if isinstance(choice, str):
        return fnmatchcase(name, choice)
    return choice.search(name) is not None


def _several(pattern: Any, named: Mapping[str, nn.Module]) -> str:
    """How to give several patterns, if one is a list of them, such as ``"conv1,conv2"``."""
    if not isinstance(pattern, str):
        return ""
    parts = re.split(r"[,;\s]+", pattern.strip())
    matching = [name for part in parts for name in named if fnmatchcase(name, part)]
    if len(parts) < 2 or not matching:
        return ""
    options = " ".join(f"--layers {for_shell(part)}" for part in parts)
    return f"; give each on its own: layers={parts!r}, or {options}"
