"""Find the modules that own parameters, among all that are alive in this process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from torch import nn

from fmapboard.capture.module_calls import is_replica, original_of
from fmapboard.model.layers import unwrap
from fmapboard.model.living import living


class LivingModules:
    """The modules of this process, without copies of fmapboard's own, and which contain which.

    No method of theirs is called. Parameters are known by their ``id``.
    """

    def __init__(self) -> None:
        self._modules: dict[int, nn.Module] = {}
        self._parents: dict[int, list[int]] = {}
        for module in living(nn.Module):
            if "_modules" not in vars(module):  # its constructor has not run
                continue
            if original_of(module) is module and not is_replica(module):
                self._modules[id(module)] = module
        for key, module in self._modules.items():
            for child in _children(module):
                self._parents.setdefault(id(child), []).append(key)

    def outermost(self, parameters: Collection[int], others: Collection[int]) -> list[nn.Module]:
        """The outermost modules that contain some of the parameters, and none of the others.

        Of several that contain the same ones, such as a model and a loss that holds it, only one is
        returned: what torch.compile and DistributedDataParallel made, or else the smallest one.

        Args:
            parameters: at least one of these is in each module.
            others: parameters that are in no module.
        """
        allowed = self._containing(parameters) - self._containing(others)
        roots = []
        for key in allowed:
            if allowed.isdisjoint(self._parents.get(key, ())):
                roots.append(self._modules[key])
        found = []
        own = {id(root): held(root) & set(parameters) for root in roots}
        roots.sort(key=lambda root: (unwrap(root) is root, -len(own[id(root)]), len(inside(root))))
        covered = set[int]()
        for root in roots:
            if not own[id(root)] <= covered:
                found.append(root)
                covered |= own[id(root)]
        return found

    def name_in_parent(self, module: nn.Module) -> str | None:
        """The name of a module in one that contains it; None for an outermost one."""
        for key in self._parents.get(id(module), ()):
            for name, child in vars(self._modules[key])["_modules"].items():
                if child is module:
                    return str(name)
        return None

    def _containing(self, parameters: Collection[int]) -> set[int]:
        """The modules that contain one of the parameters, directly or not."""
        wanted = set(parameters)
        waiting = []
        for key, module in self._modules.items():
            if not wanted.isdisjoint(_own(module)):
                waiting.append(key)
        found = set[int]()
        while waiting:
            key = waiting.pop()
            if key not in found:
                found.add(key)
                waiting += self._parents.get(key, ())
        return found


def _children(module: nn.Module) -> Iterator[nn.Module]:
    for child in list(vars(module)["_modules"].values()):
        if child is not None:
            yield child


def _own(module: nn.Module) -> Iterable[int]:
    return [id(p) for p in vars(module)["_parameters"].values() if p is not None]


def inside(module: nn.Module) -> list[nn.Module]:
    """A module and all modules in it."""
    found: dict[int, nn.Module] = {}
    waiting = [module]
    while waiting:
        current = waiting.pop()
        if id(current) not in found:
            found[id(current)] = current
            waiting += _children(current)
    return list(found.values())


def held(module: nn.Module) -> set[int]:
    """The ``id`` of each parameter in a module."""
    parameters = set[int]()
    for inner in inside(module):
        parameters.update(_own(inner))
    return parameters
