"""What makes an operator safe that may fail in a branch that is not taken.

There, a Where on the condition replaces an operand by a value that cannot fail: an index 0, a
divisor 1. A Loop runs no iteration. A node without such a value is refused. A guard stands beside
the rules of its operator; this module has the register and the tools of guards.
"""

from collections.abc import Callable, Mapping, Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BOOL, I8, U8, Dim, Shape


class Unsafe(Exception):
    """Raised for a node that may fail in a branch that does not count, and cannot be made safe."""


SafeInputs = Sequence[Value | None] | None
"""The inputs that make a node safe; None if it is safe with its own."""

Guard = Callable[[Builder, Node, Value], SafeInputs]
"""Gives the inputs of a node that make it safe if the value, a condition, is false. Raises
Unsafe."""

Pick = Callable[[Builder, Value, Value, Value], Value]
"""One of two values of one shape, by a condition."""

_picks: list[Pick] = []
GUARDS: dict[str, Guard] = {}
"""The guards of operators whose families are loaded."""

FURTHER: dict[str, Guard] = {}
"""Guards that follow what the traits and the family of an operator demand."""


def guards(*ops: str, further: bool = False) -> Callable[[Guard], Guard]:
    """Registers the guard of operators, in place of what their rows demand, or `further` to it."""

    def register(guard: Guard) -> Guard:
        for op in ops:
            if op in GUARDS or op in FURTHER:
                raise ValueError(f"{op} has two guards")
            (FURTHER if further else GUARDS)[op] = guard
        return guard

    return register


def pick_by(pick: Pick) -> Pick:
    """Sets how values are picked. Which form suits engines is known outside of the rules."""
    _picks[:] = [pick]
    return pick


def pick(b: Builder, condition: Value, one: Value, other: Value) -> Value:
    """One value if the condition, a scalar, is true, else the other of the same shape."""
    return _picks[0](b, condition, one, other)


# Sizes --------------------------------------------------------------------------------------------


def is_known_size(dim: Dim) -> bool:
    """Whether a size is known, by number or name."""
    return isinstance(dim, int | str)


def is_surely_filled(dims: Sequence[Dim]) -> bool:
    """Whether no size is 0."""
    return all(isinstance(dim, int) and dim > 0 for dim in dims)


def go_together(shapes: Sequence[Shape]) -> bool:
    """Whether shapes can surely be broadcast against each other."""
    if None in shapes:
        return False
    most = max((len(shape) for shape in shapes if shape is not None), default=0)
    for place in range(1, most + 1):
        dims = {shape[-place] for shape in shapes if shape is not None and len(shape) >= place}
        if len(dims - {1}) > 1 or not all(map(is_known_size, dims)):
            return False
    return True


def is_one_size(sizes: tuple[Dim, Dim]) -> bool:
    """Whether two sizes are equal and known, by number or name."""
    return sizes[0] == sizes[1] and is_known_size(sizes[0])


# Values -------------------------------------------------------------------------------------------


def if_taken(b: Builder, counts: Value, value: Value, otherwise: int) -> Value:
    """A value if the branch is taken, else a number."""
    return pick(b, counts, value, b.like(otherwise, value))


def zero_for(b: Builder, data: Value) -> Value:
    """The zero that data are padded with. Raises Unsafe for types that Pad does not take."""
    element = data.element
    if element is None or (element.bits < 16 and element not in (BOOL, I8, U8)):
        raise Unsafe(f"the element type {element} cannot be padded")
    return b.like(0, data)


def with_at_least(b: Builder, data: Value, least: Mapping[int, int], counts: Value) -> Value:
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
    return b.op("Pad", data, b.concat(0, zeros, ends), zero_for(b, data), mode="constant")


def resized(b: Builder, value: Value, axis: int, size: Value, counts: Value) -> Value:
    """A value with another size along an axis if the branch is not taken: cut, or with zeros behind
    it."""
    have = b.sizes(value, axis)
    wanted = b.where(counts, have, size)
    zeros = b.constant([0] * len(value.dims))
    ends = b.op("ScatterElements", zeros, [axis], b.max(wanted - have, [0]), 0)
    longer = b.op("Pad", value, b.concat(0, zeros, ends), zero_for(b, value), mode="constant")
    return b.op("Slice", longer, [0], wanted, [axis])


def made_broadcastable(b: Builder, node: Node, counts: Value) -> SafeInputs:
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
