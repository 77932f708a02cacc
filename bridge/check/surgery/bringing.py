"""Makes values inside a model's Ifs and Loops its outputs, so that they can be looked at.

Of a Loop one iteration is looked at, which is the last that runs: a switch ends the Loop there. So
values may have another shape in each iteration, and a Loop may run as often as it likes. A value of
open rank comes out as its elements and its shape, for engines take no output of open rank.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bridge.check.surgery.sites import Way
from bridge.check.surgery.wiring import add_output, carried, invariant, yielded
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value, loop_kind
from bridge.neutral.ports import Condition
from bridge.neutral.types import I64, TensorType
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

DATA, SHAPE = ".data", ".shape"
"""What the names of the outputs end with that have the elements and the shape of a value. Those of
an output of open rank, which Bridge writes in two, end so, too."""


def last(depth: int) -> str:
    """The name of the input that says which iteration of a Loop is the last. The Loop is on the way
    to a graph. The outermost Loop has `depth` 0."""
    return f"bridge.last.{depth}"


def can_come_out(value: Value, nested: bool) -> bool:
    """Whether a value can be an output of the model, if it is in a nested graph or not."""
    if not isinstance(value.type, TensorType):
        return False
    return not nested or (value.element is not None and value.element.bits >= 8)


def brought_out(results: Mapping[str, Any], name: str) -> Any:
    """The value that came out under a name, None if there is none."""
    if name in results:
        return results[name]
    data, shape = results.get(name + DATA), results.get(name + SHAPE)
    if data is None or shape is None or (shape < 0).any() or data.size != math.prod(shape.tolist()):
        return None
    return data.reshape(shape)


def bring_out(
    model: Model, way: Way, values: Mapping[str, Value], flat: Collection[str] = ()
) -> None:
    """Makes values of the graph that `way` leads to outputs of these names, see `brought_out`.
    Those of the names `flat` come out as elements and shape, as those of open rank do.

    The model gets a switch for each Loop on the way there (`last`). Inside an If that takes another
    branch a value is one zero. Changes `model`."""
    steps, nested = list(way), way[-1][1].graph if way else model.graph
    named = dict[str, Value]()
    builder = Builder(nested.nodes)
    for name, value in values.items():
        if value.shape is None or name in flat:
            named[name + DATA] = builder.op("Reshape", value, [-1])
            named[name + SHAPE] = builder.op("Shape", value)
        else:
            named[name] = value
    switches = [
        Value(TensorType(I64, ()), [last(depth)])
        for depth in range(sum(node.op == "Loop" for node, _ in way))
    ]
    model.graph.inputs += switches
    graph = model.graph
    counts = dict[str, Value]()
    for index, (node, body) in enumerate(way):
        if node.op == "Loop":
            node = _counted(graph, node)
            body = node.body
            steps[index] = (node, body)
            if index == len(way) - 1:
                counts[COUNT] = _count(graph, node)
            own, *inner = [invariant(node, body, switch) for switch in switches]
            switches = _end_at(body, own, inner)
        else:
            switches = [invariant(node, body, switch) for switch in switches]
        graph = body.graph
    for node, body in reversed(steps):
        named = {name: yielded(node, body, value) for name, value in named.items()} | counts
        counts = {}
    builder = Builder(model.graph.nodes)
    for name, value in named.items():
        add_output(model.graph, builder.op("Identity", value), name)


def _count(graph: Graph, node: Node) -> Value:
    """How many iterations a Loop runs, as an output of it, 0 where it runs none."""
    front: list[Node] = []
    zero = Builder(front).constant(0)
    graph.prepend(front)
    return carried(node, node.body, zero, lambda b, before: b.op("Add", before, 1))


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


def _end_at(body: Body, own: Value, inner: Sequence[Value]) -> list[Value]:
    """Ends a Loop after the iteration `own`; the switches of the Loops inside, which hold in that
    iteration alone."""
    graph = body.graph
    front: list[Node] = []
    first = Builder(front)
    number = first.cast(iteration_number(body), I64)
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
    return switches
