"""Outputs of a model that say which branches ran, and how many iterations its Loops ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bridge.check.surgery.sites import Branch, Site, branches_of
from bridge.check.surgery.wiring import add_output, carried, yielded
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import BOOL

TAKEN = "bridge.taken"
"""The name of the output that says which branches ran at least once. It is one for all of them:
engines take long to load a model of thousands of outputs."""

ITERATIONS = "bridge.iterations"
"""The name of the output that has the largest number of iterations of each Loop."""


def all_taken(outputs: Mapping[str, Any], sites: Iterable[Site]) -> frozenset[Branch]:
    """Every branch that ran at least once, by the outputs of a watched model."""
    branches = branches_of(sites)
    return frozenset(branches[place] for place in np.flatnonzero(outputs[TAKEN]).tolist())


def iterations(outputs: Mapping[str, Any], sites: Iterable[Site]) -> dict[int, int]:
    """The largest number of iterations of each Loop by the index of its site."""
    loops = [site.index for site in sites if site.loop]
    return dict(zip(loops, np.ravel(outputs.get(ITERATIONS, ())).tolist(), strict=True))


def watch(graph: Graph, sites: Mapping[Node, Site]) -> None:
    """Gives a model's graph the outputs `TAKEN` and `ITERATIONS` for these Ifs and Loops."""
    facts = _Watch(sites).graph(graph)
    builder = Builder(graph.nodes)
    for name, some in (
        (TAKEN, [f for s in sites.values() for f in facts[s.index] if f.element is BOOL]),
        (ITERATIONS, [f for s in sites.values() for f in facts[s.index] if f.element is not BOOL]),
    ):
        if some:
            every = [builder.op("Reshape", fact, [1]) for fact in some]
            add_output(graph, builder.op("Concat", *every, axis=0), name)


_Facts = dict[int, tuple[Value, ...]]
"""For every site of a graph, nested ones included: whether each of its outcomes came about, and of
a Loop the largest number of its iterations. All are scalars."""


class _Watch:
    def __init__(self, sites: Mapping[Node, Site]) -> None:
        self.sites = sites

    def graph(self, graph: Graph) -> _Facts:
        facts: _Facts = {}

        def watched(b: Builder, node: Node, rewriter: Rewriter) -> Result:
            facts.update((self._if if node.op == "If" else self._loop)(b, node))
            return node.outputs

        Rewriter(graph).run(Pattern(watched, frozenset({"If", "Loop"}), bodies=False))
        return facts

    def _if(self, builder: Builder, node: Node) -> _Facts:
        facts: _Facts = {}
        if node in self.sites:
            condition = builder.op("Reshape", node.inputs[0], [])
            facts[self.sites[node].index] = condition, builder.op("Not", condition)
        inner = [(body, self.graph(body.graph)) for body in node.bodies]
        builder.nodes.append(node)
        for body, found in inner:
            facts |= {
                index: tuple(yielded(node, body, fact) for fact in some)
                for index, some in found.items()
            }
        return facts

    def _loop(self, builder: Builder, node: Node) -> _Facts:
        (body,) = node.bodies
        facts: _Facts = {
            inside: tuple(_most(builder, node, body, fact) for fact in some)
            for inside, some in self.graph(body.graph).items()
        }
        count: Sequence[Value] = ()
        if node in self.sites:
            zero = builder.constant(0)
            count = [carried(node, body, zero, lambda b, before: b.op("Add", before, 1))]
        builder.nodes.append(node)
        for number in count:
            outcomes = (("Equal", 0), ("Equal", 1), ("Greater", 1))
            came = (builder.op(op, number, n) for op, n in outcomes)
            facts[self.sites[node].index] = *came, number
        return facts


def _most(builder: Builder, node: Node, body: Body, fact: Value) -> Value:
    """Whether a fact of a Loop's body was ever true, or the largest of a number."""
    if fact.element is BOOL:
        never = builder.constant(np.array(False))
        return carried(node, body, never, lambda b, before: b.op("Or", before, fact))

    def larger(b: Builder, before: Value) -> Value:
        return b.op("Where", b.op("Greater", fact, before), fact, before)

    return carried(node, body, builder.constant(0), larger)
