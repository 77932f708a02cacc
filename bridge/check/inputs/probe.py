"""Cuts a small model out of a large one: all nodes that the way to one If or Loop depends on.

In the small model, the Ifs around it always take the wanted branch. The small model computes one
iteration of each Loop around it, and the iteration's number is an input. So the conditions on the
way are computed quickly for many inputs, even for inputs that the whole model does not take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from bridge.check.inputs.goals import (
    Junction,
    Negation,
    Predicate,
    Truth,
    distance,
    operands,
    truth_of,
)
from bridge.check.instrument import Way
from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_node, clone_value
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition, InputPort, Invariant, Iteration, Sliced
from bridge.neutral.types import I64, TensorType
from bridge.operators.control.loop_builder import trips_of_slices

ITERATION = "bridge.iteration."
"""The start of the names of inputs that say which iteration of a Loop is computed."""

_LARGEST = 1 << 26  # bytes of constants in a probe


@dataclass(frozen=True)
class Demand:
    """A condition on the way, and its wanted value."""

    truth: Truth
    wanted: bool


@dataclass
class Probe:
    """A model whose outputs are the operands of the conditions on the way to an If or Loop.

    `way` are the conditions around the If or Loop, `own` has the condition for each of its
    outcomes. `outputs` has the name of each operand's output. `settled` says why an outcome is
    impossible for all inputs that get there. `never` is set if no input gets there.
    """

    model: Model
    way: tuple[Demand, ...]
    own: Mapping[int, Demand]
    outputs: dict[Value, str]
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
        demands = (*self.way, self.own[outcome])
        found = (distance(demand.truth, demand.wanted, values) for demand in demands)
        return tuple(1.0 if np.isinf(d) else d / (d + 1) for d in found)

    def asked(self, outcome: int) -> list[dict[Value, bool]]:
        """The inputs that each condition depends on, in the order of `distances`. Each input has
        whether the condition depends on its numbers, too, and not on its shape alone."""
        outputs = dict(zip(self.outputs.values(), self.model.graph.outputs, strict=True))
        return [
            _asked(self.model.graph, [outputs[self.outputs[v]] for v in operands(truth)])
            for truth in (demand.truth for demand in (*self.way, self.own[outcome]))
        ]


_SIZED_BY_VALUES = frozenset({"NonZero", "Compress", "Unique", "NonMaxSuppression", "If", "Loop"})


def _asked(graph: Graph, outputs: list[Value]) -> dict[Value, bool]:
    """The inputs that outputs of a flat graph depend on, each with whether its numbers count."""
    asked = dict.fromkeys(outputs, True)
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
    demands: list[Demand] = []
    try:
        for outer, body in way:
            demands += cut.enter(outer, body)
        own, settled = cut.outcomes_of_if(node) if node.op == "If" else cut.outcomes_of_loop(node)
        known_way = [(known_of(cut.value(value)).ints, wanted) for value, wanted in cut.conditions]
    except _TooLargeError:
        return None
    return Probe(
        Model(cut.graph, model.format, model.opset, dict(model.opsets)),
        tuple(demands),
        own,
        cut.name_outputs(),
        settled,
        any(
            known is not None and len(known) == 1 and bool(known[0]) != wanted
            for known, wanted in known_way
        ),
    )


_MANY = 1 << 62  # iterations: only the condition limits the number


def _outcomes(enters: Sequence[Truth], goes_on: Sequence[Truth]) -> dict[int, Demand]:
    """The outcomes of a Loop. The Loop runs if all of `enters` hold, and runs twice if all of
    `goes_on` hold, too."""

    def joined(truths: Sequence[Truth]) -> Truth | None:
        return reduce(lambda left, right: Junction("And", left, right), truths) if truths else None

    entered, twice, both = joined(enters), joined(goes_on), joined([*enters, *goes_on])
    found = {}
    if entered is not None:
        found[0] = Demand(entered, False)
    if twice is not None:
        ended: Truth = Negation(twice)
        found[1] = Demand(ended if entered is None else Junction("And", entered, ended), True)
    if both is not None:
        found[2] = Demand(both, True)
    return found


class _TooLargeError(Exception):
    pass


class _Cut:
    """The part of a model that was needed so far, as one flat graph."""

    def __init__(self, model: Model, most: int) -> None:
        self.graph = Graph(name="probe")
        self.conditions: list[tuple[Value, bool]] = []
        self._model = model
        self._builder = Builder(self.graph.nodes)
        self._scratch = Builder([])  # nodes of conditions that the model does not have itself
        self._most = most
        self._bytes = 0
        self._copies: dict[Value, Value] = {}
        self._entered: dict[Value, tuple[Node, Body, InputPort]] = {}
        self._iterations: dict[int, Value] = {}
        self._operands: dict[Value, None] = {}

    def enter(self, node: Node, body: Body) -> list[Demand]:
        """Goes into a body. Gives the conditions under which the model runs the body."""
        for value, port in zip(body.graph.inputs, body.inputs, strict=True):
            self._entered[value] = (node, body, port)
        if node.op == "If":
            condition, wanted = node.inputs[0], body is node.bodies[0]
            assert condition is not None
            self.conditions.append((condition, wanted))
            return [Demand(self.wanted(condition), wanted)]
        demands = []
        trips, going = self._trips(node), node.input(1)
        if trips is not None:
            runs = Predicate("Greater", trips, self._iteration(node))
            demands.append(Demand(self._asked(runs), True))
        if going is not None:
            demands.append(Demand(self.wanted(going), True))
        return demands

    def outcomes_of_if(self, node: Node) -> tuple[dict[int, Demand], dict[int, str]]:
        """The conditions of each branch of an If, and why a branch cannot run."""
        condition = node.inputs[0]
        assert condition is not None
        own = self.wanted(condition)
        known = known_of(self.value(condition)).ints
        settled = {}
        if known is not None and len(known) == 1:
            always = bool(known[0])
            settled[int(not always)] = f"the condition is always {str(always).lower()}"
        return {True: Demand(own, True), False: Demand(own, False)}, settled

    def outcomes_of_loop(self, node: Node) -> tuple[dict[int, Demand], dict[int, str]]:
        """The conditions for no iteration of a Loop, for one and for several, and why some of
        these numbers are impossible."""
        trips, going = self._trips(node), node.input(1)
        enters: list[Truth] = [] if going is None else [self.wanted(going)]
        goes_on: list[Truth] = []
        first = self._scratch.constant(0)
        self._iterations[id(node)] = first
        if trips is not None:
            enters.append(self._asked(Predicate("Greater", trips, first)))
            goes_on.append(self._asked(Predicate("Greater", trips, self._scratch.constant(1))))
        for value, port in zip(node.body.graph.inputs, node.body.inputs, strict=True):
            self._entered[value] = (node, node.body, port)
        further = next((v for v, port in node.body.exits() if isinstance(port, Condition)), None)
        if further is not None:
            goes_on.append(self.wanted(further))
        return _outcomes(enters, goes_on), self._settled_counts(node, trips, going, further)

    def _settled_counts(
        self, node: Node, trips: Value | None, *conditions: Value | None
    ) -> dict[int, str]:
        """Why some numbers of iterations are impossible for all inputs."""
        most = _MANY if trips is None else self._number(trips)
        starts, goes_on = (1 if value is None else self._number(value) for value in conditions)
        if (most is not None and most <= 0) or starts == 0:
            return dict.fromkeys((1, 2), "the Loop never runs")
        settled = {}
        if node.trip_count is None and trips is not None:
            # Inputs without slices are tried apart.
            settled[0] = "the Loop runs for each slice"
        if most is not None and starts:
            settled[0] = "the Loop always runs"
        if most == 1 or goes_on == 0:
            settled[2] = "the Loop never runs twice"
        if (most is not None and most > 1) and goes_on:
            settled[1] = "the Loop never ends after one iteration"
        return settled

    def _number(self, value: Value) -> int | None:
        """The number of a value that is the same for all inputs, None if it is unknown."""
        known = known_of(self.value(value)).ints
        return known[0] if known is not None and len(known) == 1 else None

    def _trips(self, node: Node) -> Value | None:
        """How often a Loop runs unless its condition ends it: its trip count, or else the number of
        its slices. The value is outside of the entered bodies. None if neither is given."""
        if node.trip_count is not None:
            return self._resolve(node.trip_count)
        if not any(isinstance(port, Sliced) for port in node.body.inputs):
            return None
        with self._scratch as b:
            return trips_of_slices(b, node.inputs, node.body)

    def wanted(self, condition: Value) -> Truth:
        """The truth that a condition computes. Its operands become outputs."""
        return self._asked(truth_of(condition, self._resolve))

    def _asked(self, truth: Truth) -> Truth:
        self._operands |= dict.fromkeys(operands(truth))
        return truth

    def name_outputs(self) -> dict[Value, str]:
        """Makes outputs of all operands, and gives their names."""
        names = {}
        for index, value in enumerate(self._operands):
            names[value] = f"bridge.probe.{index}"
            output = self._builder.op("Identity", self.value(value))
            output.names.append(names[value])
            self.graph.outputs.append(output)
        self.graph.output_names = list(names.values())
        return names

    def value(self, wanted: Value) -> Value:
        """The copy of a value in the cut. All values that it depends on are copied first."""
        waiting = [wanted]
        while waiting:
            value = waiting[-1]
            if value in self._copies:
                waiting.pop()
                continue
            sources = self._sources(value)
            missing = [source for source in sources if source not in self._copies]
            if missing:
                waiting += missing
                continue
            self._make(value)
            waiting.pop()
        return self._copies[wanted]

    def _resolve(self, value: Value) -> Value:
        """The outer value that a value inside the entered bodies stands for."""
        while value in self._entered:
            node, _, port = self._entered[value]
            if not isinstance(port, Invariant | Carried) or port.input is None:
                break
            outer = node.inputs[port.input]
            assert outer is not None
            value = outer
        return value

    def _sources(self, value: Value) -> list[Value]:
        if value in self._entered:
            node, _, port = self._entered[value]
            if isinstance(port, Iteration) or port.input is None:
                return []
            return [v for v in (node.inputs[port.input],) if v is not None]
        maker = value.producer
        return [] if maker is None else [v for v in maker.inputs if v is not None]

    def _make(self, value: Value) -> None:
        """Copies a value into the cut. All values that it depends on are there already."""
        if value in self._entered:
            self._copies[value] = self._input_of_body(*self._entered[value])
        elif value.producer is None:
            default = self._model.defaults.get(value)
            if default is not None:
                self._copies[value] = self._builder.tensor(default)
            else:
                self._copies[value] = clone_value(value)
                self.graph.inputs.append(self._copies[value])
        else:
            self._copy(value.producer)

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

    def _input_of_body(self, node: Node, body: Body, port: InputPort) -> Value:
        if isinstance(port, Iteration):
            return self.value(self._iteration(node))
        if port.input is None:
            return self._builder.constant(np.array(True))
        outer = node.inputs[port.input]
        assert outer is not None
        copy = self._copies[outer]
        if isinstance(port, Sliced):
            return self._slice(node, port, copy)
        return copy

    def _iteration(self, node: Node) -> Value:
        """The input that says which iteration of a Loop is computed."""
        if id(node) not in self._iterations:
            name = f"{ITERATION}{len(self._iterations)}"
            value = Value(TensorType(I64, ()), [name])
            self._iterations[id(node)] = self._copies[value] = value
            self.graph.inputs.append(value)
        return self._iterations[id(node)]

    def _slice(self, node: Node, port: Sliced, value: Value) -> Value:
        """The slice of the computed iteration, counted from the end with the first slice."""
        number = self.value(self._iteration(node))
        if port.stride < 0:
            number = self._builder.op("Sub", -1, number)
        if port.keepdims:
            number = self._builder.op("Reshape", number, [1])
        return self._builder.op("Gather", value, number, port.axis)
