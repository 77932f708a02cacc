"""Adds outputs and switches to a model, so that what happens inside it can be seen and steered."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Invariant, Yield
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import ANY, BOOL, I32, TensorType

OWN = -1  # a switch at this value leaves an If to its own condition; 0 forces else, 1 then


@dataclass(frozen=True)
class IfSite:
    """One If of a model. `where` is its path from the top graph down; `parents` are the sites
    around it, outermost first, each with the branch that must run to get here."""

    index: int
    where: str
    parents: tuple[tuple[int, bool], ...]

    @property
    def switch(self) -> str:
        """The name of the input that forces this If."""
        return f"bridge.switch.{self.index}"


Branch = tuple[int, bool]
"""The index of an IfSite, and whether its then (or its else) branch is meant."""

TAKEN = "bridge.taken"
"""The name of the output that says which branches ran at least once. It is one for all of them:
engines take long to load a model of thousands of outputs."""


def took(outputs: Mapping[str, Any], branch: Branch) -> bool:
    """Whether a branch ran at least once, by the outputs of an instrumented model."""
    index, then = branch
    return bool(outputs[TAKEN][2 * index + (not then)])


def all_taken(outputs: Mapping[str, Any]) -> frozenset[Branch]:
    """Every branch that ran at least once, by the outputs of an instrumented model."""
    places = np.flatnonzero(outputs[TAKEN]).tolist()
    return frozenset((place // 2, place % 2 == 0) for place in places)


def if_sites(model: Model) -> dict[Node, IfSite]:
    """Every If of the model with its place, outer before inner, in the order of the graph."""
    sites: dict[Node, IfSite] = {}
    _find(model.graph, "graph", (), sites)
    return sites


def _find(
    graph: Graph, where: str, parents: tuple[tuple[int, bool], ...], sites: dict[Node, IfSite]
) -> None:
    for node in graph.nodes:
        here = f'{where} / {node.op} "{node.name or node.outputs[0].name}"'
        if node.op == "If":
            sites[node] = IfSite(len(sites), here, parents)
            for branch, body in zip((True, False), node.bodies, strict=True):
                inside = f"{here} / {'then' if branch else 'else'}_branch"
                _find(body.graph, inside, (*parents, (sites[node].index, branch)), sites)
        else:
            for body in node.bodies:
                _find(body.graph, f"{here} / body", parents, sites)


def instrument(model: Model, switched: Collection[int] = ()) -> list[IfSite]:
    """Gives the model an output that says which branches ran (see `took`). Each site whose index is
    in `switched` gets an i32 scalar input that forces it (`IfSite.switch`). Changes `model`."""
    sites = if_sites(model)
    graph = model.graph
    switches: dict[int, Value] = {}
    for site in sites.values():
        if site.index in switched:
            switches[site.index] = Value(TensorType(I32, ()), [site.switch])
    graph.inputs.extend(switches.values())
    flags = _Instrumenter(sites).graph(graph, switches)
    builder = Builder(graph.nodes)
    one = builder.constant([1])
    every = [builder.op("Reshape", f, one) for site in sites.values() for f in flags[site.index]]
    if every:
        add_output(graph, builder.op("Concat", *every, axis=0), TAKEN)
    return list(sites.values())


def add_output(graph: Graph, value: Value, name: str) -> None:
    """Make a value of the top-level graph one of its outputs, under `name`."""
    if name not in value.names:
        value.names.append(name)
    graph.output_names.extend([""] * (len(graph.outputs) - len(graph.output_names)))
    graph.outputs.append(value)
    graph.output_names.append(name)


Flags = dict[int, tuple[Value, Value]]
"""For every If of a graph, nested ones included: whether its then and its else branch ran."""


class _Instrumenter:
    def __init__(self, sites: Mapping[Node, IfSite]) -> None:
        self.sites = sites

    def graph(self, graph: Graph, switches: Mapping[int, Value]) -> Flags:
        """Instrument one graph; `switches` are the values in it that force its Ifs."""
        flags: Flags = {}

        def instrumented(b: Builder, node: Node, rewriter: Rewriter) -> Result:
            found = (self._if if node.op == "If" else self._loop)(b, node, switches)
            flags.update(found)
            return node.outputs

        Rewriter(graph).run(Pattern(instrumented, frozenset({"If", "Loop"}), bodies=False))
        return flags

    def _if(self, builder: Builder, node: Node, switches: Mapping[int, Value]) -> Flags:
        index = self.sites[node].index
        condition = builder.op("Reshape", _required(node.inputs[0]), builder.constant([]))
        if index in switches:
            own = builder.op("Equal", switches[index], builder.constant(OWN, I32))
            then = builder.op("Equal", switches[index], builder.constant(1, I32))
            condition = builder.op("Or", builder.op("And", condition, own), then)
            node.inputs[0] = condition
        flags: Flags = {index: (condition, builder.op("Not", condition))}
        inner = [self._body(node, body, switches) for body in node.bodies]
        builder.nodes.append(node)
        for branch, found in enumerate(inner):
            for site, pair in found.items():
                flags[site] = tuple(  # type: ignore[assignment]
                    yielded(node, branch, flag, np.array(False)) for flag in pair
                )
        return flags

    def _loop(self, builder: Builder, node: Node, switches: Mapping[int, Value]) -> Flags:
        flags: Flags = {}
        (body,) = node.bodies
        for site, pair in self._body(node, body, switches).items():
            flags[site] = tuple(  # type: ignore[assignment]
                self._accumulate(builder, node, body, flag) for flag in pair
            )
        builder.nodes.append(node)
        return flags

    def _body(self, node: Node, body: Body, switches: Mapping[int, Value]) -> Flags:
        """Instrument a body; the switches that it needs come in through invariant ports."""
        inside = {self.sites[n].index for n in body.graph.walk() if n.op == "If"}
        inner = {
            site: invariant(node, body, value) for site, value in switches.items() if site in inside
        }
        return self.graph(body.graph, inner)

    def _accumulate(self, builder: Builder, node: Node, body: Body, flag: Value) -> Value:
        """Whether a flag of a Loop's body was ever true."""
        before = _new_input(node, body, builder.constant(False, BOOL))
        body.inputs.append(Carried(len(node.inputs) - 1, len(body.graph.outputs)))
        body.graph.outputs.append(Builder(body.graph.nodes).op("Or", before, flag))
        output = new_output(node, TensorType(BOOL, ()))
        body.outputs.append(Yield(len(node.outputs) - 1))
        return output


def yielded(node: Node, branch: int, value: Value, otherwise: np.ndarray) -> Value:
    """A value of one branch as an output of the If, which is `otherwise` where the other branch
    runs."""
    # Sizes that agree by chance must not be taken for known.
    shape = (ANY,) * otherwise.ndim
    output = new_output(node, TensorType(value.element, shape))
    ran, other = node.bodies[branch], node.bodies[1 - branch]
    ran.graph.outputs.append(Builder(ran.graph.nodes).op("Identity", value))
    other.graph.outputs.append(Builder(other.graph.nodes).constant(otherwise))
    for body in (ran, other):
        body.outputs.append(Yield(len(node.outputs) - 1))
    return output


def _required(value: Value | None) -> Value:
    assert value is not None
    return value


def _new_input(node: Node, body: Body, outer: Value) -> Value:
    # A Loop's first two inputs are its trip count and condition, absent or not.
    node.inputs.extend([None] * (2 - len(node.inputs)) if node.op == "Loop" else [])
    node.inputs.append(outer)
    inner = Value(outer.type)
    body.graph.inputs.append(inner)
    return inner


def invariant(node: Node, body: Body, outer: Value) -> Value:
    """A value around a node as one in its body."""
    inner = _new_input(node, body, outer)
    body.inputs.append(Invariant(len(node.inputs) - 1))
    return inner


def new_output(node: Node, type: TensorType) -> Value:
    """A further output of a node, which its bodies have to be given, too."""
    output = Value(type)
    output.producer = node
    node.outputs.append(output)
    return output
