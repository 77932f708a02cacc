"""Reshape and Squeeze in a branch that is not taken: the data fit the shape of the output."""

import math
from collections import Counter
from collections.abc import Sequence

from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import as_dim, known_of
from bridge.neutral.types import ANY, Dim, KnownValue
from bridge.operators import Builder, Node, Value, required
from bridge.operators.guarding import SafeInputs, Unsafe, guards, is_known_size, resized, zero_for


@guards("Reshape")
def _reshape(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Reshape: as many elements as the shape has."""
    data, target = required(node, 0, 1)
    known, copies = known_of(target).parts, not node.attributes["allowzero"]
    if known == (-1,):
        return None
    if data.shape is not None and known is not None and fits(data.shape, known, copies):
        return _copied(b, data, target, known) if copies else None
    rank = known_of(target).length
    if data.element is None or rank is None:
        raise Unsafe("data decide the rank of its output")
    sizes = known or (None,) * rank
    free = [place for place, size in enumerate(sizes) if size in (None, -1)]
    if free:
        return _with_free_size(b, data, target, sizes, free, counts)
    if 0 in sizes:
        raise Unsafe("its input may not fit the shape of its output")
    size = b.op("ReduceProd", b.as_i64(target), [0], keepdims=True)
    return [_of_size(b, data, size), target]


def _copied(b: Builder, data: Value, target: Value, known: KnownValue) -> SafeInputs:
    """The data fit a target whose zeros copy sizes. A size of the target may turn out to be 0."""
    if not _copies_another(data.dims, known):
        return None
    if -1 in known:
        raise Unsafe("a size of its output may be 0, and another one is inferred")
    # In the shape that it has by then, each 0 copies a 0.
    return [b.op("Reshape", data, target, allowzero=True), target]


def _with_free_size(
    b: Builder, data: Value, target: Value, sizes: KnownValue, free: list[int], counts: Value
) -> SafeInputs:
    """A size that is inferred, or not known, takes all elements; the other known ones divide their
    number."""
    fixed = [size for place, size in enumerate(sizes) if place not in free]
    if not all(map(_is_filled, fixed)) or (-1 in sizes and len(free) > 1):
        raise Unsafe("its input may not fit the shape of its output")
    each = math.prod(size for size in fixed if isinstance(size, int))
    if -1 not in sizes:
        spare = [size if isinstance(size, int) else 1 for size in sizes]
        spare[free[0]] = -1
        target = b.where(counts, b.as_i64(target), spare)
    elif each == 1:
        return None
    return [data if each == 1 else _in_rows(b, data, each), target]


def fits(dims: Sequence[Dim], target: KnownValue, copies: bool) -> bool:
    """Whether a tensor of a shape can surely be reshaped to a target. -1 in the target infers a
    size; 0, if it `copies`, is the size of the same axis."""
    wanted: list[Dim | None] = [
        dims[place] if copies and dim == 0 and place < len(dims) else as_dim(dim)
        for place, dim in enumerate(target)
    ]
    if ANY in wanted or not all(map(is_known_size, dims)):
        return False
    have, want = 1, 1
    for dim in dims:
        have *= dim if isinstance(dim, int) else 1
    for size in wanted:
        want *= size if isinstance(size, int) and size != -1 else 1
    names = Counter(dim for dim in dims if isinstance(dim, str))
    asked = Counter(size for size in wanted if isinstance(size, str))
    if -1 in wanted:
        return not asked - names and want > 0 and have % want == 0
    return names == asked and have == want


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


def _of_size(b: Builder, data: Value, size: Value) -> Value:
    """`size` elements of data in a row; missing ones are 0. Data with so many elements stays the
    same."""
    row = b.op("Reshape", data, [-1])
    missing = b.max(size - b.op("Shape", row), [0])
    pads = b.concat(0, b.constant([0]), missing)
    longer = b.op("Pad", row, pads, zero_for(b, data), mode="constant")
    return b.op("Slice", longer, *(b.constant([0]), size, b.constant([0]), b.constant([1])))


@guards("Squeeze")
def _squeeze(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Squeeze: the axes that it removes have one element."""
    data, axes = node.inputs[0], node.input(1)
    known = None if data is None else known_axes(axes, data.rank or 0)
    if data is None or data.shape is None or data.element is None or known is None:
        raise Unsafe("data decide the rank of its output")
    if any(isinstance(data.dims[axis], int) and data.dims[axis] != 1 for axis in known):
        raise Unsafe("an axis that it removes has another size than 1")
    others = [axis for axis in known if data.dims[axis] != 1]
    for axis in others:
        data = resized(b, data, axis, b.constant([1]), counts)
    return [data, *node.inputs[1:]] if others else None
