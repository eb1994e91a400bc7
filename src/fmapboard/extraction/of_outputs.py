"""``extract`` and ``extract_gradients``: outputs, inputs and gradients of layers in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.own_pass import own_pass
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.twin import Twin
from fmapboard.errors import ConfigurationError, log
from fmapboard.extraction.call_trace import check_input, run_recorded
from fmapboard.measure.layout import Sequences, axes_of
from fmapboard.measure.reducer import Reducer
from fmapboard.model.given import check_model, returned
from fmapboard.model.layers import Layers, scripted_warning
from fmapboard.model.tensors import first_tensor, map_tensors, tensors
from fmapboard.notebook import LayerMaps
from fmapboard.records import LayerCall

Sides = Literal["output", "input", "both"]
"""Which tensors of a layer to extract."""


def extract(
    model: nn.Module,
    x: Any = (),
    layers: Layers = None,
    *,
    side: Sides = "output",
    forward_kwargs: Mapping[str, Any] | None = None,
    keep_graph: bool = False,
    effective: bool = False,
) -> LayerMaps:
    """Return each layer's output, input or both in one forward pass.

    Each tensor is cloned when the layer returns (or receives) it, so a later in-place operation,
    such as ``nn.ReLU(inplace=True)``, does not change it. The model runs in its current mode (train
    or eval), without gradients unless ``keep_graph`` is set. Modes, buffers and random states are
    restored afterwards, and all hooks are removed, even after an error.

    Args:
        model: Any module.
        x: Input of the model: a tuple is its positional arguments, anything else its only argument.
        layers: Names, glob patterns, module types or a predicate (see ``model.layers.Layers``).
            None selects every convolution, or in a model without any, every layer with parameters.
        side: ``"output"``, ``"input"``, or ``"both"``: the result then holds the outputs, and its
            ``inputs`` the inputs. The input of a layer with a single argument is that argument;
            otherwise a tuple of the positional arguments followed by the keyword arguments.
        forward_kwargs: Keyword arguments of the model.
        keep_graph: Keep the autograd graph, for a loss of the returned tensors: its backward pass
            reaches the parameters, and ``x`` if that requires a gradient.
        effective: Return what the next layer receives, after all forward hooks on a layer, instead
            of what its ``forward`` returned. Under ``intervene`` that is always so.

    Returns:
        A dict in call order: layer name -> tensor, on the model's device and with the layer's dtype
        and shape; or the tuple, list or dict of tensors that the layer returned. A layer's second
        call in the pass is ``name.call2``. ``groups`` lists the names by kernel shape. In a
        notebook the dict is displayed as pictures of the layers.

    Raises:
        LayerNotFound: A pattern in ``layers`` matches no layer; the message lists similar names.
        NoConvolution: There is no convolution to select, or by default no layer with parameters.
        ConfigurationError: An argument is invalid.
        ForwardError: The model raised an exception. The message names the layer that raised and
            lists the layers that ran before it, with shapes.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from fmapboard import extract
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True))
        >>> maps = extract(net, torch.zeros(1, 3, 8, 8), layers=["0", "1"], side="both")
        >>> maps
        LayerMaps of 2 layers
          0: float32 [1, 8, 6, 6]
          1: float32 [1, 8, 6, 6]
        >>> maps.inputs["0"].shape, maps.groups
        (torch.Size([1, 3, 8, 8]), {KernelShape(8x3x3x3): ['0']})
    """
    registry = hooked_layers(model, layers, effective=effective)
    return extracted(registry, x, side, forward_kwargs or {}, keep_graph)


def extracted(
    registry: HookRegistry, x: Any, side: Sides, kwargs: Mapping[str, Any], keep_graph: bool = False
) -> LayerMaps:
    """As ``extract``, for layers that are selected already."""
    if side not in get_args(Sides):
        raise ConfigurationError(f"side={side!r}: expected 'output', 'input' or 'both'")
    arguments = positional(x)
    sequences = Sequences.of(registry.model)
    collector = _Collector(sequences, side, keep_graph=keep_graph)
    run = partial(run_twin, args=arguments, kwargs=kwargs, keep_graph=keep_graph)
    run_recorded(registry, collector, run, arguments, sides=collector.sides)
    registry.check_taps()
    return collector.values


def run_twin(
    twin: Twin,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    keep_graph: bool = False,
    training: bool | None = None,
) -> None:
    """Run the twin of a model.

    Args:
        twin: The twin.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        keep_graph: As in ``extract``.
        training: The mode that it runs in; None for its own.
    """
    if not keep_graph:
        with torch.no_grad(), own_pass(twin, training=training):
            twin.module(*args, **kwargs)
        return
    # inference_mode(False) also switches gradients on.
    with torch.inference_mode(False), own_pass(twin, training=training):
        own_args = map_tensors(args, _graph_tensor)
        own_kwargs = map_tensors(dict(kwargs), _graph_tensor)
        twin.module(*own_args, **own_kwargs)


def _graph_tensor(tensor: Tensor) -> Tensor:
    """A tensor that can be part of a graph: of one created in inference mode, a clone."""
    return tensor.clone() if tensor.is_inference() else tensor


class _Collector(CaptureListener):
    """A ``CaptureListener`` that clones what it receives.

    Attributes:
        values: The tensors by label, with the inputs beside the outputs for ``side="both"``.
        sides: The sides to listen to.
    """

    def __init__(self, sequences: Sequences, side: Sides, *, keep_graph: bool) -> None:
        # Unless the model processes sequences, tokens that fill a square may be drawn as patches.
        patches = not sequences.are_expected
        drawn_as = replace(sequences, tokens_are_patches=patches)
        reducer = Reducer(sequences=drawn_as)
        self._keep_graph = keep_graph
        self.values = LayerMaps()
        self.values.reducer = reducer
        if side != "both":
            self.sides: tuple[Side, ...] = (side,)
            self._by_side = {side: self.values}
            return
        self.sides = ("output", "input")
        self.values.inputs = LayerMaps()
        self.values.inputs.reducer = reducer
        self._by_side = {"output": self.values, "input": self.values.inputs}

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for maps in self._by_side.values():
            maps.clear()
        grids = self.values.reducer.sequences.grids
        if grids is not None:
            grids.begin((args, kwargs))

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        maps = self._by_side[side]
        label = layer_call.label
        if side == "input":
            value = _argument(value)
        maps[label] = map_tensors(value, self._kept)
        if layer_call.kernel_shape is not None:
            maps.kernel_shapes[label] = layer_call.kernel_shape
        drawn = first_tensor(maps[label])
        if drawn is not None:
            sequences = maps.reducer.sequences
            if sequences.grids is not None and side == "output":
                sequences.grids.saw(layer_call, drawn.shape)
            maps.axes[label] = axes_of(module, drawn.shape, sequences, layer_call.part)

    def _kept(self, tensor: Tensor) -> Tensor:
        if self._keep_graph:
            return tensor.clone()
        return tensor.detach().clone()


def _argument(value: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    args, kwargs = value
    arguments = (*args, *kwargs.values())
    if len(arguments) == 1:
        return arguments[0]
    return arguments


def hooked_layers(model: nn.Module, layers: Layers, *, effective: bool = False) -> HookRegistry:
    """The layers to extract; logs a warning if parts of the model are scripted.

    Args:
        model: Any module.
        layers: As in ``extract``.
        effective: As in ``extract``.

    Raises:
        ConfigurationError: As ``layers.select`` does.
    """
    check_model(model)
    registry = HookRegistry(model, layers, effective=effective)
    scripted = scripted_warning(registry.model)
    if scripted is not None:
        log.warning("%s", scripted)
    return registry


def positional(x: Any) -> tuple[Any, ...]:
    """The positional arguments of ``forward``: a tuple as it is, anything else as the only one.

    Raises:
        ConfigurationError: One of them is not what a model takes, such as a path or an array.
    """
    arguments = x if isinstance(x, tuple) else (x,)
    for argument in arguments:
        check_input(argument, what="x")
    return arguments


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
    edges = _EdgeListener()
    given = positional(x)
    keywords = dict(forward_kwargs or {})

    def run(twin: Twin) -> tuple[Twin, Any]:
        layers_run = twin.layers(registry.layers)
        for name, module in layers_run.items():
            edges.watch_inputs(name, module)
        with torch.inference_mode(False), torch.enable_grad(), own_pass(twin):
            args = map_tensors(given, _requiring_gradient)
            kwargs = map_tensors(keywords, _requiring_gradient)
            return twin, twin.module(*args, **kwargs)

    twin, output = run_recorded(registry, edges, run, given)
    registry.check_taps()
    with torch.inference_mode(False), torch.enable_grad(), own_pass(twin):
        value = loss(output)
        return edges.gradients(_checked(value))


def _requiring_gradient(tensor: Tensor) -> Tensor:
    """A copy that requires a gradient and is not a leaf: the first layer may modify it in place."""
    has_gradient = tensor.is_floating_point() or tensor.is_complex()
    if not has_gradient:
        return tensor
    leaf = _graph_tensor(tensor.detach())
    leaf.requires_grad_()
    return leaf.clone()


def _checked(value: Any) -> Tensor:
    if not isinstance(value, Tensor) or value.numel() != 1:
        raise ConfigurationError(
            f"loss returned {returned(value)}: expected a tensor with one element"
        )
    if not value.requires_grad:
        raise ConfigurationError(
            "the loss does not require a gradient: compute it from the output itself, without "
            "detach(), item() or torch.no_grad()"
        )
    return value


Edges = list[GradientEdge | None]
"""One per tensor; None for a tensor that requires no gradient."""


class _Entry(NamedTuple):
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


class _EdgeListener(CaptureListener):
    """A ``CaptureListener`` that keeps graph edges, which survive in-place operations."""

    def __init__(self) -> None:
        self._outputs: dict[str, Edges] = {}
        self._inputs: dict[str, Edges] = {}
        self._waiting: dict[str, list[_Entry]] = {}
        self._gradients: dict[tuple[int, int], Tensor | None] = {}

    def watch_inputs(self, name: str, module: nn.Module) -> None:
        """Add a hook that passes views of the inputs to the layer and keeps their edges."""

        def hook(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            entries: list[_Entry] = []

            def view(tensor: Tensor) -> Tensor:
                seen = tensor
                if tensor.requires_grad:
                    seen = tensor.view_as(tensor)
                entry = _Entry(
                    seen=seen,
                    version=seen._version,
                    alone=_edge(seen),
                    all_uses=_edge(tensor),
                )
                entries.append(entry)
                return seen

            viewed: tuple[Any, ...] = map_tensors(args, view)
            self._waiting[name] = entries
            return viewed

        module.register_forward_pre_hook(hook)

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._outputs.clear()
        self._inputs.clear()

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        label = layer_call.label
        self._outputs[label] = [_edge(tensor) for tensor in tensors(value)]
        self._inputs[label] = []
        entries = self._waiting.pop(layer_call.layer, [])
        for entry in entries:
            was_overwritten = entry.seen._version != entry.version
            edge = entry.all_uses if was_overwritten else entry.alone
            self._inputs[label].append(edge)

    def gradients(self, loss: Tensor) -> dict[str, LayerGradients]:
        lists = [*self._outputs.values(), *self._inputs.values()]
        known = []
        for edges in lists:
            known += [edge for edge in edges if edge is not None]
        if known:
            keys = map(_key, known)
            found = torch.autograd.grad(loss, known, allow_unused=True)
            self._gradients = dict(zip(keys, found, strict=True))
        by_label = {}
        for label, outputs in self._outputs.items():
            grad_output = self._of_edges(outputs)
            grad_input = self._of_edges(self._inputs[label])
            by_label[label] = LayerGradients(grad_output, grad_input)
        return by_label

    def _of_edges(self, edges: Edges) -> tuple[Tensor | None, ...]:
        found: list[Tensor | None] = []
        for edge in edges:
            if edge is None:
                found.append(None)
                continue
            key = _key(edge)
            found.append(self._gradients[key])
        return tuple(found)


def _edge(tensor: Tensor) -> GradientEdge | None:
    if not tensor.requires_grad:
        return None
    return get_gradient_edge(tensor)


def _key(edge: GradientEdge) -> tuple[int, int]:
    return id(edge.node), edge.output_nr
