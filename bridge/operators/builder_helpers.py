"""Short forms of the operators that rules build most: transposing, splitting, sizes of axes."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers, values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.tensor import FileRange, Tensor
from bridge.neutral.types import I64, I64_MAX, Element, format_shape, size_of
from bridge.operators import Refused

UNKNOWN_ELEMENT = "the element type of one of its inputs is not known"


def transpose(b: Builder, x: Value, *perm: int) -> Value:
    """`x` with its axes permuted; `x` itself where the order is the same."""
    if list(perm) == sorted(perm):
        return x
    return b.op("Transpose", x, b.constant(list(perm)))


def swap_last(b: Builder, x: Value, rank: int) -> Value:
    """`x`, of `rank`, with its last two axes exchanged."""
    return transpose(b, x, *range(rank - 2), rank - 1, rank - 2)


def channels_first(b: Builder, x: Value, rank: int) -> Value:
    """`x`, whose channels are its last axis, with them as its second."""
    return transpose(b, x, 0, rank - 1, *range(1, rank - 1))


def channels_last(b: Builder, x: Value, rank: int) -> Value:
    """`x`, whose channels are its second axis, with them as its last."""
    return transpose(b, x, 0, *range(2, rank), 1)


def unsqueeze(b: Builder, x: Value, *axes: int) -> Value:
    """`x` with new axes of size 1 at `axes`. A constant stays one, with the same bytes."""
    if not axes:
        return x
    tensor = x.constant
    if tensor is None:
        return b.op("Unsqueeze", x, b.constant(list(axes)))
    new = {axis % (len(tensor.shape) + len(axes)) for axis in axes}
    old = iter(tensor.shape)
    wide = range(len(tensor.shape) + len(axes))
    dims = tuple(1 if axis in new else next(old) for axis in wide)
    return of_shape(b, x, dims)


def squeeze(b: Builder, x: Value, *axes: int) -> Value:
    """`x` without `axes`, which have size 1. A constant stays one, with the same bytes."""
    tensor = x.constant
    gone = () if tensor is None else {axis % len(tensor.shape) for axis in axes}
    if tensor is None or any(tensor.shape[axis] != 1 for axis in gone):
        return b.op("Squeeze", x, b.constant(list(axes)))
    dims = tuple(dim for axis, dim in enumerate(tensor.shape) if axis not in gone)
    return of_shape(b, x, dims)


def reshape(b: Builder, x: Value, *dims: int | Value) -> Value:
    """`x` in another shape; -1 infers, 0 copies. A constant stays one, with the same bytes."""
    tensor = x.constant
    numbers = [dim for dim in dims if isinstance(dim, int)]
    if tensor is not None and tensor.size and len(numbers) == len(dims) and 0 not in numbers:
        known = size_of([n for n in numbers if n > 0])
        return of_shape(b, x, tuple(n if n > 0 else tensor.size // known for n in numbers))
    return b.op("Reshape", x, shape(b, *dims))


def of_shape(b: Builder, x: Value, dims: tuple[int, ...]) -> Value:
    """A constant in another shape, with the same bytes and names."""
    tensor = x.constant
    assert tensor is not None
    return b.tensor(Tensor(tensor.element, dims, tensor.source), list(x.names))


def as_bits(b: Builder, x: Value, element: Element, *dims: int) -> Value:
    """The bytes of a constant taken for elements of another width, which both formats pack alike;
    it keeps its names."""
    tensor = x.constant
    assert tensor is not None
    source = tensor.source if isinstance(tensor.source, FileRange) else tensor.data()
    return b.tensor(Tensor(element, dims, source), list(x.names))


def expand(b: Builder, x: Value, *dims: int | Value) -> Value:
    """`x` broadcast to a shape."""
    return b.op("Expand", x, shape(b, *dims))


def concat(b: Builder, axis: int, *parts: Value) -> Value:
    """The parts joined along `axis`; the part itself where there is but one."""
    return parts[0] if len(parts) == 1 else b.op("Concat", *parts, axis=axis)


def split(b: Builder, x: Value, axis: int, *sizes: int) -> list[Value]:
    """Parts of the given sizes along `axis`."""
    if len(sizes) == 1:
        return [x]
    return b.ops("Split", len(sizes), x, b.constant(list(sizes)), axis=axis)


def cut(b: Builder, x: Value, axis: int, start: int | Value, end: int | Value) -> Value:
    """The elements from `start` up to `end` along `axis`; numbers or 1-D i64 values."""
    starts, ends = (
        [v if isinstance(v, Value) else b.constant([v]) for v in (start, end)]
    )  # fmt: skip
    return b.op("Slice", x, starts, ends, b.constant([axis]))


def flip(b: Builder, x: Value, axis: int) -> Value:
    """`x` in reverse order along `axis`."""
    return b.op(
        "Slice", x, b.constant([-1]), b.constant([-I64_MAX]), b.constant([axis]), b.constant([-1])
    )


def take(b: Builder, x: Value, axis: int, *indices: int) -> Value:
    """The elements at `indices` along `axis`, which stays."""
    return b.op("Gather", x, b.constant(list(indices)), b.constant(axis))


def from_the_front(b: Builder, indices: Value, count: Value) -> Value:
    """Indices of which negative ones count from the end of `count` elements, from the front."""
    from_end = b.op("Add", indices, cast(b, count, indices.element))
    return b.op("Where", b.op("Less", indices, b.like(0, indices)), from_end, indices)


def sizes(b: Builder, x: Value, *axes: int) -> Value:
    """The sizes of `axes` of `x`, 1-D i64; a constant where they are known."""
    if x.shape is not None and all(isinstance(x.shape[a], int) for a in axes):
        return b.constant([x.shape[a] for a in axes])
    return take(b, b.op("Shape", x), 0, *axes)


def shape(b: Builder, *dims: int | Value) -> Value:
    """A shape, 1-D i64, from numbers and 1-D values."""
    parts: list[Value] = []
    numbers: list[int] = []
    for dim in dims:
        if isinstance(dim, int):
            numbers.append(dim)
            continue
        if numbers:
            parts.append(b.constant(numbers))
            numbers = []
        parts.append(dim)
    if numbers or not parts:
        parts.append(b.constant(numbers))
    return concat(b, 0, *parts)


def zeros(b: Builder, like: Value, *dims: int | Value) -> Value:
    """Zeros of the element type of `like`."""
    known = [integers(d) if isinstance(d, Value) else (d,) for d in dims]
    if all(k is not None for k in known):
        return b.filled(0, [n for k in known if k is not None for n in k], like.element)
    return expand(b, b.like(0, like), *dims)


def size(b: Builder, x: Value, axis: int) -> Value:
    """The size of one axis of `x`, an i64 scalar; Refused where there is no such axis."""
    if x.shape is not None:
        if not -len(x.shape) <= axis < len(x.shape):
            raise Refused(f"one of its inputs, {format_shape(x.shape)}, has no axis {axis}")
        known = x.shape[axis]
        if isinstance(known, int):
            return b.constant(known)
    return b.op("Gather", b.op("Shape", x), b.constant(axis), b.constant(0))


def positions(b: Builder, x: Value, axis: int) -> Value:
    """0, 1, 2, ... along an axis of `x`, 1-D i64."""
    return b.op("Range", b.constant(0), size(b, x, axis), b.constant(1))


def cast(b: Builder, x: Value, element: Element | None) -> Value:
    """`x` as `element`; `x` itself where it is that already. Refused where `element`, that of some
    other value, is not known."""
    if x.element is element:
        return x
    if element is None:
        raise Refused(UNKNOWN_ELEMENT)
    return b.op("Cast", x, to=element)


def element_type(x: Value) -> Element:
    """The element type of `x`; Refused where it is not known."""
    if x.element is None:
        raise Refused(UNKNOWN_ELEMENT)
    return x.element


def softmax(b: Builder, x: Value, axis: int = -1) -> Value:
    """Softmax along one axis."""
    return b.op("Softmax", x, axis=axis)


def as_i64(b: Builder, x: Value) -> Value:
    """Integers as i64; a constant stays one."""
    known = values_of(x)
    if x.element is I64 or known is None:
        return cast(b, x, I64)
    return b.constant(known, I64)


def vector(b: Builder, x: Value) -> Value:
    """A scalar, or a vector of one element, as a vector; a constant stays one."""
    known = values_of(x)
    if x.rank == 1:
        return x
    return b.op("Reshape", x, b.constant([-1])) if known is None else b.constant(known.reshape(-1))


def scalar(b: Builder, x: Value) -> Value:
    """A vector of one element, or a scalar, as a scalar; a constant stays one."""
    known = values_of(x)
    if x.rank == 0:
        return x
    if known is None:
        return b.op("Reshape", x, b.constant([]))
    if known.size != 1:
        raise Refused(f"one number was expected, not {known.size} of them")
    return b.constant(known.reshape(()))


def ranks(node: Node, *indices: int) -> list[int]:
    """The ranks of the node's inputs; Refused where one is not known."""
    known = []
    for index in indices:
        value = node.inputs[index]
        if value is None or value.rank is None:
            raise Refused(
                f"the rank of its input {index} is not known; declare the graph's input shapes"
            )
        known.append(value.rank)
    return known


def given(node: Node, *indices: int) -> list[Value]:
    """The inputs at `indices`; Refused where one is absent."""
    found = []
    for index in indices:
        value = node.input(index)
        if value is None:
            raise Refused(f"its input {index} is absent")
        found.append(value)
    return found
