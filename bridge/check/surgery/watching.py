"""Outputs of a model that say which branches ran, how many iterations its Loops ran, and which
situations its nodes met."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bridge.check.surgery.sites import Branch, Site
from bridge.check.surgery.situations import OVERFLOW, Dependences, Situation, measure
from bridge.check.surgery.wiring import add_output, carried, yielded
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.types import F32, I64

RAN = "bridge.ran"
"""The name of the output for branches. It is one for all Ifs and Loops: engines take long to load a
model of thousands of outputs. It has a number for each outcome of each, 1 if it came about at least
once, and behind those of a Loop the largest number of its iterations."""

MET = "bridge.met"
"""The name of the output for situations: for each how near the model came to it, from 0 to 1."""


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
    return {site.index: int(some[-1]) for site, some in _facts(outputs, sites) if site.loop}


def distances(outputs: Mapping[str, Any], situations: Iterable[Situation]) -> list[float]:
    """For each situation how far a run was from it, 0 if it was met."""
    found = np.nan_to_num(np.ravel(outputs.get(MET, ()))).tolist()
    return [one.far(found[one.place]) if found else np.inf for one in situations]


def _facts(outputs: Mapping[str, Any], sites: Iterable[Site]) -> Iterator[tuple[Site, list[float]]]:
    left = np.ravel(outputs.get(RAN, ())).tolist()
    for site in sites:
        count = len(site.outcomes) + site.loop
        some, left = left[:count], left[count:]
        yield site, some


def watch(
    graph: Graph, sites: Mapping[Node, Site], sources: Dependences | None = None
) -> list[Situation]:
    """Gives a model's graph the output `RAN` for these Ifs and Loops. With `sources` it gets `MET`
    for the situations of its nodes, which are the answer; overflows come last."""
    watcher = _Watcher(sites, sources)
    parts = watcher.look(graph, ())
    builder, found = Builder(graph.nodes), [key for _, keys in parts for key in keys]
    if not found:
        return []
    every = builder.concat(0, *(value for value, _ in parts))
    places = {key: place for place, key in enumerate(found)}
    ran = [places[site, n] for site in sites.values() for n in range(_count(site))]
    met = [place for place, key in enumerate(found) if isinstance(key[0], str)]
    for name, some in ((RAN, ran), (MET, met)):
        if some:
            add_output(graph, builder.op("Gather", every, builder.constant(some), 0), name)
    situations = [
        replace(one, place=number)
        for number, place in enumerate(met)
        for one in watcher.situations.get(found[place], ())
    ]
    return sorted(situations, key=lambda one: one.kind == OVERFLOW)


def _count(site: Site) -> int:
    return len(site.outcomes) + site.loop


_ITERATIONS = (10, 50)

MOST = 1500
"""Situations that a model is measured for: to load more takes long."""

_Key = tuple[Any, int]
"""A site, or where a node is, and which of its facts it is."""

_Part = tuple[Value, list[_Key]]
"""A vector of f32 with a fact for each key."""


@dataclass
class _Watcher:
    sites: Mapping[Node, Site]
    sources: Dependences | None
    situations: dict[_Key, tuple[Situation, ...]] = field(default_factory=dict)

    def look(self, graph: Graph, way: tuple[str, ...]) -> list[_Part]:
        """The facts of a graph, nested ones included, as values of it."""
        front: list[Node] = []
        first, last = Builder(front), Builder(graph.nodes)
        parts: list[_Part] = []
        for node in [*graph.nodes]:
            site = self.sites.get(node)
            if site is not None and not site.loop:
                condition = last.op("Reshape", node.inputs[0], [1])
                both = last.concat(0, condition, last.op("Not", condition))
                parts.append((last.cast(both, F32), [(site, 0), (site, 1)]))
            for body in node.bodies:
                role = next(role for role, one in node.roles() if one is body)
                inner = self.look(body.graph, (*way, f"{node!r} / {role}"))
                if inner:
                    parts.append(self._out_of(first, node, body, inner))
            if site is not None and site.loop:
                parts.append(_counted(first, last, node, site))
                if self.sources is not None and any(self.sources.of_iterations(node)):
                    parts.append(self._repeated(last, node, way, parts[-1][0]))
            if self.sources is not None and len(self.situations) < MOST:
                parts += self._measured(last, node, way)
        graph.prepend(front)
        return parts

    def _measured(self, b: Builder, node: Node, way: tuple[str, ...]) -> Iterator[_Part]:
        """How near a node comes to its situations."""
        assert self.sources is not None
        where = " / ".join((*way, repr(node)))
        for value, kinds in measure(b, node, where, self.sources):
            number = len(self.situations)
            keys = [(where, number + place) for place in range(len(kinds))]
            self.situations |= dict(zip(keys, kinds, strict=True))
            yield value, keys

    def _repeated(self, b: Builder, node: Node, way: tuple[str, ...], facts: Value) -> _Part:
        """How near a Loop comes to many iterations, and to even and odd numbers of them."""
        assert self.sources is not None
        count = b.op("Slice", facts, [3], [4], [0], [1])
        odd = b.op("Mod", b.cast(count, I64), 2)
        even = b.op("And", b.op("Equal", odd, 0), b.op("Greater", count, 1.0))
        many = [b.min(b.op("Div", count, float(n)), 1.0) for n in _ITERATIONS]
        texts = [f"{n} iterations or more" for n in _ITERATIONS]
        texts += ["an odd number of iterations", "an even number of iterations"]
        where = " / ".join((*way, repr(node)))
        numbers, sizes = self.sources.of_iterations(node)
        keys = [(where, len(self.situations) + place) for place in range(len(texts))]
        for key, text in zip(keys, texts, strict=True):
            one = Situation(where, "iterations", text, numbers=numbers, sizes=sizes)
            self.situations[key] = (one,)
        return b.concat(0, *many, b.cast(odd, F32), b.cast(even, F32)), keys

    @staticmethod
    def _out_of(first: Builder, node: Node, body: Body, parts: list[_Part]) -> _Part:
        """The facts of a body as one value around it: of a Loop the largest that each ever was."""
        inside = Builder(body.graph.nodes)
        keys = [key for _, some in parts for key in some]
        value = inside.concat(0, *(value for value, _ in parts))
        if node.op == "If":
            return yielded(node, body, value, len(keys)), keys

        def larger(b: Builder, before: Value) -> Value:
            return b.op("Where", b.op("Greater", value, before), value, before)

        start = first.constant(np.zeros(len(keys), np.float32))
        return carried(node, body, start, larger), keys


def _counted(first: Builder, last: Builder, node: Node, site: Site) -> _Part:
    """How many iterations a Loop runs."""
    zero = first.constant(0)
    count = carried(node, node.body, zero, lambda b, before: b.op("Add", before, 1))
    count = last.op("Reshape", count, [1])
    facts = [last.op(op, count, n) for op, n in (("Equal", 0), ("Equal", 1), ("Greater", 1))]
    outcomes = last.cast(last.concat(0, *facts), I64)
    value = last.cast(last.concat(0, outcomes, count), F32)
    return value, [(site, place) for place in range(_count(site))]
