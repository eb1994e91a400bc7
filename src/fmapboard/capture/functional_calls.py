"""Convolutions called as functions; a file of its own, as it reads the autograd graph, no layer.

The graph is that of what the model returns, and nothing is put around the pass. What has no node
there, as in a pass without gradients or in compiled code, is not counted; what may be a layer's is
not, either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from fmapboard.errors import few
from fmapboard.model.layers import clean_name, named_layers
from fmapboard.records import LayerCall

_CONVOLUTION = "ConvolutionBackward0"
"""The node of every convolution, transposed ones included; its second edge leads to the weight."""

_MAX_NODES = 20_000
"""How many nodes behind the output are searched."""

_MAX_BEHIND_WEIGHT = 64
"""How many nodes behind a weight are searched for the parameter that it is computed from."""

_PARAMETRIZATIONS = ".parametrizations."


@dataclass(frozen=True, slots=True)
class FunctionalCalls:
    """Calls of convolutions as functions, of one forward pass.

    Attributes:
        count: how many.
        weights: names of the parameters that are their kernels; of other kernels, none is known.
    """

    count: int
    weights: tuple[str, ...]

    def __str__(self) -> str:
        plural = "s" if self.count > 1 else ""
        kernels = f" ({few(self.weights)})" if self.weights else ""
        return f"{self.count} functional call{plural} of a convolution{kernels}"


def functional_calls(
    nodes: Collection[Any], model: nn.Module, calls: Collection[LayerCall]
) -> FunctionalCalls:
    """The convolutions behind the output of a pass that are calls of functions.

    Args:
        nodes: those of the output. Nothing that the model received requires a gradient.
        model: the unwrapped model, all of whose convolutions are watched.
        calls: the watched layers that ran, and the tensors named by ``tap``, each of which may be
            the result of such a call.
    """
    if any(isinstance(module, nn.DataParallel) for module in model.modules()):
        return FunctionalCalls(0, ())  # which layers of its copies ran is not known
    parameters = _Parameters(model, {call.layer for call in calls})
    weights = list[str]()
    fixed = 0
    count = 0
    for node in _behind(nodes, _MAX_NODES):
        if node.name() != _CONVOLUTION:
            continue
        count += 1
        kernel = node.next_functions[1][0]
        if kernel is None:
            fixed += 1
        else:
            name = parameters.name_of(_nearest_leaf(kernel))
            if name is not None:
                weights.append(name)
    # Frozen layers have fixed kernels, too.
    layers = [call for call in calls if call.kernel_shape is not None]
    fixed = max(0, min(fixed, count - len(weights) - len(layers)))
    tapped = len([call for call in calls if call.layer not in parameters.layers])
    found = max(0, len(weights) + fixed - tapped)
    return FunctionalCalls(found, tuple(dict.fromkeys(weights)))


class _Parameters:
    """The parameters of a model, and which of them are kernels of layers that ran.

    Attributes:
        layers: names of all modules.
    """

    def __init__(self, model: nn.Module, ran: Collection[str]) -> None:
        named = named_layers(model)
        self.layers = named.keys()
        self._names: dict[int, str] = {}
        for name, module in named.items():
            layer = name.partition(_PARAMETRIZATIONS)[0]
            if layer in ran or isinstance(module, torch.jit.ScriptModule):
                continue
            for parameter_name, parameter in module.named_parameters(recurse=False):
                full = f"{name}.{parameter_name}" if module is not model else parameter_name
                self._names[id(parameter)] = clean_name(full)

    def name_of(self, leaf: Any) -> str | None:
        """The name of a leaf that is a parameter, but of no layer that ran."""
        return None if leaf is None else self._names.get(id(leaf))


def _behind(nodes: Collection[Any], most: int) -> Iterator[Any]:
    """Nodes and those behind them, nearest first, up to a limit."""
    due = deque(nodes)
    seen = set(nodes)
    while due:
        node = due.popleft()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen and len(seen) < most:
                seen.add(following)
                due.append(following)


def _nearest_leaf(node: Any) -> Any:
    """The leaf tensor that a weight is, or is computed from; None if it is too far."""
    for behind in _behind([node], _MAX_BEHIND_WEIGHT):
        if type(behind).__name__ == "AccumulateGrad":
            return behind.variable
    return None
