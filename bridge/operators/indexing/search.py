"""Bucketize, SearchSorted, Roll, ReverseSequence."""

from bridge.neutral.inference import constraints as must
from bridge.neutral.types import F32, F64, I64, Element
from bridge.operators import Builder, Node, Result, Value, legalizes, ranked, required


def _count(b: Builder, holds: Value, element: Element) -> Value:
    """The number of true elements along the last axis."""
    # With an axis counted from the front, engines can also reduce an empty tensor.
    last = -1 if holds.rank is None else holds.rank - 1
    return b.cast(b.op("ReduceSum", b.cast(holds, I64), [last], keepdims=False), element)


def _alike(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Both values in one element type, for a comparison."""
    if x.element is y.element:
        return x, y
    elements = (x.element, y.element)
    if not any(e is not None and e.is_float for e in elements):
        return b.cast(x, I64), b.cast(y, I64)
    wide = F64 if any(e is F64 or (e is not None and e.bits == 64) for e in elements) else F32
    return b.cast(x, wide), b.cast(y, wide)


@legalizes("Bucketize", target="onnx")
def bucketize_for_onnx(b: Builder, node: Node) -> Value:
    """Bucketize-3: the number of bounds below the value (or not above it)."""
    x, buckets = required(node, 0, 1)
    x, buckets = _alike(b, x, buckets)
    if buckets.shape == (0,):
        # An empty axis does not broadcast with an axis of several elements.
        return b.zeros(b.constant(0, node.attributes["output_type"]), b.op("Shape", x))
    beyond = "Greater" if node.attributes["with_right_bound"] else "GreaterOrEqual"
    return _count(b, b.op(beyond, b.unsqueeze(x, -1), buckets), node.attributes["output_type"])


@legalizes("SearchSorted", target="onnx")
def search_sorted_for_onnx(b: Builder, node: Node) -> Value:
    """SearchSorted-15: the number of elements of the sequence below the value (or not above it)."""
    sequence, values = required(node, 0, 1)
    below = "LessOrEqual" if node.attributes["right_mode"] else "Less"
    if b.known(sequence.rank, "the rank of its sequence") > 1:
        sequence = b.unsqueeze(sequence, -2)
    holds = b.op(below, sequence, b.unsqueeze(values, -1))
    return _count(b, holds, node.attributes["output_type"])


@legalizes("Roll", target="onnx")
def roll_for_onnx(b: Builder, node: Node) -> Value:
    """Roll-7: along each axis, element i comes from i - shift."""
    x, shift, axes = required(node, 0, 1, 2)
    places = b.constants(axes, "its axes")
    shifts = b.vector(b.as_i64(shift))
    single = shift.rank == 0 or (shift.shape is not None and shift.shape == (1,))
    for index, axis in enumerate(places):
        by = b.op("Gather", shifts, 0 if single else index, 0)
        source = (b.positions(x, axis) - by) % b.size(x, axis)
        x = b.op("Gather", x, source, axis)
    return x if places else b.op("Identity", x)


@legalizes("ReverseSequence", target="onnx")
def reverse_sequence_for_onnx(b: Builder, node: Node) -> Result:
    """ReverseSequence (10 to 28). ONNX supports only the axes 0 and 1. IR supports any two axes,
    also counted from the end."""
    axes = [node.attributes[name] for name in ("batch_axis", "time_axis")]
    if sorted(axes) == [0, 1]:
        return None
    (x, rank), lengths = ranked(node), node.inputs[1]
    batch, time = (axis % rank for axis in axes)
    order = [batch, time, *(i for i in range(rank) if i not in (batch, time))]
    if {batch, time} == {0, 1}:
        order = list(range(rank))
    y = b.op(
        "ReverseSequence", b.transpose(x, *order), lengths,
        batch_axis=order.index(batch), time_axis=order.index(time),
    )  # fmt: skip
    return b.transpose(y, *(order.index(i) for i in range(rank)))


def lengths_of_batches(node: Node) -> must.Constraints:
    """ReverseSequence (ONNX, 10; IR, 1): a length for each place of the batch axis, which is not
    the time axis."""
    x, lengths = must.operands(node, 2)
    if x.rank is None:
        return
    batch, time = node.attributes["batch_axis"], node.attributes["time_axis"]
    if batch % x.rank == time % x.rank:
        yield f"its batch and its time are axis {batch} of {x}"
    yield must.Same(lengths[0], x[batch], "{} are no lengths for axis {} of {}", lengths, batch, x)


must.hold(
    "ReverseSequence",
    must.has_rank(2),
    must.has_rank(1, 1, of=1),
    must.axis_attribute("batch_axis"),
    must.axis_attribute("time_axis"),
    lengths_of_batches,
)
must.hold("Roll", must.axes_in(2))
