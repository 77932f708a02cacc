"""Inputs of a model that force its Ifs, and the numbers of iterations of its Loops."""

from collections.abc import Mapping

from bridge.check.surgery.sites import Site, is_forcible
from bridge.check.surgery.wiring import invariant
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Condition
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import I32, I64_MAX, TensorType

OWN = -1
"""A switch with this value leaves a site to itself. Other values are the forced outcome."""


def add_switches(graph: Graph, sites: Mapping[Node, Site]) -> None:
    """Gives a model's graph an i32 scalar input for each of these nodes (`Site.switch`)."""
    switches = {node: Value(TensorType(I32, ()), [site.switch]) for node, site in sites.items()}
    graph.inputs.extend(switches.values())
    _switch(graph, switches)


def _switch(graph: Graph, switches: Mapping[Node, Value]) -> None:
    """Puts switches at nodes of a graph, and of the graphs in it."""

    def switched(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        for body in node.bodies:
            inside = [one for one in body.graph.walk() if one in switches]
            if inside:
                _switch(body.graph, {n: invariant(node, body, switches[n]) for n in inside})
        if node in switches and node.op == "If":
            _force_if(b, node, switches[node])
        elif node in switches and is_forcible(node):
            _force_loop(b, node, node.body, switches[node])
        b.nodes.append(node)
        return node.outputs

    Rewriter(graph).run(Pattern(switched, frozenset({"If", "Loop"}), bodies=False))


def _force_if(builder: Builder, node: Node, switch: Value) -> None:
    condition = builder.op("Reshape", node.inputs[0], [])
    own = builder.op("And", condition, builder.op("Equal", switch, OWN))
    node.inputs[0] = builder.op("Or", own, builder.op("Equal", switch, 1))


def _force_loop(builder: Builder, node: Node, body: Body, switch: Value) -> None:
    """Lets a switch decide how often a Loop runs, by its trip count and its conditions."""
    node.inputs.extend([None] * (2 - len(node.inputs)))
    trips, condition = node.inputs[:2]
    own = builder.op("Equal", switch, OWN)
    forced = builder.op("Not", own)
    trips = builder.constant(I64_MAX) if trips is None else builder.op("Reshape", trips, [])
    node.inputs[0] = builder.op("Where", own, trips, builder.cast(switch, trips.element))
    if condition is not None:
        node.inputs[1] = builder.op("Or", builder.op("Reshape", condition, []), forced)
    inner, inside = invariant(node, body, forced), Builder(body.graph.nodes)
    for place, port in enumerate(body.outputs):
        if isinstance(port, Condition):
            body.graph.outputs[place] = inside.op("Or", body.graph.outputs[place], inner)
