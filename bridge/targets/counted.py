"""Loops that run as often as a number says that nobody knows, in the form that OpenVINO's GPU
plugin has right: each reads a row of numbers part by part, and runs at least once.

Behind the Loop, the states are the initial ones and a stack is cut to nothing where the Loop would
not have run. Each sliced input gets a further part, so that the first iteration has one to read.
"""

from __future__ import annotations

from dataclasses import replace

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Body, Model, Node, Value, loop_kind
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import (
    Carried,
    Condition,
    Iteration,
    OutputPort,
    Sliced,
    Stacked,
    Yield,
)
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import I64, TensorType
from bridge.operators.control.loop_builder import is_positive, scalar, trips_of_slices
from bridge.passes.context import Context
from bridge.passes.fold import infer_and_fold
from bridge.passes.select.ifs import select_branches
from bridge.quirks.opaque import revealed
from bridge.targets.ended import ended, own_count
from bridge.targets.filled import filled
from bridge.targets.loop_forms import (
    ENDLESS,
    chosen,
    depend_on,
    has_numbers,
    initial_states,
    is_plain,
    with_zeros,
)
from bridge.targets.unroll import computed_ends


def count_loops(model: Model, context: Context) -> bool:
    """Rewrites, in place, each Loop that is left in the form for its kind."""
    changed = False
    for form in (_filled, _counted):
        pattern = Pattern(form, frozenset({"Loop"}), context.target, uses=True)
        if Rewriter(model.graph).run(pattern):
            infer_and_fold(model.graph)
            changed = True
    if not changed:
        return False
    if context.options.get("ifs", "keep") != "keep":
        select_branches(model, context)
    return True


def is_counted(node: Node) -> bool:
    """Whether nothing that a Loop computes ends it."""
    if loop_kind(node) == "count":
        trips = known_of(node.trip_count).ints
        if node.trip_count is None or (trips is not None and trips[0] < 0):
            return False
    return not computed_ends(node.body)


def reads_numbers(node: Node) -> bool:
    """Whether a Loop has the form that this pass gives it."""
    for port in node.body.inputs:
        outer = node.inputs[port.input] if isinstance(port, Sliced) else None
        made = None if outer is None else revealed(outer).producer
        if made is not None and made.op == "Range":
            return True
    return False


def _filled(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    has_form = own_count(node) is not None or (is_counted(node) and reads_numbers(node))
    return None if has_form else filled(b, node, rewriter)


def _counted(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    if not is_counted(node):
        return ended(b, node)
    if reads_numbers(node) or not all(map(has_numbers, node.outputs)):
        return None
    if not all(map(is_plain, (*node.body.inputs, *node.body.outputs))):
        return None
    return _Counting(b, node).outputs()


class _Counting:
    """A Loop in that form."""

    def __init__(self, b: Builder, node: Node) -> None:
        self.b = b
        self.node = node
        self.inputs: list[Value | None] = [*node.inputs, *[None] * (2 - len(node.inputs))]
        self.body: Body = clone_body(node.body)

    def outputs(self) -> list[Value]:
        """What stands for the outputs of the Loop."""
        b, node = self.b, self.node
        wanted = self._wanted()
        trips = b.max(wanted, 1)
        states = initial_states(self.inputs, self.body)
        self._free_heads()
        for index, port in enumerate(self.body.inputs):
            if isinstance(port, Sliced):
                self.body.inputs[index] = self._further(port, trips)
        self._read_numbers(b.op("Range", 0, trips, 1, output_type=I64))
        self.inputs[:2] = [trips, None]
        stacks: dict[int, Stacked] = {}
        for index, exit in enumerate(self.body.outputs):
            if isinstance(exit, Stacked):
                stacks[exit.output] = exit
                self.body.outputs[index] = Stacked(exit.output, exit.axis, keepdims=exit.keepdims)
        made = b.node("Loop", self.inputs, len(node.outputs), {}, (self.body,), node.name, None)
        return [
            self._behind(value, wanted, stacks.get(index), states.get(index))
            for index, value in enumerate(made.outputs)
        ]

    def _behind(
        self, value: Value, wanted: Value, stack: Stacked | None, initial: Value | None
    ) -> Value:
        """What an output is where the Loop runs as often as wanted."""
        b = self.b
        if stack is not None:
            parts = b.cut(value, stack.axis, 0, b.reshape(wanted, 1))
            if not is_positive(wanted):
                most = b.where(b.reshape(wanted, 1) > 0, ENDLESS, 0)
                for axis, dim in enumerate(value.dims):  # 0 as well, as onnxruntime has them
                    if axis != stack.axis % len(value.dims) and not isinstance(dim, int):
                        parts = b.cut(parts, axis, 0, most)
            return b.flip(parts, stack.axis) if stack.stride < 0 else parts
        if initial is None:
            return value
        return chosen(b, wanted > 0, value, initial)

    def _wanted(self) -> Value:
        """How often the Loop runs; i64, a scalar."""
        b, node = self.b, self.node
        if loop_kind(node) != "count":
            return b.cast(trips_of_slices(b, self.inputs, node.body), I64)
        assert node.trip_count is not None
        trips = b.cast(scalar(b, node.trip_count), I64)
        first = node.condition
        if first is None or is_positive(first):
            return b.max(trips, 0)
        return b.where(scalar(b, first), b.max(trips, 0), 0)

    def _free_heads(self) -> None:
        """Nothing in the body reads the trip count or the condition by its place."""
        for index, port in enumerate(self.body.inputs):
            if isinstance(port, Iteration) or port.input not in (0, 1):
                continue
            if isinstance(port, Carried) and isinstance(self.body.outputs[port.output], Condition):
                self.body.inputs[index] = Carried(None, port.output)
            else:
                self.inputs.append(self.inputs[port.input])
                self.body.inputs[index] = replace(port, input=len(self.inputs) - 1)

    def _further(self, port: Sliced, trips: Value) -> Sliced:
        """The same parts forwards, and one of zeros where there is none."""
        b, outer = self.b, self.inputs[port.input]
        assert outer is not None
        if port.stride < 0:
            outer = b.flip(outer, port.axis)
        if not isinstance(outer.dims[port.axis], int):
            outer = b.cut(with_zeros(b, outer, port.axis), port.axis, 0, b.reshape(trips, 1))
        self.inputs.append(outer)
        return Sliced(len(self.inputs) - 1, port.axis, keepdims=port.keepdims)

    def _read_numbers(self, numbers: Value) -> None:
        """The body reads its number from a row of numbers, and an output needs it."""
        self.inputs.append(numbers)
        body = self.body
        part = Value(TensorType(I64, (1,)), ["number"])
        inner = Builder([], self.node.name, self.b.target)
        with inner:
            number = inner.reshape(part)
            for value, port in body.entries():
                if isinstance(port, Iteration):
                    shape = inner.constant([1] * (value.rank or 0), I64)
                    inner.node("Reshape", [number, shape], [value])
        body.take_entries(lambda _, port: isinstance(port, Iteration))
        body.add_entry(part, Sliced(len(self.inputs) - 1, 0))
        body.graph.prepend(inner.nodes)
        end = Builder(body.graph.nodes, self.node.name, self.b.target)
        with end:
            depend_on(end, body, number)
            for index, exit in enumerate(body.outputs):
                value = body.graph.outputs[index]
                if _leaves(exit) and value.element is not None:
                    body.graph.outputs[index] = end.where(number >= 0, value, end.like(0, value))
                    return


def _leaves(exit: OutputPort) -> bool:
    return isinstance(exit, Stacked) or (isinstance(exit, Yield) and exit.output is not None)
