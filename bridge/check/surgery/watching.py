"""An output of a model that says which branches ran, and how many iterations its Loops ran."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from bridge.check.surgery.sites import Branch, Site
from bridge.check.surgery.wiring import add_output, carried, yielded
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import I64

RAN = "bridge.ran"
"""The name of the output. It is one for all Ifs and Loops: engines take long to load a model of
thousands of outputs. It has a number for each outcome of each, 1 if it came about at least once,
and behind those of a Loop the largest number of its iterations."""


def all_taken(outputs: Mapping[str, Any], sites: Iterable[Site]) -> frozenset[Branch]:
    """Every branch that ran at least once, by the outputs of a watched model."""
    return frozenset(
        (site.index, outcome)
        for site, some in _facts(outputs, sites)
        for outcome, came in zip(site.outcomes, some, strict=False)
        if came
    )


def iterations(outputs: Mapping[str, Any], sites: Iterable[Site]) -> dict[int, int]:
    """The largest number of iterations of each Loop, by the index of its site."""
    return {site.index: some[-1] for site, some in _facts(outputs, sites) if site.loop}


def _facts(outputs: Mapping[str, Any], sites: Iterable[Site]) -> Iterator[tuple[Site, list[int]]]:
    left = np.ravel(outputs.get(RAN, ())).tolist()
    for site in sites:
        count = len(site.outcomes) + site.loop
        some, left = left[:count], left[count:]
        yield site, some


def watch(graph: Graph, sites: Mapping[Node, Site]) -> None:
    """Gives a model's graph the output `RAN` for these Ifs and Loops."""
    facts = _watched(graph, sites)
    builder = Builder(graph.nodes)
    every = [builder.op("Reshape", fact, [1]) for site in sites.values() for fact in facts[site]]
    if every:
        add_output(graph, builder.op("Concat", *every, axis=0), RAN)


_Facts = dict[Site, tuple[Value, ...]]
"""For every site in a graph, nested ones included, scalars of i64 (see `RAN`)."""


def _watched(graph: Graph, sites: Mapping[Node, Site]) -> _Facts:
    """The facts of a graph, as values of it."""
    facts: _Facts = {}

    def watched(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        site, own = sites.get(node), dict[Site, tuple[Value, ...]]()
        if site is not None and not site.loop:
            condition = b.op("Reshape", node.inputs[0], [])
            own[site] = b.cast(condition, I64), b.cast(b.op("Not", condition), I64)
        inner = {body: _watched(body.graph, sites) for body in node.bodies}
        count: Value | None = None
        if site is not None and site.loop:
            zero = b.constant(0)
            count = carried(node, node.body, zero, lambda b, before: b.op("Add", before, 1))
        for body, found in inner.items():
            for inside, some in found.items():
                if node.op == "If":
                    facts[inside] = tuple(yielded(node, body, fact) for fact in some)
                else:
                    facts[inside] = tuple(_largest(b, node, fact) for fact in some)
        b.nodes.append(node)
        if site is not None and count is not None:
            outcomes = (("Equal", 0), ("Equal", 1), ("Greater", 1))
            own[site] = (*(b.cast(b.op(op, count, n), I64) for op, n in outcomes), count)
        facts.update(own)
        return node.outputs

    Rewriter(graph).run(Pattern(watched, frozenset({"If", "Loop"}), bodies=False))
    return facts


def _largest(builder: Builder, node: Node, fact: Value) -> Value:
    """The largest number that a fact of a Loop's body ever was."""

    def larger(b: Builder, before: Value) -> Value:
        return b.op("Where", b.op("Greater", fact, before), fact, before)

    return carried(node, node.body, builder.constant(0), larger)
