"""If and Loop: types flow through the ports."""

from contextlib import suppress

from bridge.errors import Refused
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference import constraints as must, infer_graph, infers
from bridge.neutral.inference.computed import enter_known
from bridge.neutral.inference.known import as_dim, between, is_bounding, known_of
from bridge.neutral.ports import Carried, Condition, Invariant, Iteration, Sliced, Stacked, Yield
from bridge.neutral.types import (
    ANY,
    BOOL,
    I64,
    UNKNOWN,
    ContainerType,
    Dim,
    Interval,
    TensorType,
    Type,
    differ,
    format_shape,
    high,
    join,
    meet,
    with_dims,
)


def enter_bodies(node: Node) -> None:
    """Sets the types of the bodies' inputs from the node's inputs, and infers the bodies."""
    for body in node.bodies:
        for value, port in body.entries():
            enter(node, value, port)
        infer_graph(body.graph)


def enter(node: Node, value: Value, port: Invariant | Carried | Sliced | Iteration) -> None:
    """Sets the type (and content) of one body input from the node's inputs."""
    value.known_value = value.computed = None
    match port:
        case Invariant(index):
            enter_known(value, node.operand(index))
        case Carried():
            outer = node.outer(port)
            value.type = _condition(value.declared) if outer is None else outer.type
        case Sliced():
            value.type = part_type(node.operand(port.input).type, port)
        case Iteration():
            value.type = TensorType(I64, ())
    if not isinstance(port, Carried):
        value.type = meet(value.type, value.declared)


def _condition(declared: Type) -> Type:
    """The type of a condition that a Loop was not given: its body says the rank."""
    rank = declared.rank if isinstance(declared, TensorType) else None
    return TensorType(BOOL, (1,) * (rank or 0))


def part_type(type: Type, port: Sliced) -> Type:
    """The type of one part of a sliced tensor."""
    if not isinstance(type, TensorType) or type.shape is None:
        return TensorType(type.element if isinstance(type, TensorType) else None)
    axis = port.axis % len(type.shape)
    middle = (port.part_size,) if port.keepdims else ()
    return TensorType(type.element, type.shape[:axis] + middle + type.shape[axis + 1 :])


@infers("If")
def if_(node: Node) -> list[Type]:
    """If: each output is the join of both branches' outputs for it. OpenVINO keeps no bounds of
    sizes."""
    types: list[Type | None] = [None] * len(node.outputs)
    for body in node.bodies:
        for value, output in body.results():
            known = types[output]
            joined = value.type if known is None else join(known, value.type)
            if is_bounding() and isinstance(joined, TensorType):
                joined = with_dims(joined, lambda dim: ANY if isinstance(dim, Interval) else dim)
            types[output] = joined
    return [t or UNKNOWN for t in types]


@infers("Loop")
def loop(node: Node) -> list[Type]:
    """Loop: states are widened until they are stable; then the body's outputs and its stacks."""
    (body,) = node.bodies
    states = sum(isinstance(port, Carried) for port in body.inputs)
    for _ in range(states + 3):  # A change may go from state to state.
        if not _widen(body):
            break
        infer_graph(body.graph)
    else:
        for value, port in body.entries():
            if isinstance(port, Carried) and isinstance(value.type, TensorType):
                value.type = TensorType(value.type.element)
        infer_graph(body.graph)
    return _loop_outputs(node, body)


def _widen(body: Body) -> bool:
    """Joins the type of every carried input with the type of its body output; returns whether any
    input changed. Dimensions that differ become unknown at once, so the widening ends."""
    changed = False
    for value, port in body.entries():
        if not isinstance(port, Carried):
            continue
        wide = widen(value.type, body.graph.outputs[port.output].type)
        if wide != value.type:
            value.type = wide
            changed = True
    return changed


def widen(type: Type, again: Type) -> Type:
    """The type of a value that starts as `type` and is `again` after an iteration. A dimension
    that differs becomes unknown at once, because it may differ more after the next iteration."""
    try:
        return _any_where_changed(join(type, again), type)
    except Refused:
        return type


def _any_where_changed(wide: Type, old: Type) -> Type:
    if isinstance(wide, TensorType) and isinstance(old, TensorType):
        if wide.shape is None or old.shape is None:
            return wide
        dims = zip(wide.shape, old.shape, strict=True)
        return TensorType(wide.element, tuple(d if d == o else ANY for d, o in dims))
    if isinstance(wide, ContainerType) and isinstance(old, type(wide)):
        return wide.of(_any_where_changed(wide.item, old.item))
    return wide


def trip_count(node: Node) -> Dim:
    """The number of iterations as a dimension, as far as known."""
    if not (_begins(node) and _goes_on(node.body)):
        return ANY
    slices, trips = node.slices(), node.trip_count
    for port, dim in slices:
        if port.are_whole and dim != ANY and (trips is None or known_of(trips).parts == (dim,)):
            return dim
    most = most_iterations(node)
    return ANY if slices or most is None else most


def most_iterations(node: Node) -> int | None:
    """The largest number of iterations that the trip count and sliced inputs allow, if known.
    None if a computed condition may end the Loop: shape inference of IR finds no bound there."""
    if not _goes_on(node.body):
        return None
    known = known_of(node.trip_count).ints if node.trip_count is not None else None
    limits = [count for count in known or () if count >= 0]
    for port, dim in node.slices():
        size = high(dim)
        limits += [] if size is None else [-(-size // abs(port.stride))]
    return min(limits, default=None)


def _loop_outputs(node: Node, body: Body) -> list[Type]:
    types: list[Type] = [UNKNOWN] * len(node.outputs)
    states: dict[Value, list[Value]] = {}
    for source, entry in body.entries():
        if isinstance(entry, Carried):
            states.setdefault(body.graph.outputs[entry.output], []).append(source)
    for value, port in body.exits():
        if isinstance(port, Yield) and port.output is not None:
            type = value.type
            for source in states.get(value, ()):
                # Without an iteration the initial value comes out. ONNX lets a state start as an
                # optional and continue as its content.
                with suppress(Refused):
                    type = join(type, source.type)
            types[port.output] = type
        elif isinstance(port, Stacked) and isinstance(value.type, TensorType):
            types[port.output] = _stacked_type(node, value.type, port)
    return types


def _stacked_type(node: Node, part: TensorType, port: Stacked) -> TensorType:
    if part.shape is None:
        return TensorType(part.element)
    count = trip_count(node)
    if not isinstance(count, int | str):
        count = as_dim(between(0, most_iterations(node)))
    if not port.keepdims:
        axis = port.axis % (len(part.shape) + 1)
        return TensorType(part.element, (*part.shape[:axis], count, *part.shape[axis:]))
    axis = port.axis % len(part.shape)
    size = part.shape[axis]
    joined: Dim = count if size == 1 else ANY
    if isinstance(count, int) and isinstance(size, int):
        joined = count * size
    elif joined == ANY and (most := high(count)) is not None and (each := high(size)) is not None:
        joined = as_dim(between(0, most * each))
    return TensorType(part.element, (*part.shape[:axis], joined, *part.shape[axis + 1 :]))


def one_condition(node: Node) -> must.Constraints:
    """If, Loop: the condition is one truth value."""
    shape = must.Operand(node.condition).shape
    if shape is not None and any(isinstance(dim, int) and dim != 1 for dim in shape):
        yield f"its condition is one truth value, not {format_shape(shape)}"


def parts(node: Node) -> must.Constraints:
    """Loop: a value stacked in parts has the size of a part along its axis (TensorIterator-1)."""
    for value, port in node.body.exits():
        if not isinstance(port, Stacked) or value.shape is None:
            continue
        shape = value.shape
        rank = len(shape) + (not port.keepdims)
        if not -rank <= port.axis < rank:
            yield f"{format_shape(shape)} cannot be stacked along axis {port.axis}"
        elif port.keepdims and differ(shape[port.axis], port.part_size):
            yield f"{format_shape(shape)} is no part of {port.part_size} along axis {port.axis}"


def slices(node: Node) -> must.Constraints:
    """Loop: all values that are sliced row by row, from end to end, have as many rows."""
    if node.trip_count is not None:
        return
    whole = [port for port in node.body.inputs if isinstance(port, Sliced) and port.are_whole]
    sizes = {must.Operand(node.inputs[port.input])[port.axis] for port in whole}
    known = sorted(size for size in sizes if isinstance(size, int))
    if len(known) > 1:
        yield f"its slices are {' and '.join(map(str, known))}"


def endless(node: Node) -> must.Constraints:
    """Loop: without a trip count, one whose condition stays true never ends."""
    if node.input(0) is not None or not _begins(node):
        return
    if not any(isinstance(port, Sliced) for port in node.body.inputs) and _goes_on(node.body):
        yield "it has no trip count, and its condition stays true: it never ends"


def _begins(node: Node) -> bool:
    """Whether the first condition of a Loop is true or absent."""
    return node.input(1) is None or _is_true(node.input(1))


def _goes_on(body: Body) -> bool:
    """Whether no iteration ends a Loop: its condition is true, or stays as it is."""
    ports = dict(body.entries())
    for index, (value, exit) in enumerate(body.exits()):
        if isinstance(exit, Condition):
            value = value.behind("Identity")
            again = ports.get(value)
            kept = isinstance(again, Carried) and again.output == index
            if not kept and not _is_true(value):
                return False
    return True


def _is_true(value: Value | None) -> bool:
    known = known_of(value).ints
    return known is not None and all(known)


must.hold("If", one_condition)
must.hold("Loop", one_condition, parts, slices, endless)
