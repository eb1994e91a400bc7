"""``surroundings_kept``: a block after which what the user's code refers to is as it was before."""

from __future__ import annotations

import inspect
import random
import types
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.interrupts import blocks, restoring
from fmapboard.model.kernel_shapes import names_in

_GENERATORS = (torch.Generator, random.Random, np.random.RandomState, np.random.Generator)
_SKIPPED = (Tensor, np.ndarray, str, bytes, int, float, type(None), types.ModuleType)
_MOST_OBJECTS = 10_000
_OF_LIBRARIES = ("site-packages", "dist-packages")


def surroundings_kept(*sources: Any) -> restoring:
    """A block after which the grad mode, generators and modules that code refers to are as before.

    Also if an interrupt has kept blocks inside it from ending; these are closed. The generators of
    random numbers are the global ones of Python, NumPy and torch on the CPU, and those of the
    sources: in attributes of objects and classes, and in the closures, defaults and global
    variables of their functions. The modules are those to which methods of classes refer, which
    no copy of an object replaces.

    Args:
        sources: objects or classes, such as a loader and the classes of a network's modules.
    """
    held = _held(sources)
    put_back: list[Callable[[], object]] = [
        partial(random.setstate, random.getstate()),
        partial(np.random.set_state, np.random.get_state()),
        partial(torch.set_rng_state, torch.get_rng_state()),
        *map(_generator_put_back, held.generators),
        *map(_module_put_back, held.modules),
        partial(torch._C._set_grad_enabled, torch.is_grad_enabled()),
    ]
    own_depth = len(blocks.open) + 1

    def end() -> None:
        blocks.close(own_depth)
        for restore in put_back:
            restore()

    def end_also_if_interrupted() -> None:
        try:
            end()
        except BaseException:
            end()
            raise

    return restoring(lambda: None, end_also_if_interrupted)


def code_of(model: nn.Module) -> set[type]:
    """The classes of a network's modules, whose code may refer to generators and modules."""
    return {type(module) for module in model.modules()}


def _generator_put_back(held: Any) -> Callable[[], object]:
    """What gives a generator the state that it has now."""
    if isinstance(held, torch.Generator):
        return partial(held.set_state, held.get_state())
    if isinstance(held, random.Random):
        return partial(held.setstate, held.getstate())
    if isinstance(held, np.random.RandomState):
        return partial(held.set_state, held.get_state())
    return partial(setattr, held.bit_generator, "state", held.bit_generator.state)


def _module_put_back(held: nn.Module) -> Callable[[], object]:
    """What gives the tensors of a module the values and gradients that they have now."""
    values = []
    gradients = []
    for tensor in (*held.parameters(), *held.buffers()):
        if is_lazy(tensor):
            continue
        values.append((tensor, tensor.detach().clone()))
        gradient = tensor.grad
        gradients.append((tensor, gradient))
        if gradient is not None:
            values.append((gradient, gradient.detach().clone()))

    def put_back() -> None:
        with torch.no_grad():
            for tensor, gradient in gradients:
                tensor.grad = gradient
            for tensor, value in values:
                if not torch.equal(tensor, value):
                    tensor.copy_(value)

    return put_back


class _Held(NamedTuple):
    """What objects and their code refer to."""

    generators: list[Any]
    modules: list[nn.Module]


def _held(sources: Iterable[Any]) -> _Held:
    """What objects, and what they hold, refer to."""
    found = _Held([], [])
    waiting = list(sources)
    seen = set[int]()
    while waiting and len(seen) < _MOST_OBJECTS:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, _SKIPPED):
            continue
        seen.add(id(item))
        if isinstance(item, _GENERATORS):
            found.generators.append(item)
        elif isinstance(item, Mapping):
            waiting += item.values()
        elif isinstance(item, (list, tuple, set)):
            waiting += list(item)[:100]  # of a list of samples the first ones
        elif isinstance(item, types.FunctionType):
            waiting += _referred_to(item)
        elif isinstance(item, type):
            functions = _functions_of(item)
            referred_to = [held for function in functions for held in _referred_to(function)]
            found.modules.extend(held for held in referred_to if isinstance(held, nn.Module))
            for kind in item.__mro__:
                waiting += vars(kind).values()
        elif isinstance(item, types.MethodType):
            waiting += [item.__func__, item.__self__]
        elif isinstance(item, (staticmethod, classmethod)):
            waiting.append(item.__func__)
        elif isinstance(item, partial):
            waiting += [item.func, item.args, item.keywords]
        else:
            waiting.append(type(item))
            waiting += vars(item).values() if hasattr(item, "__dict__") else ()
    return found


def _functions_of(kind: type) -> list[types.FunctionType]:
    """The methods of a class and of those that it inherits from."""
    found = []
    for base in kind.__mro__:
        members = map(inspect.unwrap, vars(base).values())  # torch wraps the step of an optimizer
        found += [member for member in members if isinstance(member, types.FunctionType)]
    return found


def _referred_to(function: types.FunctionType) -> list[Any]:
    """What a function refers to; nothing for one of an installed library that is no closure."""
    held: list[Any] = list(function.__defaults__ or ())
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    if not any(part in function.__code__.co_filename for part in _OF_LIBRARIES):
        held += map(function.__globals__.get, names_in(function.__code__))
    return held
