"""Operands that an engine wants to know when it compiles a model."""

from collections.abc import Iterator

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BOOL, I64, I64_MAX, U8, is_static, size_of
from bridge.operators import Refused, Result
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.opaque import hides, is_zero, opaque
from bridge.quirks.quirk import BOTH, GPU, Place, nearest, quirk


@quirk(
    "Tile",
    symptom="A Tile with computed repeats gives unset memory.",
    cost="two Reshapes and a Broadcast, and the arithmetic of their shapes",
)
def tile_of_computed_repeats(b: Builder, node: Node, place: Place) -> Result:
    """An axis of size 1 in front of each axis is broadcast to the number of repeats. Both axes
    together are the repeated axis.
    """
    x, repeats = node.inputs
    assert x is not None and repeats is not None
    if known_of(repeats).ints is not None or x.rank is None or x.rank == 0:
        return None
    repeats = b.as_i64(repeats)
    dims = b.op("Shape", x)
    ones = b.constant([1] * x.rank)
    pairs = (
        b.op("Concat", *(b.unsqueeze(v, 1) for v in two), axis=1)
        for two in ((ones, dims), (repeats, dims))
    )
    before, after = (b.op("Reshape", pair, [-1]) for pair in pairs)
    spread = b.op("Expand", b.op("Reshape", x, before, allowzero=True), after)
    return b.op("Reshape", spread, dims * repeats, allowzero=True)


@tile_of_computed_repeats.guesses("Reshape")
def _tiles(b: Builder, node: Node) -> Iterator[Value]:
    """The Tile by the factors of the sizes."""
    sizes = nearest(node.input(1), "Mul")
    spread = nearest(node.inputs[0], "Expand")
    pairs = nearest(spread.inputs[0], "Reshape") if spread is not None else None
    if sizes is not None and pairs is not None:
        yield b.op("Tile", pairs.inputs[0], sizes.inputs[1])


@quirk(
    "ir::Pad",
    after=("reduction_over_empty_axis",),
    recorded=True,
    engines=BOTH,
    symptom="On the CPU plugin, a Pad with a computed value pads with 0. Both plugins keep a known "
    "value as f32: 16777217 becomes 16777216, and the largest i32 the least.",
    cost="another Pad, a Broadcast, a Convert and a Select",
)
def value_of_pad(b: Builder, node: Node, place: Place) -> Result:
    """A tensor of ones is padded with 0 in the same way. Each 0 in it marks padding, which takes
    the value.
    """
    x, begin, end, value = (node.input(i) for i in range(4))
    mode = node.attributes["pad_mode"]
    if mode != "constant" or value is None:
        return None
    known = known_of(value).ints
    is_known = known_of(value).array is not None
    if is_known if known is None else all(int(np.float32(n)) == n for n in known):
        return None
    if not is_known and place.engine == GPU:
        return None
    inside = b.op("Expand", b.constant(1, U8), b.op("Shape", x))
    inside = b.op("ir::Pad", inside, begin, end, pad_mode=mode)
    padded = b.op("ir::Pad", x, begin, end, pad_mode=mode)
    return b.where(b.cast(inside, BOOL), padded, value)


OF_NUMBERS = {"ReduceLogicalAnd": "ReduceMin", "ReduceLogicalOr": "ReduceMax"}


# OpenVINO does not infer the rank of the results, though it knows the number of axes. The CPU
# plugin does not run values of unknown rank.
@quirk(
    "Slice",
    "Unsqueeze",
    *OF_NUMBERS,
    recorded=True,
    engines=BOTH,
    model="test_unsqueeze_two_axes",
    symptom="A Slice of a tensor of known shape with computed axes crashes. On the GPU plugin, "
    "negative axes give wrong numbers. A logical reduction along computed axes does not compile, "
    "and Unsqueeze with computed axes has a result of unknown rank.",
    cost="a ScatterElementsUpdate for each bound, or a Reshape and the arithmetic of its shape",
)
def computed_axes(b: Builder, node: Node, place: Place) -> Result:
    """An axis without bounds gets a slice from its start to its end with step 1, so it stays whole.
    Elsewhere, the elements keep their order, and the computed shape is the shape that the axes
    give. All truth values are true if the minimum of zeros and ones is 1, and some if the maximum
    is.
    """
    x, axes = node.input(0), node.input(3 if node.op == "Slice" else 1)
    if x is None or x.rank is None or axes is None or known_of(axes).array is not None:
        return None
    count = known_of(axes).length
    if node.op == "Slice":
        return _sliced(b, node, x, axes) if x.rank else None
    if node.op == "Unsqueeze":
        return None if count is None else _unsqueezed(b, x, axes, count)
    reduced = b.op(OF_NUMBERS[node.op], b.cast(x, U8), axes, **node.attributes)
    return b.cast(reduced, BOOL)


def _sliced(b: Builder, node: Node, x: Value, axes: Value) -> Value:
    """The Slice along all axes."""
    assert x.rank is not None
    places = b.as_i64(axes) % x.rank
    full = []
    for bound, whole in ((node.input(1), 0), (node.input(2), I64_MAX), (node.input(4), 1)):
        bounds = b.constant([whole] * x.rank)
        known = known_of(bound).array
        if bound is not None and not (known is not None and (known == whole).all()):
            bounds = b.op("ScatterElements", bounds, places, b.as_i64(bound), 0)
        full.append(bounds)
    return b.op("Slice", x, full[0], full[1], np.arange(x.rank), full[2])


def _unsqueezed(b: Builder, x: Value, axes: Value, count: int) -> Value:
    rank = len(x.dims)
    places = b.as_i64(axes) % (rank + count)
    same = b.op("Equal", np.arange(rank + count)[:, None], places)
    new = b.op("Cast", b.op("ReduceMax", b.cast(same, I64), [1], keepdims=False), to=BOOL)
    if rank == 0:
        return b.op("Reshape", x, [1] * count)
    # The number of kept axes of the input in front of each axis.
    own = b.min(b.op("CumSum", b.cast(~new, I64), 0, exclusive=True), rank - 1)
    dims = b.op("Gather", b.op("Shape", x), own, 0)
    return b.op("Reshape", x, b.where(new, 1, dims), allowzero=True)


@quirk(
    "ir::OneHot",
    recorded=True,
    engines=BOTH,
    until="2025.3",
    releases="2024.0 to 2025.3, GPU 2026.4",
    model="test_onehot_negative_indices",
    symptom="These releases lack OneHot-16, and do not read the file. For the GPU plugin, a model "
    "with OneHot does not compile if the depth or a value is no constant.",
    cost="a Range, an Equal and a Select for OneHot",
)
def computed_one_hot(b: Builder, node: Node, place: Place) -> Result:
    """OneHot has the one value where the index is the number of the place, and the other value
    elsewhere. An index below 0 may be the same as this index plus the depth.
    """
    indices, depth, on, off = node.operands
    rank, axis = indices.rank, node.attributes["axis"]
    counts_back = node.attributes["negative_indices_mode"] == "normalize"
    known = all(known_of(value).array is not None for value in (depth, on, off))
    if rank is None or (known if place.engine == GPU else not counts_back):
        return None
    if counts_back:
        indices = b.from_the_front(indices, depth)
    axis %= rank + 1
    zero, one = (b.cast(b.constant(number), indices.element) for number in (0, 1))
    places = b.op("Range", zero, b.cast(b.scalar(depth), indices.element), one)
    places = b.reshape(places, -1, *[1] * (rank - axis))
    return b.where(b.unsqueeze(indices, axis).equal(places), on, off)


@quirk(
    "PRelu",
    engines=(GPU,),
    symptom="PRelu with computed slopes multiplies by wrong slopes.",
    cost="a Less, a Multiply and a Select for PRelu; they stay on the way back to ONNX",
)
def computed_slope(b: Builder, node: Node, place: Place) -> Result:
    """This is PRelu's definition."""
    data, slope = node.inputs
    if data is None or slope is None or data.element is None or is_known(slope, place):
        return None
    return b.where(data < b.like(0, data), data * slope, data)


# The GPU plugin knows random numbers when it compiles a model.
@quirk(
    "VariadicSplit",
    after=("safe_loop",),
    engines=(GPU,),
    symptom="A VariadicSplit of a constant into one part, whose length is computed from a random "
    "number, gives elements behind the first ones, and what lies in memory behind the constant.",
    cost="a Range, a Gather, and a 0 from a Bucketize of a random number below 1/2",
)
def sizes_of_constant(b: Builder, node: Node, place: Place) -> Result:
    """A Gather of all parts, one after the other, is the tensor."""
    data, axis = node.inputs[0], known_of(node.inputs[1]).ints
    if data is None or axis is None or not hides(node, "sizes"):
        return None
    if not is_static(data.shape) or size_of(data.shape) == 1:
        return None  # Of one element, the plugin takes the right one.
    if not is_known(_gathered_of(data), place):
        return None
    if 0 in data.shape:
        raise Refused("the GPU plugin crashes on an empty constant of hidden size; use the CPU")
    count = opaque(b, b.constant(data.shape[axis[0]]), "number")
    places = b.op("Range", b.constant(0), count, b.constant(1))
    return b.op("Gather", data, places, b.constant(axis[0]))


def _gathered_of(value: Value) -> Value:
    """The value of which `gathered` takes all parts, along any axes."""
    while value.producer is not None and (before := _all_of(value.producer)) is not None:
        value = before
    return value


def _all_of(node: Node) -> Value | None:
    """The value of which a Gather takes all parts, one after the other."""
    made = node.inputs[1].producer if node.op == "Gather" and node.inputs[1] is not None else None
    data, axis = node.input(0), known_of(node.input(2)).ints
    if made is None or made.op != "Range" or data is None or data.shape is None or axis is None:
        return None
    first, count, step = made.inputs
    total = count.producer if count is not None else None
    if known_of(first).ints != (0,) or known_of(step).ints != (1,):
        return None
    if total is None or total.op != "Add" or total.inputs[1] is None:
        return None
    whole = known_of(total.inputs[0]).ints == (data.shape[axis[0]],)
    return data if whole and is_zero(total.inputs[1]) else None


@sizes_of_constant.undoes("Gather")
def _gathered_whole(b: Builder, node: Node, uses: Uses) -> Value | None:
    return _all_of(node)
