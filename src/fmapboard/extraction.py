"""The true outputs, inputs and gradients of any layers, from one forward pass."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.utils.hooks import RemovableHandle

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.passes import Side
from fmapboard.capture.side_pass import untouched
from fmapboard.errors import ConfigurationError
from fmapboard.measure.layout import axes_of
from fmapboard.measure.reducer import Reducer
from fmapboard.model.given import check_input, check_model
from fmapboard.model.layers import Layers, scripted_warning
from fmapboard.model.tensors import first_tensor, map_tensors, tensors
from fmapboard.notebook import LayerMaps
from fmapboard.records import LayerCall

log = logging.getLogger("fmapboard")


def extract(
    model: nn.Module,
    x: Any,
    layers: Layers = None,
    *,
    side: Side = "output",
    forward_kwargs: Mapping[str, Any] | None = None,
) -> LayerMaps:
    """Each layer's true output (or input) in one forward pass, cloned.

    What ``forward`` of the layer returned, before an in-place operation behind it could change it.
    The model runs in the mode it is in, without gradients; its buffers, its parameters and all
    random states come back as they were, and no hook stays.

    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True))
    >>> {name: tuple(out.shape) for name, out in extract(net, torch.zeros(1, 3, 8, 8)).items()}
    {'0': (1, 8, 6, 6)}

    Args:
        model: any module.
        x: what the model is called with: anything but a tuple is its one argument, a tuple its
            positional arguments.
        layers: which (see `Layers`), any module; None is every convolution.
        side: ``"output"`` or ``"input"``. The input of a layer with one positional argument is
            that argument; otherwise a tuple of them, keyword arguments behind.
        forward_kwargs: keyword arguments of the call.

    Returns:
        A dict: layer name -> tensor (or tuple, list, dict of tensors, as the layer returned it), in
        call order; a layer's second call in the pass stands under ``name.call2``. In a notebook it
        shows a picture of each layer, read as `watch` reads it.

    Raises:
        LayerNotFound, NoConvolution, ConfigurationError: as `layers.select` does.
    """
    if side not in ("output", "input"):
        raise ConfigurationError(f"side={side!r}: expected 'output' or 'input'")
    registry, arguments = _registry(model, layers), _arguments(x)
    collector = _Collector(Reducer.for_model(registry.model))
    with registry.listening(collector, sides=(side,)), untouched(registry.model), torch.no_grad():
        registry.model(*arguments, **(forward_kwargs or {}))
    return collector.values


def _registry(model: nn.Module, layers: Layers) -> HookRegistry:
    check_model(model)
    registry = HookRegistry(model, layers)
    scripted = scripted_warning(registry.model)
    if scripted is not None:
        log.warning("%s", scripted)
    return registry


class _Collector:
    """A `listener.CaptureListener` that clones what it receives."""

    def __init__(self, reducer: Reducer) -> None:
        self.values = LayerMaps()
        # Whatever fills a square is drawn: a grid is asked for, not logged.
        self.values.reducer = replace(reducer, tokens_are_patches=not reducer.has_sequences)

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.values.clear()

    def again(self) -> bool:
        return False

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        self.values[layer_call.label] = map_tensors(
            _input(value) if side == "input" else value, lambda tensor: tensor.detach().clone()
        )
        maps = first_tensor(self.values[layer_call.label])
        if maps is not None:
            last = self.values.reducer.channels_last_sequences
            axes = axes_of(module, maps.shape, channels_last_sequences=last)
            self.values.axes[layer_call.label] = axes


def _input(value: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    args, kwargs = value
    whole = (*args, *kwargs.values())
    return whole[0] if len(whole) == 1 else whole


def _arguments(x: Any) -> tuple[Any, ...]:
    arguments = x if isinstance(x, tuple) else (x,)
    for argument in arguments:
        check_input(argument, what="x")
    return arguments


@dataclass(frozen=True, slots=True)
class LayerGradients:
    """What a backward hook of the layer would get; None where no gradient flows.

    ``grad_output`` has an entry for each tensor that the layer returned, ``grad_input`` for each
    tensor among its positional arguments, each with the shape of its tensor.
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
    """The gradients of a loss with respect to each layer's outputs and inputs.

    Right behind in-place operations too, where a backward hook of the module would raise. The
    parameters' ``.grad``, buffers, modes and random states stay as they are. The network's own
    input counts as requiring gradients, so the first layer has a ``grad_input`` as well.

    >>> net = nn.Sequential(nn.Conv2d(1, 2, 1, bias=False), nn.ReLU(inplace=True))
    >>> gradients = extract_gradients(net, torch.ones(1, 1, 2, 2), loss=lambda out: out.sum())
    >>> tuple(gradients["0"].grad_output[0].shape)
    (1, 2, 2, 2)

    Args:
        model: any module.
        x: what the model is called with, as in `extract`.
        loss: from the model's output to a tensor of one element.
        layers: which (see `Layers`), any module; None is every convolution.
        forward_kwargs: keyword arguments of the call.

    Returns:
        Layer name -> its gradients, in call order; later calls under ``name.call2``.

    Raises:
        ConfigurationError: the loss is no tensor of one element, or needs no gradient.
        LayerNotFound, NoConvolution: as `layers.select` does.
    """
    registry = _registry(model, layers)
    edges = _Edges()
    with contextlib.ExitStack() as stack:
        stack.enter_context(registry.listening(edges))
        for name, module in registry.layers.items():
            stack.callback(edges.watch_inputs(name, module).remove)
        stack.enter_context(untouched(registry.model))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        arguments = map_tensors(_arguments(x), _requiring_gradient)
        value = loss(registry.model(*arguments, **(forward_kwargs or {})))
        return edges.gradients(_checked(value))


def _requiring_gradient(tensor: Tensor) -> Tensor:
    """A copy inside a graph, no leaf: the first layer may work in place.

    A tensor made in inference mode can enter no graph, a clone of it can.
    """
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    source = tensor.detach().clone() if tensor.is_inference() else tensor.detach()
    return source.requires_grad_().clone()


def _checked(value: Any) -> Tensor:
    if not isinstance(value, Tensor) or value.numel() != 1:
        what = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ConfigurationError(f"loss returned {what}: expected a tensor of one element")
    if not value.requires_grad:
        raise ConfigurationError("the loss needs no gradient: is the output detached in it?")
    return value


@dataclass(frozen=True, slots=True)
class _Entry:
    """One tensor that goes into a layer.

    ``alone`` is the edge of a view that only this layer sees, so its gradient is the layer's share
    where others use the tensor too. ``all_uses`` is the tensor's own edge, the one that holds
    where the layer overwrites its input: that cuts the view off.
    """

    seen: Tensor
    version: int
    alone: GradientEdge | None
    all_uses: GradientEdge | None


class _Edges:
    """A `listener.CaptureListener` that keeps graph edges: they survive in-place operations."""

    def __init__(self) -> None:
        self._outputs: dict[str, list[GradientEdge | None]] = {}
        self._inputs: dict[str, list[GradientEdge | None]] = {}
        self._waiting: dict[str, list[_Entry]] = {}

    def watch_inputs(self, name: str, module: nn.Module) -> RemovableHandle:
        """Hand the layer views of its inputs, and remember their edges for `captured`."""

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

    def again(self) -> bool:
        return False

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
