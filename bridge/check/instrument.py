"""Adds outputs and switches to a model, so that what happens inside it can be seen and steered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Invariant, Yield
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

    def taken(self, branch: bool) -> str:
        """The name of the output that says whether a branch ran at least once."""
        return f"bridge.taken.{self.index}.{'then' if branch else 'else'}"


Branch = tuple[int, bool]
"""The index of an IfSite, and whether its then (or its else) branch is meant."""


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
    """Give the model two boolean outputs for every If (`IfSite.taken`) and, for the sites whose
    index is in `switched`, an i32 scalar input that forces it (`IfSite.switch`). Changes `model`.
    """
    sites = if_sites(model)
    graph = model.graph
    switches: dict[int, Value] = {}
    for site in sites.values():
        if site.index in switched:
            switches[site.index] = Value(TensorType(I32, ()), [site.switch])
    graph.inputs.extend(switches.values())
    flags = _Instrumenter(sites).graph(graph, switches)
    builder = Builder(graph.nodes)
    for site in sites.values():
        for branch, flag in zip((True, False), flags[site.index], strict=True):
            add_output(graph, builder.op("Identity", flag), site.taken(branch))
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
        nodes, graph.nodes = graph.nodes, []
        builder = Builder(graph.nodes)
        flags: Flags = {}
        for node in nodes:
            if node.op == "If":
                flags |= self._if(builder, node, switches)
            elif node.bodies:
                flags |= self._loop(builder, node, switches)
            else:
                graph.nodes.append(node)
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
                    _yield(node, branch, flag, np.array(False)) for flag in pair
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
            site: _invariant(node, body, value)
            for site, value in switches.items()
            if site in inside
        }
        return self.graph(body.graph, inner)

    def _accumulate(self, builder: Builder, node: Node, body: Body, flag: Value) -> Value:
        """Whether a flag of a Loop's body was ever true."""
        before = _new_input(node, body, builder.constant(False, BOOL))
        body.inputs.append(Carried(len(node.inputs) - 1, len(body.graph.outputs)))
        body.graph.outputs.append(Builder(body.graph.nodes).op("Or", before, flag))
        output = _new_output(node, TensorType(BOOL, ()))
        body.outputs.append(Yield(len(node.outputs) - 1))
        return output


def _yield(node: Node, branch: int, value: Value, otherwise: np.ndarray) -> Value:
    """A value of one branch as an output of the If, which is `otherwise` where the other branch
    runs."""
    # Sizes that agree by chance must not be taken for known.
    shape = (ANY,) * otherwise.ndim
    output = _new_output(node, TensorType(value.element, shape))
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


def _invariant(node: Node, body: Body, outer: Value) -> Value:
    inner = _new_input(node, body, outer)
    body.inputs.append(Invariant(len(node.inputs) - 1))
    return inner


def _new_output(node: Node, type: TensorType) -> Value:
    output = Value(type)
    output.producer = node
    node.outputs.append(output)
    return output


def expose(model: Model, names: Iterable[str]) -> None:
    """Make the values of these names, as `named_values` and `values_inside` have them, outputs.
    Changes `model`."""
    already = {name for value in model.graph.outputs for name in value.names}
    for name, value in _expose(model.graph, "", set(names) - already):
        add_output(model.graph, value, name)


def _expose(graph: Graph, prefix: str, names: Collection[str]) -> list[tuple[str, Value]]:
    """Values of `graph` that are those of these names, from within its Ifs as well."""
    found: list[tuple[str, Value]] = []
    for node in graph.nodes:
        found += [(prefix + name, v) for v in _tensors(node) for name in v.names
                  if prefix + name in names]  # fmt: skip
        for branch, (body, inside) in enumerate(_branches(node, prefix)):
            for name, value in _expose(body.graph, inside, names):
                assert value.element is not None
                dummy = np.zeros((1,) * len(value.dims), value.element.dtype)
                found.append((name, _yield(node, branch, value, dummy)))
    return found


def named_values(model: Model) -> dict[str, str]:
    """The tensors that top-level nodes compute, in order, constants left out: the name of each,
    and the node that makes it."""
    return {v.name: repr(node) for node in model.graph.nodes for v in _tensors(node) if v.name}


def values_inside(model: Model, name: str) -> dict[str, str]:
    """As `named_values`, for what is computed in the branches of the last top-level Ifs that the
    value `name` depends on, and of the Ifs in these. A name begins with the branches around it;
    those that this does not make distinct are left out."""
    found: list[tuple[str, str]] = []
    wanted = {v for node in model.graph.nodes for v in node.outputs if name in v.names}
    for node in reversed(model.graph.nodes):
        if wanted.isdisjoint(node.outputs):
            continue
        if node.op == "If":
            found[:0] = _inside(node, "", repr(node))
        else:
            wanted.update(v for v in node.inputs if v is not None)
    counts = Counter(inner for inner, _ in found)
    return {inner: where for inner, where in found if counts[inner] == 1}


def _inside(node: Node, prefix: str, where: str) -> Iterable[tuple[str, str]]:
    for body, inside in _branches(node, prefix):
        for inner in body.graph.nodes:
            here = f"{where} / {'then' if body is node.bodies[0] else 'else'}_branch / {inner!r}"
            yield from _inside(inner, inside, here)
            for v in _tensors(inner):
                if v.name and v.shape is not None and v.element is not None and v.element.bits >= 8:
                    yield inside + v.name, here


def _branches(node: Node, prefix: str) -> Iterable[tuple[Body, str]]:
    """The branches of an If, with what the names of their values begin with: not with the If's own
    name, which a conversion may change."""
    if node.op == "If":
        for kind, body in zip(("then", "else"), node.bodies, strict=True):
            yield body, f"{prefix}{kind} / "


def _tensors(node: Node) -> list[Value]:
    """The tensors that a node computes."""
    if node.op == "Constant":
        return []
    return [value for value in node.outputs if isinstance(value.type, TensorType)]
