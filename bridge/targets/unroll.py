"""Loops whose count is known, as their iterations, for devices that want Loops so.

Where a condition may end a Loop, each iteration is a branch of an If that asks whether it runs;
its other branch gives the states as they are. A stack is cut to the iterations that ran.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_node
from bridge.neutral.graph import Body, Model, Node, Value, loop_kind
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition, Invariant, Iteration, Sliced, Stacked, Yield
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import I64, is_static
from bridge.operators.branches import either
from bridge.operators.control.loop_builder import is_positive, scalar
from bridge.passes.context import Context
from bridge.passes.fold import infer_and_fold
from bridge.targets import device_of

MOST_ITERATIONS = 64
"""The iterations of a Loop that is unrolled, at most."""

MOST_NODES = 4096
"""The nodes that the iterations of one Loop may have together."""


def unroll_loops(model: Model, context: Context) -> bool:
    """Unrolls, in place, each Loop whose count is known and small, or those that the device wants
    so."""
    growing = device_of(context.options).unrolls == "growing"

    def unrolled(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        return None if growing and not _grows(node) else _unrolled(b, node)

    if not Rewriter(model.graph).run(Pattern(unrolled, frozenset({"Loop"}), context.target)):
        return False
    infer_and_fold(model.graph)
    return True


def _grows(node: Node) -> bool:
    """Whether a state may have another size after an iteration than at the start."""
    return any(
        isinstance(port, Carried)
        and port.input is not None
        and (start := node.inputs[port.input]) is not None
        and start.shape != value.shape
        for value, port in node.body.entries()
    )


def _unrolled(b: Builder, node: Node) -> Result:
    trips = trips_of(node)
    size = sum(1 for _ in node.body.graph.walk())
    if trips is None or not 0 < trips <= MOST_ITERATIONS or trips * size > MOST_NODES:
        return None
    unrolling = _Unrolling(b, node, trips)
    return unrolling.outputs() if unrolling.fits() else None


def trips_of(node: Node) -> int | None:
    """How often a Loop runs at most, where that is known."""
    if loop_kind(node) == "count":
        known = known_of(node.trip_count).ints
        return known[0] if known is not None and len(known) == 1 and known[0] >= 0 else None
    for port in node.body.inputs:
        if isinstance(port, Sliced):
            size = _size(node.inputs[port.input], port.axis)
            if size is None:
                return None
            first, last = (at if at >= 0 else at + size for at in (port.start, port.end))
            return (abs(last - first) + 1) // abs(port.stride)
    return None


def computed_ends(body: Body) -> list[int]:
    """The body outputs that say whether a Loop goes on, unless they are true in each iteration: a
    condition that only hands itself on has been true."""
    own = {port.output: value for value, port in body.entries() if isinstance(port, Carried)}
    return [
        index
        for index, (value, exit) in enumerate(body.exits())
        if isinstance(exit, Condition)
        and not is_positive(value)
        and value.behind("Identity") is not own.get(index)
    ]


def _size(value: Value | None, axis: int) -> int | None:
    dim = None if value is None or value.shape is None else value.shape[axis]
    return dim if isinstance(dim, int) else None


class _Unrolling:
    """The iterations of a Loop, one after the other."""

    def __init__(self, b: Builder, node: Node, trips: int) -> None:
        self.b = b
        self.node = node
        self.trips = trips
        self.body: Body = node.body
        self.ends = computed_ends(self.body)

    def fits(self) -> bool:
        """Whether each part that is read has a place, and each output a value of a known type."""
        for port in self.body.inputs:
            if isinstance(port, Sliced):
                outer = self.node.inputs[port.input]
                if outer is None or outer.rank is None:
                    return False
                if port.part_size > 1 and port.stride != port.part_size:
                    return False
                if port.start < 0 and _size(outer, port.axis) is None:
                    return False
        for exit in self.body.outputs:
            if isinstance(exit, Stacked) and (exit.part_size != 1 or abs(exit.stride) != 1):
                return False
        types_known = all(value.element is not None for value in self.body.graph.outputs)
        first = self.node.condition
        may_end = bool(self.ends) or (first is not None and not is_positive(first))
        # What stands for the parts that no iteration gives has their shape.
        stacks = [v for v, exit in self.body.exits() if isinstance(exit, Stacked)]
        return types_known and (not may_end or all(is_static(value.shape) for value in stacks))

    def outputs(self) -> list[Value]:
        """What stands for the outputs of the Loop."""
        b, node = self.b, self.node
        first = node.condition
        active = None if first is None or is_positive(first) else scalar(b, first)
        states: dict[int, Value] = {}
        for port in self.body.inputs:
            if isinstance(port, Carried):
                initial = None if port.input is None else node.inputs[port.input]
                states[port.output] = b.constant(True) if initial is None else initial
        stacks: dict[int, list[Value]] = {}
        ran: Value | None = None
        for number in range(self.trips):
            if active is None:
                made = self._iteration(b, states, {}, number)
            else:
                one = b.reshape(b.cast(active, I64), 1)
                ran = one + number if ran is None else ran + one
                made = self._asked(active, states, number)
            for index, exit in enumerate(self.body.outputs):
                if isinstance(exit, Stacked):
                    stacks.setdefault(index, []).append(made[index])
            states = {index: made[index] for index in states}
            last = made
            for index in self.ends:
                goes_on = scalar(b, made[index])
                active = goes_on if active is None else active & goes_on
        return self._results(last, stacks, ran)

    def _results(
        self, last: list[Value], stacks: dict[int, list[Value]], ran: Value | None
    ) -> list[Value]:
        results: list[Value | None] = [None] * len(self.node.outputs)
        for index, exit in enumerate(self.body.outputs):
            if isinstance(exit, Yield) and exit.output is not None:
                results[exit.output] = last[index]
            elif isinstance(exit, Stacked):
                results[exit.output] = self._joined(exit, stacks[index], ran)
        return [value for value in results if value is not None]

    def _iteration(
        self, b: Builder, states: dict[int, Value], inside: dict[Value, Value], number: int
    ) -> list[Value]:
        """The body's outputs in one iteration. `inside` says what outer values are here."""
        values: dict[Value, Value] = {}
        for value, port in self.body.entries():
            if isinstance(port, Iteration):
                values[value] = b.reshape(b.constant(number), *([1] if value.rank == 1 else []))
                continue
            if isinstance(port, Carried):
                outer: Value | None = states[port.output]
            else:
                outer = self.node.inputs[port.input]
            assert outer is not None
            found = inside.get(outer, outer)
            values[value] = _part(b, found, port, number) if isinstance(port, Sliced) else found
        for own in self.body.graph.nodes:
            copy = clone_node(own, values)
            for output in copy.outputs:
                output.names = []
            copy.name = f"{copy.name}_{number}" if copy.name else ""
            copy.extras = None
            b.nodes.append(copy)
        return [values.get(value, value) for value in self.body.graph.outputs]

    def _asked(self, active: Value, states: dict[int, Value], number: int) -> list[Value]:
        """The same where the iteration runs; else the states as they are, and zeros."""
        needed = [
            self.node.inputs[port.input]
            for port in self.body.inputs
            if isinstance(port, Invariant | Sliced)
        ]
        outer = list(dict.fromkeys([v for v in needed if v is not None] + [*states.values()]))

        def runs(inner: Builder, inside: Sequence[Value]) -> list[Value]:
            return self._iteration(inner, states, dict(zip(outer, inside, strict=True)), number)

        def stays(inner: Builder, inside: Sequence[Value]) -> list[Value]:
            known = dict(zip(outer, inside, strict=True))
            found = []
            for index, (value, port) in enumerate(self.body.exits()):
                if index in states:
                    found.append(known[states[index]])
                elif isinstance(port, Condition):
                    found.append(inner.filled(False, value.shape or (), value.element))
                else:
                    found.append(inner.filled(0, value.shape or (), value.element))
            return found

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
    size = _size(outer, port.axis)
    place = port.start + number * port.stride + (size or 0 if port.start < 0 else 0)
    if port.keepdims:
        return b.cut(outer, port.axis, place, place + port.part_size)
    return b.op("Gather", outer, place, port.axis)
