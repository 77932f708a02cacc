"""Loops at the edge of what OpenVINO runs right (2026.4, CPU plugin).

It takes out what a body does not read: with an unread slice goes the number of iterations, with an
unread state the value that comes out when no iteration runs (the IR writer keeps such a state). It
cannot stack a condition that is carried, mistakes ranks under a false one, forgets to empty its
stacks when no iteration runs, reads no TensorIterator in another, overlooks that a state grows
where nothing behind the Loop takes it, or that none grew where no iteration runs, and lets one
slice overwrite a view of the slice before.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.neutral.arrays import full
from bridge.neutral.builder import Builder, constant_value, integers
from bridge.neutral.graph import (
    Body,
    Carried,
    Condition,
    Graph,
    InputPort,
    Invariant,
    Iteration,
    Node,
    Sliced,
    Stacked,
    Value,
    Yield,
    outer_input,
)
from bridge.neutral.rewrite import drop_unused_inputs
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import I64_MAX, Interval, is_static
from bridge.operators import Result
from bridge.operators.control.control import iteration_number, loop_again, scalar, trips_of_slices

_SLICED = "stacks_sliced"
"""Marks, in a node's extras, a Loop that `stacks_of_nothing` has dealt with."""

_SIZED = "sizes_of_states"
"""Marks, likewise, a Loop that `sizes_of_states` has dealt with."""


def condition_is_true(b: Builder, node: Node) -> Result:
    """An iteration runs only where the condition holds: inside, it is the constant true."""
    (body,) = node.bodies
    found = _take(
        body, lambda _, p: isinstance(p, Carried) and isinstance(body.outputs[p.output], Condition)
    )
    if not found:
        return None
    for value, _ in found:
        shape = [d if isinstance(d, int) else 1 for d in value.shape or ()]
        tensor = Tensor.of(full(shape, True, what=repr(node)))
        known = constant_value(tensor)
        value.type, value.content = known.type, known.content
        constant = Node("Constant", [], [value], {"value": tensor}, (), value.name)
        body.graph.nodes.insert(0, constant)
    return loop_again(b, node, node.inputs)


NEVER = (1 << 31) - 1
"""A number of iterations that no Loop reaches."""


def no_limit(b: Builder, node: Node) -> Result:
    """A trip count that is never reached is none: OpenVINO's CPU plugin would reserve memory for
    as many stacked values."""
    (body,) = node.bodies
    trips = integers(node.input(0))
    if not trips or trips[0] < NEVER or not any(isinstance(p, Condition) for p in body.outputs):
        return None
    return loop_again(b, node, [None, *node.inputs[1:]])


def no_iteration(b: Builder, node: Node) -> Result:
    """A Loop that never runs gives what went in, and stacks of nothing."""
    (body,) = node.bodies
    if integers(node.input(0)) != (0,) and integers(node.input(1)) != (0,):
        return None
    results: list[Value | None] = [None] * len(node.outputs)
    for port in body.inputs:
        exit = body.outputs[port.output] if isinstance(port, Carried) else None
        start = outer_input(port)
        if isinstance(exit, Yield) and exit.output is not None and start is not None:
            results[exit.output] = node.inputs[start]
    for value, exit in zip(body.graph.outputs, body.outputs, strict=True):
        if not isinstance(exit, Stacked) or value.element is None:
            continue
        if value.shape is None or not all(isinstance(d, int) for d in value.shape):
            return None
        shape = list(value.shape)
        if exit.keepdims:
            shape[exit.axis] = 0
        else:
            shape.insert(exit.axis % (len(shape) + 1), 0)
        results[exit.output] = b.filled(0, shape, value.element)
    return results if None not in results else None


def unchanged_states(b: Builder, node: Node) -> Result:
    """A state that stays what it was at first is no state; OpenVINO fails where the next value is
    the initial one by another way."""
    (body,) = node.bodies
    outer = {
        value: node.inputs[port.input]
        for value, port in zip(body.graph.inputs, body.inputs, strict=True)
        if isinstance(port, Invariant)
    }
    found: dict[int, Value] = {}
    for index, (value, port) in enumerate(zip(body.graph.inputs, body.inputs, strict=True)):
        if not isinstance(port, Carried) or port.input is None:
            continue
        exit = body.outputs[port.output]
        again = _behind_copies(body.graph.outputs[port.output])
        initial = node.inputs[port.input]
        if initial is None or not isinstance(exit, Yield) or exit.output is None:
            continue
        if again is value or outer.get(again) is initial:
            body.inputs[index] = Invariant(port.input)
            found[exit.output] = initial
    if not found:
        return None
    results = list(loop_again(b, node, node.inputs))
    for place, initial in found.items():
        results[place] = initial
    return results


def slices_that_count(b: Builder, node: Node) -> Result:
    """Where slices alone say how often the body runs, one of them is an output that leads nowhere,
    so that it stays when OpenVINO finds that nothing needs it."""
    (body,) = node.bodies
    if not _is_iterator(node):
        return None
    ports = zip(body.graph.inputs, body.inputs, strict=True)
    counter = next(value for value, port in ports if isinstance(port, Sliced))
    if any(
        value is counter and exit == Yield(None)
        for value, exit in zip(body.graph.outputs, body.outputs, strict=True)
    ):
        return None
    body.graph.outputs.append(counter)
    body.outputs.append(Yield(None))
    return loop_again(b, node, node.inputs)


def nested_iterators(b: Builder, node: Node) -> Result:
    """A TensorIterator's body must not hold another: the inner one becomes a Loop."""
    (body,) = node.bodies
    if not _is_iterator(node):
        return None
    nodes: list[Node] = []
    inner = Builder(nodes, node.name, b.target)
    for one in body.graph.nodes:
        if one.op == "Loop" and _is_iterator(one):
            one.inputs = [trips_of_slices(inner, one, one.bodies[0]), None, *one.inputs[2:]]
            backwards = _turn_forwards(inner, one)
            nodes.append(one)
            for index, axis in backwards.items():
                old = one.outputs[index]
                one.outputs[index] = Value(old.type)
                one.outputs[index].producer = one
                turned = _reversed(inner, one.outputs[index], axis)
                inner.node("Identity", [turned], [old])
        else:
            nodes.append(one)
    if len(nodes) == len(body.graph.nodes):
        return None
    body.graph.nodes = nodes
    return loop_again(b, node, node.inputs)


def counted_iterators(b: Builder, node: Node) -> Result:
    """A TensorIterator's body knows not the number of the iteration: where it is asked for, the
    node becomes a Loop, which needs a trip count."""
    (body,) = node.bodies
    if not _is_iterator(node) or not any(isinstance(p, Iteration) for p in body.inputs):
        return None
    node.inputs = [trips_of_slices(b, node, body), None, *node.inputs[2:]]
    backwards = _turn_forwards(b, node)
    results = list(loop_again(b, node, node.inputs))
    for index, axis in backwards.items():
        results[index] = _reversed(b, results[index], axis)
    return results


def condition_as_trips(b: Builder, node: Node) -> Result:
    """Where OpenVINO can tell that the condition is false before the first iteration, it takes all
    that comes out for vectors of nothing: instead, nothing is left of the trip count."""
    trips, condition = node.input(0), node.input(1)
    if trips is None or condition is None or _is_positive(condition):
        return None
    left = b.op("Where", scalar(b, condition), scalar(b, trips), b.like(0, trips))
    return loop_again(b, node, [left, None, *node.inputs[2:]])


def stacks_of_nothing(b: Builder, node: Node) -> Result:
    """Where no iteration runs there are no parts to stack; the CPU plugin gives those of the run
    before, or as many as the trip count says. So none of them is taken."""
    (body,) = node.bodies
    stacks = [exit for exit in body.outputs if isinstance(exit, Stacked)]
    extras = node.extras or {}
    if not stacks or _SLICED in extras:
        return None
    runs = _runs(b, node)
    if runs is None:
        return None
    node.extras = {**extras, _SLICED: True}
    if node.input(0) is not None:
        _hide_condition(b, node)
    results = list(loop_again(b, node, node.inputs))
    zero = b.constant([0])
    # The CPU plugin may choose in f32, where the largest i32 overflows; this is exact there.
    end = b.op("Where", runs, b.constant([1 << 30]), zero)
    for exit in stacks:
        results[exit.output] = b.op(
            "Slice", results[exit.output], zero, end, b.constant([exit.axis])
        )
    return results


def _hide_condition(b: Builder, node: Node) -> None:
    """Computes a condition that is always true: a Loop without it, for which OpenVINO can tell that
    no trips are left, crashes when it is opened."""
    (body,) = node.bodies
    inner = Builder(body.graph.nodes, node.name, b.target)
    places = [i for i, exit in enumerate(body.outputs) if isinstance(exit, Condition)]
    if places and _behind_copies(body.graph.outputs[places[0]]).constant is None:
        return
    count = iteration_number(body)
    always = inner.op("GreaterOrEqual", count, inner.like(0, count))
    if places:
        body.graph.outputs[places[0]] = always
    else:
        body.graph.outputs.append(always)
        body.outputs.append(Condition())


def unseen_growth(b: Builder, node: Node) -> Result:
    """A state whose shape changes must leave the Loop and be used: where OpenVINO knows the first
    shape, it takes it for that of every iteration otherwise."""
    (body,) = node.bodies
    grown = []
    for value, port in zip(body.graph.inputs, body.inputs, strict=True):
        if not isinstance(port, Carried) or body.outputs[port.output] != Yield(None):
            continue
        if port.input is not None and not _keeps_shape(value):
            grown.append((value, port))
    sliced = next((i for i, v in enumerate(node.outputs) if v.rank is not None), None)
    if not grown or sliced is None:
        return None
    made = b.node(
        "Loop", node.inputs, len(node.outputs) + len(grown), {}, (body,), extras=node.extras
    )
    results = list(made.outputs[: len(node.outputs)])
    for new, old in zip(results, node.outputs, strict=True):
        new.type = new.declared = old.type
    # A bound on a slice that takes all: nothing of it can be known before the Loop has run.
    end = b.constant([1 << 30])
    for index, (value, port) in enumerate(grown, len(results)):
        body.outputs[port.output] = Yield(index)
        state = made.outputs[index]
        state.type = state.declared = value.type
        size = b.op("ReduceMax", b.op("Shape", state), b.constant([0]), keepdims=True)
        end = b.op("Max", end, size)
    whole, zero = results[sliced], b.constant([0])
    if whole.rank == 0:
        line = b.op("Slice", b.op("Unsqueeze", whole, zero), zero, end, zero)
        results[sliced] = b.op("Squeeze", line, zero)
    else:
        results[sliced] = b.op("Slice", whole, zero, end, zero)
    return results


def sizes_of_states(b: Builder, node: Node) -> Result:
    """OpenVINO gives an unknown size of a state and that of what it starts as one symbol, and takes
    one for the other wherever the body asks for a size; and it takes the least size after an
    iteration for certain, though none may run. Both are hidden from it where a size may change."""
    (body,) = node.bodies
    extras = node.extras or {}
    if _SIZED in extras:
        return None
    nodes: list[Node] = []
    inner = Builder(nodes, node.name, b.target)
    entries: dict[Value, Value] = {}
    exits: dict[int, list[int]] = {}
    number: Value | None = None
    for value, port in list(zip(body.graph.inputs, body.inputs, strict=True)):
        initial = node.inputs[port.input] if isinstance(port, Carried) and port.input else None
        if not isinstance(port, Carried) or initial is None or initial.rank != value.rank:
            continue
        dims = enumerate(value.shape or ())
        axes = [axis for axis, dim in dims if isinstance(dim, Interval)]
        if not axes:
            continue
        number = number or inner.op("Reshape", iteration_number(body), inner.constant([1]))
        unknown = [axis for axis in axes if not isinstance(initial.shape[axis], int)]
        if unknown:
            entries[value] = _of_any_size(inner, value, unknown, number)
        if not _surely_runs(node):
            exits[port.output] = axes
    if number is None:
        return None
    for one in body.graph.nodes:
        one.inputs = [None if v is None else entries.get(v, v) for v in one.inputs]
    body.graph.nodes[:0] = nodes
    states = {*body.graph.inputs, *entries.values()}
    for index, axes in exits.items():
        value = body.graph.outputs[index]
        if not _hide_appended(body.graph, value, axes, number, states):
            inner = Builder(body.graph.nodes, node.name, b.target)
            body.graph.outputs[index] = _of_any_size(inner, value, axes, number)
    node.extras = {**extras, _SIZED: True}
    return loop_again(b, node, node.inputs)


def _hide_appended(
    graph: Graph, value: Value, axes: list[int], number: Value, states: set[Value]
) -> bool:
    """Where something is joined to a state, hides the size of that alone, which is less to copy;
    whether it could."""
    made = value.producer
    if made is None or made.op != "Concat" or value.rank is None:
        return False
    if axes != [made.attributes["axis"] % value.rank] or not states & set(made.inputs):
        return False
    nodes: list[Node] = []
    inner = Builder(nodes, made.name)
    made.inputs = [
        v if v is None or v in states else _of_any_size(inner, v, axes, number) for v in made.inputs
    ]
    place = graph.nodes.index(made)
    graph.nodes[place:place] = nodes
    return True


def _of_any_size(b: Builder, value: Value, axes: list[int], number: Value) -> Value:
    """The value as it is, through an operator whose result depends, for all that OpenVINO can
    tell, on `number` (i64 [1], not negative)."""
    if value.rank == 1 and not is_static(value.shape):
        # A Slice would copy a vector element by element; yet a Reshape to the one size that there
        # can be is none.
        none = b.op("Min", number, b.constant([0]))
        return b.op("Reshape", value, b.op("Max", b.op("Shape", value), none), allowzero=True)
    end = b.op("Max", number, b.constant([1 << 30]))
    ends = b.op("Concat", *[end] * len(axes), axis=0) if len(axes) > 1 else end
    return b.op("Slice", value, b.constant([0] * len(axes)), ends, b.constant(axes))


def rows_of_slices(b: Builder, node: Node) -> Result:
    """A Gather of one row is a view in the CPU plugin. Where the view of a sliced input becomes a
    state, the next slice overwrites it before it is read: a Slice copies."""
    (body,) = node.bodies
    kinds = {type(port) for port in body.inputs}
    if Sliced not in kinds or Carried not in kinds:
        return None
    nodes: list[Node] = []
    inner = Builder(nodes, node.name, b.target)
    found = False
    for one in body.graph.nodes:
        place, axis = (
            (integers(one.inputs[1]), integers(one.inputs[2]))
            if one.op == "Gather" and one.attributes["batch_dims"] == 0
            else (None, None)
        )
        if place is None or len(place) != 1 or axis is None:
            nodes.append(one)
            continue
        found = True
        data, index = one.inputs[:2]
        assert index is not None
        axes = inner.constant([axis[0]])
        start, end = inner.constant([place[0]]), inner.constant([place[0] + 1 or I64_MAX])
        if index.rank == 0:
            row = inner.op("Slice", data, start, end, axes)
            inner.node("Squeeze", [row, axes], one.outputs)
        else:
            inner.node("Slice", [data, start, end, axes], one.outputs)
    if not found:
        return None
    body.graph.nodes = nodes
    return loop_again(b, node, node.inputs)


def _keeps_shape(state: Value) -> bool:
    """Whether a state's dimensions are known to be the same in each iteration: an unknown one
    stands where they differ, or may."""
    return state.shape is not None and not any(isinstance(dim, Interval) for dim in state.shape)


def _surely_runs(node: Node) -> bool:
    """Whether a Loop runs at least once; slices are taken to have parts."""
    return all(value is None or _is_positive(value) for value in (node.input(0), node.input(1)))


def _is_iterator(node: Node) -> bool:
    """Whether slices alone say how often a Loop runs: IR's TensorIterator."""
    (body,) = node.bodies
    return (
        node.input(0) is None
        and node.input(1) is None
        and any(isinstance(port, Sliced) for port in body.inputs)
        and not any(isinstance(exit, Condition) for exit in body.outputs)
    )


def _turn_forwards(b: Builder, node: Node) -> dict[int, int]:
    """Makes a Loop read and stack forwards, as IR's Loop must: inputs are reversed before. Gives
    the axes of the outputs that are to be reversed behind it."""
    (body,) = node.bodies
    for port in body.inputs:
        if isinstance(port, Sliced) and (port.stride, port.start, port.end) == (-1, -1, 0):
            outer = node.inputs[port.input]
            assert outer is not None
            node.inputs.append(_reversed(b, outer, port.axis))
            port.input = len(node.inputs) - 1
            port.stride, port.start, port.end = 1, 0, -1
    drop_unused_inputs(node, 2)
    backwards = {}
    for exit in body.outputs:
        if isinstance(exit, Stacked) and (exit.stride, exit.start, exit.end) == (-1, -1, 0):
            backwards[exit.output] = exit.axis
            exit.stride, exit.start, exit.end = 1, 0, -1
    return backwards


def _reversed(b: Builder, value: Value, axis: int) -> Value:
    return b.op("Slice", value, *(b.constant([n]) for n in (-1, -(1 << 30), axis, -1)))


def _runs(b: Builder, node: Node) -> Value | None:
    """Whether a Loop runs at least once, as a scalar; None where it surely does."""
    trips, condition = node.input(0), node.input(1)
    tests: list[Value] = []
    if trips is not None and not _is_positive(trips):
        count = scalar(b, trips)
        tests.append(b.op("Greater", count, b.like(0, count)))
    if condition is not None and not _is_positive(condition):
        tests.append(scalar(b, condition))
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else b.op("And", *tests)


def _behind_copies(value: Value) -> Value:
    """What a value is by another name."""
    while value.producer is not None and value.producer.op == "Identity":
        value = value.producer.inputs[0] or value
    return value


def _take(body: Body, wanted: Callable[[Value, InputPort], bool]) -> list[tuple[Value, InputPort]]:
    """Removes the wanted inputs of a body and returns them with their ports."""
    pairs = list(zip(body.graph.inputs, body.inputs, strict=True))
    taken = [pair for pair in pairs if wanted(*pair)]
    kept = [pair for pair in pairs if not wanted(*pair)]
    body.graph.inputs = [value for value, _ in kept]
    body.inputs = [port for _, port in kept]
    return taken


def _is_positive(value: Value) -> bool:
    known = integers(value)
    return known is not None and len(known) == 1 and known[0] > 0


STEPS = (
    condition_is_true,
    no_limit,
    no_iteration,
    unchanged_states,
    slices_that_count,
    nested_iterators,
    counted_iterators,
    condition_as_trips,
    stacks_of_nothing,
    unseen_growth,
    sizes_of_states,
    rows_of_slices,
)
