"""A Loop with an unknown trip count, in the counted form.

It slices a range of numbers, and runs at least once. Each tensor that it slices gets a further part
of zeros, for the first iteration. Behind the Loop, stacks are cut to the real trip count, and the
states are the initial ones if it is 0.
"""

from dataclasses import replace

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value, loop_kind
from bridge.neutral.ports import Carried, Condition, Iteration, Sliced, Stacked, Yield
from bridge.neutral.types import I64, TensorType
from bridge.operators.control.idle import initial_states
from bridge.operators.control.loop_builder import is_positive, scalar, trips_of_slices
from bridge.quirks.loops.gpu.draft import ENDLESS, LoopDraft, chosen, in_order, with_zeros


def counted(b: Builder, node: Node) -> list[Value]:
    """The outputs of a Loop in the counted form."""
    draft = LoopDraft(b, node)
    trips, body = _trips(b, draft), draft.body
    runs = b.max(trips, 1)
    _remove_heads(draft)
    for index, port in enumerate(body.inputs):
        if isinstance(port, Sliced):
            outer = _long_enough(b, draft, port, runs)
            body.inputs[index] = Sliced(draft.outer(outer), port.axis, keepdims=port.keepdims)
    _slice_numbers(draft, b.op("Range", 0, runs, 1, output_type=I64))
    draft.inputs[:2] = [runs, None]
    stacks: dict[int, Stacked] = {}
    for index, exit in enumerate(body.outputs):
        if isinstance(exit, Stacked):
            stacks[exit.output] = exit
            body.outputs[index] = Stacked(exit.output, exit.axis, keepdims=exit.keepdims)
    initials = initial_states(node)
    results = []
    for index, value in enumerate(draft.loop(b, len(node.outputs))):
        if index in stacks:
            value = in_order(b, _cut(b, value, stacks[index].axis, trips), stacks[index])
        elif index in initials:
            value = chosen(b, trips > 0, value, initials[index])
        results.append(value)
    return results


def _trips(b: Builder, draft: LoopDraft) -> Value:
    """The real trip count: i64, a scalar."""
    if loop_kind(draft.node) != "count":
        return b.cast(trips_of_slices(b, draft.inputs, draft.body), I64)
    trips = b.cast(scalar(b, draft.operand(0)), I64)
    first = draft.first_condition(b)
    trips = b.max(trips, 0)
    return trips if first is None else b.where(first, trips, 0)


def _remove_heads(draft: LoopDraft) -> None:
    """Ports take the trip count and the first condition from other inputs. A loop-carried
    condition starts as true."""
    body = draft.body
    for index, port in enumerate(body.inputs):
        if isinstance(port, Carried) and isinstance(body.outputs[port.output], Condition):
            if port.input in (0, 1):
                body.inputs[index] = replace(port, input=None)
        else:
            body.inputs[index] = draft.without_head(port)


def _long_enough(b: Builder, draft: LoopDraft, port: Sliced, runs: Value) -> Value:
    """The tensor that a port slices, forwards, with a part for each iteration that runs."""
    outer = draft.forwards(b, port)
    if isinstance(outer.dims[port.axis], int):
        return outer
    return b.cut(with_zeros(b, outer, port.axis), port.axis, 0, b.reshape(runs, 1))


def _slice_numbers(draft: LoopDraft, numbers: Value) -> None:
    """The body slices the number of its iteration from a range, and an output depends on it."""
    body, head = draft.body, draft.head
    part = Value(TensorType(I64, (1,)), ["number"])
    with head:
        number = head.reshape(part)
        for value, port in body.entries():
            if isinstance(port, Iteration):
                draft.replace_entry(value, number)
    body.take_entries(lambda _, port: isinstance(port, Iteration))
    body.add_entry(part, Sliced(draft.outer(numbers), 0))
    draft.begin()
    with draft.tail:
        draft.depend_on(number)
        for index, (value, exit) in enumerate(body.exits()):
            if _leaves(exit) and value.element is not None:
                draft.tie(index, number)
                return


def _leaves(exit: object) -> bool:
    """Whether a body output becomes an output of the Loop."""
    return isinstance(exit, Stacked) or (isinstance(exit, Yield) and exit.output is not None)


def _cut(b: Builder, stack: Value, axis: int, trips: Value) -> Value:
    """The first parts of a stack, as many as the Loop should have iterations."""
    parts = b.cut(stack, axis, 0, b.reshape(trips, 1))
    if not is_positive(trips):
        most = b.where(b.reshape(trips, 1) > 0, ENDLESS, 0)
        for other, dim in enumerate(stack.dims):  # 0 as well, as onnxruntime has them
            if other != axis % len(stack.dims) and not isinstance(dim, int):
                parts = b.cut(parts, other, 0, most)
    return parts
