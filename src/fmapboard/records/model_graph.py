"""The operations of one forward pass, for TensorBoard's Graphs tab."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operation, parameter, input or output of the network.

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
    inputs: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    module: str = ""


@dataclass(frozen=True, slots=True)
class ModelGraph:
    """The network as it ran in one forward pass.

    Attributes:
        nodes: In order of execution.
    """

    nodes: tuple[GraphNode, ...]
