"""If and Loop brought into the form that the target can say.

ONNX stacks and slices along an axis that comes and goes, IR along one that stays; ONNX's Loop
neither slices nor joins along other axes than the first, IR's If wants a scalar condition.
"""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import (
    Body,
    Carried,
    Condition,
    Invariant,
    Iteration,
    Node,
    Sliced,
    Stacked,
    Value,
    Yield,
    is_scan,
)
from bridge.neutral.inference.control import enter
from bridge.neutral.types import BOOL, I64, TensorType, is_static
from bridge.operators import Refused, Result, expands
from bridge.operators.type_constraints import disallowed


def if_to_ir(b: Builder, node: Node) -> Result:
    """IR's condition is a scalar or 1-D with one element; ONNX's has one element at any rank."""
    condition = node.inputs[0]
    assert condition is not None
    if condition.shape in ((), (1,)):
        return None
    scalar = b.op("Reshape", condition, b.constant(np.zeros(0, np.int64)))
    scalar.type = TensorType(BOOL, ())
    inputs = [scalar, *node.inputs[1:]]
    return b.node("If", inputs, len(node.outputs), {}, node.bodies, extras=node.extras).outputs


def scalar(b: Builder, value: Value) -> Value:
    """A value of one element as a scalar."""
    if value.rank == 0:
        return value
    result = b.op("Reshape", value, b.constant(np.zeros(0, np.int64)))
    result.type = TensorType(value.element, ())
    return result


def loop_to_ir(b: Builder, node: Node) -> Result:
    """Squeezes what is sliced and unsqueezes what is stacked, inside the body; makes the trip
    count and the conditions scalars."""
    (body,) = node.bodies
    graph = body.graph
    for index, (value, exit) in enumerate(zip(graph.outputs, body.outputs, strict=True)):
        if isinstance(exit, Condition) and value.rank not in (0, 1):
            graph.outputs[index] = scalar(Builder(graph.nodes, node.name, b.target), value)
    slices = [p for p in body.inputs if isinstance(p, Sliced) and not p.keepdims]
    stacks = [p for p in body.outputs if isinstance(p, Stacked) and not p.keepdims]
    heads = [v for v in node.inputs[:2] if v is not None and v.rank != 0]
    if not slices and not stacks and not heads:
        return None
    inputs: list[Value | None] = [
        None if v is None else scalar(b, v) for v in node.inputs[:2]
    ]  # fmt: skip
    inputs += node.inputs[2:]
    _set_axes(body, node, keepdims=True)
    return b.node("Loop", inputs, len(node.outputs), {}, node.bodies, extras=node.extras).outputs


def _set_axes(body: Body, node: Node, keepdims: bool) -> None:
    """Makes every slice and stack of a body keep its axis (IR) or lose it (ONNX); inside, the axis
    is removed or added, so that the body's own nodes see what they saw."""
    graph = body.graph
    entering, leaving = ("Squeeze", "Unsqueeze") if keepdims else ("Unsqueeze", "Squeeze")
    front: list[Node] = []
    inner = Builder(front, node.name)
    for index, port in enumerate(body.inputs):
        if isinstance(port, Sliced) and port.keepdims != keepdims:
            port.keepdims = keepdims
            old = graph.inputs[index]
            part = Value(names=[f"{name}.part" for name in old.names[:1]])
            graph.inputs[index] = part
            enter(node, part, port)
            part.declared = part.type
            inner.node(entering, [part, inner.constant([port.axis])], [old])
            old.declared = old.type
    back: list[Node] = []
    inner = Builder(back, node.name)
    for index, exit in enumerate(body.outputs):
        if isinstance(exit, Stacked) and exit.keepdims != keepdims:
            exit.keepdims = keepdims
            value = graph.outputs[index]
            graph.outputs[index] = inner.op(leaving, value, inner.constant([exit.axis]))
    graph.nodes = [*front, *graph.nodes, *back]


@expands("If", target="onnx")
def types_of_outputs(b: Builder, node: Node) -> Result:
    """Refuses an output of a type that comes with a later operator set."""
    assert b.target is not None
    if why := disallowed(node.op, b.target.opset, (), node.outputs):
        raise Refused(why)
    return None


@expands("Loop", target="onnx")
def loop_to_onnx(b: Builder, node: Node) -> Result:
    """Scan where slices alone drive it and stay whole; else a Loop that slices for itself."""
    types_of_outputs(b, node)
    (body,) = node.bodies
    whole = all(_scannable(p) for p in (*body.inputs, *body.outputs))
    if is_scan(node) and whole and _states_keep_shape(node, body):
        if not any(getattr(p, "keepdims", False) for p in (*body.inputs, *body.outputs)):
            if _exits_are_states(body):
                return None
            _exits_to_states(b, node, body)
        _set_axes(body, node, keepdims=False)
        return loop_again(b, node, node.inputs)
    if _is_onnx_loop(node):
        return None
    inputs = list(node.inputs)
    if inputs[0] is None and any(isinstance(p, Sliced) for p in body.inputs):
        inputs[0] = trips_of_slices(b, node, body)
    if inputs[0] is not None and inputs[0].element is not I64:
        inputs[0] = b.op("Cast", inputs[0], to=I64)
    node.inputs = inputs
    _slices_to_gathers(node, body)
    _exits_to_states(b, node, body)
    return _join_stacks(b, node, body)


def loop_again(b: Builder, node: Node, inputs: list[Value | None]) -> list[Value]:
    """The Loop with other inputs, its body as it is; its outputs keep their types."""
    made = b.node("Loop", inputs, len(node.outputs), {}, node.bodies, extras=node.extras)
    for new, old in zip(made.outputs, node.outputs, strict=True):
        new.type = new.declared = old.type
    return made.outputs


def _is_onnx_loop(node: Node) -> bool:
    (body,) = node.bodies
    if any(isinstance(p, Sliced) for p in body.inputs):
        return False
    for port in body.outputs:
        if isinstance(port, Stacked) and (port.keepdims or port.axis or port.stride < 0):
            return False
    trips = node.inputs[0]
    if trips is not None and trips.element is not I64:
        return False
    return _exits_are_states(body)


def _scannable(port: object) -> bool:
    if not isinstance(port, Sliced | Stacked):
        return True
    whole = (0, -1) if port.stride == 1 else (-1, 0)
    return port.part_size == 1 and abs(port.stride) == 1 and (port.start, port.end) == whole


def _states_keep_shape(node: Node, body: Body) -> bool:
    """Whether Scan can carry the states: their shapes stay, and a value that is only yielded has a
    shape that is known, so that a state can start with it."""
    states = _states(body)
    for value, port in zip(body.graph.inputs, body.inputs, strict=True):
        if isinstance(port, Carried) and port.input is not None:
            initial = node.inputs[port.input]
            if initial is not None and initial.shape is not None and value.shape != initial.shape:
                return False
    return all(
        is_static(value.shape)
        for index, (value, exit) in enumerate(zip(body.graph.outputs, body.outputs, strict=True))
        if isinstance(exit, Yield) and index not in states
    )


def _states(body: Body) -> set[int]:
    return {p.output for p in body.inputs if isinstance(p, Carried)}


def _exits_are_states(body: Body) -> bool:
    """Whether every value that the last iteration yields is carried, each to one input."""
    states = [p.output for p in body.inputs if isinstance(p, Carried)]
    if len(states) != len(set(states)):
        return False
    return all(
        index in states for index, p in enumerate(body.outputs) if isinstance(p, Yield)
    ) and not any(
        isinstance(p, Carried) and p.input is None and isinstance(body.outputs[p.output], Yield)
        for p in body.inputs
    )


def _exits_to_states(b: Builder, node: Node, body: Body) -> None:
    """ONNX gives back what it carries alone, so what is only yielded is carried too, from a dummy
    that no iteration reads; a value that is carried twice is carried as two."""
    seen: set[int] = set()
    for port in body.inputs:
        if isinstance(port, Carried):
            if port.output in seen:
                body.graph.outputs.append(body.graph.outputs[port.output])
                body.outputs.append(Yield(None))
                port.output = len(body.outputs) - 1
            seen.add(port.output)
    states = _states(body)
    for index, exit in enumerate(body.outputs):
        if not isinstance(exit, Yield) or index in states:
            continue
        value = body.graph.outputs[index]
        if value.element is None or value.shape is None:
            raise Refused(
                f'the rank of the loop output "{value.name}" is not known, and ONNX needs an '
                "initial value for it; give the inputs' shapes with --input-shape"
            )
        shape = [d if isinstance(d, int) else 0 for d in value.shape]
        dummy = b.filled(0, shape, value.element)
        node.inputs.append(dummy)
        state = Value(TensorType(value.element, value.shape))
        body.graph.inputs.append(state)
        body.inputs.append(Carried(len(node.inputs) - 1, index))


def trips_of_slices(b: Builder, node: Node, body: Body) -> Value:
    """The number of parts of the first sliced input."""
    for port in body.inputs:
        if isinstance(port, Sliced):
            outer = node.inputs[port.input]
            size = b.op("Gather", b.op("Shape", outer), b.constant(port.axis), b.constant(0))
            first, last = (port.start, port.end) if port.stride > 0 else (port.end, port.start)
            span = _position(b, last, size), _position(b, first, size)
            length = b.op("Add", b.op("Sub", *span), b.constant(1))
            step = abs(port.stride)
            if step == 1:
                return length
            # Parts that fit whole: IR runs length / |stride| iterations.
            return b.op("Div", length, b.constant(step))
    raise Refused("it has neither a trip count, nor a condition, nor a sliced input to count")


def _position(b: Builder, at: int, size: Value) -> Value:
    return b.constant(at) if at >= 0 else b.op("Add", size, b.constant(at))


def iteration_number(body: Body) -> Value:
    """The number of the iteration, inside."""
    for value, port in zip(body.graph.inputs, body.inputs, strict=True):
        if isinstance(port, Iteration):
            return value
    # At the front: OpenVINO moves constants into the body, and does not renumber this input for the
    # Parameters that go.
    value = Value(TensorType(I64, ()), ["iteration"])
    body.graph.inputs.insert(0, value)
    body.inputs.insert(0, Iteration())
    return value


def _slices_to_gathers(node: Node, body: Body) -> None:
    graph = body.graph
    slices = [(v, p) for v, p in zip(graph.inputs, body.inputs, strict=True)
              if isinstance(p, Sliced)]  # fmt: skip
    if not slices:
        return
    count = iteration_number(body)
    front: list[Node] = []
    b = Builder(front, node.name)
    number = count if count.element is I64 else b.op("Cast", count, to=I64)
    for old, port in slices:
        index = graph.inputs.index(old)
        outer = node.inputs[port.input]
        assert outer is not None
        whole = Value(outer.type, list(outer.names))
        graph.inputs[index], body.inputs[index] = whole, Invariant(port.input)
        start = b.constant([port.start])
        if port.start < 0:
            size = b.op("Shape", whole)
            axis = b.op("Gather", size, b.constant([port.axis]), b.constant(0))
            start = b.op("Add", axis, start)
        at = b.op("Add", b.op("Mul", number, b.constant([port.stride])), start)
        # A backward part is the `part_size` elements that end at its position.
        low = at if port.stride > 0 else b.op("Sub", at, b.constant([port.part_size - 1]))
        high = b.op("Add", low, b.constant([port.part_size]))
        part = b.op("Slice", whole, low, high, b.constant([port.axis]))
        if port.keepdims:
            b.node("Identity", [part], [old])
        else:
            b.node("Squeeze", [part, b.constant([port.axis])], [old])
        old.declared = old.type
    graph.nodes = [*front, *graph.nodes]


def _join_stacks(b: Builder, node: Node, body: Body) -> list[Value]:
    """ONNX's Loop stacks on a new first axis; what IR joins along another, or backwards, is
    brought into place after the Loop."""
    todo: list[tuple[int, Stacked, int | None]] = []
    for value, exit in zip(body.graph.outputs, body.outputs, strict=True):
        if isinstance(exit, Stacked):
            old = Stacked(exit.output, exit.axis, exit.start, exit.stride, exit.end,
                          exit.part_size, exit.keepdims)  # fmt: skip
            if exit.keepdims or exit.axis or exit.stride < 0:
                if value.rank is None:
                    raise Refused(
                        f'the rank of the loop output "{value.name}" is not known; give the '
                        "inputs' shapes with --input-shape"
                    )
                todo.append((exit.output, old, value.rank))
            exit.axis, exit.start, exit.stride, exit.end = 0, 0, 1, -1
            exit.part_size, exit.keepdims = 1, False
    made = b.node("Loop", node.inputs, len(node.outputs), {}, node.bodies, extras=node.extras)
    results = list(made.outputs)
    for index, port, rank in todo:
        assert rank is not None
        results[index] = _place(b, results[index], port, rank)
    return results


def _place(b: Builder, stacked: Value, port: Stacked, rank: int) -> Value:
    if port.stride < 0:
        limits = (b.constant([-1]), b.constant([np.iinfo(np.int64).min]))
        stacked = b.op("Slice", stacked, *limits, b.constant([0]), b.constant([-1]))
    if not port.keepdims:
        axis = port.axis % (rank + 1)
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        return b.op("Transpose", stacked, b.constant(order))
    axis = port.axis % rank
    # [n, ..., part, ...] -> [..., n, part, ...] -> [..., n * part, ...]
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    moved = b.op("Transpose", stacked, b.constant(order)) if axis else stacked
    shape = b.op("Shape", moved)
    sizes = [
        b.op("Slice", shape, b.constant([0]), b.constant([axis]), b.constant([0])),
        b.op(
            "Mul",
            b.op("Slice", shape, b.constant([axis]), b.constant([axis + 1]), b.constant([0])),
            b.op("Slice", shape, b.constant([axis + 1]), b.constant([axis + 2]), b.constant([0])),
        ),
        b.op("Slice", shape, b.constant([axis + 2]), b.constant([rank + 1]), b.constant([0])),
    ]
    return b.op("Reshape", moved, b.op("Concat", *sizes, axis=0), allowzero=True)


@expands("Loop", target="ir")
def _loop(b: Builder, node: Node) -> Result:
    from bridge.operators.control.loop_edges import STEPS
    from bridge.operators.nn.normalization import group_normalization_in_bodies

    for step in (loop_to_ir, *STEPS, group_normalization_in_bodies):
        if (made := step(b, node)) is not None:
            return made
    return None


@expands("If", target="ir")
def _if(b: Builder, node: Node) -> Result:
    from bridge.operators.nn.normalization import group_normalization_in_bodies

    made = if_to_ir(b, node)
    return made if made is not None else group_normalization_in_bodies(b, node)
