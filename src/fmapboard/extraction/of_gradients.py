"""``extract_gradients``: what backward hooks receive, also around in-place operations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.utils.hooks import RemovableHandle

from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import untouched
from fmapboard.errors import ConfigurationError
from fmapboard.extraction.call_trace import run_recorded
from fmapboard.extraction.of_outputs import hooked_layers, positional
from fmapboard.model.given import returned
from fmapboard.model.layers import Layers
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.records import LayerCall


@dataclass(frozen=True, slots=True)
class LayerGradients:
    """Gradients of a loss with respect to a layer's outputs and inputs, as in a full backward hook.

    Attributes:
        grad_output: One gradient per tensor that the layer returned, of the same shape; None where
            no gradient flows.
        grad_input: One gradient per tensor among the layer's positional arguments, of the same
            shape; None where no gradient flows.
    """

    grad_output: tuple[Tensor | None, ...]
    grad_input: tuple[Tensor | None, ...]


def extract_gradients(
    model: nn.Module,
    x: Any,
    loss: Callable[[Any], Tensor],
    layers: Layers = None,
    *,
    forward_kwargs: Mapping[str, Any] | None = None,
) -> dict[str, LayerGradients]:
    """Return the gradients of a loss with respect to each layer's outputs and inputs.

    In-place operations before or after a layer are supported; a full backward hook would raise. The
    parameters' ``.grad``, buffers, modes and random states are left unchanged. The model's input is
    treated as requiring gradients, so the first layer has a ``grad_input`` too.

    Args:
        model: Any module.
        x: Input of the model, as in ``extract``.
        loss: Function of the model's output that returns a tensor with one element.
        layers: Names, glob patterns, module types or a predicate (see ``model.layers.Layers``).
            None selects every convolution, or in a model without any, every layer with parameters.
        forward_kwargs: Keyword arguments of the model.

    Returns:
        A dict in call order: layer name -> ``LayerGradients``. A layer's second call in the pass is
        ``name.call2``.

    Raises:
        LayerNotFound: A pattern in ``layers`` matches no layer; the message lists similar names.
        NoConvolution: There is no convolution to select, or by default no layer with parameters.
        ConfigurationError: An argument is invalid, or the loss is not a tensor with one element
            that requires a gradient.
        ForwardError: The model raised an exception, as in ``extract``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from fmapboard import extract_gradients
        >>> net = nn.Sequential(nn.Conv2d(1, 2, 1, bias=False), nn.ReLU(inplace=True))
        >>> found = extract_gradients(net, torch.ones(1, 1, 2, 2), loss=lambda out: out.sum())
        >>> tuple(found["0"].grad_output[0].shape), tuple(found["0"].grad_input[0].shape)
        ((1, 2, 2, 2), (1, 1, 2, 2))
    """
    registry = hooked_layers(model, layers)
    edges = _Edges()
    with untouched(registry.model), torch.inference_mode(False), torch.enable_grad():
        arguments = map_tensors(positional(x), _requiring_gradient)
        keywords = map_tensors(dict(forward_kwargs or {}), _requiring_gradient)
        run = partial(registry.model, *arguments, **keywords)
        with contextlib.ExitStack() as hooks:
            for name, module in registry.layers.items():
                hooks.callback(edges.watch_inputs(name, module).remove)
            output = run_recorded(registry, edges, run, arguments)
        registry.check_taps()
        value = loss(output)
        return edges.gradients(_checked(value))


def _requiring_gradient(tensor: Tensor) -> Tensor:
    """A copy that requires a gradient and is not a leaf: the first layer may modify it in place.

    A tensor created in inference mode cannot be part of a graph, but its clone can.
    """
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    detached = tensor.detach().clone() if tensor.is_inference() else tensor.detach()
    return detached.requires_grad_().clone()


def _checked(value: Any) -> Tensor:
    if not isinstance(value, Tensor) or value.numel() != 1:
        raise ConfigurationError(
            f"loss returned {returned(value)}: expected a tensor with one element"
        )
    if not value.requires_grad:
        raise ConfigurationError("the loss does not require a gradient: does it detach the output?")
    return value


@dataclass(frozen=True, slots=True)
class _Entry:
    """One input tensor of a layer.

    Attributes:
        seen: What the layer receives: a view, if the tensor requires a gradient.
        version: Version counter of ``seen`` before the layer ran.
        alone: Graph edge of the view. Its gradient is this layer's share if others use the tensor
            too.
        all_uses: Graph edge of the tensor itself, for a layer that overwrites its input in place.
    """

    seen: Tensor
    version: int
    alone: GradientEdge | None
    all_uses: GradientEdge | None


class _Edges(CaptureListener):
    """A ``CaptureListener`` that keeps graph edges, which survive in-place operations."""

    def __init__(self) -> None:
        self._outputs: dict[str, list[GradientEdge | None]] = {}
        self._inputs: dict[str, list[GradientEdge | None]] = {}
        self._waiting: dict[str, list[_Entry]] = {}

    def watch_inputs(self, name: str, module: nn.Module) -> RemovableHandle:
        """Add a hook that passes views of the inputs to the layer and keeps their edges."""

        def hook(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            entries: list[_Entry] = []

            def view(tensor: Tensor) -> Tensor:
                seen = tensor.view_as(tensor) if tensor.requires_grad else tensor
                entries.append(_Entry(seen, seen._version, _edge(seen), _edge(tensor)))
                return seen

            viewed: tuple[Any, ...] = map_tensors(args, view)
            self._waiting[name] = entries
            return viewed

        return module.register_forward_pre_hook(hook)

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._outputs.clear()
        self._inputs.clear()

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        self._outputs[layer_call.label] = [_edge(tensor) for tensor in tensors(value)]
        self._inputs[layer_call.label] = [
            entry.alone if entry.seen._version == entry.version else entry.all_uses
            for entry in self._waiting.pop(layer_call.layer, [])
        ]

    def gradients(self, loss: Tensor) -> dict[str, LayerGradients]:
        lists = [*self._outputs.values(), *self._inputs.values()]
        known = [edge for edges in lists for edge in edges if edge is not None]
        found = torch.autograd.grad(loss, known, allow_unused=True) if known else ()
        of_edge = dict(zip(map(_key, known), found, strict=True))

        def row(edges: list[GradientEdge | None]) -> tuple[Tensor | None, ...]:
            return tuple(None if edge is None else of_edge[_key(edge)] for edge in edges)

        return {
            label: LayerGradients(row(edges), row(self._inputs.get(label, [])))
            for label, edges in self._outputs.items()
        }


def _edge(tensor: Tensor) -> GradientEdge | None:
    return get_gradient_edge(tensor) if tensor.requires_grad else None


def _key(edge: GradientEdge) -> tuple[int, int]:
    return id(edge.node), edge.output_nr
