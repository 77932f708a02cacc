"""A Loop that a computed condition ends, in the conditional form.

It has no slices and no stacks, only states. A state counts the iterations, and its size is open:
for a Loop without an open size, the plugin reads the condition too early. The body gathers its
slices. It joins the elements of a stack, which are reshaped behind the Loop. The Loop runs at least
once. Behind it, the initial states are selected if it should not have run.
"""

from collections.abc import Callable, Sequence
from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition, Iteration, Sliced, Stacked, Yield
from bridge.neutral.types import ANY, BOOL, I64, U8, Interval, TensorType, is_static
from bridge.operators.control.idle import initial_states
from bridge.operators.control.loop_builder import is_positive, scalar, trips_of_slices
from bridge.quirks.loops.gpu.draft import ENDLESS, LoopDraft, chosen, in_order, with_zeros
from bridge.quirks.opaque import opaque


def conditional(b: Builder, node: Node) -> list[Value] | None:
    """The outputs of a Loop in the conditional form; None if the rank of a stack is unknown."""
    if any(value.rank is None for value, exit in node.body.exits() if isinstance(exit, Stacked)):
        return None
    return _Conditional(b, node).outputs()


class _Conditional(LoopDraft):
    """A Loop in that form. `count` is the number of its outputs so far."""

    def __init__(self, b: Builder, node: Node) -> None:
        super().__init__(b, node)
        self.b = b
        self.count = len(node.outputs)

    def outputs(self) -> list[Value]:
        """The values for the outputs of the Loop."""
        b, body, tail = self.b, self.body, self.tail
        most, first = self._most_trips(), self.first_condition(self.b)
        conditions = [v for v, port in body.exits() if isinstance(port, Condition)]
        self._remove_conditions()
        number, counter = self._counter()
        with self.head:
            place = self.head.reshape(number)
            self._gather_slices(place)
        self.begin()
        with tail:
            self.depend_on(place)
        stacks = {
            port.output: self._collected(value, port)
            for value, port in body.exits()
            if isinstance(port, Stacked)
        }
        with tail:
            goes_on = scalar(tail, conditions[0]) if conditions else tail.constant(True)
            goes_on &= place >= 0 if most is None else place + 1 < self.invariant(most)
            if first is not None:
                goes_on &= self.invariant(first)
        body.keep_exits([i for i, port in enumerate(body.outputs) if not isinstance(port, Stacked)])
        body.add_exit(goes_on, Condition())
        self.inputs[:2] = [None, None]
        values = self.loop(b, self.count)
        ran = first
        if most is not None and not is_positive(most):
            ran = most > 0 if ran is None else ran & (most > 0)
        trips = b.reshape(values[counter], 1)
        results = values[: len(self.node.outputs)]
        if results and not stacks:  # Something has to read the count, or its open size is lost.
            results[0] = b.where(b.reshape(trips) > 0, results[0], b.like(0, results[0]))
        for output, stack in stacks.items():
            results[output] = stack(values, trips, ran)
        if ran is not None:
            for output, initial in initial_states(self.node).items():
                results[output] = chosen(b, ran, results[output], initial)
        return results

    def _most_trips(self) -> Value | None:
        """The most iterations: i64, a scalar. None if only a condition ends the Loop."""
        b, trips = self.b, self.trip_count
        limits = []
        if any(isinstance(port, Sliced) for port in self.body.inputs):
            limits.append(b.cast(trips_of_slices(b, self.inputs, self.body), I64))
        known = known_of(trips).ints
        if trips is not None and (known is None or 0 <= known[0] < ENDLESS):
            trips = b.cast(scalar(b, trips), I64)
            if known is None:
                trips = b.where(trips < 0, ENDLESS, trips)
            limits.append(trips)
        return None if not limits else limits[0] if len(limits) == 1 else b.min(*limits)

    def _remove_conditions(self) -> None:
        """Ports take the trip count and the first condition from other inputs, and no state is the
        condition. While the body runs, the condition that it gets has been true."""
        body = self.body
        true: set[Value] = set()
        for index, (value, port) in enumerate(body.entries()):
            exit = body.outputs[port.output] if isinstance(port, Carried) else None
            if isinstance(exit, Condition) and isinstance(port, Carried):
                if port.input in (None, 1):
                    self.replace_entry(value, self.head.constant(True))
                    true.add(value)
                    continue
                again = body.graph.outputs[port.output]
                port = Carried(port.input, body.add_exit(again, Yield(None)))
            body.inputs[index] = self.without_head(port)
        body.take_entries(lambda value, _: value in true)
        body.keep_exits(
            [i for i, port in enumerate(body.outputs) if not isinstance(port, Condition)]
        )

    def _state(self, type: TensorType, initial: Value) -> Value:
        """A new state inside the body; `_next` gives its next value."""
        return self.entry(type, initial, Carried(0, len(self.body.outputs)))

    def _next(self, value: Value, output: int | None = None) -> int:
        """Adds the next value of the state that was added last. Its output of the Loop is a further
        one by default."""
        if output is None:
            output = self.count
            self.count += 1
        self.body.add_exit(value, Yield(output))
        return output

    def _counter(self) -> tuple[Value, int]:
        """The number of the iteration inside, i64 [1], and the output with their count."""
        zero = opaque(self.b, self.b.constant([0]), "sizes", [0])
        state = self._state(TensorType(I64, (ANY,)), zero)
        with self.head:
            number = self.head.reshape(state, 1)
        with self.tail:
            return number, self._next(state + 1)  # of open size, as the state

    def _gather_slices(self, place: Value) -> None:
        """The body computes its number, and gathers its slices."""
        head, body = self.head, self.body
        for value, port in body.entries():
            if isinstance(port, Iteration):
                self.replace_entry(value, place)
            elif isinstance(port, Sliced):
                outer = self.forwards(self.b, port)
                size = outer.dims[port.axis]
                if not isinstance(size, int) or size == 0:
                    outer = with_zeros(self.b, outer, port.axis)
                inside = self.invariant(outer)
                at = head.reshape(place, 1) if port.keepdims else place
                head.node("Gather", [inside, at, head.constant(port.axis)], [value])
        body.take_entries(lambda _, port: isinstance(port, Iteration | Sliced))

    def _collected(self, part: Value, port: Stacked) -> Callable[..., Value]:
        """Adds the state that joins the elements of a stack, behind an element of its own. If the
        sizes of a part are open, another state has those of the last part. Returns the function
        that gives the stack behind the Loop."""
        b, tail = self.b, self.tail
        element = U8 if part.element is BOOL else part.known_element
        state = self._state(TensorType(element, (Interval(1, None),)), b.filled(0, (1,), element))
        with tail:
            flat = tail.reshape(tail.cast(part, element), -1)
            elements = self._next(tail.concat(0, state, flat), port.output)
        sizes = None
        if not is_static(part.shape):
            rank = len(part.dims)
            self._state(TensorType(I64, (rank,)), b.filled(0, (rank,), I64))
            with tail:
                sizes = self._next(tail.op("Shape", part))
        return partial(self._stack, part, port, elements, sizes)

    def _stack(
        self, part: Value, port: Stacked, elements: int, sizes: int | None,
        values: Sequence[Value], trips: Value, ran: Value | None,
    ) -> Value:  # fmt: skip
        """The stack of the joined elements, without parts if the Loop should not have run.
        `elements` and `sizes` are outputs of the Loop, whose `values` these are."""
        b = self.b
        axes = [a for a in range(len(part.dims)) if not (port.keepdims and a == port.axis)]
        if sizes is None:
            shape = b.constant([part.dims[axis] for axis in axes], I64)
        else:
            shape = b.take(values[sizes], 0, *axes) if axes else b.constant([], I64)
            if ran is not None and axes:  # Open sizes are 0 then, as onnxruntime has them.
                least = [d if isinstance(d := part.dims[axis], int) else 0 for axis in axes]
                shape = b.where(ran, shape, b.constant(least, I64))
        joined = b.cut(values[elements], 0, 1, None)
        if ran is not None:
            trips = b.where(ran, trips, 0)
            length = trips * b.op("ReduceProd", shape, [0], keepdims=True)
            joined = b.cut(joined, 0, 0, length)
        parts = b.op("Reshape", joined, b.concat(0, trips, shape), allowzero=True)
        rank = len(axes) + 1
        parts = in_order(b, b.from_first(parts, port.axis % rank, rank), port)
        return b.cast(parts, BOOL) if part.element is BOOL else parts
