"""Empty tensors."""

from collections.abc import Collection, Iterator
from math import inf

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Stacked
from bridge.neutral.signs import is_not_negative
from bridge.neutral.types import BOOL, I8, I32, I64, U8, Element, is_static, low
from bridge.operators import Result
from bridge.quirks.opaque import hides, is_hidden
from bridge.quirks.quirk import BOTH, CPU, GPU, MOVES, Place, barrier, nearest, quirk


# The CPU plugin uses the absolute value of the number of steps.
@quirk(
    "Range",
    engines=BOTH,
    symptom="A Range whose limit lies behind its start has elements.",
    cost="a Maximum or a Minimum, unless the order of start and limit is known",
)
def empty_range(b: Builder, node: Node, place: Place) -> Result:
    """A Range to its own start is empty, like a Range to a limit behind its start. Other limits do
    not change.
    """
    start, limit, step = (value for value in node.inputs if value is not None)
    if _is_kept_limit(start, limit) or _is_ahead(start, limit, step):
        return None
    delta = known_of(step).array
    above, below = b.max(limit, start), b.min(limit, start)
    kept = b.where(step > 0, above, below) if delta is None else above if delta > 0 else below
    return b.op(node.op, start, kept, step, **node.attributes)


def _is_kept_limit(start: Value, limit: Value) -> bool:
    """Whether `up_to_start` made this limit."""
    made = limit.producer
    if made is not None and made.op == "Where":
        made = made.inputs[1].producer if made.inputs[1] is not None else None
    return made is not None and made.op in ("Max", "Min") and start in made.inputs


def _is_ahead(start: Value, limit: Value, step: Value) -> bool:
    """Whether the limit is known not to lie behind the start."""
    first, last, delta = (known_of(value).array for value in (start, limit, step))
    if first is None or delta is None:
        return False
    if last is not None:
        return bool((last - first) * delta >= 0)
    return bool(delta > 0 and first <= 0 and is_not_negative(limit))


@empty_range.guesses("Range")
def _limits(b: Builder, node: Node) -> Iterator[Value]:
    """The Range with the limit before the comparison with the start. If both are known, that
    comparison is folded."""
    start, limit, step = node.inputs
    choice = limit.producer if limit is not None else None
    ends = choice.inputs[1:] if choice is not None and choice.op == "Where" else [limit]
    for end in ends:
        made = end.producer if end is not None else None
        if made is None or made.op not in ("Constant", "Max", "Min"):
            continue
        b.name = made.name
        kept = end if made.op == "Constant" else made.inputs[0]
        if kept is not limit:
            yield b.op("Range", start, kept, step, **node.attributes)


@quirk(
    "MatMul",
    engines=BOTH,
    symptom="A MatMul over an axis of size 0 gives numbers from unset memory.",
    cost="two Pads",
)
def product_over_empty_axis(b: Builder, node: Node, place: Place) -> Result:
    """A further product of zeros adds 0 to each sum."""
    one, other = node.operands
    if not one.rank or not other.rank:
        return None
    first = -2 if node.attributes.get("transpose_a") and one.rank > 1 else -1
    second = -1 if node.attributes.get("transpose_b") or other.rank == 1 else -2
    if 0 not in (one.dims[first], other.dims[second]):
        return None
    longer = [_longer(b, v, [a], b.like(0, v)) for v, a in ((one, first), (other, second))]
    return b.node("MatMul", longer, 1, node.attributes, extras=node.extras).outputs


def _longer(b: Builder, value: Value, axes: Collection[int], element: Value) -> Value:
    """The value with a further element at the end of some axes."""
    rank = len(value.dims)
    more = [int(axis in axes or axis - rank in axes) for axis in range(rank)]
    return b.op("Pad", value, b.constant([0] * rank + more), element, mode="constant")


# OpenVINO computes the unknown size of a Reshape from the number of elements and the other sizes.
# It divides 0 by 0, and takes 0 as the size. If it does not know the sizes, it keeps the operator.
# The CPU plugin does not compute a value that is surely empty, and a stack of such values gets size
# 0 for each open size.
@barrier(
    *MOVES,
    "Loop",
    hides="shape",
    engines=BOTH,
    symptom="A Squeeze, an Unsqueeze or a Transpose of axes of size 1 gives 0 for an unknown size. "
    "This happens if another size of the result is known to be 0, and for a stack of such values, "
    "too.",
    cost="a Reshape, which copies nothing, and a 0 from a Bucketize of a random number below 1/2",
)
def known_empty_tensor(node: Node, place: Place) -> list[bool]:
    """At a Reshape, Squeeze, Transpose or Unsqueeze whose result has a size of 0 and one open size,
    unless the input is a constant. For the CPU plugin also at a Loop that stacks and reads values
    with a size of 0 and an open size.
    """
    if place.engine != CPU and node.op not in MOVES:
        return []
    if node.op == "Loop":
        stacked = any(isinstance(e, Stacked) and _is_open(v) for v, e in node.body.exits())
        return [
            stacked and v is not None and _is_open(v) and not is_hidden(place.outside(v), "shape")
            for v in node.inputs
        ]
    data, *others = node.inputs
    if data is None:
        return []
    shape = node.outputs[0].shape or ()
    if 0 not in shape or sum(not isinstance(dim, int) for dim in shape) != 1:
        return []
    if data.constant is not None or hides(node, "shape") or _is_hidden(data):
        return []
    return [True, *[False] * len(others)]


def _is_open(value: Value) -> bool:
    """Whether a value is empty and has unknown sizes."""
    return 0 in (value.shape or ()) and not is_static(value.shape)


def _is_hidden(value: Value) -> bool:
    """Whether the sizes of a value are hidden already, perhaps before such operators."""
    while (made := value.producer) is not None and made.inputs and made.inputs[0] is not None:
        if hides(made, "shape"):
            return True
        if made.op not in (*MOVES, "Cast"):
            return False
        value = made.inputs[0]
    return False


OF_EMPTY_AXIS = {
    "ReduceL1": 0, "ReduceL2": 0, "ReduceLogicalAnd": True, "ReduceLogicalOr": False,
    "ReduceProd": 1, "ReduceSum": 0,
}  # fmt: skip
"""The results of reductions over an empty axis, if both formats define them."""


# Old releases of the CPU plugin and the GPU plugin compute nothing.
@quirk(
    *OF_EMPTY_AXIS,
    "ReduceMax",
    "ReduceMin",
    recorded=True,
    uses=True,
    engines=BOTH,
    releases="2024.0 to 2024.5, GPU 2026.4",
    until="2024.5",
    symptom="A sum, or another reduction, over an empty axis keeps the result of the previous "
    "inference, or is unset memory.",
    cost="a ShapeOf, an Equal and a Select behind each such reduction; for the GPU plugin a copy "
    "of the tensor",
)
def reduction_over_empty_axis(b: Builder, node: Node, place: Place) -> Result:
    """If the axis has size 0, the result is the one that the standard defines for an empty axis. Or
    each axis gets a further element that changes no result, and is the result of an empty axis: a 0
    for a sum, a 1 for a product, the least number for a maximum.
    """
    data = node.inputs[0]
    if data is None or data.rank is None or data.element is None:
        return None
    axes = known_axes(node.input(1), data.rank)
    empty = [axis for axis in axes or () if low(data.dims[axis]) == 0]
    if not empty:
        return None
    if place.engine == GPU:
        return _over_more(b, node, data, empty)
    if node.op not in OF_EMPTY_AXIS or _is_chosen(node.outputs[0], place):
        return None
    is_empty = b.fold("Or", [b.op("Equal", b.size(data, axis), 0) for axis in empty])
    result = b.op(node.op, *node.inputs, **node.attributes)
    return b.where(is_empty, OF_EMPTY_AXIS[node.op], result)


def _is_chosen(output: Value, place: Place) -> bool:
    users = place.users(output)
    return len(users) == 1 and users[0].op == "Where" and users[0].inputs[2] is output


def _over_more(b: Builder, node: Node, data: Value, empty: list[int]) -> Result:
    """The reduction of a tensor with a further element in each axis that may be empty."""
    assert data.element is not None
    wide = b.cast(data, U8) if data.element is BOOL else data
    longer = _longer(b, wide, empty, b.like(_of_empty_axis(node.op, data.element), wide))
    inputs = [b.cast(longer, data.element), *node.inputs[1:]]
    return b.node(node.op, inputs, 1, node.attributes, extras=node.extras).outputs


def _of_empty_axis(op: str, element: Element) -> float:
    """The result over an empty axis. The plugin computes integers in at most 32 bits."""
    if op in OF_EMPTY_AXIS:
        return int(OF_EMPTY_AXIS[op])
    if element is BOOL:
        return int(op == "ReduceMin")
    if element.is_float:
        return inf if op == "ReduceMin" else -inf
    least, most = element.bounds
    return min(most, I32.bounds[1]) if op == "ReduceMin" else max(least, I32.bounds[0])


@quirk(
    "Unique",
    recorded=True,
    symptom="Unique of an empty tensor gives the result of the previous inference, and fails in "
    "the first one. Without an axis, in order of occurrence, it gives 0 for all elements but the "
    "first, unless a node reads the inverse indices. Along an axis, counts and first indices of i8 "
    "or u8 are not written. Along another axis than the first, some equal parts count as "
    "different, and some different ones as equal.",
    cost="a Pad of an input that may be empty, which copies it, and a Slice of each output; a "
    "Reshape, which copies nothing, two Converts, or two Transposes",
)
def unique_parts(b: Builder, node: Node, place: Place) -> Result:
    """There are at most as many unique elements as elements of the input. If another size is 0, all
    that lies along the axis is equal: zeros instead of an empty tensor. Unique without an axis
    flattens the tensor, and a vector along its only axis is the same. i32 has all numbers of 8
    bits, and the result is converted back.
    """
    value, axis = node.operand(0), node.input(1)
    known = (0,) if axis is None else known_of(axis).ints
    is_unsorted = not node.attributes["sorted"] and axis is None
    is_narrow = value.element in (I8, U8) and not (
        node.attributes["sorted"] and (axis is None or value.rank == 1)
    )
    may_be_empty = value.shape is not None and any(low(dim) == 0 for dim in value.shape)
    padded = value.producer is not None and value.producer.op == "ir::Pad"
    if may_be_empty and padded and value.producer is not None:
        may_be_empty = nearest(value.producer.inputs[2], "Equal", most=2) is None
    may_be_empty &= bool(known)
    at = known[0] % value.rank if axis is not None and known and value.rank else 0
    if not (is_unsorted or is_narrow or may_be_empty or at):
        return None
    some = value if axis is not None or value.rank == 1 else b.reshape(value, -1)
    rank = len(some.dims)
    if at:
        some = b.transpose(some, at, *(a for a in range(rank) if a != at))
    sizes = b.op("Shape", some)
    if may_be_empty:
        missing = b.cast(sizes.equal(0), I64)
        some = b.op("ir::Pad", some, [0] * rank, missing, b.like(0, some), pad_mode="constant")
    wide = b.cast(some, I32) if is_narrow else some
    axis = b.constant(0) if at or is_unsorted else axis
    values, *others = b.ops("Unique", len(node.outputs), wide, axis, **node.attributes)
    values = b.cast(values, value.element)
    if may_be_empty and known:
        count = b.take(sizes, 0, 0 if at else known[0] % rank)
        values = b.op("Slice", values, [0] * rank, sizes, list(range(rank)))
        others = [b.op("Slice", output, [0], count, [0]) for output in others]
    return [b.from_first(values, at, rank) if at else values, *others]
