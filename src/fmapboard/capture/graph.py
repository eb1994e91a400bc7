"""``GraphDrawer``, a file of its own for ``graph=True``: the graph, recorded once on a copy."""

from __future__ import annotations

import copy
import inspect
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from functools import partial
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.weak import WeakTensorKeyDictionary

from fmapboard.capture.guard import Guard
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.side_pass import copied_values, untouched
from fmapboard.errors import WarnOnce
from fmapboard.formats.tags import prefix
from fmapboard.interrupts import interrupt_in
from fmapboard.model.distributed import rank, world_size
from fmapboard.model.layers import clean_name
from fmapboard.model.tensors import tensors
from fmapboard.options import Options
from fmapboard.records import GraphNode, ModelGraph


class NoGraph(Exception):
    """Why there is no graph."""


_CALLS_ORIGINAL = "the copy calls the original model"
"""A deep copy reaches the original through functions, which are not copied: lambdas that hold
``self``, weak references, closures."""

_RESERVED = re.compile(r"[/:^\s]")
"""What TensorBoard reads as a scope, an output's index or a control dependency."""

_IN_PLACE = {"__setitem__", "__delitem__"}
"""Operations that change their first argument and return nothing."""


class GraphNodes(TorchFunctionMode):
    """Records each operation on tensors while it is entered: ``with GraphNodes(model, root):``.

    It sees the functions that ``forward`` calls, such as ``conv2d``, ``relu`` and ``add``, not the
    kernels below them. It replaces the calls of the model's modules, so the model is a copy that
    nobody else uses. It keeps no tensor alive.

    Args:
        model: the model that runs.
        original: what it is a copy of; an operation on its parameters or buffers is refused.
        root: name of the scope of the whole model.

    Attributes:
        reaches_original: an operation was refused; the model may have caught the error.

    Raises:
        NoGraph: an operation is refused.
    """

    def __init__(self, model: nn.Module, original: nn.Module, root: str) -> None:
        super().__init__()
        self._originals = {id(tensor) for tensor in _weights(original)}
        self.reaches_original = False
        self._root = _RESERVED.sub("_", root)
        self.nodes: list[GraphNode] = []
        self._taken: Counter[str] = Counter()
        self._scopes: list[tuple[str, str, str]] = []
        self._made_by: Any = WeakTensorKeyDictionary()
        self._parameters: Any = WeakTensorKeyDictionary()
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            self._parameters[tensor] = clean_name(name)
        for name, module in model.named_modules():
            # What torch calls instead of `forward` and every hook, also those on all modules.
            vars(module)["_compiled_call_impl"] = partial(self._call, clean_name(name), module)
        own = inspect.signature(model.forward).parameters.values()
        by_position = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        self._arguments = [one.name for one in own if one.kind in by_position]

    def inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Add a node per tensor that the model takes, named after the argument of ``forward``."""
        names = [*self._arguments, *(f"argument{i}" for i in range(len(args)))]
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            for tensor in tensors(value):
                self._add(f"{self._root}.input/{_clean(name)}", "Input", (), (tensor,))

    def outputs(self, value: Any) -> None:
        """Add a node per tensor that the model returned."""
        for tensor in tensors(value):
            self._add(f"{self._root}.output/output", "Output", (self._source(tensor),), (tensor,))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and record it if it returns tensors."""
        if not self._originals.isdisjoint(map(id, tensors((args, kwargs)))):
            self.reaches_original = True
            raise NoGraph(_CALLS_ORIGINAL)
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", type(func).__name__)
        returned = args[:1] if name in _IN_PLACE else result
        made = tuple(tensor for tensor in tensors(returned) if not self._is_weight(tensor))
        if made:
            self._operation(_op(func, name), (args, kwargs or {}), made)
        return result

    def _call(self, name: str, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        """Run a module without its hooks; what it computes unseen becomes one node of its type."""
        self._enter(name, module)
        output = module.forward(*args, **kwargs)
        unseen = tuple(t for t in tensors(output) if t not in self._made_by)
        if unseen and not all(map(self._is_weight, unseen)):
            self._operation(type(module).__name__, (args, kwargs), unseen)
        self._scopes.pop()
        return output

    def _enter(self, name: str, module: nn.Module) -> None:
        scope = self._scope_of(name)
        if not self._scopes or self._scopes[-1][0] != name:  # a wrapper has its module's name
            self._taken[f"{scope}/"] += 1
            call = self._taken[f"{scope}/"]
            scope = scope if call == 1 else f"{scope}.call{call}"
        described = f"{type(module).__name__}({module.extra_repr()})"
        self._scopes.append((name, scope, described))

    def _scope_of(self, name: str) -> str:
        """The scope of a module below that of the module that calls it."""
        for outer, scope, _ in reversed(self._scopes):
            if name == outer:
                return scope
            if not outer or name.startswith(f"{outer}."):
                below = name[len(outer) + 1 :] if outer else name
                return "/".join([scope, *map(_clean, below.split("."))])
        return "/".join([self._root, *map(_clean, filter(None, name.split(".")))])

    def _operation(self, op: str, given: Any, made: tuple[Tensor, ...]) -> None:
        scope, module = (self._scopes[-1] if self._scopes else ("", self._root, ""))[1:]
        sources = dict.fromkeys(self._source(tensor) for tensor in tensors(given))
        self._add(f"{scope}/{_clean(op)}", op, tuple(sources), made, module)

    def _source(self, tensor: Tensor) -> str:
        """Name of the node that returned the tensor; a parameter gets its node here."""
        if tensor in self._made_by:
            return str(self._made_by[tensor])
        scope = self._scopes[-1][1] if self._scopes else self._root
        parameter = self._parameters.get(tensor)
        if parameter is None:
            return self._add(f"{scope}/constant", "Constant", (), (tensor,))
        return self._add(f"{self._scope_of(parameter)}", "Parameter", (), (tensor,))

    def _is_weight(self, tensor: Tensor) -> bool:
        return tensor in self._parameters and tensor not in self._made_by

    def _add(
        self, name: str, op: str, sources: tuple[str, ...], made: tuple[Tensor, ...], of: str = ""
    ) -> str:
        self._taken[name] += 1
        number = self._taken[name] - 1
        unique = f"{name}_{number}" if number else name
        shapes = tuple(tuple(tensor.shape) for tensor in made)
        self.nodes.append(GraphNode(unique, op, sources, shapes, of))
        for tensor in made:
            self._made_by[tensor] = unique
        return unique


def _op(func: Any, name: str) -> str:
    """The function's name as a user writes it: ``add`` for ``Tensor.__add__``."""
    if name == "__get__":  # a property, such as Tensor.T
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    return name.strip("_") or "operation"


def _clean(name: str) -> str:
    return _RESERVED.sub("_", name) or "_"


MAX_COPIED_BYTES = 4 * 2**30
"""A model whose parameters and buffers are larger is not copied."""

_HOOKS = vars(nn.Module()).keys() - {"_parameters", "_buffers", "_modules"}
"""Where torch keeps a module's hooks, among others. A user's own dict may be called ``hooks``."""

_CONSEQUENCE = "the Graphs tab is not written; training continues"


class GraphDrawer:
    """Records the network's graph at the first logged step, on a copy of the model.

    The copy runs a copy of the batch without gradients, right before the model runs it: the
    activations of training do not take memory yet. Fake tensors would take none, but a cache of the
    user's, outside the model, could keep one of them and break training. Hooks of the model, and
    those on all modules, are not called. Errors are reported, interrupts raised. There is no graph
    if the copy uses weights of the original, or with several processes: only one would run
    collectives in ``forward``.

    Args:
        registry: hooks the unwrapped model; its own hooks ignore the copy.
        options: the name that the model is watched under.
        guard: times the recording.
        warn: where errors are reported.
    """

    def __init__(
        self, registry: HookRegistry, options: Options, guard: Guard, warn: WarnOnce
    ) -> None:
        self._registry, self._guard, self._warn = registry, guard, warn
        self._model, self._is_due = registry.model, True
        self._root = prefix(options.name) + type(registry.model).__name__
        self._graph: ModelGraph | None = None

    def draw(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Record the graph if that is still to be done.

        Args:
            args: what the model is called with; neither it nor its tensors are changed.
            kwargs: likewise.
        """
        if not self._is_due or any(map(is_lazy, self._model.parameters())):
            return
        self._is_due = False
        if rank() > 0:  # another rank says why
            return
        with self._guard("graph"), self._registry.paused():
            try:
                if world_size() > 1:
                    raise NoGraph(f"training runs in {world_size()} processes")
                nbytes = sum(tensor.nbytes for tensor in _weights(self._model))
                if nbytes > MAX_COPIED_BYTES:
                    raise NoGraph(f"the model has {nbytes / 2**30:.1f} GiB, too much for a copy")
                self._graph = self._recorded(args, kwargs)
            except Exception as error:
                if interrupt_in(error) is not None:
                    raise  # the guard decides whether the interrupt is new
                if isinstance(error, NoGraph):
                    self._warn.warn("graph", f"{error}: {_CONSEQUENCE}")
                else:
                    self._warn.error("graph", error, _CONSEQUENCE)

    def taken(self) -> ModelGraph | None:
        """The graph if it was recorded since the last call, otherwise None."""
        graph, self._graph = self._graph, None
        return graph

    def _recorded(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModelGraph:
        with (
            untouched(self._model, attributes=True),
            torch.no_grad(),
            _disable_current_modes(),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # training says what there is to say
            model = copied(self._model)
            own_args, own_kwargs = copied_values((args, dict(kwargs)))
            nodes = GraphNodes(model, self._model, self._root)
            nodes.inputs(own_args, own_kwargs)
            with nodes:
                nodes.outputs(model(*own_args, **own_kwargs))
        if nodes.reaches_original:  # forward caught the error
            raise NoGraph(_CALLS_ORIGINAL)
        return ModelGraph(tuple(nodes.nodes))


def copied(model: nn.Module) -> nn.Module:
    """A deep copy of a model without its hooks, whose owners are not copied either."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        for name, value in vars(module).items():
            if name in _HOOKS and isinstance(value, dict):
                memo[id(value)] = type(value)()
            elif name not in ("_parameters", "_buffers", "_modules"):
                # Such as the weight that weight_norm computes, which deepcopy refuses.
                memo |= {id(t): t.detach().clone() for t in tensors(value) if not t.is_leaf}
    twin = copy.deepcopy(model, memo)
    for module in twin.modules():
        own = vars(module).get("forward")
        if isinstance(own, FunctionType) and type(module).forward is not nn.Module.forward:
            del vars(module)["forward"]  # it may call the original
    return twin


def _weights(model: nn.Module) -> list[Tensor]:
    """All parameters and buffers."""
    return [*model.parameters(), *model.buffers()]
