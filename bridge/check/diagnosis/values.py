"""Finds the first value that differs in two models, by making inner values outputs of both.

A few values of a graph are compared at once. The cause must be among the nodes that the first
differing value depends on, up to values that agree. A few of their values come next. The search
goes on inside an If or a Loop among them; in a Loop, in the first iteration that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np

from bridge.check.compare import Difference
from bridge.check.diagnosis.walk import first_wrong
from bridge.check.engines import EndlessError, Session
from bridge.check.surgery.bringing import COUNT, ENDLESS, brought_out, can_come_out, last
from bridge.check.surgery.sites import path_of, way_to
from bridge.check.surgery.slices import behind
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.twins import guarded_loop, twins
from bridge.errors import BridgeError, shortened
from bridge.neutral.graph import Graph, Model, Node, Value

_AT_ONCE = 100  # values compared in one run, so that memory stays small
_ITERATIONS = 16  # compared at once
_LOADS = 80  # pairs of models that are made and loaded

ModelPair = tuple[Model, Model | None]
"""Two models; the second is None if it is made of the first."""

OpenPair = Callable[[ModelPair], tuple[Session, Session]]
"""Opens both models after a change."""

Equal = Callable[[Any, Any], Difference]
"""How a value compares with the expected one, which is first."""

Graphs = tuple[Graph, Graph | None]
"""A graph of the first model, and the one that stands for it in the other."""


@dataclass(frozen=True)
class FirstDifference:
    """The first inner value that differs (`name`), and the path of the node that makes it. `before`
    is the number of earlier values, which agree. `iterations` has each Loop around it, the
    outermost first, with the number of its iteration, from 0. `complete` is False if values that it
    depends on could not be compared. `levels` are the graphs around it, the innermost last."""

    name: str
    node: str
    difference: Difference
    before: int
    levels: tuple[Graphs, ...]
    iterations: tuple[tuple[str, int], ...] = ()
    complete: bool = True

    def __str__(self) -> str:
        which = "" if self.complete else ", of the values that could be compared,"
        return (
            f"the first value that differs{which} is '{self.name}', which {self.node} makes"
            f"{self.when} ({self.difference}); {self.before} before it agree"
        )

    @property
    def when(self) -> str:
        """In which iterations, counted from 0: "" outside of Loops."""
        return "".join(
            f" in iteration {number} (from 0) of {loop}" for loop, number in self.iterations
        )

    @property
    def beside(self) -> frozenset[str]:
        """The names of the values in the same graph."""
        nodes = self.levels[-1][0].nodes
        return frozenset(name for node in nodes for v in node.outputs for name in v.names)


def first_difference(
    models: ModelPair, open_pair: OpenPair, feed: Mapping[str, Any], equal: Equal
) -> FirstDifference | str:
    """The first value that differs with an input, or why none was found. The second model is None
    if it is made of the first: a change in the first is then a change in both."""
    search = _ValueSearch(models, open_pair, feed, equal)
    graphs = models[0].graph, None if models[1] is None else models[1].graph
    try:
        found = search.level(_Place((graphs,)))
    except BridgeError as error:
        return f"the search for the first difference stopped: {shortened(str(error))}"
    if found is not None:
        return found
    return f"all {search.agree} inner values that could be compared agree, where they are outputs"


def visible(graph: Graph, nested: bool) -> list[Value]:
    """The values that a graph computes and that can be outputs of the model, in its order;
    constants are left out."""
    return [
        value
        for node in graph.nodes
        if node.op != "Constant"
        for value in node.outputs
        if can_come_out(value, nested)
    ]


@dataclass(frozen=True)
class _Place:
    """A graph in both models, the last of `levels`, in iterations of the Loops around it: `lasts`
    are their numbers, and `loops` what the Loops are called."""

    levels: tuple[Graphs, ...]
    lasts: tuple[int, ...] = ()
    loops: tuple[str, ...] = ()

    @property
    def graphs(self) -> Graphs:
        """The graph in both models."""
        return self.levels[-1]

    def into(self, mine: Graph, its: Graph | None, loop: Node | None = None) -> _Place:
        """A graph nested in this one; the Loop's last iteration is to be said."""
        loops = self.loops if loop is None else (*self.loops, repr(loop))
        return _Place((*self.levels, (mine, its)), self.lasts, loops)

    def at(self, iteration: int) -> _Place:
        """This iteration of the innermost Loop."""
        return _Place(self.levels, (*self.lasts, iteration), self.loops)


_Pairs = Sequence[tuple[Value, Value | None]]
"""Values of the first graph, and those of the other that stand for them."""


_Seen = tuple[Mapping[Value, Difference], tuple[int, int]]
"""How values compare, and how many iterations the innermost Loop around them ran in both models.
Values that could not be compared are left out."""


@dataclass
class _ValueSearch:
    """See `first_difference`. `loads` counts the pairs of models so far, `agree` the values that
    agree."""

    models: ModelPair
    open_pair: OpenPair
    feed: Mapping[str, Any]
    equal: Equal
    loads: int = 0
    agree: int = 0

    def level(self, place: _Place) -> FirstDifference | None:
        """The first value that differs in a graph, or in graphs nested in it."""
        graph, pairs = place.graphs[0], self._pairs(place.graphs)
        found, cause = dict[Value, Difference](), dict[Node, None]()

        def judge(some: list[Value]) -> Mapping[Value, bool]:
            found.update(self._compared(place, [(v, pairs[v]) for v in some]))
            return {value: not found[value].ok for value in some if value in found}

        def between(first: Value | None, known: Mapping[Value, bool]) -> Sequence[Value]:
            right = {value for value, wrong in known.items() if not wrong}
            if first is None:
                return [] if right.issuperset(graph.outputs) else list(pairs)
            cause.clear()
            cause.update(dict.fromkeys(behind(graph.nodes, [first], right)))
            return [value for value in pairs if value.producer in cause]

        target = first_wrong(list(pairs), judge, between, _AT_ONCE, graph.outputs)
        before = takewhile(lambda value: value is not target, pairs)
        self.agree += sum(value in found and found[value].ok for value in before)
        if target is None:
            return None
        for node in cause:
            inner = self._inside(place, node) if node.bodies else None
            if inner is not None:
                return inner
        unseen = [n for n in cause if n.op != "Constant" and (n.bodies or n is not target.producer)]
        return self._told(place, target, found[target], not unseen)

    def _told(
        self, place: _Place, value: Value, difference: Difference, complete: bool = True
    ) -> FirstDifference:
        node = value.producer
        assert node is not None
        return FirstDifference(
            value.name or f"{node.name or node.op}:{node.outputs.index(value)}",
            path_of(way_to(self.models[0], place.graphs[0]), node),
            difference,
            self.agree,
            place.levels,
            tuple(zip(place.loops, place.lasts, strict=True)),
            complete,
        )

    def _inside(self, place: _Place, node: Node) -> FirstDifference | None:
        """The first value that differs in the bodies of a node."""
        mine, its = place.graphs
        twin = node if its is None else twins(mine, its).nodes.get(node)
        if twin is not None and twin.op != node.op:
            # One model has the Loop that the other guards with an If.
            if node.op == "If":
                mine, node = node.then_body.graph, guarded_loop(node) or node
            elif its is not None:
                its, twin = twin.then_body.graph, guarded_loop(twin)
            place = place.into(mine, its)
        if node.op == "If":
            return self._inside_if(place, node, twin)
        return None if twin is None else self._inside_loop(place, node, twin)

    def _inside_if(self, place: _Place, node: Node, twin: Node | None) -> FirstDifference | None:
        (condition, *_), its = node.inputs, place.graphs[1]
        assert condition is not None
        first, second = self._opened(place, [(condition, None if twin is None else twin.inputs[0])])
        sessions = [first] if twin is None else [first, second]
        results = [brought_out(one.run(self._fed(place)), _SEEN.format(0)) for one in sessions]
        taken, *others = ["then" if np.all(value) else "else" for value in results]
        if others not in ([], [taken]):
            problem = f"the {others[0]} branch runs, expected the {taken} branch"
            return self._told(place, node.outputs[0], Difference(ok=False, problem=problem))
        body = ("then", "else").index(taken)
        if its is not None and twin is not None:
            its = twin.bodies[body].graph
        # An If that the other model lacks may have been decided: its values are in the graph.
        return self.level(place.into(node.bodies[body].graph, its))

    def _inside_loop(self, place: _Place, node: Node, twin: Node) -> FirstDifference | None:
        its = None if place.graphs[1] is None else twin.body.graph
        inside = place.into(node.body.graph, its, node)
        iteration, counts = self._iteration(inside)
        if iteration is None:
            return None
        ran = min(iteration, *(count - 1 for count in counts))
        found = self.level(inside.at(ran)) if ran >= 0 else None
        if found is not None or counts[0] == counts[1]:
            return found
        problem = f"{counts[1]} iterations, expected {counts[0]}"
        return self._told(place, node.outputs[0], Difference(ok=False, problem=problem))

    def _iteration(self, place: _Place) -> tuple[int | None, tuple[int, int]]:
        """The first iteration in which a value of a Loop's body differs, or that only one model
        runs, and how many iterations each model runs."""
        pairs, exits = self._pairs(place.graphs), place.graphs[0].outputs
        some = sorted(pairs, key=lambda value: value not in exits)[:_AT_ONCE]
        view = cache(self._view(place, [(value, pairs[value]) for value in some]))
        _, counts = view(place.at(ENDLESS))

        def differs(number: int) -> bool:
            found, (mine, its) = view(place.at(number))
            return mine != its or not all(how.ok for how in found.values())

        def judge(numbers: list[int]) -> Mapping[int, bool]:
            return {number: differs(number) for number in numbers}

        return first_wrong(range(max(counts)), judge, at_once=_ITERATIONS), counts

    def _pairs(self, graphs: Graphs) -> dict[Value, Value | None]:
        """The values of the first graph that can be compared, in its order, with their twins."""
        mine, its = graphs
        values = visible(mine, mine is not self.models[0].graph)
        if its is None or self.models[1] is None:
            return dict.fromkeys(values)
        others = {*visible(its, its is not self.models[1].graph)}
        found = twins(mine, its).values
        return {v: found[v] for v in values if v in found and found[v] in others}

    def _compared(self, place: _Place, pairs: _Pairs) -> Mapping[Value, Difference]:
        """How values compare. A value is left out if the models do not load or run with it as an
        output."""
        try:
            return self._view(place, pairs)(place)[0]
        except EndlessError:
            raise
        except BridgeError:
            half = len(pairs) // 2
            some = (pairs[:half], pairs[half:]) if half else ()
            return {v: how for part in some for v, how in self._compared(place, part).items()}

    def _view(self, place: _Place, pairs: _Pairs) -> Callable[[_Place], _Seen]:
        """Opens both models with these values as outputs. The answer is a function that takes
        iterations, and says how the values compare in them."""
        first, second = self._opened(place, pairs)

        def seen(place: _Place) -> _Seen:
            feed = self._fed(place)
            # Twice: a value that is random, or wrong in a first run only, explains no difference.
            once, expected = first.run(feed), first.run(feed)
            _, actual = second.run(feed), second.run(feed)
            differences = {}
            for index, (value, _) in enumerate(pairs):
                name = _SEEN.format(index)
                before, wanted, found = (brought_out(r, name) for r in (once, expected, actual))
                if wanted is not None and found is not None and self.equal(wanted, before).ok:
                    differences[value] = self.equal(wanted, found)
            mine, its = (np.max(results.get(COUNT, 0)) for results in (expected, actual))
            return differences, (int(mine), int(its))

        return seen

    def _opened(self, place: _Place, pairs: _Pairs) -> tuple[Session, Session]:
        self.loads += 1
        if self.loads > _LOADS:
            raise EndlessError(f"{_LOADS} pairs of models were compared")
        named = {_SEEN.format(index): pair for index, pair in enumerate(pairs)}
        # Of open rank in one model: both bring out the same outputs.
        flat = {n for n, pair in named.items() for v in pair if v is not None and v.shape is None}
        changed: list[Model | None] = [None, None]
        for which, (model, graph) in enumerate(zip(self.models, place.graphs, strict=True)):
            if model is not None and graph is not None:
                surgery = Surgery(model)
                some = {n: pair[which] for n, pair in named.items()}
                surgery.bring_out(graph, {n: v for n, v in some.items() if v is not None}, flat)
                changed[which] = surgery.model
        mine, its = changed
        assert mine is not None
        return self.open_pair((mine, its))

    def _fed(self, place: _Place) -> dict[str, Any]:
        switches = {last(depth): np.array(number) for depth, number in enumerate(place.lasts)}
        return {**self.feed, **switches}


_SEEN = "bridge.seen.{}"
"""The name of the output that a value becomes."""
