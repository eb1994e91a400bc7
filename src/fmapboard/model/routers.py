"""The routers of experts that a user names, apart from those that are found by structure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from torch import nn

from fmapboard.errors import ConfigurationError, LayerNotFound, closest
from fmapboard.model.blocks import experts_of_router
from fmapboard.model.given import described
from fmapboard.records import LayerPart

Routers: TypeAlias = (
    "str | nn.Module | Iterable[str | nn.Module] | Mapping[str | nn.Module, int | None]"
)
"""Which modules are routers. One of:

- A glob on layer names, or a module.
- A list of these.
- A mapping of these to the number of experts that are chosen for each token.
"""


def router_parts(named: Mapping[str, nn.Module], routers: Routers) -> dict[str, LayerPart]:
    """Name -> what the module is, for the routers among all modules of a network by name.

    Raises:
        LayerNotFound: a glob matches no module, or a module is not part of the network.
        ConfigurationError: ``routers`` is invalid, or the numbers of experts are not known.
    """
    found: dict[str, LayerPart] = {}
    for router, chosen in _listed(routers).items():
        for name in _names(named, router):
            found[name] = _part(named, name, chosen)
    return found


def _listed(routers: Any) -> Mapping[Any, int | None]:
    if isinstance(routers, (str, nn.Module)):
        routers = [routers]
    if not isinstance(routers, Mapping):
        if not isinstance(routers, Iterable):
            raise _invalid(routers)
        routers = dict.fromkeys(routers)
    for router, chosen in routers.items():
        if not isinstance(router, (str, nn.Module)):
            raise _invalid(router)
        is_number = isinstance(chosen, int) and not isinstance(chosen, bool) and chosen > 0
        if chosen is not None and not is_number:
            raise ConfigurationError(
                f"routers={{{router!r}: {chosen!r}}}: expected how many experts are chosen for "
                "each token, a whole number of at least 1"
            )
    return routers  # type: ignore[no-any-return]  # checked


def _invalid(value: Any) -> ConfigurationError:
    return ConfigurationError(
        f"routers={described(value)}: expected the name of a layer, a module, a list of these, or "
        "a mapping of them to the number of experts that are chosen for each token"
    )


def _names(named: Mapping[str, nn.Module], router: str | nn.Module) -> list[str]:
    if isinstance(router, nn.Module):
        names = [name for name, module in named.items() if module is router]
        if not names:
            kind = type(router).__name__
            raise LayerNotFound(f"routers={kind}: this module is not part of the model")
        return names
    names = [name for name in named if fnmatchcase(name, router)]
    if not names:
        near = closest(router, named, listed=12) or "; for the names: fmapboard.layers(model)"
        raise LayerNotFound(f"routers={router!r} matches no layer among {len(named)}{near}")
    return names


def _part(named: Mapping[str, nn.Module], name: str, chosen: int | None) -> LayerPart:
    found = experts_of_router(named, name)
    if chosen is None:
        chosen = found.chosen
    if found.experts is None:
        raise ConfigurationError(
            f"routers={name!r}: no linear layer in it says how many experts there are; name the "
            "module that returns a number for each expert"
        )
    if chosen is None:
        raise ConfigurationError(
            f"routers={name!r}: nothing says how many of its {found.experts} experts are chosen "
            f"for each token; pass it: routers={{{name!r}: 2}}"
        )
    if chosen >= found.experts:
        raise ConfigurationError(
            f"routers={name!r}: {chosen} of {found.experts} experts are chosen for each token; "
            "expected fewer than there are"
        )
    shape = f"Experts {found.experts}, top {chosen}"
    return LayerPart(shape, "expert", found.experts, chosen)
