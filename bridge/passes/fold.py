"""What is known at conversion becomes constant: shape arithmetic, Ifs that always go one way."""

from __future__ import annotations

import numpy as np

from bridge.neutral.arrays import full
from bridge.neutral.builder import integers
from bridge.neutral.graph import Body, Graph, Invariant, Node, Value, Yield
from bridge.neutral.inference import infer_graph
from bridge.neutral.rewrite import Substitution, sink_constants
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import BOOL, TensorType, is_static


def fold(graph: Graph) -> None:
    """Folds known integer values and inlines Ifs with a known condition, in place."""
    substitution = Substitution()
    nodes: list[Node] = []
    for node in graph.nodes:
        _node(node, nodes, substitution)
    graph.nodes = nodes
    substitution.finish(graph)


def infer_and_fold(graph: Graph) -> None:
    """Infers a graph anew, in place, as after the pruning of a branch, and again with what became
    known on the way."""
    infer_graph(graph)
    fold(graph)
    infer_graph(graph)


def _node(node: Node, out: list[Node], substitution: Substitution) -> None:
    if node.op == "Constant":
        out.append(node)
        return
    substitution.apply(node)
    if node.op == "If":
        known = integers(node.inputs[0])
        if known is not None and len(known) == 1:
            inline_branch(node, node.bodies[0 if known[0] else 1], out, substitution)
            return
        _known_in_branches(node)
    elif node.op == "Cast" and _is_bool(node.inputs[0]) and _is_bool(node.outputs[0]):
        # PyTorch's exporter casts every condition.
        assert node.inputs[0] is not None
        substitution.replace(node.outputs[0], node.inputs[0])
        return
    for body in node.bodies:
        fold(body.graph)
    if node.bodies:
        sink_constants(node)
    elif len(node.outputs) == 1 and _fold_value(node.outputs[0], node, out):
        return
    out.append(node)


def _is_bool(value: Value | None) -> bool:
    return value is not None and value.element is BOOL


def _known_in_branches(node: Node) -> None:
    """An If's condition is true in its first branch and false in the other."""
    condition = node.inputs[0]
    assert condition is not None
    if not is_static(condition.shape):
        return
    for body, truth in zip(node.bodies, (True, False), strict=True):
        kept = []
        for value, port in zip(body.graph.inputs, body.inputs, strict=True):
            if isinstance(port, Invariant) and node.inputs[port.input] is condition:
                tensor = Tensor.of(full(condition.shape, truth, what=repr(node)))
                value.type, value.content = condition.type, (int(truth),)
                made = Node("Constant", [], [value], {"value": tensor}, (), value.name)
                body.graph.nodes.insert(0, made)
            else:
                kept.append((value, port))
        body.graph.inputs = [value for value, _ in kept]
        body.inputs = [port for _, port in kept]


def _fold_value(value: Value, node: Node, out: list[Node]) -> bool:
    """Makes `value` a Constant where all its elements are known."""
    known = value.content
    if known is None or not isinstance(value.type, TensorType) or value.type.element is None:
        return False
    if value.rank not in (0, 1) or not all(isinstance(x, int) for x in known):
        return False
    shape = () if value.rank == 0 else (len(known),)
    array = np.array(known, dtype=value.type.element.dtype).reshape(shape)
    tensor = Tensor(value.type.element, shape, array)
    value.type = TensorType(value.type.element, shape)
    out.append(Node("Constant", [], [value], {"value": tensor}, (), node.name))
    return True


def inline_branch(node: Node, body: Body, out: list[Node], substitution: Substitution) -> None:
    """Puts a branch in the place of its If; what it holds is folded on the way."""
    for value, port in zip(body.graph.inputs, body.inputs, strict=True):
        assert isinstance(port, Invariant)
        outer = node.inputs[port.input]
        assert outer is not None
        names = list(outer.names)
        substitution.replace(value, outer)
        substitution.of(outer).names = names
    for inner in body.graph.nodes:
        _node(inner, out, substitution)
    for value, exit in zip(body.graph.outputs, body.outputs, strict=True):
        assert isinstance(exit, Yield) and exit.output is not None
        substitution.replace(node.outputs[exit.output], value)
