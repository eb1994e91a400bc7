"""``graph``: a model's operations and layers, for TensorBoard's Graphs tab."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from fmapboard.capture.own_pass import own_pass
from fmapboard.capture.side_pass import copied_values
from fmapboard.capture.twin import Twin
from fmapboard.errors import ConfigurationError
from fmapboard.extraction.call_trace import explained
from fmapboard.extraction.of_outputs import positional
from fmapboard.model.given import check_model
from fmapboard.model.layers import clean_name, unwrap
from fmapboard.model.tensors import tensors


class GraphNode(NamedTuple):
    """One operation, parameter, input or output of the model.

    Attributes:
        name: Unique; the text before the last ``/`` is the layer call that it belongs to, such as
            ``ResNet/layer1/0/conv1/conv2d``.
        op: What it does, such as ``conv2d`` or ``Parameter``.
        inputs: Names of the nodes whose results it takes, without repetition.
        shapes: Shape of each tensor that it returns.
        module: The innermost module that it ran in, as ``repr`` prints it; may be empty.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    module: str = ""


_RESERVED = re.compile(r"[/:^\s]")
"""What TensorBoard reads as a scope, an output's index or a control dependency."""

_BY_POSITION = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}

_IN_PLACE = {"__setitem__", "__delitem__"}
"""Operations that change their first argument and return nothing."""


def graph(model: nn.Module, x: Any, *, forward_kwargs: Mapping[str, Any] | None = None) -> Event:
    """Return the graph of a model as an event for the file writer of your ``SummaryWriter``.

    TensorBoard's Graphs tab then shows each operation of one forward pass in the layer that runs
    it, with the shapes of its tensors; a layer's second call is a scope of its own. The pass runs
    on a copy of the model and of its input, without gradients and hooks, so both are left
    unchanged, as are the random states. TensorBoard shows the last graph of a run.

    Args:
        model: Any module, in the mode in which it is to run.
        x: Input of the model: a tuple is its positional arguments, anything else its only argument.
        forward_kwargs: Keyword arguments of the model.

    Returns:
        An ``Event`` of TensorBoard, whose ``graph_def`` is a serialized ``GraphDef``.

    Raises:
        ConfigurationError: An argument is invalid, the model has lazy parameters that no pass has
            initialized, or the model cannot be copied.
        ForwardError: The model raised an exception.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from torch.utils.tensorboard import SummaryWriter
        >>> import fmapboard
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
        >>> with SummaryWriter("runs/graph") as writer:
        ...     writer.file_writer.add_event(fmapboard.graph(net, torch.rand(1, 3, 8, 8)))
    """
    check_model(model)
    root = unwrap(model)
    if any(map(is_lazy, root.parameters())):
        raise ConfigurationError("the model has lazy parameters: run it once before graph()")
    args = positional(x)
    kwargs = dict(forward_kwargs or {})
    run = partial(_nodes, args=args, kwargs=kwargs)
    with explained(root, run, args):
        nodes = run(Twin(root))
    return Event(graph_def=_graph_def(nodes))


def _nodes(twin: Twin, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[GraphNode]:
    """Run a twin and record its operations."""
    own_args, own_kwargs = copied_values((args, kwargs))
    model = twin.module
    seen = GraphNodes(model, type(model).__name__)
    seen.inputs(own_args, own_kwargs)
    with torch.no_grad(), own_pass(twin), seen:
        output = model(*own_args, **own_kwargs)
        seen.outputs(output)
    return seen.nodes


def _graph_def(nodes: list[GraphNode]) -> bytes:
    """The serialized GraphDef; equal graphs have equal bytes."""
    found = GraphDef()
    for node in nodes:
        message = found.node.add(name=node.name, op=node.op, input=node.inputs)
        shapes = message.attr["_output_shapes"].list  # TensorBoard draws them beside the edges
        for shape in node.shapes:
            sizes = shapes.shape.add()
            sizes.SetInParent()
            for size in shape:
                sizes.dim.add(size=size)
        if node.module:
            described = node.module.encode("utf-8", "backslashreplace")
            message.attr["module"].s = described
    return bytes(found.SerializeToString(deterministic=True))


class _Scope(NamedTuple):
    """A call of a module that is running.

    Attributes:
        module: Clean name of the module.
        name: Name of the scope of its operations.
        described: The module, as ``repr`` prints it.
    """

    module: str
    name: str
    described: str


class GraphNodes(TorchFunctionMode):
    """Records each operation on tensors while it is entered: ``with GraphNodes(model, root):``.

    It sees the functions that ``forward`` calls, such as ``conv2d``, ``relu`` and ``add``, not the
    kernels below them. It replaces the calls of the model's modules, so the model is a copy that
    nobody else uses, and none of its hooks is called. It keeps no tensor alive.

    Args:
        model: The model that runs.
        root: Name of the scope of the whole model.

    Attributes:
        nodes: What ran, in order.
    """

    def __init__(self, model: nn.Module, root: str) -> None:
        super().__init__()
        self._root = _RESERVED.sub("_", root)
        self.nodes: list[GraphNode] = []
        self._taken: Counter[str] = Counter()
        self._scopes: list[_Scope] = []
        self._made_by: Any = WeakTensorKeyDictionary()
        self._parameters: Any = WeakTensorKeyDictionary()
        for name, parameter in model.named_parameters():
            self._parameters[parameter] = clean_name(name)
        for name, buffer in model.named_buffers():
            self._parameters[buffer] = clean_name(name)
        for name, module in model.named_modules():
            call = partial(self._call, clean_name(name), module)
            # What torch calls instead of `forward` and every hook, also those on all modules.
            vars(module)["_compiled_call_impl"] = call
        self._arguments: list[str] = []
        signature = inspect.signature(model.forward)
        for argument in signature.parameters.values():
            if argument.kind in _BY_POSITION:
                self._arguments.append(argument.name)

    def inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Add a node per tensor that the model takes, named after the argument of ``forward``."""
        unnamed = [f"argument{number}" for number in range(len(args))]
        names = self._arguments + unnamed
        positional_arguments = zip(names, args, strict=False)
        for name, value in (*positional_arguments, *kwargs.items()):
            scope = f"{self._root}.input"
            for tensor in tensors(value):
                self._add(f"{scope}/{_clean(name)}", "Input", (), (tensor,))

    def outputs(self, value: Any) -> None:
        """Add a node per tensor that the model returned."""
        for tensor in tensors(value):
            sources = (self._source(tensor),)
            self._add(f"{self._root}.output/output", "Output", sources, (tensor,))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and record it if it returns tensors."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        kind = type(func).__name__
        name = getattr(func, "__name__", kind)
        changed = args[:1] if name in _IN_PLACE else result
        made = tuple(tensor for tensor in tensors(changed) if not self._is_weight(tensor))
        if made:
            op = _op(func, name)
            self._operation(op, (args, kwargs), made)
        return result

    def _call(self, name: str, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        """Run a module without its hooks; what it computes unseen becomes one node of its type."""
        self._enter(name, module)
        output = module.forward(*args, **kwargs)
        unseen = tuple(tensor for tensor in tensors(output) if tensor not in self._made_by)
        are_weights = all(map(self._is_weight, unseen))
        if not are_weights:
            kind = type(module).__name__
            self._operation(kind, (args, kwargs), unseen)
        self._scopes.pop()
        return output

    def _enter(self, name: str, module: nn.Module) -> None:
        scope = self._scope_of(name)
        caller = self._scopes[-1].module if self._scopes else None
        if caller != name:  # a wrapper has its module's name
            key = f"{scope}/"
            self._taken[key] += 1
            call = self._taken[key]
            if call > 1:
                scope = f"{scope}.call{call}"
        kind = type(module).__name__
        described = f"{kind}({module.extra_repr()})"
        entered = _Scope(name, scope, described)
        self._scopes.append(entered)

    def _scope_of(self, name: str) -> str:
        """The scope of a module below that of the module that calls it."""
        for outer in reversed(self._scopes):
            if name == outer.module:
                return outer.name
            if not outer.module:
                return _below(outer.name, name)
            prefix = f"{outer.module}."
            if name.startswith(prefix):
                inner = name.removeprefix(prefix)
                return _below(outer.name, inner)
        if not name:
            return self._root
        return _below(self._root, name)

    def _operation(self, op: str, given: Any, made: tuple[Tensor, ...]) -> None:
        scope = self._running()
        sources = dict.fromkeys(map(self._source, tensors(given)))
        name = f"{scope.name}/{_clean(op)}"
        self._add(name, op, tuple(sources), made, scope.described)

    def _running(self) -> _Scope:
        """The innermost call that is running; the whole model outside of all calls."""
        if not self._scopes:
            return _Scope(module="", name=self._root, described="")
        return self._scopes[-1]

    def _source(self, tensor: Tensor) -> str:
        """Name of the node that returned the tensor; a parameter gets its node here."""
        if tensor in self._made_by:
            return str(self._made_by[tensor])
        parameter = self._parameters.get(tensor)
        if parameter is None:
            scope = self._running().name
            return self._add(f"{scope}/constant", "Constant", (), (tensor,))
        name = self._scope_of(parameter)
        return self._add(name, "Parameter", (), (tensor,))

    def _is_weight(self, tensor: Tensor) -> bool:
        return tensor in self._parameters and tensor not in self._made_by

    def _add(
        self,
        name: str,
        op: str,
        sources: tuple[str, ...],
        made: tuple[Tensor, ...],
        module: str = "",
    ) -> str:
        number = self._taken[name]
        self._taken[name] += 1
        unique = f"{name}_{number}" if number else name
        shapes = tuple(tuple(tensor.shape) for tensor in made)
        node = GraphNode(unique, op, sources, shapes, module)
        self.nodes.append(node)
        for tensor in made:
            self._made_by[tensor] = unique
        return unique


def _op(func: Any, name: str) -> str:
    """The function's name as a user writes it: ``add`` for ``Tensor.__add__``."""
    if name == "__get__":  # a property, such as Tensor.T
        attribute = getattr(func, "__self__", None)
        name = getattr(attribute, "__name__", name)
    return name.strip("_") or "operation"


def _below(scope: str, name: str) -> str:
    """The scope of a module, by its name below that of a scope."""
    parts = [_clean(part) for part in name.split(".")]
    return "/".join([scope, *parts])


def _clean(name: str) -> str:
    return _RESERVED.sub("_", name) or "_"
