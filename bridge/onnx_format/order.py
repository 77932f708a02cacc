"""Sorts nodes that are not in topological order.

The standard requires this order (IR, Graphs). But onnxruntime and OpenVINO sort nodes, and tools in
wide use write unsorted nodes: onnxruntime's own float16 converter is one.
"""

from collections.abc import Iterable, Sequence

import onnx

from bridge.errors import InvalidModelError
from bridge.neutral.order import Cycle, topological
from bridge.onnx_format.deep import Grafts


class Unordered(InvalidModelError):
    """Raised for a name that nothing before computes, at `place`."""

    def __init__(self, message: str, place: str) -> None:
        super().__init__(message)
        self.place = place


def in_order(nodes: Sequence[onnx.NodeProto], grafts: Grafts, where: str) -> list[onnx.NodeProto]:
    """The nodes of a graph, each behind the nodes that it or its bodies need, and otherwise in
    their order. Raises InvalidModelError if nodes need each other."""
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    needs = [
        [makers[name] for name in dict.fromkeys(_used(node, grafts)) if name in makers]
        for node in nodes
    ]
    try:
        return [nodes[place] for place in topological(needs)]
    except Cycle as cycle:
        node = nodes[cycle.member]
        name = node.name or (node.output[0] if node.output else "")
        raise InvalidModelError(
            f'{where} / {node.op_type} "{name}": is part of a cycle of nodes'
        ) from None


def _used(node: onnx.NodeProto, grafts: Grafts) -> Iterable[str]:
    """The names that a node takes from the graph around it."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH and not attribute.ref_attr_name:
            yield from _captured(grafts.graph(attribute.g), grafts)
        for graph in attribute.graphs:
            yield from _captured(grafts.graph(graph), grafts)


def _captured(graph: onnx.GraphProto, grafts: Grafts) -> Iterable[str]:
    own = {value.name for value in (*graph.input, *graph.initializer)}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    own |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        for name in _used(node, grafts):
            if name not in own:
                yield name
    for value in graph.output:
        if value.name not in own:
            yield value.name
