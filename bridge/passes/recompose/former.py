"""Nodes become the one that they were in the ONNX model that an IR was made from, which its record
names (`bridge.neutral.former`). The record is a hint. It is believed where that one node, made into
IR once more, gives the very nodes that are there."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.errors import BridgeError
from bridge.neutral.attributes import fault_of
from bridge.neutral.builder import Builder, Target
from bridge.neutral.clone import clone_value
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.tensor import Tensor
from bridge.operators import BREAKS
from bridge.operators.spelling import choose
from bridge.passes.expand import Expander
from bridge.passes.fold import fold_graph
from bridge.passes.recompose.uses import Uses

IR = Target("ir")


def former_node(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The one node that gave an output, where it means what the nodes do that give it now."""
    assert b.target is not None
    former, output = (node.extras or {}).get("former"), uses.output(node)
    if former is None or sum(map(uses.count, node.outputs)) > uses.count(output):
        return None
    inputs = [value for value in former.inputs if value is not None]
    if fault_of(former.op, former.attributes) or not all(uses.is_before(v, node) for v in inputs):
        return None
    made = b.node(former.op, former.inputs, 1, dict(former.attributes))
    is_known = choose(made, b.target)[0] is not None
    return made.outputs[0] if is_known and _becomes(made, output) else None


def _becomes(node: Node, output: Value) -> bool:
    """Whether the nodes that a node becomes on the way to IR are those that give a value."""
    here = {value: clone_value(value) for value in node.inputs if value is not None}
    graph = Graph()
    for value, copy in here.items():
        if value.constant is None:
            graph.inputs.append(copy)
        else:
            graph.nodes.append(Node("Constant", [], [copy], {"value": value.constant}))
    inputs = [None if value is None else here[value] for value in node.inputs]
    graph.outputs = [clone_value(output)]
    graph.nodes.append(Node(node.op, inputs, list(graph.outputs), node.attributes))
    infer(graph.nodes[-1])
    expander = Expander(IR, "onnx")
    try:
        expander.graph(graph, "")
    except (*BREAKS, BridgeError):
        return False  # The record is no longer as it was written.
    if expander.findings:
        return False
    fold_graph(graph)
    leaves = {copy: value for value, copy in here.items() if value.constant is None}
    return _is_same(graph.outputs[0], output, leaves)


def _is_same(made: Value, value: Value, leaves: Mapping[Value, Value]) -> bool:
    """Whether a value is computed like one that was made; `leaves` says which values those stand
    for that nodes were made of."""
    met: dict[Value, Value] = {}
    pairs: list[tuple[Value | None, Value | None]] = [(made, value)]
    while pairs:
        one, other = pairs.pop()
        if one is None or other is None:
            if one is not other:
                return False
        elif one in leaves or one in met:
            if leaves.get(one, met.get(one)) is not other:
                return False
        else:
            further = _inputs_alike(one, other)
            if further is None:
                return False
            if one.constant is None:
                met[one] = other
            pairs += further
    return True


def _inputs_alike(one: Value, other: Value) -> list[tuple[Value | None, Value | None]] | None:
    """What two values are made of, in pairs, where it is the same that makes them; else None."""
    ours, theirs = one.producer, other.producer
    if ours is None or theirs is None or ours.op != theirs.op or ours.bodies or theirs.bodies:
        return None
    if ours.op == "Constant":
        return [] if _are_equal(ours.attributes["value"], theirs.attributes["value"]) else None
    if ours.attributes != theirs.attributes or len(ours.inputs) != len(theirs.inputs):
        return None
    if ours.outputs.index(one) != theirs.outputs.index(other):
        return None
    return list(zip(ours.inputs, theirs.inputs, strict=True))


def _are_equal(one: Tensor, other: Tensor) -> bool:
    if one is other:
        return True
    if one.element is not other.element or one.shape != other.shape:
        return False
    return bytes(one.data()) == bytes(other.data())
