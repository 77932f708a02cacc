"""The proof of a guess: expanding the guessed nodes for IR again gives the present layers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from bridge.errors import BridgeError, Refused
from bridge.neutral.builder import Target
from bridge.neutral.clone import clone_node, clone_value
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.match import Described, Match, ValuePair
from bridge.operators import BREAKS
from bridge.operators.spelling import choose, spell
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.fold import fold_graph

IR = Target("ir")
GraphRewrite = Callable[[Graph], object]
"""A rewriting of a graph, in place, on the way to IR."""


def becomes(
    nodes: Sequence[Node], outputs: Sequence[ValuePair], rewrite: GraphRewrite
) -> Collection[Node] | None:
    """The nodes behind the second value of each pair. `nodes` give the first values, and `rewrite`
    must make the same of them; None if it does not."""
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
    graph.outputs = [values[made] for made, _ in outputs if made is not None]
    try:
        rewrite(graph)
        fold_graph(graph)
        remove_dead_nodes(graph, trim=True)
        there = [value for _, value in outputs]
        match = Match(leaves, described=_layer)
        same = match.alike(*zip(graph.outputs, there, strict=True))
        return match.nodes.values() if same else None
    except (*BREAKS, AttributeError, LookupError, TypeError, Refused, BridgeError):
        return None  # The guess is none, or the file's record holds anything.


def are_same(pairs: Sequence[ValuePair], leaves: Mapping[Value, Value]) -> bool:
    """Whether the second value of each pair is computed like the first, made value. `leaves` maps
    the inputs of the made nodes to the present values."""
    return Match(leaves, described=_layer).alike(*pairs)


def _layer(node: Node) -> Described:
    """A node as IR has it: the type of its layer, the inputs and the attributes."""
    spelling, _ = choose(node, IR)
    if spelling is None:
        return node.op, node.inputs, node.attributes
    inputs, attributes = spell(node, spelling)
    return spelling.type, inputs, {name: _rounded(value) for name, value in attributes.items()}


def _rounded(value: Any) -> Any:
    """The value of an attribute; a float as the f32 that files hold."""
    return np.float32(value) if isinstance(value, float) else value
