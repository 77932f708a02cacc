"""Makes values inside a model's Ifs and Loops its outputs, so that they can be looked at.

Of a Loop one iteration is looked at, which is the last that runs: a switch ends the Loop there. So
values may have another shape in each iteration, and a Loop may run as often as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridge.check.instrument import Way, add_output, invariant, new_output, yielded
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value, loop_kind
from bridge.neutral.ports import Condition, Yield
from bridge.neutral.types import ANY, I64, TensorType
from bridge.operators.control.loop_builder import (
    LoopBuilder,
    iteration_number,
    trips_of_slices,
    turn_forwards,
)

ENDLESS = 2**24 - 1
"""The last iteration of an unchanged Loop. OpenVINO compares numbers as f32, and larger numbers are
not exact in f32."""

COUNT = "bridge.count"
"""The name of the output that says how many iterations the innermost Loop ran."""


@dataclass(frozen=True)
class PathStep:
    """A body of a node, each by its place: of the node in its graph, of the body in its node."""

    node: int
    body: int


GraphPath = tuple[PathStep, ...]
"""The way from a model's graph into one nested in it."""

Spot = tuple[int, int]
"""A value of a graph: the place of its node, and the value's place among the node's outputs. An
input of the graph has -1 and its place among the inputs."""


def last(depth: int) -> str:
    """The name of the input that says which iteration of a Loop is the last. The Loop is on the way
    to a place. The outermost Loop has `depth` 0."""
    return f"bridge.last.{depth}"


def seen(index: int) -> str:
    """The name of the output that a value becomes."""
    return f"bridge.seen.{index}"


def graph_at(model: Model, place: GraphPath) -> Graph:
    """The graph at a place."""
    way = way_to(model, place)
    return way[-1][1].graph if way else model.graph


def way_to(model: Model, place: GraphPath) -> Way:
    """The way to a place."""
    way: Way = ()
    graph = model.graph
    for step in place:
        node = graph.nodes[step.node]
        way = (*way, (node, node.bodies[step.body]))
        graph = way[-1][1].graph
    return way


def value_at(graph: Graph, spot: Spot) -> Value:
    """The value at a spot."""
    node, index = spot
    return graph.inputs[index] if node < 0 else graph.nodes[node].outputs[index]


def spot_of(graph: Graph, value: Value) -> Spot:
    """Where a value is in its graph."""
    if value.producer is None:
        return -1, graph.inputs.index(value)
    return graph.nodes.index(value.producer), value.producer.outputs.index(value)


def can_be_seen(value: Value) -> bool:
    """Whether a value can be brought out of a body."""
    return value.shape is not None and value.element is not None and value.element.bits >= 8


def expose(model: Model, place: GraphPath, spots: Sequence[Spot]) -> None:
    """Makes values of the graph at a place outputs of the model (`seen`).

    The model gets a switch for each Loop on the way there (`last`). Inside an If that takes another
    branch a value is one zero. Changes `model`."""
    way = list(way_to(model, place))
    found = [value_at(graph_at(model, place), spot) for spot in spots]
    switches = [
        Value(TensorType(I64, ()), [last(depth)])
        for depth in range(sum(node.op == "Loop" for node, _ in way))
    ]
    model.graph.inputs += switches
    count: Value | None = None
    graph = model.graph
    for index, (node, body) in enumerate(way):
        if node.op == "Loop":
            node = _counted(graph, node)
            body = node.body
            way[index] = (node, body)
            own, *inner = [invariant(node, body, switch) for switch in switches]
            count, switches = _end_at(body, own, inner)
        else:
            switches = [invariant(node, body, switch) for switch in switches]
        graph = body.graph
    names = [*map(seen, range(len(spots)))]
    if count is not None and way[-1][0].op == "Loop":
        found, names = [*found, count], [*names, COUNT]
    for node, body in reversed(way):
        found = [_brought_out(node, body, value) for value in found]
    builder = Builder(model.graph.nodes)
    for value, name in zip(found, names, strict=True):
        add_output(model.graph, builder.op("Identity", value), name)


def _counted(graph: Graph, node: Node) -> Node:
    """The Loop, or one in its place that has a trip count where slices alone say how often it runs:
    it is to have a condition, besides which they would not."""
    if loop_kind(node) == "count":
        return node
    nodes: list[Node] = []
    b, loop_builder = Builder(nodes), LoopBuilder.of(node)
    with b:
        turn_forwards(b, loop_builder)
        loop_builder.inputs[0] = trips_of_slices(b, loop_builder.inputs, loop_builder.body)
    for new, old in zip(loop_builder.build(b), node.outputs, strict=True):
        b.node("Identity", [new], [old])
    place = graph.nodes.index(node)
    graph.nodes[place : place + 1] = nodes
    return next(one for one in nodes if one.op == "Loop")


def _end_at(body: Body, own: Value, inner: Sequence[Value]) -> tuple[Value, list[Value]]:
    """Ends a Loop after the iteration `own`; the number of iterations so far, and the switches of
    the Loops inside, which hold in that iteration alone."""
    graph = body.graph
    front: list[Node] = []
    first = Builder(front)
    number = first.cast(iteration_number(body), I64)
    count = first.op("Add", number, 1)
    here = first.op("Equal", number, own)
    switches = [first.op("Where", here, switch, ENDLESS) for switch in inner]
    on = first.op("Less", number, own)
    graph.prepend(front)
    for index, (value, port) in enumerate(body.exits()):
        if isinstance(port, Condition):
            graph.outputs[index] = Builder(graph.nodes).op("And", value, on)
            break
    else:
        body.add_exit(on, Condition())
    return count, switches


def _brought_out(node: Node, body: Body, value: Value) -> Value:
    """A value of a body as an output of its node."""
    assert value.element is not None
    if node.op == "If":
        branch = next(i for i, other in enumerate(node.bodies) if other is body)
        dummy = np.zeros((1,) * len(value.dims), value.element.dtype)
        return yielded(node, branch, value, dummy)
    output = new_output(node, TensorType(value.element, (ANY,) * len(value.dims)))
    inside = Builder(body.graph.nodes).op("Identity", value)
    body.add_exit(inside, Yield(len(node.outputs) - 1))
    return output
