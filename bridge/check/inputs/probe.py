"""Cuts a small model out of a large one: all nodes that the way to one If or Loop depends on.

In the small model, the Ifs around it always take the wanted branch. The small model computes one
iteration of each Loop around it, and the iteration's number is an input. So the conditions on the
way are computed quickly for many inputs, even for inputs that the whole model does not take.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path

import numpy as np

import bridge
from bridge.check.engines import Session
from bridge.check.engines.sessions import Sessions
from bridge.check.inputs.goals import compared, distance
from bridge.check.surgery.sites import Site, Way, ways
from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_node, clone_value
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Condition, InputPort, Iteration, Sliced
from bridge.neutral.types import I64, TensorType
from bridge.operators.control.loop_builder import trips_of_slices

ITERATION = "bridge.iteration."
"""The start of the names of inputs that say which iteration of a Loop is computed."""

_PROBED = 50_000  # nodes of all probes together
_PROBE = 5_000  # nodes of one
_LARGEST = 1 << 26  # bytes of constants in a probe
_SIZED_BY_VALUES = frozenset({"NonZero", "Compress", "Unique", "NonMaxSuppression", "If", "Loop"})

_NEVER = {
    0: "the Loop always runs",
    1: "the Loop never ends after one iteration",
    2: "the Loop never runs twice",
}
"""Why a Loop cannot run so often: never, once, several times."""

Demand = tuple[Value, bool]
"""A condition, and its wanted value."""

Probes = Callable[[Site], "tuple[Probe, Callable[[], Session]] | None"]
"""Gives the probe of a site, and what loads it; None if it would be too large. Loading raises
BridgeError if no engine takes it."""


@dataclass
class Probe:
    """A model whose outputs are what the conditions on the way to an If or Loop compare.

    `way` are the conditions around the If or Loop, `own` has the condition for each of its
    outcomes. `outputs` has the names of the outputs. `settled` says why an outcome is impossible
    for all inputs that get there. `never` is set if no input gets there.
    """

    model: Model
    way: Sequence[Demand]
    own: Mapping[int, Demand]
    outputs: Mapping[Value, str]
    settled: Mapping[int, str]
    never: bool = False

    @property
    def iterations(self) -> list[str]:
        """The inputs that say which iterations of Loops are computed."""
        names = [value.name for value in self.model.graph.inputs]
        return [name for name in names if name.startswith(ITERATION)]

    def distances(self, outcome: int, results: Mapping[str, np.ndarray]) -> tuple[float, ...]:
        """The distance of an input from each condition, from 0 to 1, so that all conditions have
        the same weight. The outermost condition is first, the condition of the outcome last."""
        values = {value: results[name] for value, name in self.outputs.items()}
        found = (distance(*demand, values) for demand in (*self.way, self.own[outcome]))
        return tuple(1.0 if np.isinf(d) else d / (d + 1) for d in found)

    def asked(self, outcome: int) -> list[dict[Value, bool]]:
        """The inputs that each condition depends on, in the order of `distances`. Each input has
        whether the condition depends on its numbers, too, and not on its shape alone."""
        demands = (*self.way, self.own[outcome])
        return [_asked(self.model.graph, compared(condition)) for condition, _ in demands]


def _asked(graph: Graph, values: Iterable[Value]) -> dict[Value, bool]:
    """The inputs that values of a flat graph depend on, each with whether its numbers count."""
    asked = dict.fromkeys(values, True)
    for node in reversed(graph.nodes):
        demands = [asked[value] for value in node.outputs if value in asked]
        if not demands:
            continue
        shape_alone = node.op in ("Shape", "Size") or not any(demands)
        for value in node.inputs:
            if value is not None:
                # Shapes are made of integers.
                numbers = value.element is None or not value.element.is_float
                sized = numbers or node.op in _SIZED_BY_VALUES
                valued = node.op not in ("Shape", "Size") and (not shape_alone or sized)
                asked[value] = asked.get(value, False) or valued
    return {value: asked[value] for value in graph.inputs if value in asked}


def probe(model: Model, way: Way, node: Node, most: int) -> Probe | None:
    """The probe of an If or Loop. None if the probe would have more than `most` nodes, or so many
    weights that it is no faster than the model."""
    cut = _Cut(model, most)
    try:
        around = [demand for outer, body in way for demand in cut.enter(outer, body)]
        own, settled = cut.outcomes_of_if(node) if node.op == "If" else cut.outcomes_of_loop(node)
    except _TooLargeError:
        return None
    never = any(_number(condition) == (not wanted) for condition, wanted in around)
    names = cut.name_outputs([*around, *own.values()])
    found = Model(cut.graph, model.format, model.opset, dict(model.opsets))
    return Probe(found, around, own, names, settled, never)


def _number(value: Value | None) -> int | None:
    """The number of a value that is the same for all inputs, None if it is unknown."""
    known = None if value is None else known_of(value).ints
    return known[0] if known is not None and len(known) == 1 else None


def probes_of(model: Model, scratch: Path, sessions: Sessions) -> Probes:
    """Cuts probes out of a model, as long as they stay small."""
    found = ways(model)
    left = _PROBED

    def probed(site: Site) -> tuple[Probe, Callable[[], Session]] | None:
        nonlocal left
        cut = probe(model, *found[site.index], min(_PROBE, left))
        left -= _PROBE if cut is None else len(cut.model.graph.nodes)
        if cut is None:
            return None

        @cache
        def opened() -> Session:
            path = scratch / f"probe-{site.index}.onnx"
            bridge.save(cut.model, path)
            return sessions.open(path)

        return cut, opened

    return probed


class _TooLargeError(Exception):
    pass


class _Cut:
    """The part of a model that was needed so far, as one flat graph."""

    def __init__(self, model: Model, most: int) -> None:
        self.graph = Graph(name="probe")
        self._model = model
        self._builder = Builder(self.graph.nodes)
        self._most = most
        self._bytes = 0
        self._copies: dict[Value, Value] = {}
        self._entered: dict[Value, tuple[Node, InputPort]] = {}
        self._iterations: dict[int, Value] = {}

    def enter(self, node: Node, body: Body) -> list[Demand]:
        """Goes into a body. Gives the conditions under which the model runs the body."""
        demands = []
        if node.op == "If":
            assert node.inputs[0] is not None
            demands.append((self.value(node.inputs[0]), body is node.bodies[0]))
        else:
            trips, going = self._trips(node), node.input(1)
            if trips is not None:
                runs = self._builder.op("Greater", trips, self._iteration(node))
                demands.append((runs, True))
            if going is not None:
                demands.append((self.value(going), True))
        self._enter(node, body)
        return demands

    def _enter(self, node: Node, body: Body) -> None:
        self._entered |= {value: (node, port) for value, port in body.entries()}

    def outcomes_of_if(self, node: Node) -> tuple[dict[int, Demand], dict[int, str]]:
        """The conditions of each branch of an If, and why a branch cannot run."""
        assert node.inputs[0] is not None
        condition = self.value(node.inputs[0])
        known, settled = _number(condition), {}
        if known is not None:
            settled[int(not known)] = f"the condition is always {str(bool(known)).lower()}"
        return {True: (condition, True), False: (condition, False)}, settled

    def outcomes_of_loop(self, node: Node) -> tuple[dict[int, Demand], dict[int, str]]:
        """The conditions for no iteration of a Loop, for one and for several, and why some of
        these numbers are impossible."""
        b, going = self._builder, node.input(1)
        start = None if going is None else self.value(going)
        trips = self._trips(node)
        self._iterations[id(node)] = first = b.constant(0)
        self._copies[first] = first
        self._enter(node, node.body)
        exits = (v for v, port in node.body.exits() if isinstance(port, Condition))
        further = next(map(self.value, exits), None)
        once, twice = (None if trips is None else b.op("Greater", trips, n) for n in (0, 1))
        entered, goes_on = self._every(start, once), self._every(further, twice)
        own = {
            0: (entered, False),
            1: (self._every(entered, b.op("Not", goes_on)), True),
            2: (self._every(entered, goes_on), True),
        }
        settled = {n: _NEVER[n] for n, one in own.items() if _number(one[0]) == (not one[1])}
        if _number(entered) == 0:
            settled |= dict.fromkeys((1, 2), "the Loop never runs")
        elif node.trip_count is None and trips is not None:
            # Inputs without slices are tried apart.
            settled[0] = "the Loop runs for each slice"
        return own, settled

    def _every(self, *truths: Value | None) -> Value:
        """Whether all of these are true, of which None is."""
        open = [value for value in truths if value is not None and _number(value) != 1]
        if not open or any(_number(value) == 0 for value in open):
            return self._builder.constant(np.array(not open))
        return reduce(lambda one, other: self._builder.op("And", one, other), open)

    def _trips(self, node: Node) -> Value | None:
        """How often a Loop runs unless its condition ends it: its trip count, or else the number of
        its slices. None if neither is given."""
        if node.trip_count is not None:
            return self.value(node.trip_count)
        if not any(isinstance(port, Sliced) for port in node.body.inputs):
            return None
        inputs = [None if v is None else self.value(v) for v in node.inputs]
        with self._builder as b:
            return trips_of_slices(b, inputs, node.body)

    def name_outputs(self, demands: Sequence[Demand]) -> dict[Value, str]:
        """Makes outputs of all values that are compared, and gives their names."""
        values = dict.fromkeys(v for condition, _ in demands for v in compared(condition))
        names = {value: f"bridge.probe.{place}" for place, value in enumerate(values)}
        for value, name in names.items():
            output = self._builder.op("Identity", value)
            output.names.append(name)
            self.graph.outputs.append(output)
        self.graph.output_names = [*names.values()]
        return names

    def value(self, wanted: Value) -> Value:
        """The copy of a value in the cut. All values that it depends on are copied first."""
        waiting = [wanted]
        while waiting:
            value = waiting[-1]
            if value in self._copies:
                waiting.pop()
                continue
            missing = [v for v in self._sources(value) if v not in self._copies]
            if missing:
                waiting += missing
                continue
            self._make(value)
            waiting.pop()
        return self._copies[wanted]

    def _sources(self, value: Value) -> list[Value]:
        if value in self._entered:
            node, port = self._entered[value]
            outer = None if isinstance(port, Iteration) else _outer(node, port)
            return [] if outer is None else [outer]
        maker = value.producer
        return [] if maker is None else [v for v in maker.inputs if v is not None]

    def _make(self, value: Value) -> None:
        """Copies a value into the cut. All values that it depends on are there already."""
        if value in self._entered:
            self._copies[value] = self._input_of_body(*self._entered[value])
        elif value.producer is not None:
            self._copy(value.producer)
        elif (default := self._model.defaults.get(value)) is not None:
            self._copies[value] = self._builder.tensor(default)
        else:
            self._copies[value] = clone_value(value)
            self.graph.inputs.append(self._copies[value])

    def _copy(self, node: Node) -> None:
        for inner in (node, *(n for body in node.bodies for n in body.graph.walk())):
            self._most -= 1
            if inner.op == "Constant":
                self._bytes += inner.attributes["value"].nbytes
        if self._most < 0 or self._bytes > _LARGEST:
            raise _TooLargeError
        copy = clone_node(node, self._copies)
        if node.op != "Constant":
            # The cut has one branch of an If, so more may be known than if both branches meet.
            infer(copy)
        self.graph.nodes.append(copy)

    def _input_of_body(self, node: Node, port: InputPort) -> Value:
        if isinstance(port, Iteration):
            return self._iteration(node)
        outer = _outer(node, port)
        if outer is None:
            return self._builder.constant(np.array(True))
        copy = self._copies[outer]
        return self._slice(node, port, copy) if isinstance(port, Sliced) else copy

    def _iteration(self, node: Node) -> Value:
        """The input that says which iteration of a Loop is computed."""
        if id(node) not in self._iterations:
            value = Value(TensorType(I64, ()), [f"{ITERATION}{len(self._iterations)}"])
            self._iterations[id(node)] = value
            self.graph.inputs.append(value)
        return self._iterations[id(node)]

    def _slice(self, node: Node, port: Sliced, value: Value) -> Value:
        """The slice of the computed iteration, counted from the end with the first slice."""
        number = self._iteration(node)
        if port.stride < 0:
            number = self._builder.op("Sub", -1, number)
        if port.keepdims:
            number = self._builder.op("Reshape", number, [1])
        return self._builder.op("Gather", value, number, port.axis)


def _outer(node: Node, port: InputPort) -> Value | None:
    """The value outside of a body that enters it through a port."""
    index = None if isinstance(port, Iteration) else port.input
    return None if index is None else node.inputs[index]
