"""Split: parts of one axis with equal or with given lengths."""

from functools import partial

import numpy as np

from bridge.neutral.inference import KNOWN_VALUE_LIMIT, constraints as must, first, infers, require
from bridge.neutral.inference.dims import axis_of, rearranged, with_dim
from bridge.neutral.inference.known import known_of, unknown
from bridge.neutral.signs import is_not_negative
from bridge.neutral.types import ANY, Dim, TensorType, Type, differ, is_static
from bridge.operators import Builder, Node, Value, legalizes, reads, required


@reads("Split", format="onnx", until=1)
def read_split_1(b: Builder, node: Node) -> list[Value] | None:
    """Split-1 has its lengths as an input or as an attribute."""
    lengths = node.input(1)
    if lengths is None and "split" in node.attributes:
        lengths = b.constant(list(node.attributes["split"]))
    axis = node.attributes.get("axis", 0)
    return b.ops("Split", len(node.outputs), node.inputs[0], lengths, axis=axis)


@legalizes("Split", target="ir")
def split_for_ir(b: Builder, node: Node) -> list[Value]:
    """Split (1 to 25) as VariadicSplit-1 with lengths, otherwise as Split-1. The last part may be
    smaller."""
    x, lengths = node.operand(0), node.input(1)
    axis, count = node.attributes["axis"], len(node.outputs)
    at = b.constant(axis)
    if lengths is not None:
        if lengths.shape != (count,):  # IR needs one length for each part.
            lengths = b.reshape(lengths, count)
        return b.ops("VariadicSplit", count, x, at, lengths)
    size = None if x.shape is None else x.shape[axis]
    if node.attributes["num_outputs"] is None or (isinstance(size, int) and size % count == 0):
        return b.ops("ir::Split", count, x, at, num_splits=count)
    if isinstance(size, int):
        return b.ops("VariadicSplit", count, x, at, _parts(size, count))
    # The last part is smaller. The other parts have ceil(size / count) elements.
    whole = b.sizes(x, axis)
    each = (whole + b.constant([count - 1])) / [count]
    edges = b.min(each * b.counted(count + 1), whole)
    return b.ops("VariadicSplit", count, x, at, edges[1 : count + 1] - edges[:count])


def _parts(size: int, count: int) -> list[int]:
    """The sizes of `count` parts of an axis; the last part may be smaller."""
    part = -(-size // count)
    return [max(0, min(part, size - part * i)) for i in range(count)]


@legalizes("Split", target="onnx")
def uneven_for_onnx(b: Builder, node: Node) -> list[Value] | None:
    """Split for older operator sets. `num_outputs` exists since operator set 18 and replaces absent
    lengths. Before, an even split needs neither."""
    count = len(node.outputs)
    wanted = count if node.input(1) is None and b.opset >= 18 else None
    given = node.attributes["num_outputs"]
    if given == wanted:
        return None
    x = node.operand(0)
    size = None if x.shape is None else x.shape[node.attributes["axis"]]
    if given is not None and wanted is None and isinstance(size, int) and size % count:
        parts = b.constant(_parts(size, count))
        return b.ops("Split", count, x, parts, axis=node.attributes["axis"])
    return b.ops("Split", count, x, node.input(1), axis=node.attributes["axis"], num_outputs=wanted)


@legalizes("ir::Split", target="onnx")
def ir_split_for_onnx(b: Builder, node: Node) -> list[Value]:
    """Split-1 of IR: parts of equal size. The axis is an input in IR."""
    return b.ops(
        "Split", len(node.outputs), node.inputs[0], axis=b.constants(node.inputs[1], "its axis")[0]
    )


@legalizes("VariadicSplit", target="onnx")
def variadic_split_for_onnx(b: Builder, node: Node) -> list[Value]:
    """VariadicSplit-1: one length may be -1, which means the rest of the axis."""
    x, lengths = required(node, 0, 2)
    axis = b.constants(node.inputs[1], "its axis")[0]
    known = known_of(lengths).ints
    if not is_not_negative(lengths):
        size = None if x.shape is None else x.shape[axis]
        if known is not None and isinstance(size, int):
            rest = size - sum(k for k in known if k >= 0)
            lengths = b.constant([rest if k == -1 else k for k in known])
        else:
            lengths = b.as_i64(lengths)
            open_ended = lengths.equal([-1])
            closed = b.where(open_ended, [0], lengths)
            taken = b.op("ReduceSum", closed, [0], keepdims=True)
            lengths = b.where(open_ended, b.sizes(x, axis) - taken, lengths)
            # The next conversion must also know that a length is not negative.
            lengths = b.max(lengths, [0])
    return b.ops("Split", len(node.outputs), x, b.vector(lengths), axis=axis)


def split_lengths(node: Node) -> tuple[Dim, ...]:
    """The size of every part along the axis of a Split, VariadicSplit or ir::Split."""
    count = len(node.outputs)
    data = first(node).shape
    axis = split_axis(node)
    dim = ANY if data is None or axis is None else data[axis]
    lengths = node.input(2) if node.op == "VariadicSplit" else node.input(1)
    if node.op == "VariadicSplit" or (node.op == "Split" and lengths is not None):
        known = known_of(lengths).parts
        if known is None:
            return (ANY,) * count
        require(len(known) == count)
        if -1 in known and isinstance(dim, int) and all(isinstance(k, int) for k in known):
            rest = dim - sum(k for k in known if isinstance(k, int) and k >= 0)
            known = tuple(rest if k == -1 else k for k in known)
        return tuple(k if isinstance(k, int | str) and k != -1 else ANY for k in known)
    if not isinstance(dim, int):
        return (ANY,) * count
    part = -(-dim // count)
    last = dim - part * (count - 1)
    # With fewer elements than the parts need, the node is wrong, but a branch may never run it.
    return (*(part,) * (count - 1), last) if last >= 0 else (ANY,) * count


def split_axis(node: Node) -> int | None:
    """The axis of a Split, VariadicSplit or ir::Split; None if it is unknown."""
    rank = first(node).rank
    if rank is None:
        return None
    if node.op == "Split":
        return axis_of(node, rank)
    axis = known_of(node.inputs[1]).ints
    return None if axis is None else axis[0] % rank


@infers("Split", "ir::Split", "VariadicSplit")
def infer_split(node: Node) -> list[Type]:
    """Split, VariadicSplit, ir::Split: the data with the size of each part along the axis."""
    data = first(node)
    axis = split_axis(node)
    if data.shape is None or axis is None:
        return [TensorType(data.element, unknown(data.rank))] * len(node.outputs)
    require(-len(data.shape) <= axis < len(data.shape))
    lengths = split_lengths(node)
    _split_content(node, axis, lengths)
    return [TensorType(data.element, with_dim(data.shape, axis, length)) for length in lengths]


def _taken(part: range, axis: int, places: np.ndarray) -> np.ndarray:
    return places.take(part, axis)


def _split_content(node: Node, axis: int, lengths: tuple[Dim, ...]) -> None:
    """Hands every part its elements; a content function speaks of one output only."""
    content, shape = known_of(node.inputs[0]).parts, first(node).shape
    if content is not None and shape is not None and len(shape) == 1:
        shape = (len(content),)
    at = 0
    for output, length in zip(node.outputs, lengths, strict=True):
        output.known_value = None
        if content is None or not is_static(shape) or not is_static(lengths):
            continue
        if sum(lengths) != shape[axis] or len(content) > KNOWN_VALUE_LIMIT:
            continue
        assert isinstance(length, int)
        part = range(at, at + length)
        output.known_value = rearranged(content, shape, partial(_taken, part, axis))
        at += length


def sizes_of_parts(node: Node) -> must.Constraints:
    """Split: a size for each output, and all of them together that of the axis."""
    x, given = must.operands(node, 2)
    axis, lengths = node.attributes["axis"], known_of(given.value).ints
    count = len(node.outputs)
    if differ(given[0], count):
        yield f"it has {count} outputs for {given[0]} parts"
        return
    if x.rank is None or lengths is None or not -x.rank <= axis < x.rank:
        return
    if differ(x[axis], sum(lengths)) or min(lengths, default=0) < 0:
        yield f"axis {axis} of {x} has no parts of {list(lengths)}"


def lengths_of_parts(node: Node) -> must.Constraints:
    """VariadicSplit: the size of each part. One of them may be -1, for the rest of the axis."""
    lengths, count = known_of(node.input(2)).ints, len(node.outputs)
    if lengths is None:
        return
    if min(lengths, default=0) < -1 or lengths.count(-1) > 1 or len(lengths) < count:
        yield f"{list(lengths)} are no lengths of {count} parts"


must.hold("Split", must.has_rank(1), must.axis_attribute("axis"), sizes_of_parts)
must.hold("VariadicSplit", must.has_rank(1), must.axes_in(1), must.one_element(1), lengths_of_parts)
must.hold("ir::Split", must.has_rank(1), must.axes_in(1), must.one_element(1))
