"""Adds outputs and switches to a model, so that what happens inside it can be seen and steered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Condition, Invariant, Sliced, Yield
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import ANY, BOOL, I32, I64_MAX, TensorType

OWN = -1
"""A switch at this value leaves a site to itself; other values are the outcome that is forced."""


@dataclass(frozen=True)
class Site:
    """One If or Loop of a model. `where` is its path from the top graph down; `parents` are the Ifs
    around it, outermost first, each with the branch that must run to get here. `forcible` is
    whether a switch can decide it."""

    index: int
    where: str
    parents: tuple[tuple[int, bool], ...]
    loop: bool = False
    forcible: bool = True

    @property
    def outcomes(self) -> tuple[int, ...]:
        """What can come of it: of an If True and False, of a Loop 0, 1 and 2 (or more)
        iterations."""
        return (0, 1, 2) if self.loop else (True, False)

    @property
    def switch(self) -> str:
        """The name of the input that forces this site."""
        return f"bridge.switch.{self.index}"

    def role(self, outcome: int) -> str:
        """What an outcome is called."""
        return LOOP_ROLES[outcome] if self.loop else "then" if outcome else "else"


LOOP_ROLES = ("none", "one", "several")
"""The outcomes of a Loop: how many iterations it runs."""

Branch = tuple[int, int]
"""The index of a Site, and one of its outcomes."""

TAKEN = "bridge.taken"
"""The name of the output that says which branches ran at least once. It is one for all of them:
engines take long to load a model of thousands of outputs."""


def branches_of(sites: Iterable[Site]) -> list[Branch]:
    """All branches of sites, in the order of the output `TAKEN`."""
    return [(site.index, outcome) for site in sites for outcome in site.outcomes]


def all_taken(outputs: Mapping[str, Any], sites: Iterable[Site]) -> frozenset[Branch]:
    """Every branch that ran at least once, by the outputs of an instrumented model."""
    branches = branches_of(sites)
    return frozenset(branches[place] for place in np.flatnonzero(outputs[TAKEN]).tolist())


_Around = tuple[tuple[Node, bool], ...]


def sites_of(model: Model) -> dict[Node, Site]:
    """Every If and Loop of the model with its place: the Ifs first, then the Loops, outer before
    inner, in the order of the graph."""
    found: list[tuple[Node, str, _Around]] = []
    _find(model.graph, "graph", (), found)
    found.sort(key=lambda one: one[0].op != "If")
    number = {node: index for index, (node, _, _) in enumerate(found)}
    return {
        node: Site(
            number[node], here, tuple((number[n], b) for n, b in around), node.op != "If",
            is_forcible(node),
        )
        for node, here, around in found
    }  # fmt: skip


def is_forcible(node: Node) -> bool:
    """Whether a switch can decide an If or Loop: a Loop over slices runs once for each."""
    return not any(isinstance(port, Sliced) for body in node.bodies for port in body.inputs)


def _find(
    graph: Graph, where: str, around: _Around, found: list[tuple[Node, str, _Around]]
) -> None:
    for node in graph.nodes:
        here = f"{where} / {node!r}"
        if node.bodies:
            found.append((node, here, around))
        for index, (role, body) in enumerate(node.roles() if node.bodies else ()):
            inside = (*around, (node, not index)) if node.op == "If" else around
            _find(body.graph, f"{here} / {role}", inside, found)


def instrument(
    model: Model, switched: Collection[int] = (), sites: Mapping[Node, Site] | None = None
) -> list[Site]:
    """Gives the model an output that says which branches ran (see `all_taken`). Each site whose
    index is in `switched` gets an i32 scalar input that forces it (`Site.switch`). Changes `model`.

    `sites` are the nodes that count, if not all, with the sites of another model that they stand
    for."""
    sites = sites_of(model) if sites is None else sites
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


Flags = dict[int, tuple[Value, ...]]
"""For every site of a graph, nested ones included: whether each of its outcomes came about."""


class _Instrumenter:
    def __init__(self, sites: Mapping[Node, Site]) -> None:
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
        condition = builder.op("Reshape", _required(node.inputs[0]), builder.constant([]))
        site = self.sites.get(node)
        index = -1 if site is None else site.index
        if index in switches:
            own = builder.op("Equal", switches[index], builder.constant(OWN, I32))
            then = builder.op("Equal", switches[index], builder.constant(1, I32))
            condition = builder.op("Or", builder.op("And", condition, own), then)
            node.inputs[0] = condition
        flags: Flags = {}
        if site is not None:
            flags[index] = (condition, builder.op("Not", condition))
        inner = [self._body(node, body, switches) for body in node.bodies]
        builder.nodes.append(node)
        for branch, found in enumerate(inner):
            for inside, some in found.items():
                flags[inside] = tuple(yielded(node, branch, f, np.array(False)) for f in some)
        return flags

    def _loop(self, builder: Builder, node: Node, switches: Mapping[int, Value]) -> Flags:
        (body,) = node.bodies
        flags: Flags = {
            inside: tuple(self._accumulate(builder, node, body, flag) for flag in own)
            for inside, own in self._body(node, body, switches).items()
        }
        site = self.sites.get(node)
        if site is not None and site.index in switches and is_forcible(node):
            self._force_loop(builder, node, body, switches[site.index])
        count = None if site is None else self._counted(builder, node, body)
        builder.nodes.append(node)
        if site is not None and count is not None:
            zero, one = builder.constant(0), builder.constant(1)
            flags[site.index] = (
                builder.op("Equal", count, zero),
                builder.op("Equal", count, one),
                builder.op("Greater", count, one),
            )
        return flags

    def _force_loop(self, builder: Builder, node: Node, body: Body, switch: Value) -> None:
        """Lets a switch decide how often a Loop runs, by its trip count and its conditions."""
        node.inputs.extend([None] * (2 - len(node.inputs)))
        trips, condition = node.inputs[:2]
        scalar = builder.constant([])
        own = builder.op("Equal", switch, builder.constant(OWN, I32))
        forced = builder.op("Not", own)
        trips = builder.constant(I64_MAX) if trips is None else builder.op("Reshape", trips, scalar)
        count = builder.cast(switch, trips.element)
        node.inputs[0] = builder.op("Where", own, trips, count)
        if condition is not None:
            node.inputs[1] = builder.op("Or", builder.op("Reshape", condition, scalar), forced)
        inner, inside = invariant(node, body, forced), Builder(body.graph.nodes)
        for place, port in enumerate(body.outputs):
            if isinstance(port, Condition):
                going = inside.op("Or", body.graph.outputs[place], inner)
                body.graph.outputs[place] = going

    def _counted(self, builder: Builder, node: Node, body: Body) -> Value:
        """How many iterations a Loop ran."""
        before = _new_input(node, body, builder.constant(0))
        inside = Builder(body.graph.nodes)
        return _carried(node, body, inside.op("Add", before, inside.constant(1)))

    def _body(self, node: Node, body: Body, switches: Mapping[int, Value]) -> Flags:
        """Instrument a body; the switches that it needs come in through invariant ports."""
        inside = {self.sites[n].index for n in body.graph.walk() if n in self.sites}
        inner = {
            site: invariant(node, body, value) for site, value in switches.items() if site in inside
        }
        return self.graph(body.graph, inner)

    def _accumulate(self, builder: Builder, node: Node, body: Body, flag: Value) -> Value:
        """Whether a flag of a Loop's body was ever true."""
        before = _new_input(node, body, builder.constant(False, BOOL))
        return _carried(node, body, Builder(body.graph.nodes).op("Or", before, flag))


def _carried(node: Node, body: Body, value: Value) -> Value:
    """A body's value as the next of the input that was added last, and as an output of the Loop."""
    body.inputs.append(Carried(len(node.inputs) - 1, len(body.graph.outputs)))
    body.graph.outputs.append(value)
    output = new_output(node, TensorType(value.element, ()))
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
