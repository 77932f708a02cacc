"""Loops that a computed condition ends, in the form that OpenVINO's GPU plugin computes correctly.

The form has states alone. A state counts the iterations, and its size is open: for a Loop without
an open size, the plugin reads the condition too early. The body gathers the parts that it reads. It
joins the elements that a stack gets, and behind the Loop they become the stack. The Loop runs at
least once. Behind it the initial states are selected if it should not have run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition, Invariant, Iteration, Sliced, Stacked, Yield
from bridge.neutral.types import ANY, BOOL, I64, U8, Interval, TensorType, is_static
from bridge.operators.control.loop_builder import is_positive, scalar, trips_of_slices
from bridge.quirks.opaque import opaque, revealed
from bridge.targets.loop_forms import (
    ENDLESS,
    chosen,
    depend_on,
    has_numbers,
    initial_states,
    is_plain,
    with_zeros,
)


def own_count(node: Node) -> Carried | None:
    """The state that counts the iterations, of a Loop in this form; else None."""
    for port in node.body.inputs:
        if isinstance(port, Carried) and port.input is not None:
            initial = node.inputs[port.input]
            first = None if initial is None else revealed(initial)
            if first is None or first is initial or first.shape != (1,):
                continue
            if first.element is I64 and known_of(first).ints == (0,):
                return port
    return None


def ended(b: Builder, node: Node) -> list[Value] | None:
    """What stands for the outputs of a Loop, in this form; None if it has the form already, or
    cannot have it."""
    if own_count(node) is not None or not all(map(has_numbers, node.outputs)):
        return None
    if not all(map(is_plain, (*node.body.inputs, *node.body.outputs))):
        return None
    if any(value.rank is None for value, exit in node.body.exits() if isinstance(exit, Stacked)):
        return None
    return _Form(b, node).outputs()


@dataclass
class _Stack:
    """The outputs of the new Loop that become a stack: the elements, and the sizes of a part."""

    port: Stacked
    elements: int
    sizes: int | None
    dims: Sequence[object]
    boolean: bool


class _Form:
    """A Loop in that form."""

    def __init__(self, b: Builder, node: Node) -> None:
        self.b = b
        self.node = node
        self.inputs: list[Value | None] = [*node.inputs, *[None] * (2 - len(node.inputs))]
        self.body: Body = clone_body(node.body)
        self.head = Builder([], node.name, b.target)
        self.tail = Builder(self.body.graph.nodes, node.name, b.target)
        self.count = len(node.outputs)

    def outputs(self) -> list[Value]:
        """What stands for the outputs of the Loop."""
        b, body = self.b, self.body
        limit, first = self._limit(), self._first()
        initials = initial_states(self.inputs, body)
        conditions = [v for v, port in body.exits() if isinstance(port, Condition)]
        self._part_conditions()
        number, counted = self._count()
        with self.head:
            place = self.head.reshape(number)
            self._read(place)
        body.graph.prepend(self.head.nodes)
        with self.tail:
            depend_on(self.tail, body, place)
        stacks = [self._stack(i) for i, p in enumerate(body.outputs) if isinstance(p, Stacked)]
        with self.tail:
            goes_on = scalar(self.tail, conditions[0]) if conditions else self.tail.constant(True)
            runs = place >= 0 if limit is None else place + 1 < self._inside(limit)
            goes_on = goes_on & runs
            if first is not None:
                goes_on = goes_on & self._inside(first)
        kept = [i for i, port in enumerate(body.outputs) if not isinstance(port, Stacked)]
        body.keep_exits(kept)
        body.add_exit(goes_on, Condition())
        self.inputs[:2] = [None, None]
        made = b.node("Loop", self.inputs, self.count, {}, (body,), self.node.name, None).outputs
        ran = first
        if limit is not None and not is_positive(limit):
            ran = limit > 0 if ran is None else ran & (limit > 0)
        trips = b.reshape(made[counted], 1)
        results: list[Value] = list(made[: len(self.node.outputs)])
        if results and not stacks:  # Something has to read the count, or its open size is lost.
            results[0] = b.where(b.reshape(trips) > 0, results[0], b.like(0, results[0]))
        for stack in stacks:
            results[stack.port.output] = self._stacked(stack, made, trips, ran)
        for output, initial in initials.items():
            if ran is not None:
                results[output] = chosen(b, ran, results[output], initial)
        return results

    def _limit(self) -> Value | None:
        """How often the Loop runs at most; i64, a scalar. None if nothing but a condition says."""
        b, trips = self.b, self.inputs[0]
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

    def _first(self) -> Value | None:
        """The first condition, a scalar; None if it is true."""
        first = self.inputs[1]
        return None if first is None or is_positive(first) else scalar(self.b, first)

    def _inside(self, outer: Value) -> Value:
        """An outer value, inside the body."""
        value = Value(outer.type)
        self.inputs.append(outer)
        self.body.add_entry(value, Invariant(len(self.inputs) - 1))
        return value

    def _part_conditions(self) -> None:
        """Nothing in the body reads the trip count or the condition by its place, and no state is
        the condition. While the body runs, the condition that it gets has been true."""
        body = self.body
        for index, (value, port) in enumerate(body.entries()):
            if isinstance(port, Iteration):
                continue
            exit = body.outputs[port.output] if isinstance(port, Carried) else None
            if isinstance(exit, Condition) and isinstance(port, Carried):
                if port.input in (None, 1):
                    true = self.head.constant(True)
                    self.head.node("Reshape", [true, self._shape_of(value)], [value])
                    continue
                again = body.graph.outputs[port.output]
                port = Carried(port.input, body.add_exit(again, Yield(None)))
                body.inputs[index] = port
            if port.input in (0, 1):
                self.inputs.append(self.inputs[port.input])
                body.inputs[index] = replace(port, input=len(self.inputs) - 1)
        made = {output for node in self.head.nodes for output in node.outputs}
        body.take_entries(lambda value, _: value in made)
        body.keep_exits(
            [i for i, port in enumerate(body.outputs) if not isinstance(port, Condition)]
        )

    def _shape_of(self, value: Value) -> Value:
        return self.head.constant([1] * (value.rank or 0), I64)

    def _state(self, type: TensorType, initial: Value) -> Value:
        """A new state without its next value, inside the body."""
        value = Value(type)
        self.inputs.append(initial)
        self.body.add_entry(value, Carried(len(self.inputs) - 1, len(self.body.outputs)))
        return value

    def _next(self, value: Value, output: int | None = None) -> int:
        """Adds the next value of the state that was made last. Gives its output of the Loop, by
        default a further one."""
        if output is None:
            output = self.count
            self.count += 1
        self.body.add_exit(value, Yield(output))
        return output

    def _count(self) -> tuple[Value, int]:
        """The number of the iteration inside, i64 [1], and the output with their count."""
        b = self.b
        zero = opaque(b, b.constant([0]), "sizes", [0])
        state = self._state(TensorType(I64, (ANY,)), zero)
        with self.head:
            number = self.head.reshape(state, 1)
        with self.tail:
            return number, self._next(state + 1)  # of open size, as the state

    def _read(self, place: Value) -> None:
        """The body computes its number and gathers the parts that it reads."""
        head, body = self.head, self.body
        for value, port in body.entries():
            if isinstance(port, Iteration):
                head.node("Reshape", [place, self._shape_of(value)], [value])
            elif isinstance(port, Sliced):
                outer = self._inside(self._with_a_part(port))
                at = head.reshape(place, 1) if port.keepdims else place
                head.node("Gather", [outer, at, head.constant(port.axis)], [value])
        body.take_entries(lambda _, port: isinstance(port, Iteration | Sliced))

    def _with_a_part(self, port: Sliced) -> Value:
        """The parts forwards, and one of zeros if there may be none."""
        b, outer = self.b, self.inputs[port.input]
        assert outer is not None
        if port.stride < 0:
            outer = b.flip(outer, port.axis)
        size = outer.dims[port.axis]
        if isinstance(size, int) and size > 0:
            return outer
        return with_zeros(b, outer, port.axis)

    def _stack(self, index: int) -> _Stack:
        """The states that join the elements of a stack; the first element is none of them."""
        b, tail, body = self.b, self.tail, self.body
        value, port = body.exits()[index]
        assert isinstance(port, Stacked)
        boolean = value.element is BOOL
        element = U8 if boolean else value.element
        assert element is not None
        some = TensorType(element, (Interval(1, None),))
        state = self._state(some, b.filled(0, (1,), element))
        with tail:
            part = tail.cast(value, element)
            joined = tail.concat(0, state, tail.reshape(part, -1))
            elements = self._next(joined, port.output)
        dims: list[object] = list(value.shape or ())
        if is_static(value.shape):
            return _Stack(port, elements, None, dims, boolean)
        rank = len(dims)
        self._state(TensorType(I64, (rank,)), b.filled(0, (rank,), I64))
        with tail:
            sizes = self._next(tail.op("Shape", value))
        return _Stack(port, elements, sizes, dims, boolean)

    def _stacked(
        self, stack: _Stack, made: Sequence[Value], trips: Value, ran: Value | None
    ) -> Value:
        """The stack of the joined elements, without parts if the Loop should not have run."""
        b, port = self.b, stack.port
        axes = [a for a in range(len(stack.dims)) if not (port.keepdims and a == port.axis)]
        if stack.sizes is None:
            known = [stack.dims[axis] for axis in axes]
            sizes = b.constant(known, I64)
        else:
            sizes = b.take(made[stack.sizes], 0, *axes) if axes else b.constant([], I64)
            if ran is not None and axes:  # Open sizes are 0 then, as onnxruntime has them.
                least = [d if isinstance(d := stack.dims[axis], int) else 0 for axis in axes]
                sizes = b.where(ran, sizes, b.constant(least, I64))
        elements = b.cut(made[stack.elements], 0, 1, None)
        if ran is not None:
            trips = b.where(ran, trips, 0)
            length = trips * b.op("ReduceProd", sizes, [0], keepdims=True)
            elements = b.cut(elements, 0, 0, length)
        parts = b.op("Reshape", elements, b.concat(0, trips, sizes), allowzero=True)
        axis = port.axis % (len(axes) + 1)
        perm = [*range(1, axis + 1), 0, *range(axis + 1, len(axes) + 1)]
        parts = b.transpose(parts, *perm) if axis else parts
        parts = b.flip(parts, axis) if port.stride < 0 else parts
        return b.cast(parts, BOOL) if stack.boolean else parts
