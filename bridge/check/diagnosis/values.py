"""Finds the first value that differs in two models, by making inner values outputs of both.

A few values of a graph are compared at once. The cause must be among the nodes that the first
differing value depends on, up to values that agree. A few of their values come next. The search
goes on inside an If or a Loop among them; in a Loop, in the first iteration that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.check.compare import Difference
from bridge.check.diagnosis.walk import first_wrong
from bridge.check.engines import EndlessError, Session
from bridge.check.lines import shortened
from bridge.check.surgery.bringing import COUNT, ENDLESS, brought_out, can_come_out, last
from bridge.check.surgery.sites import path_of, way_to
from bridge.check.surgery.slices import behind
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.twins import guarded_loop, twins
from bridge.errors import BridgeError
from bridge.neutral.graph import Graph, Model, Node, Value

_AT_ONCE = 100  # values compared in one run, so that memory stays small
_ITERATIONS = 16  # compared at once
_INPUTS = 4  # that a first difference is sought with
_LOADS = 80  # pairs of models that are made and loaded

OpenPair = Callable[[Model, Model | None], tuple[Session, Session]]
"""Opens both models after a change. If the second is None, it is made of the first."""

Equal = Callable[[Any, Any], Difference]
"""How a value compares with the expected one, which is first."""

Graphs = tuple[Graph, Graph | None]
"""A graph of the first model, and the one that stands for it in the other."""


@dataclass(frozen=True)
class FirstDifference:
    """The first inner value that differs (`name`), and the path of the node that makes it. `before`
    is the number of earlier values, which agree. `iterations` has each Loop around it, the
    outermost first, with the number of its iteration, from 0. `complete` is False if values that it
    depends on could not be compared. `value` is that of the first model, `levels` are the graphs
    around it, the innermost last."""

    name: str
    node: str
    difference: Difference
    before: int
    value: Value
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
    models: tuple[Model, Model | None], open_pair: OpenPair, feed: Mapping[str, Any], equal: Equal
) -> FirstDifference | str:
    """The first value that differs with an input, or why none was found. The second model is None
    if it is made of the first: a change in the first is then a change in both."""
    search = _Search(models, open_pair, feed, equal)
    graphs = models[0].graph, None if models[1] is None else models[1].graph
    try:
        found = search.level((graphs,), (), ())
    except (BridgeError, _TooLongError) as error:
        return f"the search for the first difference stopped: {shortened(str(error))}"
    if found is not None:
        return found
    return f"all {search.agree} inner values that could be compared agree, where they are outputs"


def clearest_difference(
    models: tuple[Model, Model | None],
    open_pair: OpenPair,
    feeds: Sequence[Mapping[str, Any]],
    equal: Equal,
) -> tuple[int, FirstDifference | str]:
    """The number of an input, and the first value that differs with it: of the first of these with
    which nothing was left out of the search, or else of the first one. Inputs that take other
    branches show other values."""
    found: list[FirstDifference | str] = []
    for feed in feeds[:_INPUTS]:
        found.append(first_difference(models, open_pair, feed, equal))
        if isinstance(found[-1], FirstDifference) and found[-1].complete:
            return len(found) - 1, found[-1]
    return 0, found[0]


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
class _Seen:
    """How values compare, and how many iterations the innermost Loop around them ran in both
    models. Values that could not be compared are left out."""

    differences: Mapping[Value, Difference]
    counts: tuple[int, int]

    def differ(self, values: Sequence[Value] | None = None) -> bool:
        """Whether any value differs, or any of these, or the number of iterations does."""
        some = self.differences if values is None else [v for v in values if v in self.differences]
        are_equal = all(self.differences[value].ok for value in some)
        return self.counts[0] != self.counts[1] or not are_equal


@dataclass
class _Search:
    """See `first_difference`. `loads` counts the pairs of models so far, `agree` the values that
    agree."""

    models: tuple[Model, Model | None]
    open_pair: OpenPair
    feed: Mapping[str, Any]
    equal: Equal
    loads: int = 0
    agree: int = 0

    def level(
        self, levels: tuple[Graphs, ...], lasts: tuple[int, ...], loops: tuple[str, ...]
    ) -> FirstDifference | None:
        """The first value that differs in the last of these graphs, or in graphs nested in it.
        `lasts` are the iterations of the Loops around it, `loops` the names of these Loops."""
        graphs = levels[-1]
        graph, pairs = graphs[0], self._pairs(graphs)
        found, cause = dict[Value, Difference](), dict[Node, None]()

        def judge(some: list[Value]) -> Mapping[Value, bool]:
            found.update(self._compared(graphs, [(v, pairs[v]) for v in some], lasts))
            return {value: not found[value].ok for value in some if value in found}

        def between(first: Value | None, known: Mapping[Value, bool]) -> Sequence[Value]:
            right = {value for value, wrong in known.items() if not wrong}
            if first is None:
                return [] if right.issuperset(graph.outputs) else list(pairs)
            cause.clear()
            cause.update(dict.fromkeys(behind(graph.nodes, [first], right)))
            return [value for value in pairs if value.producer in cause]

        target = first_wrong(list(pairs), judge, between, _AT_ONCE, graph.outputs)
        earlier = [*pairs]
        earlier = earlier if target is None else earlier[: earlier.index(target)]
        self.agree += sum(value in found and found[value].ok for value in earlier)
        if target is None:
            return None
        for node in cause:
            inner = self._inside(levels, node, lasts, loops) if node.bodies else None
            if inner is not None:
                return inner
        unseen = [n for n in cause if n.op != "Constant" and (n.bodies or n is not target.producer)]
        return self._told(levels, target, found[target], lasts, loops, not unseen)

    def _told(
        self,
        levels: tuple[Graphs, ...],
        value: Value,
        difference: Difference,
        lasts: tuple[int, ...],
        loops: tuple[str, ...],
        complete: bool,
    ) -> FirstDifference:
        node = value.producer
        assert node is not None
        return FirstDifference(
            value.name or f"{node.name or node.op}:{node.outputs.index(value)}",
            path_of(way_to(self.models[0], levels[-1][0]), node),
            difference,
            self.agree,
            value,
            levels,
            tuple(zip(loops, lasts, strict=True)),
            complete,
        )

    def _inside(
        self,
        levels: tuple[Graphs, ...],
        node: Node,
        lasts: tuple[int, ...],
        loops: tuple[str, ...],
    ) -> FirstDifference | None:
        """The first value that differs in the bodies of a node."""
        mine, its = levels[-1]
        twin = None if its is None else twins(mine, its).nodes.get(node)
        place, loop = (mine, its), guarded_loop(node)
        if loop is not None and (its is None or twin is not None):
            place, node = (node.bodies[0].graph, its), loop
        if twin is not None and (loop := guarded_loop(twin)) is not None:
            place, twin = (place[0], twin.bodies[0].graph), loop
        levels = levels if place == levels[-1] else (*levels, place)
        if node.op == "If":
            taken, other_taken = self._branches(place, node, twin, lasts)
            if taken != other_taken:
                problem = f"the {other_taken} branch runs, expected the {taken} branch"
                difference = Difference(ok=False, problem=problem)
                return self._told(levels, node.outputs[0], difference, lasts, loops, True)
            body = ("then", "else").index(taken)
            # An If that the other model lacks may have been decided: its values are in the graph.
            other = its if twin is None else twin.bodies[body].graph
            return self.level((*levels, (node.bodies[body].graph, other)), lasts, loops)
        if its is not None and twin is None:
            return None
        inside: Graphs = node.body.graph, None if twin is None else twin.body.graph
        iteration, counts = self._iteration(inside, lasts)
        if iteration is None:
            return None
        ran = min(iteration, *(count - 1 for count in counts))
        if ran >= 0:
            found = self.level((*levels, inside), (*lasts, ran), (*loops, repr(node)))
            if found is not None:
                return found
        if counts[0] == counts[1]:
            return None
        problem = f"{counts[1]} iterations, expected {counts[0]}"
        difference = Difference(ok=False, problem=problem)
        return self._told(levels, node.outputs[0], difference, lasts, loops, True)

    def _branches(
        self, graphs: Graphs, node: Node, twin: Node | None, lasts: tuple[int, ...]
    ) -> tuple[str, str]:
        """The branches of an If that both models take."""
        condition, other = node.inputs[0], None if twin is None else twin.inputs[0]
        assert condition is not None
        name = _SEEN.format(0)
        first, second = self._opened(graphs, {name: (condition, other)})
        mine = brought_out(first.run(self._fed(lasts)), name)
        is_alone = graphs[1] is not None and twin is None
        its = mine if is_alone else brought_out(second.run(self._fed(lasts)), name)
        taken, other_taken = ("then" if np.all(value) else "else" for value in (mine, its))
        return taken, other_taken

    def _iteration(
        self, graphs: Graphs, lasts: tuple[int, ...]
    ) -> tuple[int | None, tuple[int, int]]:
        """The first iteration in which an output of a Loop's body differs, and how many iterations
        each model runs. If no output differs, any value of the body counts. If no value differs,
        an iteration that only one model runs counts."""
        pairs = list(self._pairs(graphs).items())
        exits = graphs[0].outputs
        some = sorted(pairs, key=lambda pair: pair[0] not in exits)[:_AT_ONCE]
        view = self._view(graphs, some)
        counts = view((*lasts, ENDLESS)).counts
        numbers = range(max(counts))
        for values in (exits, None):

            def judge(
                some: list[int], values: Sequence[Value] | None = values
            ) -> Mapping[int, bool]:
                return {number: view((*lasts, number)).differ(values) for number in some}

            first = first_wrong(numbers, judge, at_once=_ITERATIONS)
            if first is not None:
                return first, counts
        return None, counts

    def _pairs(self, graphs: Graphs) -> dict[Value, Value | None]:
        """The values of the first graph that can be compared, in its order, with their twins."""
        mine, its = graphs
        nested = mine is not self.models[0].graph
        values = visible(mine, nested)
        if its is None:
            return dict.fromkeys(values)
        assert self.models[1] is not None
        others = {*visible(its, its is not self.models[1].graph)}
        found = twins(mine, its).values
        return {v: found[v] for v in values if v in found and found[v] in others}

    def _compared(
        self,
        graphs: Graphs,
        pairs: Sequence[tuple[Value, Value | None]],
        lasts: tuple[int, ...],
    ) -> Mapping[Value, Difference]:
        """How values compare. A value is left out if the models do not load or run with it as an
        output."""
        try:
            return self._view(graphs, pairs)(lasts).differences
        except EndlessError:
            raise
        except BridgeError:
            if len(pairs) == 1:
                return {}
            half = len(pairs) // 2
            return {
                **self._compared(graphs, pairs[:half], lasts),
                **self._compared(graphs, pairs[half:], lasts),
            }

    def _view(
        self, graphs: Graphs, pairs: Sequence[tuple[Value, Value | None]]
    ) -> Callable[[tuple[int, ...]], _Seen]:
        """Opens both models with these values as outputs. The answer is a function that takes
        iterations, and says how the values compare in them."""
        named = {_SEEN.format(index): pair for index, pair in enumerate(pairs)}
        first, second = self._opened(graphs, named)

        def at(lasts: tuple[int, ...]) -> _Seen:
            feed = self._fed(lasts)
            # Twice: a value that is random, or wrong in a first run only, explains no difference.
            once, expected = first.run(feed), first.run(feed)
            _, actual = second.run(feed), second.run(feed)
            differences = {}
            for name, (value, _) in named.items():
                before, wanted, found = (brought_out(r, name) for r in (once, expected, actual))
                if wanted is not None and found is not None and self.equal(wanted, before).ok:
                    differences[value] = self.equal(wanted, found)
            mine, its = (np.max(results.get(COUNT, 0)) for results in (expected, actual))
            return _Seen(differences, (int(mine), int(its)))

        return at

    def _opened(
        self, graphs: Graphs, named: Mapping[str, tuple[Value, Value | None]]
    ) -> tuple[Session, Session]:
        self.loads += 1
        if self.loads > _LOADS:
            raise _TooLongError(f"{_LOADS} pairs of models were compared")
        mine, other = Surgery(self.models[0]), None
        mine.bring_out(graphs[0], {name: pair[0] for name, pair in named.items()})
        if self.models[1] is not None and graphs[1] is not None:
            other = Surgery(self.models[1])
            twins = {name: pair[1] for name, pair in named.items() if pair[1] is not None}
            other.bring_out(graphs[1], twins)
        return self.open_pair(mine.model, None if other is None else other.model)

    def _fed(self, lasts: tuple[int, ...]) -> dict[str, Any]:
        switches = {last(depth): np.array(number) for depth, number in enumerate(lasts)}
        return {**self.feed, **switches}


_SEEN = "bridge.seen.{}"
"""The name of the output that a value becomes."""


class _TooLongError(Exception):
    pass
