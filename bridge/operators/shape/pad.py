"""Pad: ONNX has one input for both ends and optional axes, and IR one input for each end."""

from collections.abc import Callable, Sequence

import numpy as np

from bridge.neutral.inference import constraints as must, infers_shape
from bridge.neutral.inference.dims import dim_sum, known_axes, with_dim
from bridge.neutral.inference.known import known_of, unknown
from bridge.neutral.signs import is_not_negative
from bridge.neutral.types import ANY, BOOL, I64, I64_MAX, U8, Dim, KnownValue, Shape, differ
from bridge.operators import Builder, Node, Result, Value, legalizes, ranked, reads, required
from bridge.operators.guarding import SafeInputs, Unsafe, guards, with_at_least
from bridge.operators.indexing.slice import element_of


@reads("Pad", format="onnx", until=10)
def read_pad_2(b: Builder, node: Node) -> Value:
    """Pad-1 and Pad-2 have only attributes."""
    x = node.operand(0)
    pads = node.attributes.get("pads") or node.attributes["paddings"]
    value = b.constant(np.float32(node.attributes.get("value", 0.0)))
    mode = node.attributes.get("mode", "constant")
    return b.op(
        "Pad", x, b.constant(list(pads)), b.cast(value, x.element or value.element), mode=mode
    )


@legalizes("Pad", target="ir")
def pad_for_ir(b: Builder, node: Node) -> Value:
    """Pad (1 to 25) as Pad-12. The pads become two halves for all axes. The mode "wrap" becomes a
    Gather after the crop by negative pads, as in onnxruntime."""
    (x, pads), value = required(node, 0, 1), node.input(2)
    pads = _for_all_axes(b, x, pads, node.input(3))
    mode = node.attributes["mode"]
    if mode == "wrap":
        return _repeated(b, x, pads)
    begin, end = _halves(b, pads)
    if mode != "constant" or value is None:
        return b.op("ir::Pad", x, begin, end, pad_mode=mode)
    value = b.scalar(value)
    if x.element is BOOL:
        bytes_, value = b.cast(x, U8), b.cast(value, U8)
        return b.cast(b.op("ir::Pad", bytes_, begin, end, value, pad_mode=mode), BOOL)
    return b.op("ir::Pad", x, begin, end, value, pad_mode=mode)


def _repeated(b: Builder, x: Value, pads: Value) -> Value:
    """Crops `x` by negative pads, then wraps around the rest."""
    rank = b.known(x.rank, "the rank of its input")
    begin, end = _halves(b, pads)
    known = known_of(pads).ints
    if known is None or min(known, default=0) < 0:
        first = b.max(-begin, 0)
        x = b.op("Slice", x, first, b.op("Shape", x) + b.min(end, 0), list(range(rank)))
        begin, end = b.max(begin, 0), b.max(end, 0)
    return _by_index(b, x, rank, begin, end, lambda b, places, count: places % count)


def _halves(b: Builder, pads: Value) -> tuple[Value, Value]:
    known = known_of(pads).ints
    if known is not None:
        half = len(known) // 2
        return b.constant(list(known[:half])), b.constant(list(known[half:]))
    begin, end = b.ops("Split", 2, pads, axis=0)
    return begin, end


def _for_all_axes(b: Builder, x: Value, pads: Value, axes: Value | None) -> Value:
    """Pads of some axes as pads of all axes, with zero for the others."""
    if axes is None:
        return pads
    rank = b.known(x.rank, "the rank of its input")
    ahead = b.constant([rank])
    front = b.as_i64(axes) % ahead
    places = b.concat(0, front, front + ahead)
    zeros = b.constant([0] * (2 * rank))
    return b.op("ScatterElements", zeros, places, b.as_i64(pads), 0)


@legalizes("Pad", target="onnx")
def older_pad(b: Builder, node: Node) -> Value | None:
    """Pad for older operator sets. ONNX's Pad has the mode "wrap" since operator set 19, and axes
    since 18."""
    (x, given), value = required(node, 0, 1), node.input(2)
    wraps = node.attributes["mode"] == "wrap" and b.opset < 19
    if b.opset >= 18 and not wraps:
        return None
    pads = _for_all_axes(b, x, given, node.input(3))
    if wraps:
        return _repeated(b, x, pads)
    return None if pads is given else b.op("Pad", x, pads, value, **node.attributes)


@legalizes("ir::Pad", target="onnx")
def ir_pad_for_onnx(b: Builder, node: Node) -> Value:
    """Pad-1 and Pad-12 as Pad. The two halves are concatenated, and "symmetric", which ONNX lacks,
    becomes a Gather."""
    (x, begin, end), value = required(node, 0, 1, 2), node.input(3)
    mode = node.attributes["pad_mode"]
    if mode == "symmetric":
        return _by_index(b, *ranked(node), begin, end, _mirrored)
    front, back = known_of(begin).array, known_of(end).array
    if front is not None and back is not None:
        if mode != "constant" and (front < 0).any() | (back < 0).any():
            # In ONNX, only the constant mode crops by negative pads before it pads.
            x, front, back = _cropped(b, x, front, back)
        pads = b.constant(np.concatenate([front, back]).astype(np.int64))
    else:
        pads = b.concat(0, b.as_i64(begin), b.as_i64(end))
    if mode != "constant" or value is None:
        return b.op("Pad", x, pads, mode=mode)
    value = b.scalar(value)
    return b.op("Pad", x, pads, b.cast(value, x.element or value.element))


def _cropped(
    b: Builder, x: Value, begin: np.ndarray, end: np.ndarray
) -> tuple[Value, np.ndarray, np.ndarray]:
    starts = np.maximum(-begin, 0)
    ends = np.where(end < 0, end, I64_MAX)
    axes = b.constant(np.arange(len(begin)))
    x = b.op("Slice", x, starts.astype(np.int64), ends, axes)
    return x, np.maximum(begin, 0), np.maximum(end, 0)


def _by_index(
    b: Builder,
    given: Value,
    rank: int,
    begin: Value,
    end: Value,
    place: Callable[[Builder, Value, Value], Value],
) -> Value:
    """Pads axis by axis with a Gather of the elements at the places from `place`."""
    x = given
    known = [known_of(begin).ints, known_of(end).ints]
    for axis in range(rank):
        if known[0] is not None and known[1] is not None and not (known[0][axis] or known[1][axis]):
            continue
        count = b.size(x, axis)
        at, first = b.constant(axis), b.constant(0)
        start = -b.op("Gather", b.as_i64(begin), at, first)
        stop = count + b.op("Gather", b.as_i64(end), at, first)
        places = b.op("Range", start, stop, 1)
        x = b.op("Gather", x, place(b, places, count), at)
    return x if x is not given else b.op("Identity", x)


def _mirrored(b: Builder, places: Value, count: Value) -> Value:
    """… 1 0 | 0 1 2 … n-1 | n-1 n-2 …"""
    period = count * 2
    places %= period
    return b.min(places, period - 1 - places)


def padded(
    dims: tuple[Dim, ...], begin: KnownValue | None, end: KnownValue | None, axes: Sequence[int]
) -> Shape:
    """A shape after the addition of pads to `axes`."""
    for index, axis in enumerate(axes):
        front, back = element_of(begin, index), element_of(end, index)
        if front is None or back is None:
            dims = with_dim(dims, axis, ANY)
        elif front + back:
            dim = dims[axis]
            if front + back > 0:
                dims = with_dim(dims, axis, dim_sum((dim, front, back)))
            else:
                dims = with_dim(dims, axis, dim + front + back if isinstance(dim, int) else ANY)
    return dims


@infers_shape("Pad")
def shape_of_padded(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """Pad: what `pads` says is added to `axes` at both ends."""
    rank = len(dims)
    axes = known_axes(node.input(3), rank) if node.input(3) is not None else range(rank)
    if axes is None:
        return unknown(rank)
    pads = known_of(node.inputs[1]).parts
    half = len(axes)
    begin, end = (None, None) if pads is None else (pads[:half], pads[half:])
    return padded(dims, begin, end, axes)


@infers_shape("ir::Pad")
def shape_of_ir_padded(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """ir::Pad: all axes with their pads at the start and at the end."""
    begin, end = known_of(node.inputs[1]).parts, known_of(node.inputs[2]).parts
    return padded(dims, begin, end, range(len(dims)))


def pads_for_axes(node: Node) -> must.Constraints:
    """Pad: two pads for each axis, or for each named axis. No axis gets a size below 0."""
    x, pads, _, axes = must.operands(node, 4)
    if axes.value is None and (length := known_of(pads.value).length) is not None:
        yield must.Rank(x, length // 2)
    if x.shape is None or not pads.shape or (axes.value is not None and not axes.shape):
        return
    count = axes[0] if axes.shape else len(x.shape)
    if isinstance(count, int) and differ(pads[0], 2 * count):
        yield f"it has {pads[0]} pads for {count} axes of {x}"
        return
    known, named = known_of(pads.value).ints, known_of(axes.value).ints
    if known is None or (axes.shape and named is None):
        return
    if named and not x.shape:
        yield f"{x} has no axis {named[0]}"
        return
    places = [axis % len(x.shape) for axis in named] if named else range(len(x.shape))
    for place, begin, end in zip(places, known, known[len(known) // 2 :], strict=False):
        size = x[place]
        if isinstance(size, int) and size + begin + end < 0:
            yield f"axis {place} of {x} is padded by {begin} and {end}"


def pads_at_ends(node: Node) -> must.Constraints:
    """Pad-1 and Pad-12 of IR: two vectors of pads, one for each axis."""
    x, *ends = must.operands(node, 3)
    for index, pads in enumerate(ends, start=1):
        if x.rank is not None and differ(pads[0], x.rank):
            yield f"its input {index} is {pads}, for {x.rank} axes"


@legalizes("CenterCropPad", target="ir")
def center_crop_pad(b: Builder, node: Node) -> Result:
    """CenterCropPad-18 with a shape of i32. The standard's function takes i64 alone."""
    x, shape = required(node, 0, 1)
    if shape.element == I64:
        return None
    return b.op("CenterCropPad", x, b.as_i64(shape), **node.attributes)


must.hold("CenterCropPad", must.axis_attribute("axes"))
must.hold("Pad", must.axes_in(3), pads_for_axes)
must.hold("ir::Pad", must.has_rank(1, 1, of=1), must.has_rank(1, 1, of=2), pads_at_ends)


@guards("Pad", "ir::Pad")
def _pad(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Pad, IR's too. A constant fill allows all widths from 0 on. For other modes the data gets as
    many elements as the mode repeats."""
    of_ir = node.op == "ir::Pad"
    data, pads, *others = node.inputs
    ends = others[0] if of_ir else pads
    mode = node.attributes["pad_mode" if of_ir else "mode"]
    if data is None or not all(each is not None and is_not_negative(each) for each in (pads, ends)):
        raise Unsafe("there may be too few elements to cut away")
    if mode == "constant":
        return None
    rank = data.rank or 0
    axes = known_axes(others[1], rank) if len(others) > 1 and not of_ir else tuple(range(rank))
    known, behind = known_of(pads).ints, known_of(ends).ints
    if known is None or behind is None or not axes or data.shape is None:
        raise Unsafe("there may be too few elements to repeat")
    both = zip(known, behind[-len(axes) :], strict=False)
    least = {
        axis: max(pair) + (mode == "reflect")
        for axis, pair in zip(axes, both, strict=True)
        if any(pair)
    }
    return [with_at_least(b, data, least, counts), pads, *others]
