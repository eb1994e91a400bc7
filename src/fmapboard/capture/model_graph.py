"""``GraphDrawer``: the network's graph, recorded once on a copy of the model."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import _disable_current_modes

from fmapboard.capture.compiled import force_eager
from fmapboard.capture.graph_nodes import GraphNodes
from fmapboard.capture.guard import Guard
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.original_calls import NoCalls, OriginalCalled
from fmapboard.capture.side_pass import untouched
from fmapboard.errors import WarnOnce, interrupt_in
from fmapboard.model.distributed import is_sharded, rank, world_size
from fmapboard.model.tensors import tensors
from fmapboard.options import Options
from fmapboard.records.model_graph import ModelGraph
from fmapboard.tags import prefix

MAX_COPIED_BYTES = 4 * 2**30
"""A model whose parameters and buffers are larger is not copied."""

_HOOKS = (
    *("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"),
    *("_backward_hooks", "_backward_pre_hooks"),
    *("_state_dict_hooks", "_state_dict_pre_hooks"),
    *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
)
"""Where torch keeps a module's hooks. A user's own dict may be called ``hooks``, too."""

_CONSEQUENCE = "the Graphs tab is not written; training continues"


class GraphDrawer:
    """Records the network's graph at the first logged step, on a copy of the model.

    The copy runs a copy of the batch without gradients, right before the model runs it: the
    activations of training do not take memory yet. Fake tensors would take none, but a cache of the
    user's, outside the model, could keep one of them and break training. Hooks of the model, and
    those on all modules, are not called. Errors and SystemExit are reported, not raised;
    KeyboardInterrupt and the SystemExit of a signal handler are. There is no graph if the
    copy calls the original, or with several processes: only one would run collectives in
    ``forward``.

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
        self._model, self._is_due = registry.model, options.graph and rank() == 0
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
        if rank() > 0:  # set up after the logger was
            return
        with self._guard("graph"), self._registry.paused():
            try:
                self._graph = self._recorded(args, kwargs)
            except Exception as error:
                if interrupt_in(error) is not None:
                    raise  # the guard decides whether the interrupt is new
                self._warn.error("graph", error, _CONSEQUENCE)

    def taken(self) -> ModelGraph | None:
        """The graph if it was recorded since the last call, otherwise None."""
        graph, self._graph = self._graph, None
        return graph

    def _recorded(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModelGraph | None:
        obstacle = self._obstacle()
        if obstacle:
            self._warn.warn("graph", f"{obstacle}: {_CONSEQUENCE}")
            return None
        no_calls = NoCalls(self._model)
        with untouched(self._model), torch.no_grad(), _disable_current_modes(), force_eager():
            try:
                return self._run_of_copy(args, kwargs, no_calls)
            except Exception as error:
                if not no_calls.is_called or interrupt_in(error) is not None:
                    raise
        self._warn.warn("graph", f"the copy calls the original model: {_CONSEQUENCE}")
        return None

    def _run_of_copy(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], no_calls: NoCalls
    ) -> ModelGraph:
        model, own_args = copied(self._model), _copied_values(args)
        own_kwargs = _copied_values(dict(kwargs))
        nodes = GraphNodes(model, self._root)
        nodes.inputs(own_args, own_kwargs)
        with warnings.catch_warnings(), no_calls, nodes:
            warnings.simplefilter("ignore")  # training says what there is to say
            nodes.outputs(model(*own_args, **own_kwargs))
        if no_calls.is_called:  # forward caught the error
            raise OriginalCalled
        return nodes.graph()

    def _obstacle(self) -> str:
        """Why the model is not copied; "" if it is."""
        if is_sharded(self._model):
            return "parameters are sharded over ranks"
        if world_size() > 1:
            return f"training runs in {world_size()} processes"
        nbytes = sum(t.nbytes for t in (*self._model.parameters(), *self._model.buffers()))
        if nbytes > MAX_COPIED_BYTES:
            return f"the model has {nbytes / 2**30:.1f} GiB, too much for a copy"
        return ""


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


def _copied_values(value: Any) -> Any:
    """A deep copy of arguments, which the model may change."""
    return copy.deepcopy(value, {id(tensor): tensor.detach().clone() for tensor in tensors(value)})
