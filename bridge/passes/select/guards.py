"""What may fail in a branch that does not count is made safe there.

An operand gets a value that cannot fail where the branch does not count, by Where on the condition:
an index 0, a divisor 1. What cannot be made safe is refused. A Loop runs no iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bridge.neutral.builder import Builder, integers, values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.constraints import contradiction, equal_sizes, sizes_that_suit
from bridge.neutral.inference.dims import content_of, known_axes
from bridge.neutral.ports import Sliced
from bridge.neutral.signs import is_not_negative
from bridge.neutral.types import I64, Dim
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
        "Trilu", "Unique", "Unsqueeze",
    }
)  # fmt: skip
"""Operators on shapes and places that no element makes fail, if what shapes their outputs is
known."""


class Unsafe(Exception):
    """Raised for a node that may fail in a branch that does not count, and cannot be made safe."""


Guard = Callable[[Builder, Node, Value], Sequence[Value | None] | None]
"""Gives the inputs of a node that make it safe where the value, a condition, is false; None where
it is safe."""


def guarded(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """The inputs that make a node safe where its branch does not count; None where it is safe.
    Raises Unsafe."""
    if node.op == "Constant":
        return None
    guard = GUARDS.get(node.op)
    if guard is not None:
        return guard(b, node, counts)
    _require_known(node)
    _require_sizes(node)
    return None


def _require_known(node: Node) -> None:
    """Raises Unsafe for a node of which data may decide whether it fails."""
    row = operator(node.op)
    if row is None or row.family == "random":
        raise Unsafe("it draws numbers" if row else "nothing is known of when it fails")
    if row.family not in SIZE_FREE | SIZED and node.op not in ANY_ELEMENTS:
        raise Unsafe("it may fail, or has an effect")
    why = contradiction(node)
    if why:
        raise Unsafe(f"it fails where it runs: {why}")
    if any(v is not None and v.rank is None for v in node.inputs) and not _any_rank(node):
        raise Unsafe("the rank of what it takes is not known")
    for place, value in enumerate(node.inputs[1:], start=1):
        known = content_of(value)
        if value is None or row.family in ("elementwise", "matmul") or node.op == "Concat":
            continue
        if place in row.shaped_by and (known is None or None in known):
            raise Unsafe("data decide the shape of what it gives")
        if known is None and (value.element is None or value.element.is_integer):
            raise Unsafe("data decide its integers, some of which it may not take")


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
    """Raises Unsafe where sizes may not go together."""
    is_sized = _family(node) in SIZED
    if has_trait(node.op, "broadcasts"):
        if not go_together([value.shape for value in node.inputs if value is not None]):
            raise Unsafe("sizes may not go together there")
        return
    pairs = [*equal_sizes(node), *sizes_that_suit(node)]
    if any(one != other or not isinstance(one, int | str) for one, other in pairs):
        raise Unsafe("sizes may not go together there")
    if node.op in ("ArgMax", "ArgMin") and not is_surely_filled([_at(node, 0, "axis")]):
        raise Unsafe("there may be nothing to choose from")
    if node.op == "Squeeze" and not all(dim == 1 for dim in _squeezed(node)):
        raise Unsafe("an axis that it removes may have another size than 1")
    if node.op in ("Split", "TopK") or is_sized:
        for index, value in enumerate(node.inputs):
            dims = () if value is None or value.shape is None else value.shape
            if not all(isinstance(dim, int) for dim in dims[index == 0 and is_sized :]):
                raise Unsafe("sizes are open, with some of which it fails")
    if node.op == "TopK" and (integers(node.inputs[1]) or (_FAR,))[0] > _at(node, 0, "axis"):
        raise Unsafe("there may be fewer elements than it wants")


_FAR = 1 << 62


def _at(node: Node, index: int, name: str) -> int:
    """The size of the axis that an attribute names; 0 where it is open."""
    value = node.inputs[index]
    dims: Sequence[Dim] = () if value is None or value.shape is None else value.shape
    axis = node.attributes[name]
    known = dims[axis] if -len(dims) <= axis < len(dims) else 0
    return known if isinstance(known, int) else 0


def _squeezed(node: Node) -> Sequence[Dim]:
    """The sizes of the axes that a Squeeze removes."""
    data = node.inputs[0]
    assert data is not None
    axes = known_axes(node.input(1), len(data.dims))
    return (0,) if axes is None else [data.dims[axis] for axis in axes]


def _where(b: Builder, counts: Value, value: Value, otherwise: int) -> Value:
    """A value where the branch counts, and else a number."""
    return pick(b, counts, value, b.like(otherwise, value))


# Guards -------------------------------------------------------------------------------------------


def _divisor(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Div, Mod: integers are divided by 1."""
    if not go_together([value.shape for value in node.inputs if value is not None]):
        raise Unsafe("sizes may not go together there")
    one, other = node.inputs
    assert one is not None and other is not None
    if one.element is None:
        raise Unsafe("its element type is not known")
    known = values_of(other)
    if not one.element.is_integer or (known is not None and known.all()):
        return None
    return [one, _where(b, counts, other, 1)]


def _gather(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Gather: the first element is taken, of data that have one."""
    data, indices, axes = node.inputs
    axis = integers(axes)
    if data is None or indices is None or axis is None or data.shape is None:
        raise Unsafe("its axis, or the rank of what it takes, is not known")
    if node.attributes["batch_dims"]:
        raise Unsafe("it takes batch by batch")
    made = _index(b, data, indices, axis[0] % len(data.shape), counts)
    return None if made is None else [*made, axes]


def _gather_elements(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """GatherElements: the first element is taken, of data that have one."""
    data, indices = node.inputs
    if data is None or indices is None or data.shape is None or indices.shape is None:
        raise Unsafe("the rank of what it takes is not known")
    axis = node.attributes["axis"] % len(data.shape)
    pairs = zip(data.shape, indices.shape, strict=False)
    if any(a != b and place != axis for place, (a, b) in enumerate(pairs)):
        raise Unsafe("sizes may not go together there")
    return _index(b, data, indices, axis, counts)


def _index(
    b: Builder, data: Value, indices: Value, axis: int, counts: Value
) -> Sequence[Value] | None:
    """Data and indices along an axis, such that these are in range."""
    size, known = data.dims[axis], integers(indices)
    if isinstance(size, int) and known is not None and all(-size <= i < size for i in known):
        return None
    if not is_surely_filled((size,)):
        if data.element is None:
            raise Unsafe("its element type is not known")
        rank = len(data.dims)
        more = _where(b, counts, b.constant([0]), 1)
        pads = [b.constant([0] * (rank + axis)), more, b.constant([0] * (rank - axis - 1))]
        data = b.op("Pad", data, b.concat(0, *pads), b.like(0, data), mode="constant")
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
    known = [content_of(value) for value in node.inputs]
    if all(each is not None and None not in each for each in known) and integers(step) != (0,):
        return None
    return [start, pick(b, counts, limit, start), _where(b, counts, step, 1)]


def _reshape(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Reshape: as many elements as the shape has."""
    data, target = node.inputs[:2]
    assert data is not None and target is not None
    known = content_of(target)
    copies = not node.attributes["allowzero"]
    shape = data.shape
    if known == (-1,) or (shape is not None and known is not None and fits(shape, known, copies)):
        return None
    rank = target.shape[0] if target.shape is not None and len(target.shape) == 1 else None
    if data.element is None or not isinstance(rank, int):
        raise Unsafe("data decide the rank of what it gives")
    if known is None or any(dim in (None, 0, -1) for dim in known):
        raise Unsafe("what it takes may not fit the shape that it gives")
    return [_of_size(b, data, _product(b, target)), target]


def _product(b: Builder, vector: Value) -> Value:
    return b.op("ReduceProd", b.as_i64(vector), b.constant([0]), keepdims=True)


def _of_size(b: Builder, data: Value, size: Value) -> Value:
    """The elements of data in a row, as many as are wanted: the others are 0. Where there are as
    many, they are the same."""
    row = b.op("Reshape", data, b.constant([-1]))
    missing = b.op("Max", b.op("Sub", size, b.op("Shape", row)), b.constant([0]))
    pads = b.concat(0, b.constant([0]), missing)
    longer = b.op("Pad", row, pads, b.like(0, data), mode="constant")
    return b.op("Slice", longer, *(b.constant([0]), size, b.constant([0]), b.constant([1])))


def _computed_shape(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """ConstantOfShape, Tile: no elements, where data decide how many."""
    place = 0 if node.op == "ConstantOfShape" else 1
    shape = node.inputs[place]
    known = content_of(shape)
    if known is not None and all(isinstance(d, str) or (d is not None and d >= 0) for d in known):
        return None
    assert shape is not None
    inputs = list(node.inputs)
    inputs[place] = _where(b, counts, shape, 0)
    return inputs


def _expand(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Expand: its shapes go together."""
    data, target = node.inputs[:2]
    known = content_of(target)
    if data is None or known is None or None in known:
        raise Unsafe("data decide the shape of what it gives")
    if not go_together([data.shape, tuple(dim for dim in known if dim is not None)]):
        raise Unsafe("sizes may not go together there")
    return None


def _compress(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Compress: there is no condition without an element."""
    data, condition = node.inputs
    axis = node.attributes.get("axis")
    if data is None or condition is None or not data.shape or not condition.shape:
        raise Unsafe("the rank of what it takes is not known")
    if axis is None and len(data.shape) > 1:
        raise Unsafe("it may ask for elements that are not there")
    if data.shape[axis or 0] != condition.shape[0]:
        raise Unsafe("it may ask for elements that are not there")
    return None


def _slice(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Slice: any places do, where axes and steps are known."""
    if node.inputs[0] is None or node.inputs[0].rank is None:
        raise Unsafe("the rank of what it takes is not known")
    for value in node.inputs[3:]:
        if value is not None and (integers(value) is None or 0 in _steps(node, value)):
            raise Unsafe("data decide its axes or steps")
    return None


def _pad(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Pad: any numbers from 0 on do, where they are constants to fill with."""
    pads = node.inputs[1]
    if pads is None or not is_not_negative(pads) or node.attributes["mode"] != "constant":
        raise Unsafe("there may be too few elements to pad with, or to cut away")
    return None


def _steps(node: Node, value: Value) -> Sequence[int]:
    return (integers(value) or ()) if value is node.input(4) else ()


def _loop(b: Builder, node: Node, counts: Value) -> Sequence[Value | None] | None:
    """Loop: it runs no iteration."""
    if any(isinstance(port, Sliced) for port in node.body.inputs):
        raise Unsafe("what it slices says how often it runs")
    trips, condition, *others = [*node.inputs, None, None][: max(len(node.inputs), 2)]
    if trips is not None:
        trips = _where(b, counts, trips, 0)
    elif condition is not None:
        condition = b.op("And", condition, counts)
    else:
        trips = _where(b, counts, b.constant((1 << 63) - 1, I64), 0)
    return [trips, condition, *others]


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
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "ScatterElements": _places,
    "ScatterND": _places,
    "Slice": _slice,
    "Tile": _computed_shape,
}
"""What makes operators safe that some elements make fail."""
