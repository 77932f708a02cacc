"""Nodes become the one that they were in the ONNX model that an IR was made from, which its record
names (`bridge.neutral.provenance`). The record is a hint. It is believed where that one node, made
into IR once more, gives the very nodes that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bridge.errors import BridgeError
from bridge.neutral.attributes import fault_of
from bridge.neutral.builder import Builder, Target
from bridge.neutral.clone import clone_value
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.tensor import are_equal
from bridge.operators import BREAKS
from bridge.operators.spelling import choose, spell
from bridge.passes.fold import fold_graph
from bridge.passes.fuse.uses import Uses
from bridge.passes.legalize import Legalizer

IR = Target("ir")
Rewrite = Callable[[Graph], object]


def recorded_node(further: Rewrite, b: Builder, node: Node, uses: Uses) -> Value | None:
    """The one node that gave an output, where it means what the nodes do that give it now.
    `further` is done to a graph that is expanded for IR, or was not."""
    assert b.target is not None
    provenance, output = (node.extras or {}).get("provenance"), uses.output(node)
    if provenance is None or sum(map(uses.count, node.outputs)) > uses.count(output):
        return None
    inputs = [value for value in provenance.inputs if value is not None]
    missing = [value for value in inputs if not uses.is_before(value, node)]
    if fault_of(provenance.op, provenance.attributes) or any(v.constant is None for v in missing):
        return None
    made = b.node(provenance.op, provenance.inputs, 1, dict(provenance.attributes))
    if choose(made, b.target)[0] is None or not _becomes(made, output, further):
        return None
    for value in missing:
        if value.producer is not None:
            uses.prepend(value.producer)
    return made.outputs[0]


def _becomes(node: Node, output: Value, further: Rewrite) -> bool:
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
    leaves = {copy: value for value, copy in here.items() if value.constant is None}
    try:
        for step in (_expand, fold_graph, further, fold_graph):
            step(graph)
            if step is fold_graph and _is_same(graph.outputs[0], output, leaves):
                return True
    except (*BREAKS, BridgeError):
        pass  # The record is no longer as it was written.
    return False


def _expand(graph: Graph) -> None:
    """Makes IR of a graph."""
    Legalizer(IR, "onnx").legalize(graph)


def _is_same(made: Value, value: Value, leaves: Mapping[Value, Value]) -> bool:
    """Whether a value is computed like one that was made; `leaves` says which values those stand
    for that nodes were made of."""
    met: dict[Value, Value] = {}
    pairs: Pairs = [(made, value)]
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


Pairs = list[tuple[Value | None, Value | None]]


def _inputs_alike(one: Value, other: Value) -> Pairs | None:
    """What two values are made of, in pairs, where it is one layer of IR that makes them; else
    None."""
    ours, theirs = one.producer, other.producer
    if ours is None or theirs is None or ours.bodies or theirs.bodies:
        return None
    if ours.op == "Constant" or theirs.op == "Constant":
        return [] if are_equal(one.constant, other.constant) else None
    if ours.outputs.index(one) != theirs.outputs.index(other):
        return None
    (type, inputs, attributes), (other_type, other_inputs, others) = map(_layer, (ours, theirs))
    if type != other_type or attributes != others or len(inputs) != len(other_inputs):
        return None
    return list(zip(inputs, other_inputs, strict=True))


def _layer(node: Node) -> tuple[str, list[Value | None], dict[str, Any]]:
    """What IR says of a node: the type of its layer, the inputs and the attributes."""
    spelling, _ = choose(node, IR)
    if spelling is None:
        return node.op, node.inputs, node.attributes
    return spelling.type, *spell(node, spelling)
