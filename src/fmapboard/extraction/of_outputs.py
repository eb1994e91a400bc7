"""``extract``: the outputs and inputs of any layers in one forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import untouched
from fmapboard.errors import ConfigurationError, log
from fmapboard.extraction.call_trace import check_input, run_recorded
from fmapboard.measure.layout import Sequences, axes_of
from fmapboard.measure.reducer import Reducer
from fmapboard.model.given import check_model
from fmapboard.model.layers import Layers, scripted_warning
from fmapboard.model.tensors import first_tensor, map_tensors
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
    collector = _Collector(Sequences.of(registry.model), side, keep_graph=keep_graph)
    run = partial(run_restored, registry.model, arguments, kwargs, keep_graph=keep_graph)
    run_recorded(registry, collector, run, arguments, sides=collector.sides)
    registry.check_taps()
    return collector.values


def run_restored(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    keep_graph: bool = False,
    training: bool | None = None,
) -> None:
    """Run a model, and restore what it holds and the random states.

    Args:
        model: The unwrapped model.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        keep_graph: As in ``extract``.
        training: The mode that it runs in; None for its own.
    """
    # inference_mode(False) also switches gradients on.
    gradients = torch.inference_mode(False) if keep_graph else torch.no_grad()
    with untouched(model, training=training), gradients:
        if keep_graph:
            # A tensor created in inference mode cannot be part of a graph, but its clone can.
            given = args, dict(kwargs)
            args, kwargs = map_tensors(given, lambda t: t.clone() if t.is_inference() else t)
        model(*args, **kwargs)


class _Collector(CaptureListener):
    """A ``CaptureListener`` that clones what it receives.

    Attributes:
        values: The tensors by label, with the inputs beside the outputs for ``side="both"``.
        sides: The sides to listen to.
    """

    def __init__(self, sequences: Sequences, side: Sides, *, keep_graph: bool) -> None:
        self.sides: tuple[Side, ...] = ("output", "input") if side == "both" else (side,)
        # Unless the model processes sequences, tokens that fill a square are drawn as patches.
        patches = not sequences.are_expected
        reducer = Reducer(sequences=replace(sequences, tokens_are_patches=patches))
        self._of_side = {one: LayerMaps() for one in self.sides}
        self.values = self._of_side[self.sides[0]]
        self._keep_graph = keep_graph
        for maps in self._of_side.values():
            maps.reducer = reducer
        if side == "both":
            self.values.inputs = self._of_side["input"]

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for maps in self._of_side.values():
            maps.clear()

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        maps, label = self._of_side[side], layer_call.label
        maps[label] = map_tensors(_argument(value) if side == "input" else value, self._kept)
        if layer_call.kernel_shape is not None:
            maps.kernel_shapes[label] = layer_call.kernel_shape
        drawn = first_tensor(maps[label])
        if drawn is not None:
            maps.axes[label] = axes_of(module, drawn.shape, maps.reducer.sequences)

    def _kept(self, tensor: Tensor) -> Tensor:
        return tensor.clone() if self._keep_graph else tensor.detach().clone()


def _argument(value: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    args, kwargs = value
    arguments = (*args, *kwargs.values())
    return arguments[0] if len(arguments) == 1 else arguments


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
