"""Adds outputs and switches to a model, so that what happens inside it can be seen and steered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Condition, Invariant, Sliced, Yield
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import ANY, BOOL, I32, I64_MAX, TensorType

OWN = -1
"""A switch with this value leaves a site to itself. Other values are the forced outcome."""


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
        """The name of an outcome."""
        return LOOP_ROLES[outcome] if self.loop else branch_role(outcome)


LOOP_ROLES = ("none", "one", "several")
"""The outcomes of a Loop: how many iterations it runs."""

SEVERAL = LOOP_ROLES.index("several")


def branch_role(outcome: int) -> str:
    """The name of an outcome of an If."""
    return "then" if outcome else "else"


Branch = tuple[int, int]
"""The index of a Site, and one of its outcomes."""

TAKEN = "bridge.taken"
"""The name of the output that says which branches ran at least once. It is one for all of them:
engines take long to load a model of thousands of outputs."""


ITERATIONS = "bridge.iterations"
"""The name of the output with the most iterations that each Loop ran at once, by its place among
the Loops."""


def branches_of(sites: Iterable[Site]) -> list[Branch]:
    """All branches of sites, in the order of the output `TAKEN`."""
    return [(site.index, outcome) for site in sites for outcome in site.outcomes]


def all_taken(outputs: Mapping[str, Any], sites: Iterable[Site]) -> frozenset[Branch]:
    """Every branch that ran at least once, by the outputs of an instrumented model."""
    branches = branches_of(sites)
    return frozenset(branches[place] for place in np.flatnonzero(outputs[TAKEN]).tolist())


Way = tuple[tuple[Node, Body], ...]
"""The nodes on the way into a nested graph, each with the body that is entered."""


def ways(model: Model) -> list[tuple[Way, Node]]:
    """The way to every If and Loop of the model, and the node: the Ifs first, then the Loops, outer
    before inner, in the order of the graph."""
    found: list[tuple[Way, Node]] = []

    def find(graph: Graph, way: Way) -> None:
        for node in graph.nodes:
            if node.bodies:
                found.append((way, node))
            for body in node.bodies:
                find(body.graph, (*way, (node, body)))

    find(model.graph, ())
    return sorted(found, key=lambda one: one[1].op != "If")


def path_of(way: Way, node: Node) -> str:
    """Where a node is, from the top graph down."""
    around = (
        f"{outer!r} / {role} / "
        for outer, entered in way
        for role, body in outer.roles()
        if body is entered
    )
    return "".join([*around, repr(node)])


def sites_of(model: Model) -> dict[Node, Site]:
    """Every If and Loop of the model with its place, in the order of `ways`."""
    found = ways(model)
    number = {node: index for index, (_, node) in enumerate(found)}
    return {
        node: Site(
            number[node],
            f"graph / {path_of(way, node)}",
            tuple((number[n], body is n.bodies[0]) for n, body in way if n.op == "If"),
            node.op != "If",
            is_forcible(node),
        )
        for way, node in found
    }


def is_forcible(node: Node) -> bool:
    """Whether a switch can decide an If or Loop: a Loop over slices runs once for each."""
    return not any(isinstance(port, Sliced) for body in node.bodies for port in body.inputs)


def instrument(
    model: Model,
    switched: Collection[int] = (),
    sites: Mapping[Node, Site] | None = None,
    counted: bool = False,
) -> list[Site]:
    """Gives the model an output that says which branches ran (see `all_taken`), and one with the
    iterations of its Loops if they are `counted`. Each site whose index is in `switched` gets an
    i32 scalar input that forces it (`Site.switch`). Changes `model`.

    `sites` are the nodes that count, if not all, with the sites of another model that they stand
    for."""
    sites = sites_of(model) if sites is None else sites
    graph = model.graph
    switches: dict[int, Value] = {}
    for site in sites.values():
        if site.index in switched:
            switches[site.index] = Value(TensorType(I32, ()), [site.switch])
    graph.inputs.extend(switches.values())
    flags = _Instrumenter(sites, counted).graph(graph, switches)
    builder = Builder(graph.nodes)
    every = [builder.op("Reshape", f, [1]) for site in sites.values() for f in flags[site.index]]
    if every:
        add_output(graph, builder.op("Concat", *every, axis=0), TAKEN)
    loops = [site.index for site in sites.values() if site.loop and counted]
    if loops:
        counts = (builder.op("Reshape", flags[~index][0], [1]) for index in loops)
        add_output(graph, builder.op("Concat", *counts, axis=0), ITERATIONS)
    return list(sites.values())


def add_output(graph: Graph, value: Value, name: str) -> None:
    """Make a value of the top-level graph one of its outputs, under `name`."""
    if name not in value.names:
        value.names.append(name)
    graph.output_names.extend([""] * (len(graph.outputs) - len(graph.output_names)))
    graph.outputs.append(value)
    graph.output_names.append(name)


Flags = dict[int, tuple[Value, ...]]
"""For every site of a graph, nested ones included: whether each of its outcomes came about. The
complement of a Loop's index has its number of iterations."""


class _Instrumenter:
    def __init__(self, sites: Mapping[Node, Site], counted: bool) -> None:
        self.sites = sites
        self.counted = counted

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
        condition = builder.op("Reshape", node.inputs[0], [])
        site = self.sites.get(node)
        index = -1 if site is None else site.index
        if index in switches:
            own = builder.op("Equal", switches[index], OWN)
            then = builder.op("Equal", switches[index], 1)
            condition = builder.op("Or", builder.op("And", condition, own), then)
            node.inputs[0] = condition
        flags: Flags = {}
        if site is not None:
            flags[index] = (condition, builder.op("Not", condition))
        inner = [self._body(node, body, switches) for body in node.bodies]
        builder.nodes.append(node)
        for branch, found in enumerate(inner):
            for inside, some in found.items():
                flags[inside] = tuple(yielded(node, branch, f, _none(f)) for f in some)
        return flags

    def _loop(self, builder: Builder, node: Node, switches: Mapping[int, Value]) -> Flags:
        (body,) = node.bodies
        flags: Flags = {
            inside: tuple(_ever(builder, node, body, flag) for flag in own)
            for inside, own in self._body(node, body, switches).items()
        }
        site = self.sites.get(node)
        if site is not None and site.index in switches and is_forcible(node):
            self._force_loop(builder, node, body, switches[site.index])
        if site is None:
            builder.nodes.append(node)
        else:
            zero = builder.constant(0)
            count = _state(node, body, zero, lambda b, before: b.op("Add", before, 1))
            builder.nodes.append(node)
            outcomes = (("Equal", 0), ("Equal", 1), ("Greater", 1))
            flags[site.index] = tuple(builder.op(op, count, n) for op, n in outcomes)
            if self.counted:
                flags[~site.index] = (count,)
        return flags

    def _force_loop(self, builder: Builder, node: Node, body: Body, switch: Value) -> None:
        """Lets a switch decide how often a Loop runs, by its trip count and its conditions."""
        node.inputs.extend([None] * (2 - len(node.inputs)))
        trips, condition = node.inputs[:2]
        own = builder.op("Equal", switch, OWN)
        forced = builder.op("Not", own)
        trips = builder.constant(I64_MAX) if trips is None else builder.op("Reshape", trips, [])
        count = builder.cast(switch, trips.element)
        node.inputs[0] = builder.op("Where", own, trips, count)
        if condition is not None:
            node.inputs[1] = builder.op("Or", builder.op("Reshape", condition, []), forced)
        inner, inside = invariant(node, body, forced), Builder(body.graph.nodes)
        for place, port in enumerate(body.outputs):
            if isinstance(port, Condition):
                going = inside.op("Or", body.graph.outputs[place], inner)
                body.graph.outputs[place] = going

    def _body(self, node: Node, body: Body, switches: Mapping[int, Value]) -> Flags:
        """Instrument a body; the switches that it needs come in through invariant ports."""
        inside = {self.sites[n].index for n in body.graph.walk() if n in self.sites}
        inner = {
            site: invariant(node, body, value) for site, value in switches.items() if site in inside
        }
        return self.graph(body.graph, inner)


def _ever(builder: Builder, node: Node, body: Body, flag: Value) -> Value:
    """Whether a flag of a Loop's body was ever true, or the most that a number was."""
    op = "Or" if flag.element is BOOL else "Max"
    never = builder.constant(_none(flag))
    return _state(node, body, never, lambda b, before: b.op(op, before, flag))


def _none(flag: Value) -> np.ndarray:
    """A flag, or a number of iterations, of what never ran."""
    return np.array(False) if flag.element is BOOL else np.array(0)


def _state(
    node: Node, body: Body, start: Value, following: Callable[[Builder, Value], Value]
) -> Value:
    """A scalar state of a Loop, as a new output; `following` makes the next one of that before."""
    before = Value(start.type)
    after = following(Builder(body.graph.nodes), before)
    body.add_entry(before, Carried(_new_input(node, start), len(body.outputs)))
    output = new_output(node, start.tensor)
    body.add_exit(after, Yield(len(node.outputs) - 1))
    return output


def yielded(node: Node, branch: int, value: Value, otherwise: np.ndarray) -> Value:
    """A value of one branch as an output of the If, which is `otherwise` where the other branch
    runs."""
    # Sizes that agree by chance must not be taken for known.
    shape = (ANY,) * otherwise.ndim
    output = new_output(node, TensorType(value.element, shape))
    ran, other = node.bodies[branch], node.bodies[1 - branch]
    port = Yield(len(node.outputs) - 1)
    ran.add_exit(Builder(ran.graph.nodes).op("Identity", value), port)
    other.add_exit(Builder(other.graph.nodes).constant(otherwise), port)
    return output


def _new_input(node: Node, outer: Value) -> int:
    """The index of a further input of a node."""
    # A Loop's first two inputs are its trip count and condition, absent or not.
    node.inputs.extend([None] * (2 - len(node.inputs)) if node.op == "Loop" else [])
    node.inputs.append(outer)
    return len(node.inputs) - 1


def invariant(node: Node, body: Body, outer: Value) -> Value:
    """A value around a node as one in its body."""
    inner = Value(outer.type)
    body.add_entry(inner, Invariant(_new_input(node, outer)))
    return inner


def new_output(node: Node, type: TensorType) -> Value:
    """A further output of a node, which its bodies have to be given, too."""
    output = Value(type)
    output.producer = node
    node.outputs.append(output)
    return output
