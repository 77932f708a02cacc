"""Finds the first value that differs in two models, by making inner values outputs of both.

A few values of a graph are compared at once. The cause must be among the nodes that the first
differing value depends on, up to values that agree. A few of their values come next. The search
goes on inside an If or a Loop among them; in a Loop, in the first iteration that differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridge.check.compare import Difference, compare, tolerance
from bridge.check.cut import behind
from bridge.check.engines import EndlessError, Session
from bridge.check.instrument import path_of
from bridge.check.lines import shortened
from bridge.check.taps import (
    COUNT,
    ENDLESS,
    GraphPath,
    PathStep,
    Spot,
    can_be_seen,
    graph_at,
    last,
    seen,
    spot_of,
    value_at,
    way_to,
)
from bridge.errors import BridgeError
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.types import TensorType

_AT_ONCE = 100  # values compared in one run, so that memory stays small
_LOADS = 80  # pairs of models that are made and loaded


@dataclass(frozen=True)
class FirstDifference:
    """The first inner value that differs (`name`). `before` is the number of earlier values, which
    agree. `maker` makes the value, and `node` is the path of `maker`. `iterations` has each Loop
    around it, the outermost first, with the number of its iteration, from 0. `beside` are the names
    of values in the same graph, `places` the places of that graph in both models."""

    name: str
    node: str
    difference: Difference
    before: int
    maker: Node | None = None
    iterations: tuple[tuple[str, int], ...] = ()
    beside: frozenset[str] = frozenset()
    places: tuple[GraphPath, GraphPath] = ((), ())

    def __str__(self) -> str:
        return (
            f"the first value that differs is '{self.name}', which {self.node} makes"
            f"{self.when} ({self.difference}); {self.before} before it agree"
        )

    @property
    def when(self) -> str:
        """In which iterations, counted from 0: "" outside of Loops."""
        return "".join(
            f" in iteration {number} (from 0) of {loop}" for loop, number in self.iterations
        )


Look = tuple[GraphPath, list[Spot]]
"""A place in a model, and the values there that are to be outputs."""

Load = Callable[[Look, Look], tuple[Session, Session]]
"""Loads both models. Each has the values of its look as outputs (see `taps.expose`)."""


def first_difference(
    first: Model,
    other: Model | None,
    load: Load,
    feeds: Mapping[str, Any],
    rtol: float,
    atol: float,
) -> FirstDifference | str:
    """The first value that differs with an input, or why none was found. `other` is None if the
    other model is made of `first`: a change in `first` is then a change in both."""
    search = _Bisection(first, other, load, feeds, rtol, atol)
    try:
        found = search.level(_Twin(), (), ())
    except (BridgeError, _TooLongError) as error:
        return f"the search for the first difference stopped: {shortened(str(error))}"
    if found is not None:
        return found
    return f"all {search.agree} inner values that could be compared agree, where they are outputs"


@dataclass(frozen=True)
class _Twin:
    """The places of a graph in both models."""

    first: GraphPath = ()
    other: GraphPath = ()


SpotPair = tuple[Spot, Spot]
"""The places of a value in both graphs of a twin."""


@dataclass(frozen=True)
class _Seen:
    """How values compare, and how many iterations the innermost Loop around them ran in both
    models. Values that could not be compared are left out."""

    differences: dict[Spot, Difference]
    counts: tuple[int, int]

    @property
    def differ(self) -> bool:
        """Whether any value differs."""
        return self.counts[0] != self.counts[1] or not all(
            difference.ok for difference in self.differences.values()
        )

    def of(self, spots: Collection[Spot]) -> _Seen:
        """The same, for these values alone."""
        some = {spot: found for spot, found in self.differences.items() if spot in spots}
        return replace(self, differences=some)


@dataclass
class _Bisection:
    """See `first_difference`. `loads` counts the pairs of models so far, `agree` the values that
    agree."""

    first: Model
    other: Model | None
    load: Load
    feeds: Mapping[str, Any]
    rtol: float
    atol: float
    loads: int = 0
    agree: int = 0

    def level(
        self, twin: _Twin, lasts: tuple[int, ...], loops: tuple[str, ...]
    ) -> FirstDifference | None:
        """The first value that differs in a graph, or in graphs nested in it. `lasts` are the
        iterations of the Loops around the graph, `loops` the names of these Loops."""
        graph = graph_at(self.first, twin.first)
        pairs = self._shared(twin)
        exits = {spot_of(graph, value) for value in graph.outputs}
        left, tried, known = list(pairs), set[Spot](), dict[Spot, Difference]()
        target, cause = None, set[Node]()
        while left:
            some = _some(left, exits)
            tried.update(some)
            known |= self._compared(twin, [(spot, pairs[spot]) for spot in some], lasts)
            wrong = [spot for spot, difference in known.items() if not difference.ok]
            if not wrong:
                break
            target = min(wrong)
            agreeing = {value_at(graph, s) for s, difference in known.items() if difference.ok}
            cause = set(behind(graph.nodes, [value_at(graph, target)], agreeing))
            left = [
                s for s in pairs if s < target and s not in tried and graph.nodes[s[0]] in cause
            ]
        self.agree += sum(
            difference.ok and (target is None or spot < target)
            for spot, difference in known.items()
        )
        if target is None:
            return None
        for index, node in enumerate(graph.nodes):
            if node in cause and node.bodies:
                inner = self._inside(twin, index, lasts, loops)
                if inner is not None:
                    return inner
        return self._told(twin, value_at(graph, target), known[target], lasts, loops)

    def _told(
        self,
        twin: _Twin,
        value: Value,
        difference: Difference,
        lasts: tuple[int, ...],
        loops: tuple[str, ...],
    ) -> FirstDifference:
        graph, node = graph_at(self.first, twin.first), value.producer
        assert node is not None
        return FirstDifference(
            value.name or f"{node.name or node.op}:{node.outputs.index(value)}",
            path_of(way_to(self.first, twin.first), node),
            difference,
            self.agree,
            node,
            tuple(zip(loops, lasts, strict=True)),
            frozenset(name for one in graph.nodes for v in one.outputs for name in v.names),
            (twin.first, twin.first if self.other is None else twin.other),
        )

    def _inside(
        self, twin: _Twin, index: int, lasts: tuple[int, ...], loops: tuple[str, ...]
    ) -> FirstDifference | None:
        """The first value that differs in the bodies of a node."""
        its = self._twin_of(twin, index)
        if its is None:
            return None
        path, index = _unguarded(self.first, twin.first, index)
        outside, its = _unguarded(self.other or self.first, twin.other, its)
        twin = _Twin(path, outside)
        node = graph_at(self.first, path).nodes[index]
        if node.op == "If":
            body = 0 if self._takes_then(twin, node, lasts) else 1
            return self.level(_entered(twin, index, its, body), lasts, loops)
        inside, names = _entered(twin, index, its, 0), (*loops, repr(node))
        iteration, counts = self._iteration(inside, lasts)
        if iteration is None:
            return None
        ran = min(iteration, *(count - 1 for count in counts))
        if ran >= 0:
            found = self.level(inside, (*lasts, ran), names)
            if found is not None:
                return found
        if counts[0] == counts[1]:
            return None
        problem = f"{counts[1]} iterations, expected {counts[0]}"
        return self._told(
            twin, node.outputs[0], Difference(ok=False, problem=problem), lasts, loops
        )

    def _takes_then(self, twin: _Twin, node: Node, lasts: tuple[int, ...]) -> bool:
        condition = node.inputs[0]
        assert condition is not None
        spot = spot_of(graph_at(self.first, twin.first), condition)
        session, _ = self._loaded((twin.first, [spot]), (twin.other, []))
        return bool(np.all(session.run(self._fed(lasts))[seen(0)]))

    def _iteration(self, twin: _Twin, lasts: tuple[int, ...]) -> tuple[int | None, tuple[int, int]]:
        """The first iteration in which an output of a Loop's body differs, and how many iterations
        each model runs. If no output differs, any value of the body counts. If no value differs,
        an iteration that only one model runs counts."""
        graph, pairs = graph_at(self.first, twin.first), self._shared(twin)
        exits = {spot_of(graph, value) for value in graph.outputs}
        view = self._view(twin, [(spot, pairs[spot]) for spot in _some(list(pairs), exits)])
        found = _first(lambda number: view((*lasts, number)).of(exits))
        if found is None:
            found = _first(lambda number: view((*lasts, number)))
        return found, view((*lasts, ENDLESS)).counts

    def _shared(self, twin: _Twin) -> dict[Spot, Spot]:
        its = None if self.other is None else graph_at(self.other, twin.other)
        return twins(graph_at(self.first, twin.first), its, bool(twin.first))

    def _twin_of(self, twin: _Twin, index: int) -> int | None:
        """The place of the other model's node for a node with bodies of the first model. Both share
        a name, or have the same position among their graph's nodes of this operator."""
        if self.other is None:
            return index
        graph, other = graph_at(self.first, twin.first), graph_at(self.other, twin.other)
        node = graph.nodes[index]
        names = {name for value in node.outputs for name in value.names}
        alike = [i for i, one in enumerate(other.nodes) if _kind(one) == _kind(node)]
        for place in alike:
            if names & {name for value in other.nodes[place].outputs for name in value.names}:
                return place
        own = [i for i, one in enumerate(graph.nodes) if _kind(one) == _kind(node)]
        return alike[own.index(index)] if len(own) == len(alike) else None

    def _compared(
        self, twin: _Twin, pairs: Sequence[SpotPair], lasts: tuple[int, ...]
    ) -> dict[Spot, Difference]:
        """How values compare. A value is left out if the models do not load or run with it as an
        output."""
        try:
            return self._view(twin, pairs)(lasts).differences
        except EndlessError:
            raise
        except BridgeError:
            if len(pairs) == 1:
                return {}
            half = len(pairs) // 2
            return {
                **self._compared(twin, pairs[:half], lasts),
                **self._compared(twin, pairs[half:], lasts),
            }

    def _view(self, twin: _Twin, pairs: Sequence[SpotPair]) -> Callable[[tuple[int, ...]], _Seen]:
        """Loads both models with these values as outputs. The answer is a function that takes
        iterations, and says how the values compare in them."""
        first, second = self._loaded(
            (twin.first, [mine for mine, _ in pairs]), (twin.other, [its for _, its in pairs])
        )

        def at(lasts: tuple[int, ...]) -> _Seen:
            feeds = self._fed(lasts)
            # Twice: a value that is random, or wrong in a first run only, explains no difference.
            once, expected = first.run(feeds), first.run(feeds)
            _, actual = second.run(feeds), second.run(feeds)
            differences = {}
            for index, (spot, _) in enumerate(pairs):
                name = seen(index)
                if name not in expected or name not in actual:
                    continue  # An open rank in one model: its value comes as elements and shape.
                wanted = expected[name]
                # Without any tolerance, the bits have to be the same.
                rtol = tolerance(wanted, self.rtol) if self.rtol or self.atol else 0.0
                if compare(wanted, once[name], rtol, self.atol).ok:
                    differences[spot] = compare(wanted, actual[name], rtol, self.atol)
            mine, its = (np.max(results.get(COUNT, 0)) for results in (expected, actual))
            return _Seen(differences, (int(mine), int(its)))

        return at

    def _loaded(self, mine: Look, its: Look) -> tuple[Session, Session]:
        self.loads += 1
        if self.loads > _LOADS:
            raise _TooLongError(f"{_LOADS} pairs of models were compared")
        return self.load(mine, its)

    def _fed(self, lasts: tuple[int, ...]) -> dict[str, Any]:
        switches = {last(depth): np.array(number) for depth, number in enumerate(lasts)}
        return {**self.feeds, **switches}


class _TooLongError(Exception):
    pass


def _first(at: Callable[[int], _Seen]) -> int | None:
    """The number of the first iteration with a difference, None if the Loop ends before that."""
    agrees, differs = -1, 0
    while not (found := at(differs)).differ:
        if found.counts[0] <= differs:
            return None
        agrees, differs = differs, 2 * differs + 1
    while differs - agrees > 1:
        middle = (agrees + differs) // 2
        if at(middle).differ:
            differs = middle
        else:
            agrees = middle
    return differs


def _guarded(node: Node) -> int | None:
    """The place of the Loop in an If that holds nothing else and asks whether the Loop runs."""
    then, *others = [[i for i, n in enumerate(b.graph.nodes) if n.bodies] for b in node.bodies]
    if node.op != "If" or len(then) != 1 or any(others):
        return None
    return then[0] if node.then_body.graph.nodes[then[0]].op == "Loop" else None


def _kind(node: Node) -> str:
    """The operator of a node. If the node guards a Loop, "Loop" is the answer."""
    return "Loop" if node.bodies and _guarded(node) is not None else node.op


def _unguarded(model: Model, path: GraphPath, index: int) -> tuple[GraphPath, int]:
    """The place of a node, or of the Loop that it guards."""
    place = _guarded(graph_at(model, path).nodes[index])
    return (path, index) if place is None else ((*path, PathStep(index, 0)), place)


def _entered(twin: _Twin, index: int, its: int, body: int) -> _Twin:
    return _Twin((*twin.first, PathStep(index, body)), (*twin.other, PathStep(its, body)))


def visible(graph: Graph, nested: bool) -> dict[Spot, Value]:
    """The tensors that a graph computes, in its order, constants left out."""
    return {
        (place, index): value
        for place, node in enumerate(graph.nodes)
        if node.op != "Constant"
        for index, value in enumerate(node.outputs)
        if isinstance(value.type, TensorType) and (not nested or can_be_seen(value))
    }


def twins(graph: Graph, other: Graph | None, nested: bool = False) -> dict[Spot, Spot]:
    """The values of a graph that can be compared, in its order, with their places in the other
    graph. Equal names match. If `other` is None, it is made of `graph`, and the places are the
    same."""
    mine = visible(graph, nested)
    if other is None:
        return {spot: spot for spot in mine}
    its = visible(other, nested)
    counts = Counter(name for value in its.values() for name in set(value.names))
    places = {name: spot for spot, value in its.items() for name in value.names}
    shared = {}
    for spot, value in mine.items():
        names = [name for name in value.names if counts[name] == 1]
        if names:
            shared[spot] = places[names[0]]
    return shared


def _some(spots: Sequence[Spot], wanted: Collection[Spot]) -> list[Spot]:
    """As many spots as one run compares, evenly spread, and the wanted spots among them."""
    if len(spots) <= _AT_ONCE:
        return list(spots)
    chosen = [spot for spot in spots if spot in wanted][: _AT_ONCE // 2]
    step = len(spots) / (_AT_ONCE - len(chosen))
    spread = [spots[int((i + 1) * step) - 1] for i in range(_AT_ONCE - len(chosen))]
    return sorted({*chosen, *spread})
