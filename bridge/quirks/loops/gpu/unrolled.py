"""A Loop of known trip count as its iterations.

If a condition may end the Loop, each iteration is a branch of an If that asks whether it runs; the
other branch gives the states as they are. A stack is cut to the iterations that ran.
"""

from collections.abc import Callable, Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_node
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Carried, Condition, Invariant, Iteration, Sliced, Stacked, Yield
from bridge.neutral.types import I64, is_static
from bridge.operators.bodies import either
from bridge.operators.control.loop_builder import is_positive, scalar
from bridge.quirks.loops.gpu.kinds import computed_conditions, known_trips

MOST_ITERATIONS = 64
"""The most iterations of an unrolled Loop."""

MOST_NODES = 4096
"""The most nodes of all iterations of one Loop."""


def unrolled(b: Builder, node: Node) -> list[Value] | None:
    """The outputs of a Loop whose trip count is known and small; None if it cannot be unrolled."""
    trips = known_trips(node)
    size = sum(1 for _ in node.body.graph.walk())
    if trips is None or not 0 < trips <= MOST_ITERATIONS or trips * size > MOST_NODES:
        return None
    fits = _has_known_parts(node) and _has_known_outputs(node)
    return _Unrolling(b, node, trips).outputs() if fits else None


def _has_known_parts(node: Node) -> bool:
    """Whether the place of each slice is known, and each stack has one part for each iteration."""
    for port, dim in node.slices():
        if node.operand(port.input).rank is None:
            return False
        if port.part_size > 1 and port.stride != port.part_size:
            return False
        if port.start < 0 and not isinstance(dim, int):
            return False
    stacks = [exit for exit in node.body.outputs if isinstance(exit, Stacked)]
    return all(exit.part_size == 1 and abs(exit.stride) == 1 for exit in stacks)


def _has_known_outputs(node: Node) -> bool:
    """Whether each output of the body has a known type. If a condition may end the Loop, zeros in
    the shape of a part stand for the parts that no iteration gives."""
    body, first = node.body, node.condition
    if any(value.element is None for value in body.graph.outputs):
        return False
    may_end = computed_conditions(body) or (first is not None and not is_positive(first))
    parts = [value for value, exit in body.exits() if isinstance(exit, Stacked)]
    return not may_end or all(is_static(value.shape) for value in parts)


class _Unrolling:
    """The iterations of a Loop, one after the other. `active` says whether the next one runs (None:
    it does), `states` maps body outputs to the present values of states."""

    def __init__(self, b: Builder, node: Node, trips: int) -> None:
        self.b, self.node, self.trips, self.body = b, node, trips, node.body
        first = node.condition
        self.active = None if first is None or is_positive(first) else scalar(b, first)
        self.states: dict[int, Value] = {}
        for port in self.body.inputs:
            if isinstance(port, Carried):
                self.states[port.output] = node.outer(port) or b.constant(True)

    def outputs(self) -> list[Value]:
        """The values for the outputs of the Loop."""
        b, conditions = self.b, computed_conditions(self.body)
        iterations: list[list[Value]] = []
        ran: Value | None = None
        for number in range(self.trips):
            if self.active is None:
                outputs = self._iteration(b, lambda value: value, number)
            else:
                one = b.reshape(b.cast(self.active, I64), 1)
                ran = one + number if ran is None else ran + one
                outputs = self._if_active(self.active, number)
            iterations.append(outputs)
            self.states = {index: outputs[index] for index in self.states}
            for index in conditions:
                goes_on = scalar(b, outputs[index])
                self.active = goes_on if self.active is None else self.active & goes_on
        results: dict[int, Value] = {}
        for index, exit in enumerate(self.body.outputs):
            if isinstance(exit, Yield) and exit.output is not None:
                results[exit.output] = iterations[-1][index]
            elif isinstance(exit, Stacked):
                parts = [outputs[index] for outputs in iterations]
                results[exit.output] = self._joined(exit, parts, ran)
        return [results[index] for index in sorted(results)]

    def _iteration(self, b: Builder, inside: Callable[[Value], Value], number: int) -> list[Value]:
        """The body's outputs in one iteration. `inside` gives the value for an outer one here."""
        values: dict[Value, Value] = {}
        for value, port in self.body.entries():
            if isinstance(port, Iteration):
                values[value] = b.reshape(b.constant(number), *([1] if value.rank == 1 else []))
            elif isinstance(port, Carried):
                values[value] = inside(self.states[port.output])
            else:
                outer = inside(self.node.operand(port.input))
                values[value] = _part(b, outer, port, number) if isinstance(port, Sliced) else outer
        for own in self.body.graph.nodes:
            copy = clone_node(own, values)
            for output in copy.outputs:
                output.names = []
            copy.name = f"{copy.name}_{number}" if copy.name else ""
            copy.extras = None
            b.nodes.append(copy)
        return [values.get(value, value) for value in self.body.graph.outputs]

    def _if_active(self, active: Value, number: int) -> list[Value]:
        """The same if the iteration runs; else the states as they are, and zeros."""
        needed = [
            self.node.operand(port.input)
            for port in self.body.inputs
            if isinstance(port, Invariant | Sliced)
        ]
        outer = list(dict.fromkeys([*needed, *self.states.values()]))

        def runs(inner: Builder, inside: Sequence[Value]) -> list[Value]:
            known = dict(zip(outer, inside, strict=True))
            return self._iteration(inner, lambda value: known.get(value, value), number)

        def stays(inner: Builder, inside: Sequence[Value]) -> list[Value]:
            known = dict(zip(outer, inside, strict=True))
            return [
                known[self.states[index]]
                if index in self.states
                else inner.filled(
                    False if isinstance(port, Condition) else 0, value.shape or (), value.element
                )
                for index, (value, port) in enumerate(self.body.exits())
            ]

        return either(self.b, active, outer, runs, stays)

    def _joined(self, port: Stacked, parts: list[Value], ran: Value | None) -> Value:
        b = self.b
        if not port.keepdims:
            parts = [b.unsqueeze(part, port.axis) for part in parts]
        joined = parts[0] if len(parts) == 1 else b.op("Concat", *parts, axis=port.axis)
        if ran is not None:
            joined = b.cut(joined, port.axis, 0, ran)
        return joined if port.stride > 0 else b.flip(joined, port.axis)


def _part(b: Builder, outer: Value, port: Sliced, number: int) -> Value:
    """The part that an iteration reads."""
    place = port.start + number * port.stride
    size = outer.dims[port.axis]
    if port.start < 0 and isinstance(size, int):
        place += size
    if port.keepdims:
        return b.cut(outer, port.axis, place, place + port.part_size)
    return b.op("Gather", outer, place, port.axis)
