"""``GraphDrawer``: the network's graph, recorded once on a copy of the model."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import _disable_current_modes

from fmapboard.capture.graph_nodes import GraphNodes
from fmapboard.capture.guard import Guard
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.side_pass import random_states_kept
from fmapboard.errors import WarnOnce, first_line
from fmapboard.model.distributed import is_sharded
from fmapboard.model.tensors import map_tensors
from fmapboard.options import Options
from fmapboard.records.model_graph import ModelGraph
from fmapboard.tags import prefix

MAX_COPIED_BYTES = 2**30
"""A model whose tensors are larger is not copied with its values."""

_CONSEQUENCE = "the Graphs tab is not written; training continues"


class GraphDrawer:
    """Records the network's graph at the first logged step, on a copy of the model.

    The copy runs the batch on fake tensors, which have shapes but no values and take no memory. If
    the forward pass depends on values, a second copy runs the batch itself, without gradients.
    Hooks of the model, and those on all modules, are not called. Errors are reported, not raised.

    Args:
        registry: hooks the unwrapped model; its own hooks ignore the copy.
        options: whether the graph is recorded, and the name that the model is watched under.
        guard: times the recording.
        warn: where errors are reported.
    """

    def __init__(
        self, registry: HookRegistry, options: Options, guard: Guard, warn: WarnOnce
    ) -> None:
        self._registry, self._guard, self._warn = registry, guard, warn
        self._model, self._is_due = registry.model, options.graph
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
        with self._guard("graph"), self._registry.paused():
            try:
                self._graph = self._recorded(args, kwargs)
            except Exception as error:
                self._warn.error("graph", error, _CONSEQUENCE)

    def taken(self) -> ModelGraph | None:
        """The graph if it was recorded since the last call, otherwise None."""
        graph, self._graph = self._graph, None
        return graph

    def _recorded(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModelGraph | None:
        if is_sharded(self._model):
            self._warn.warn("graph", f"parameters are sharded over ranks: {_CONSEQUENCE}")
            return None
        with random_states_kept(self._model), torch.no_grad(), _disable_current_modes():
            try:
                return self._on_fake_tensors(args, kwargs)
            except Exception as error:
                if self._is_too_large(first_line(error)):
                    return None
            return self._run(copied(self._model), torch.clone, args, kwargs)

    def _is_too_large(self, why: str) -> bool:
        """True if the model is not copied with its values, which is reported."""
        nbytes = sum(t.nbytes for t in (*self._model.parameters(), *self._model.buffers()))
        if nbytes > MAX_COPIED_BYTES:
            text = f"forward() needs values ({why}), and the model has {nbytes / 2**30:.1f} GiB"
            self._warn.warn("graph", f"{text}: {_CONSEQUENCE}")
        return nbytes > MAX_COPIED_BYTES

    def _on_fake_tensors(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModelGraph:
        from torch._subclasses.fake_tensor import FakeCopyMode, FakeTensorMode  # slow to import

        fake = FakeTensorMode()
        with FakeCopyMode(fake):
            model = copied(self._model)

        def faked(tensor: Tensor) -> Tensor:
            return fake.from_tensor(tensor, static_shapes=True)

        with fake:
            return self._run(model, faked, args, kwargs)

    def _run(
        self,
        model: nn.Module,
        convert: Callable[[Tensor], Tensor],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> ModelGraph:
        nodes = GraphNodes(model, self._root)
        own_args = tuple(map_tensors(args, convert))
        own_kwargs = {name: map_tensors(value, convert) for name, value in kwargs.items()}
        nodes.inputs(own_args, own_kwargs)
        with warnings.catch_warnings(), nodes:
            warnings.simplefilter("ignore")  # training says what there is to say
            nodes.outputs(model(*own_args, **own_kwargs))
        return nodes.graph()


def copied(model: nn.Module) -> nn.Module:
    """A deep copy of a model without its hooks, whose owners are not copied either."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        for name, value in vars(module).items():
            if name.endswith("hooks") and isinstance(value, dict):
                memo[id(value)] = type(value)()
    twin = copy.deepcopy(model, memo)
    for module in twin.modules():
        own = vars(module).get("forward")
        if isinstance(own, FunctionType) and type(module).forward is not nn.Module.forward:
            del vars(module)["forward"]  # it may call the original
    return twin
