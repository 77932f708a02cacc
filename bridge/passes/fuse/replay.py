"""The proof of a guess: nodes are written for IR once more, and give the layers that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bridge.errors import BridgeError
from bridge.neutral.builder import Target
from bridge.neutral.clone import clone_node, clone_value
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.tensor import are_equal
from bridge.operators import BREAKS
from bridge.operators.spelling import choose, spell
from bridge.passes.fold import fold_graph

IR = Target("ir")
Rewrite = Callable[[Graph], object]
"""What is done to a graph, in place, on the way to IR."""


def becomes(nodes: Sequence[Node], made: Value, output: Value, rewrite: Rewrite) -> bool:
    """Whether `rewrite` makes of the nodes that give `made` those that give `output`."""
    values: dict[Value, Value] = {}
    graph = Graph()
    own = {value for node in nodes for value in node.outputs}
    for value in dict.fromkeys(v for node in nodes for v in node.inputs if v not in own):
        if value is None:
            continue
        values[value] = copy = clone_value(value)
        if value.constant is None:
            graph.inputs.append(copy)
        else:
            graph.nodes.append(Node("Constant", [], [copy], {"value": value.constant}))
    leaves = {copy: value for value, copy in values.items() if value.constant is None}
    graph.nodes += [clone_node(node, values) for node in nodes]
    graph.outputs = [values[made]]
    try:
        rewrite(graph)
        fold_graph(graph)
        return _is_same(graph.outputs[0], output, leaves)
    except (*BREAKS, BridgeError):
        return False  # The guess is none, or the record no longer as it was written.


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
