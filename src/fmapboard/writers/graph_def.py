"""Encode the network's graph as a TensorFlow GraphDef, which TensorBoard's Graphs tab reads."""

from __future__ import annotations

from tensorboard.compat.proto import graph_pb2, node_def_pb2

from fmapboard.records import GraphNode, ModelGraph


def graph_def(graph: ModelGraph) -> bytes:
    """The serialized GraphDef; equal graphs have equal bytes."""
    message = graph_pb2.GraphDef()
    for node in graph.nodes:
        _put(message.node.add(), node)
    return bytes(message.SerializeToString(deterministic=True))


def _put(message: node_def_pb2.NodeDef, node: GraphNode) -> None:
    message.name, message.op = node.name, node.op
    message.input.extend(node.inputs)
    shapes = message.attr["_output_shapes"].list  # TensorBoard draws them beside the edges
    for shape in node.shapes:
        sizes = shapes.shape.add()
        sizes.SetInParent()
        for size in shape:
            sizes.dim.add(size=size)
    if node.module:
        message.attr["module"].s = node.module.encode("utf-8", "backslashreplace")
