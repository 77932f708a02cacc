"""Guards for operators that may fail in a branch that is not taken.

There, a Where on the condition replaces an operand by a value that cannot fail: an index 0, a
divisor 1. A Loop runs no iteration. A node without such a value is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.constraints import contradiction, equal_sizes, sizes_that_suit
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import as_dim, is_at_least_zero, known_of
from bridge.neutral.ports import Sliced, Stacked
from bridge.neutral.signs import is_not_negative
from bridge.neutral.types import ANY, BOOL, I8, U8, Dim
from bridge.operators.nn.shapes import full_attributes
from bridge.passes.select.pick import pick
from bridge.passes.select.sizes import fits, go_together, is_surely_filled
from bridge.vocabulary import has_trait, operator

SIZE_FREE = frozenset({"activation", "elementwise", "matmul", "reduction"})
"""Families of operators that take any sizes, as long as these go together."""

SIZED = frozenset({"image", "nn", "quantization", "recurrent", "signal", "spatial"})
"""Families of operators that fail for some sizes, and for no elements: their sizes are known, but
for the batch."""

ANY_ELEMENTS = frozenset(
    {
        "Bucketize", "Concat", "ConstantOfShape", "EyeLike", "Flatten", "Identity", "NonZero",
        "OneHot", "Reverse", "Shape", "Size", "Slice", "Split", "Squeeze", "Transpose",
        "Trilu", "Unique", "Unsqueeze", "VariadicSplit", "ir::Split",
    }
)  # fmt: skip
"""Operators on shapes and places that fail for no elements, if the inputs that shape their outputs
are known."""


class Unsafe(Exception):
    """Raised for a node that may fail in a branch that does not count, and cannot be made safe."""


Guard = Callable[[Builder, Node, Value], Sequence[Value | None] | None]
"""Gives the inputs of a node that make it safe if the value, a condition, is false; None if it is
safe without."""


def guarded(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """The inputs that make a node safe if its branch is not taken; None if it is safe without.
    Raises Unsafe."""
    if node.op == "Constant":
        return None
    guard = GUARDS.get(node.op)
    if guard is not None:
        return guard(b, node, counts)
    _require_known(node)
    if has_trait(node.op, "broadcasts"):
        return _together(b, node, counts)
    _require_sizes(node)
    return None


def _require_known(node: Node) -> None:
    """Raises Unsafe for a node if data may decide whether it fails."""
    row = operator(node.op)
    if row is None or row.family == "random":
        raise Unsafe("it draws numbers" if row else "it is not known when it fails")
    if row.family not in SIZE_FREE | SIZED and node.op not in ANY_ELEMENTS:
        raise Unsafe("it may fail, or has an effect")
    why = contradiction(node)
    if why:
        raise Unsafe(f"it fails when it runs: {why}")
    if any(v is not None and v.rank is None for v in node.inputs) and not _any_rank(node):
        raise Unsafe("the rank of its input is not known")
    for place, value in enumerate(node.inputs[1:], start=1):
        known = known_of(value).parts
        if value is None or row.family in ("elementwise", "matmul") or node.op == "Concat":
            continue
        if place in row.shaped_by and (known is None or None in known):
            raise Unsafe("data decide the shape of its output")
        if known is None and (value.element is None or value.element.is_integer):
            raise Unsafe("data decide its integers, and some may not be allowed")


def _family(node: Node) -> str:
    row = operator(node.op)
    return "" if row is None else row.family


def _any_rank(node: Node) -> bool:
    row = operator(node.op)
    reduces_all = row is not None and row.family == "reduction" and len(node.inputs) == 1
    return (
        reduces_all or has_trait(node.op, "by_element") or node.op in ("Identity", "Shape", "Size")
    )


def _require_sizes(node: Node) -> None:
    """Raises Unsafe if sizes may not fit each other."""
    is_sized = _family(node) in SIZED
    pairs = [*equal_sizes(node), *sizes_that_suit(node)]
    if not all(map(_is_one, pairs)):
        raise Unsafe("sizes may not go together there")
    if node.op in ("ArgMax", "ArgMin") and not is_surely_filled([_at(node, 0, "axis")]):
        raise Unsafe("there may be no elements to choose from")
    if node.op in ("Split", "TopK", "VariadicSplit", "ir::Split") or is_sized:
        for index, value in enumerate(node.inputs):
            dims = () if value is None or value.shape is None else value.shape
            if not all(isinstance(dim, int) for dim in dims[index == 0 and is_sized :]):
                raise Unsafe("it fails for some values of its open sizes")
    if node.op == "TopK" and (known_of(node.inputs[1]).ints or (_FAR,))[0] > _at(node, 0, "axis"):
        raise Unsafe("there may be fewer elements than it wants")


_FAR = 1 << 62


def _at(node: Node, index: int, name: str) -> int:
    """The size of the axis that an attribute names; 0 if it is open."""
    value = node.inputs[index]
    dims: Sequence[Dim] = () if value is None or value.shape is None else value.shape
    axis = node.attributes[name]
    known = dims[axis] if -len(dims) <= axis < len(dims) else 0
    return known if isinstance(known, int) else 0


def _where(b: Builder, counts: Value, value: Value, otherwise: int) -> Value:
    """A value if the branch is taken, else a number."""
    return pick(b, counts, value, b.like(otherwise, value))


# Guards -------------------------------------------------------------------------------------------


def _divisor(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Div, Mod: integers are divided by 1."""
    together = _together(b, node, counts)
    one, other = node.inputs if together is None else together
    assert one is not None and other is not None
    if one.element is None:
        raise Unsafe("its element type is not known")
    known = known_of(other).array
    if not one.element.is_integer or (known is not None and known.all()):
        return together
    return [one, _where(b, counts, other, 1)]


def _gather(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Gather: the first element is taken, of data that have one."""
    data, indices, axes = node.inputs
    axis = known_of(axes).ints
    if data is None or indices is None or axis is None or data.shape is None:
        raise Unsafe("its axis, or the rank of its input, is not known")
    if node.attributes["batch_dims"]:
        raise Unsafe("it takes batch by batch")
    made = _index(b, data, indices, axis[0] % len(data.shape), counts)
    return None if made is None else [*made, axes]


def _gather_elements(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """GatherElements: the first element is taken, of data that have one."""
    data, indices = node.inputs
    if data is None or indices is None or data.shape is None or indices.shape is None:
        raise Unsafe("the rank of its input is not known")
    axis = node.attributes["axis"] % len(data.shape)
    pairs = zip(data.shape, indices.shape, strict=False)
    if any(a != b and place != axis for place, (a, b) in enumerate(pairs)):
        raise Unsafe("sizes may not go together there")
    return _index(b, data, indices, axis, counts)


def _index(
    b: Builder, data: Value, indices: Value, axis: int, counts: Value
) -> Sequence[Value] | None:
    """Data and indices along an axis, such that these are in range."""
    size, known = data.dims[axis], known_of(indices).ints
    if isinstance(size, int) and known is not None and all(-size <= i < size for i in known):
        return None
    if not is_surely_filled((size,)):
        if data.element is None:
            raise Unsafe("its element type is not known")
        rank = len(data.dims)
        more = _where(b, counts, b.constant([0]), 1)
        row = [*data.dims[:axis], 1, *data.dims[axis + 1 :]]
        if all(isinstance(dim, int) for dim in row):
            # OpenVINO does not know the size of a Pad by a computed width.
            zeros = b.filled(known_of(_filler(b, data)).array, row, data.element)
            data = b.concat(axis, data, b.op("Slice", zeros, [0], more, [axis]))
        else:
            pads = [b.constant([0] * (rank + axis)), more, b.constant([0] * (rank - axis - 1))]
            data = b.op("Pad", data, b.concat(0, *pads), _filler(b, data), mode="constant")
    return [data, _where(b, counts, indices, 0)]


def _places(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """GatherND, ScatterND, ScatterElements: the first place, of data that have one."""
    data, indices, *others = node.inputs
    shapes = [value.shape for value in node.inputs if value is not None]
    if data is None or indices is None or None in shapes or not is_surely_filled(data.dims):
        raise Unsafe("there may be no element to take or to replace")
    if contradiction(node) or not all(isinstance(d, int) for s in shapes for d in s or ()):
        raise Unsafe("sizes may not go together there")
    return [data, _where(b, counts, indices, 0), *others]


def _range(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Range: it is empty, in steps of 1."""
    start, limit, step = node.inputs
    assert start is not None and limit is not None and step is not None
    known = [known_of(value).parts for value in node.inputs]
    if all(each is not None and None not in each for each in known) and known_of(step).ints != (0,):
        return None
    return [start, pick(b, counts, limit, start), _where(b, counts, step, 1)]


def _reshape(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Reshape: as many elements as the shape has."""
    data, target = node.inputs[:2]
    assert data is not None and target is not None
    known = known_of(target).parts
    copies = not node.attributes["allowzero"]
    shape = data.shape
    if known == (-1,):
        return None
    if shape is not None and known is not None and fits(shape, known, copies):
        if not copies or not _copies_another(shape, known):
            return None
        if -1 in known:
            raise Unsafe("a size of its output may be 0, and another one is inferred")
        # In the shape that it has by then, each 0 copies a 0.
        return [b.op("Reshape", data, target, allowzero=True), target]
    if known is not None and known.count(-1) == 1:
        others = [dim for dim in known if dim != -1]
        if not all(map(_is_filled, others)) or data.element is None:
            raise Unsafe("its input may not fit the shape of its output")
        each = math.prod(dim for dim in others if isinstance(dim, int))
        return None if each == 1 else [_in_rows(b, data, each), target]
    rank = target.shape[0] if target.shape is not None and len(target.shape) == 1 else None
    if data.element is None or not isinstance(rank, int):
        raise Unsafe("data decide the rank of its output")
    sizes = known or (None,) * rank
    if None in sizes and all(size is None or _is_filled(size) for size in sizes):
        # A size of the output that is not known may get any value.
        each = math.prod(size for size in sizes if isinstance(size, int))
        spare = [size if isinstance(size, int) else 1 for size in sizes]
        spare[sizes.index(None)] = -1
        safe = b.where(counts, b.as_i64(target), spare)
        return [data if each == 1 else _in_rows(b, data, each), safe]
    if known is None or any(dim in (None, 0, -1) for dim in known):
        raise Unsafe("its input may not fit the shape of its output")
    return [_of_size(b, data, _product(b, target)), target]


def _copies_another(shape: Sequence[Dim], wanted: Sequence[object]) -> bool:
    """Whether a size that turns out to be 0 stands for one that the data has not there."""
    return any(
        isinstance(size, str) and (place >= len(shape) or shape[place] != size)
        for place, size in enumerate(wanted)
    )


def _is_filled(size: object) -> bool:
    return isinstance(size, int) and size > 0


def _in_rows(b: Builder, data: Value, each: int) -> Value:
    """The elements of data in a row, and zeros behind them up to a multiple of `each`. Data of such
    a length stays the same."""
    size = b.op("Shape", b.op("Reshape", data, [-1]))
    return _of_size(b, data, (size + b.constant([each - 1])) / [each] * [each])


def _product(b: Builder, vector: Value) -> Value:
    return b.op("ReduceProd", b.as_i64(vector), [0], keepdims=True)


def _of_size(b: Builder, data: Value, size: Value) -> Value:
    """`size` elements of data in a row; missing ones are 0. Data with so many elements stays the
    same."""
    row = b.op("Reshape", data, [-1])
    missing = b.max(size - b.op("Shape", row), [0])
    pads = b.concat(0, b.constant([0]), missing)
    longer = b.op("Pad", row, pads, _filler(b, data), mode="constant")
    return b.op("Slice", longer, *(b.constant([0]), size, b.constant([0]), b.constant([1])))


def _computed_shape(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """ConstantOfShape, Tile: an empty output, if data decide its size."""
    place = 0 if node.op == "ConstantOfShape" else 1
    shape = node.inputs[place]
    known = known_of(shape).parts
    if known is not None and all(map(is_at_least_zero, known)):
        return None
    assert shape is not None
    inputs = list(node.inputs)
    inputs[place] = _where(b, counts, shape, 0)
    return inputs


def _expand(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Expand: its shapes go together."""
    data, target = node.inputs[:2]
    known = known_of(target).parts
    if data is None or known is None or None in known:
        raise Unsafe("data decide the shape of its output")
    if not go_together([data.shape, tuple(map(as_dim, known))]):
        raise Unsafe("sizes may not go together there")
    return None


def _compress(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Compress: there is no condition without an element."""
    data, condition = node.inputs
    axis = node.attributes.get("axis")
    if data is None or condition is None or not data.shape or not condition.shape:
        raise Unsafe("the rank of its input is not known")
    if axis is None and len(data.shape) > 1:
        raise Unsafe("it may ask for elements that do not exist")
    if data.shape[axis or 0] != condition.shape[0]:
        raise Unsafe("it may ask for elements that do not exist")
    return None


def _slice(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Slice: it is safe for any places, if axes and steps are known."""
    if node.inputs[0] is None or node.inputs[0].rank is None:
        raise Unsafe("the rank of its input is not known")
    for value in node.inputs[3:]:
        if value is not None and (known_of(value).ints is None or 0 in _steps(node, value)):
            raise Unsafe("data decide its axes or steps")
    return None


def _pad(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
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
    return [_with_at_least(b, data, least, counts), pads, *others]


def _with_at_least(b: Builder, data: Value, least: Mapping[int, int], counts: Value) -> Value:
    """Data with zeros behind them, up to the least sizes of the axes, if the branch is not
    taken."""
    if data.shape is None or data.element is None:
        raise Unsafe("the rank or the element type of its input is not known")
    if any(isinstance(data.dims[axis], int) and data.dims[axis] < size  # type: ignore[operator]
           for axis, size in least.items()):  # fmt: skip
        raise Unsafe("there are too few elements")
    open = {axis: size for axis, size in least.items() if not isinstance(data.dims[axis], int)}
    if not open:
        return data
    none = b.constant([0] * len(open))
    short = b.constant(list(open.values())) - b.sizes(data, *open)
    more = b.where(counts, none, b.max(short, none))
    zeros = b.constant([0] * len(data.dims))
    ends = b.op("ScatterElements", zeros, list(open), more, 0)
    return b.op("Pad", data, b.concat(0, zeros, ends), _filler(b, data), mode="constant")


def _resized(b: Builder, value: Value, axis: int, size: Value, counts: Value) -> Value:
    """A value with another size along an axis if the branch is not taken: cut, or with zeros behind
    it."""
    own = b.sizes(value, axis)
    wanted = b.where(counts, own, size)
    zeros = b.constant([0] * len(value.dims))
    ends = b.op("ScatterElements", zeros, [axis], b.max(wanted - own, [0]), 0)
    longer = b.op("Pad", value, b.concat(0, zeros, ends), _filler(b, value), mode="constant")
    return b.op("Slice", longer, [0], wanted, [axis])


def _squeeze(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Squeeze: the axes that it removes have one element."""
    data, axes = node.inputs[0], node.input(1)
    known = None if data is None else known_axes(axes, data.rank or 0)
    if data is None or data.shape is None or data.element is None or known is None:
        raise Unsafe("data decide the rank of its output")
    if any(isinstance(data.dims[axis], int) and data.dims[axis] != 1 for axis in known):
        raise Unsafe("an axis that it removes has another size than 1")
    others = [axis for axis in known if data.dims[axis] != 1]
    for axis in others:
        data = _resized(b, data, axis, b.constant([1]), counts)
    return [data, *node.inputs[1:]] if others else None


@dataclass(frozen=True)
class _Recurrent:
    """The axis of the batch of each input of a recurrent layer that has one, by place. `steps` is
    the first input's axis of steps, if it has steps; `lengths` is the place of their numbers."""

    batch: Mapping[int, int]
    steps: int | None = None
    lengths: int | None = None


_LAYOUTS = {
    "GRU": _Recurrent({0: 1, 5: 1}, 0, 4),
    "GRUCell": _Recurrent({0: 0, 1: 0}),
    "GRUSequence": _Recurrent({0: 0, 1: 0}, 1, 2),
    "LSTM": _Recurrent({0: 1, 5: 1, 6: 1}, 0, 4),
    "LSTMCell": _Recurrent({0: 0, 1: 0, 2: 0}),
    "LSTMSequence": _Recurrent({0: 0, 1: 0, 2: 0}, 1, 3),
    "RNN": _Recurrent({0: 1, 5: 1}, 0, 4),
    "RNNCell": _Recurrent({0: 0, 1: 0}),
    "RNNSequence": _Recurrent({0: 0, 1: 0}, 1, 2),
}
"""The recurrent layers of ONNX and of IR."""


def _recurrent(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Recurrent layers: there are a step and a batch, and states and lengths are as many."""
    layout, inputs = _LAYOUTS[node.op], list(node.inputs)
    open = {(0, layout.steps), *layout.batch.items(), (layout.lengths, 0)}
    for place, value in enumerate(inputs):
        dims = enumerate(() if value is None else value.shape or (ANY,))
        if not all(isinstance(dim, int) or (place, axis) in open for axis, dim in dims):
            raise Unsafe("it fails for some values of its open sizes")
    x, lengths = inputs[0], node.input(layout.lengths or 0)
    if x is None or node.attributes.get("layout"):
        raise Unsafe("it fails for some values of its open sizes")
    axes = {layout.batch[0]: 1} | ({} if layout.steps is None else {layout.steps: 1})
    inputs[0] = x = _with_at_least(b, x, axes, counts)
    batch = b.sizes(x, layout.batch[0])
    for place, axis in layout.batch.items():
        value = node.input(place)
        if place and value is not None:
            inputs[place] = _resized(b, value, axis, batch, counts)
    if layout.lengths is not None and lengths is not None:
        inputs[layout.lengths] = _where(b, counts, _resized(b, lengths, 0, batch, counts), 1)
    return inputs


def _filler(b: Builder, data: Value) -> Value:
    """The zero that data are padded with. Raises Unsafe for types that Pad does not take."""
    element = data.element
    if element is None or (element.bits < 16 and element not in (BOOL, I8, U8)):
        raise Unsafe(f"the element type {element} cannot be padded")
    return b.like(0, data)


def _window(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """A window that moves over axes of open sizes: it fits once."""
    data, *others = node.inputs
    assert data is not None
    filters = others[0].shape if others and others[0] is not None else None
    kernel = node.attributes.get("kernel_shape") or (filters and filters[2:])
    if data.shape is None or not kernel or len(kernel) != len(data.shape) - 2:
        raise Unsafe("the rank of its input is not known")
    sizes = [data.shape[1], *kernel, *(d for v in others if v for d in v.shape or (ANY,))]
    if contradiction(node) or not all(isinstance(size, int) for size in sizes):
        raise Unsafe("it fails for some values of its open sizes")
    full = full_attributes(node.attributes, len(kernel))
    least = {}
    for place, size in enumerate(kernel):
        assert isinstance(size, int)
        reach = (size - 1) * full["dilations"][place] + 1
        reach -= full["pads"][place] + full["pads"][place + len(kernel)]
        least[2 + place] = 1 if full["auto_pad"].startswith("SAME") else max(reach, 1)
    return [_with_at_least(b, data, least, counts), *others]


def _together(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Operands that are broadcast. If the branch is not taken, an axis whose open sizes do not fit
    is cut to size 0."""
    shapes = [value.shape for value in node.inputs if value is not None]
    if go_together(shapes):
        return None
    if None in shapes:
        raise Unsafe("the rank of its input is not known")
    inputs = list(node.inputs)
    most = max(len(shape) for shape in shapes if shape is not None)
    for place in range(1, most + 1):
        dims = [s[-place] for s in shapes if s is not None and len(s) >= place]
        if go_together([(dim,) for dim in dims]):
            continue
        if all(isinstance(dim, int) for dim in dims):
            raise Unsafe("its sizes do not go together")
        mine = [i for i, v in enumerate(inputs) if v is not None and len(v.dims) >= place
                and v.dims[-place] != 1]  # fmt: skip
        cut = _cut_where_apart(b, [inputs[i] for i in mine], place, counts)
        inputs = [cut[mine.index(i)] if i in mine else value for i, value in enumerate(inputs)]
    return inputs


def _cut_where_apart(
    b: Builder, values: Sequence[Value | None], place: int, counts: Value
) -> list[Value]:
    """Empty values if the branch is not taken and their sizes of an axis, counted from the end, do
    not fit: they are neither equal nor 1."""
    given = [value for value in values if value is not None]
    sizes = [b.sizes(value, len(value.dims) - place) for value in given]
    largest = b.op("Max", *sizes)
    one = b.constant([1])
    go: Value | None = None
    for size in sizes:
        fits = size.equal(largest) | size.equal(one)
        go = fits if go is None else go & fits
    assert go is not None
    kept = go | counts
    ends = [b.where(kept, size, [0]) for size in sizes]
    axes = [b.constant([len(value.dims) - place]) for value in given]
    start = b.constant([0])
    return [
        b.op("Slice", value, start, end, axis)
        for value, end, axis in zip(given, ends, axes, strict=True)
    ]


def _steps(node: Node, value: Value) -> Sequence[int]:
    return (known_of(value).ints or ()) if value is node.input(4) else ()


def runs_in_full(node: Node) -> bool:
    """Whether a Loop runs all its iterations even if its branch is not taken. Data must not decide
    the number, and its stacks keep their sizes. Raises Unsafe."""
    sliced = [port for port in node.body.inputs if isinstance(port, Sliced)]
    counted = node.inputs[0] is not None and node.inputs[0].constant is not None
    if sliced:
        shapes = [(node.inputs[port.input], port.axis) for port in sliced]
        sizes = {value.dims[axis] for value, axis in shapes if value is not None and value.shape}
        if len(sizes) != 1 or not all(isinstance(size, int | str) for size in sizes):
            raise Unsafe("its sliced inputs may have several sizes")
        return True
    return counted and any(isinstance(port, Stacked) for port in node.body.outputs)


def _loop(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Loop: it runs no iteration. A constant trip count stays: some devices take no other."""
    trips, condition, *others = [*node.inputs, None, None][: max(len(node.inputs), 2)]
    if trips is not None and trips.constant is None:
        trips = _where(b, counts, trips, 0)
    else:
        condition = counts if condition is None else condition & counts
    return [trips, condition, *others]


def _suppression(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """NonMaxSuppression: known limits, and as many scores as boxes."""
    overlap, most = (known_of(node.input(place)).array for place in (3, 2))
    if node.input(2) is not None and (most is None or (most < 0).any()):
        raise Unsafe("data decide how many boxes it chooses")
    if node.input(3) is not None and (
        overlap is None or not ((overlap >= 0) & (overlap <= 1)).all()
    ):
        raise Unsafe("data decide how much boxes may overlap")
    if why := contradiction(node):
        raise Unsafe(f"it fails when it runs: {why}")
    if any(v is None or v.rank is None for v in node.inputs[:2]):
        raise Unsafe("the rank of its input is not known")
    if any(not _is_one(pair) for pair in equal_sizes(node)):
        raise Unsafe("sizes may not go together there")
    return None


def _is_one(sizes: tuple[Dim, Dim]) -> bool:
    """Whether two sizes are equal and known, by number or name."""
    return sizes[0] == sizes[1] and isinstance(sizes[0], int | str)


def _if(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    raise Unsafe("it stays an If")


GUARDS: Mapping[str, Guard] = {
    "Compress": _compress,
    "ConstantOfShape": _computed_shape,
    "Div": _divisor,
    "Expand": _expand,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _places,
    "If": _if,
    "Loop": _loop,
    "Mod": _divisor,
    "NonMaxSuppression": _suppression,
    "ir::NonMaxSuppression": _suppression,
    "Pad": _pad,
    "ir::Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "ScatterElements": _places,
    "ScatterND": _places,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Tile": _computed_shape,
    **dict.fromkeys(
        ("AveragePool", "AvgPool", "Conv", "ConvInteger", "LpPool", "MaxPool"), _window
    ),
    **dict.fromkeys(_LAYOUTS, _recurrent),
}
"""The guards of operators that fail for some elements."""
