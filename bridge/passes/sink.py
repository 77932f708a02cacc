"""Moves the consumers of an If whose branches differ in rank into its branches.

OpenVINO's CPU plugin runs no value of unknown rank; inside a branch the rank is known. What is
moved is the part of the graph between the If and the first values of a known rank.
"""

from __future__ import annotations

from bridge.neutral.builder import constant_value
from bridge.neutral.clone import clone_node
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference import infer, infer_graph
from bridge.neutral.inference.control import enter_bodies
from bridge.neutral.ports import Invariant, Yield
from bridge.neutral.types import UNKNOWN


def sink_consumers(graph: Graph) -> bool:
    """Sinks, in place, wherever an If gives a value of unsettled rank that nodes of its graph use.
    Whether anything was moved."""
    moved = False
    for node in graph.nodes:
        for body in node.bodies:
            moved = sink_consumers(body.graph) or moved
    if moved:
        infer_graph(graph)
    index = 0
    while index < len(graph.nodes):
        node = graph.nodes[index]
        if node.op == "If":
            region = _region(graph, index)
            if region:
                _move(graph, index, region)
                moved = True
        index += 1
    return moved


def _unsettled(node: Node) -> set[Value]:
    """The outputs of an If whose rank is unknown, or differs between the branches: what the file
    declares of such an output cannot hold for both."""
    result = {v for v in node.outputs if v.rank is None}
    for body in node.bodies:
        for value, port in body.exits():
            assert isinstance(port, Yield) and port.output is not None
            if value.rank != node.outputs[port.output].rank:
                result.add(node.outputs[port.output])
    return result


def _uses(node: Node, values: set[Value]) -> bool:
    return any(v in values for v in node.inputs if v is not None)


def _region(graph: Graph, index: int) -> list[Node]:
    """The nodes that take a value of unknown rank that comes from the If at `index`, and all
    between them."""
    node = graph.nodes[index]
    later = graph.nodes[index + 1 :]
    unknown = _unsettled(node)
    if not unknown:
        return []
    wanted: set[Node] = set()
    for consumer in later:
        if _uses(consumer, unknown):
            wanted.add(consumer)
            unknown.update(v for v in consumer.outputs if v.rank is None)
    if not wanted:
        return []
    below: set[Node] = set()
    derived: set[Value] = set(node.outputs)
    for consumer in later:
        if _uses(consumer, derived):
            below.add(consumer)
            derived.update(consumer.outputs)
    needed: set[Value] = set()
    region: list[Node] = []
    for consumer in reversed(later):
        if consumer in wanted or (consumer in below and any(v in needed for v in consumer.outputs)):
            region.append(consumer)
            needed.update(v for v in consumer.inputs if v is not None)
    region.reverse()
    return region


def _move(graph: Graph, index: int, region: list[Node]) -> None:
    old = graph.nodes[index]
    inside = set(region)
    made = {v for n in region for v in n.outputs}
    rest = [n for n in graph.nodes[index + 1 :] if n not in inside]
    used = {v for n in rest for v in n.inputs if v is not None} | set(graph.outputs)
    kept = [i for i, v in enumerate(old.outputs) if v in used]
    exits = [v for n in region for v in n.outputs if v in used]
    inputs = list(old.inputs)
    ports: dict[Value, int] = {}
    for node in region:
        for value in node.inputs:
            if value is None or value in made or value in ports or value in old.outputs:
                continue
            if value.constant is None:
                ports[value] = len(inputs)
                inputs.append(value)
    for body in old.bodies:
        _extend(body, old, region, kept, exits, ports)
    outputs = [old.outputs[i] for i in kept] + exits
    for value in outputs:
        value.declared = value.type if value.rank is not None else value.declared
    node = Node("If", inputs, outputs, {}, old.bodies, old.name, old.extras)
    after: set[Value] = set(outputs)
    early: list[Node] = []
    late: list[Node] = []
    for other in rest:
        if _uses(other, after):
            after.update(other.outputs)
            late.append(other)
        else:
            early.append(other)
    graph.nodes = [*graph.nodes[:index], *early, node, *late]
    enter_bodies(node)
    infer(node)


def _extend(
    body: Body,
    old: Node,
    region: list[Node],
    kept: list[int],
    exits: list[Value],
    ports: dict[Value, int],
) -> None:
    """Appends a copy of the region to a branch and makes its exits outputs."""
    graph = body.graph
    by_output: dict[int, Value] = {}
    for value, port in body.exits():
        assert isinstance(port, Yield) and port.output is not None
        by_output[port.output] = value
    values = {outer: by_output[i] for i, outer in enumerate(old.outputs)}
    for outer, position in ports.items():
        values[outer] = Value(outer.type, list(outer.names))
        body.add_entry(values[outer], Invariant(position))
    for node in region:
        for taken in node.inputs:
            tensor = taken.constant if taken is not None else None
            if taken is not None and tensor is not None and taken not in values:
                values[taken] = constant_value(tensor, list(taken.names))
                graph.nodes.append(Node("Constant", [], [values[taken]], {"value": tensor}))
        copied = clone_node(node, values)
        for value in copied.outputs:
            # Declared for all branches, so it says nothing of this one.
            value.declared = UNKNOWN if value.rank is None else value.declared
        graph.nodes.append(copied)
    outputs = [by_output[i] for i in kept] + [values[v] for v in exits]
    body.set_exits((value, Yield(i)) for i, value in enumerate(outputs))
