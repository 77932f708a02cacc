"""Element-wise operators of more than six axes with open sizes. The CPU plugin keeps kernels, and
takes the one of a node of fewer axes. A bidirectional Broadcast is a product with ones there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import Shape, is_static
from bridge.operators import Result
from bridge.quirks.quirk import ELEMENTWISE, Place, Quirk, rewriting

WITH_PARAMETERS = ("FakeQuantize", "PRelu")
"""Such operators whose further operands are broadcast in other ways, unless they are numbers."""

ALL = (*ELEMENTWISE, *WITH_PARAMETERS)

MOST_AXES = 6
"""The rank up to which the plugin has such kernels."""


def of_vectors(b: Builder, node: Node, place: Place) -> Result:
    """The operator on vectors, in the shape of the operands. Constants of one element stay."""
    values = [value for value in node.inputs if value is not None]
    rank = node.outputs[0].rank or 0
    if node.op == "Expand":
        return b.op("Broadcast", values[0], _joined(b, _sizes(b, values[0], rank), values[1]))
    wide = list(dict.fromkeys(value for value in values if not _is_number(value)))
    same = [value for value in wide if _are_equal(value.shape, node.outputs[0].shape)]
    if len(wide) == 1 or len(same) == len(wide):
        same, shape = wide, b.op("Shape", wide[0])
    elif same:
        shape = b.op("Shape", same[0])
    else:
        shape = reduce(partial(_joined, b), [_sizes(b, value, rank) for value in wide])

    def flat(value: Value) -> Value:
        if _is_number(value):
            return b.reshape(value) if (value.rank or 0) > 1 else value
        return b.reshape(value if value in same else b.op("Broadcast", value, shape), -1)

    made = b.op(node.op, *map(flat, values), **node.attributes)
    return b.op("Reshape", made, shape, allowzero=True)


def _sizes(b: Builder, value: Value, rank: int) -> Value:
    """The shape of a value with so many axes, of which the first ones are new."""
    new = rank - (value.rank or 0)
    sizes = b.op("Shape", value)
    return b.op("Concat", b.constant([1] * new), sizes, axis=0) if new else sizes


def _joined(b: Builder, one: Value, other: Value) -> Value:
    """The sizes to which two values are broadcast. A size of 1 gives way to 0, too."""
    return b.where(one.equal(1), other, one)


def _is_faulty(node: Node) -> bool:
    output = node.outputs[0]
    if output.rank is None or output.rank <= MOST_AXES or is_static(output.shape):
        return False
    if node.op == "Expand":  # OpenVINO writes a product with ones.
        return node.inputs[1] is not None and node.inputs[1].dims == (output.rank,)
    wide = [value for value in node.inputs if value is not None and not _is_number(value)]
    if node.op in WITH_PARAMETERS:
        return wide == node.inputs[:1]
    return node.op in ELEMENTWISE and bool(wide)


def _is_number(value: Value) -> bool:
    return value.rank == 0 or (value.constant is not None and value.constant.size == 1)


def _are_equal(one: Shape, other: Shape) -> bool:
    """Whether two shapes are known to be the same."""
    return one is not None and one == other and all(isinstance(dim, int | str) for dim in one)


def _of_axes(b: Builder, node: Node) -> Iterator[Value]:
    """The operator on what was flattened."""
    data, shape = node.inputs[:2]
    made = data.producer if data is not None else None
    if made is None or made.op not in ALL or shape is None:
        return
    values = [_before(value) for value in made.inputs if value is not None]
    if any(value.rank is not None and value.rank > MOST_AXES for value in values):
        yield b.op(made.op, *values, **made.attributes)


def _in_both_directions(b: Builder, node: Node) -> Iterator[Value]:
    """The Expand to what the sizes are joined with."""
    value, sizes = node.inputs[:2]
    joined = sizes.producer if sizes is not None else None
    if joined is not None and joined.op == "Where":
        yield b.op("Expand", value, joined.inputs[1])


def _before(value: Value) -> Value:
    """The operand that was flattened, and perhaps broadcast, or the same value."""
    for op in ("Reshape", "Broadcast"):
        made = value.producer
        if made is not None and made.op == op and made.inputs[0] is not None:
            value = made.inputs[0]
    return value


QUIRK = Quirk(
    releases="2026.4",
    symptom="An element-wise operator of more than six axes of open sizes gives wrong numbers, if "
    "another node of this operator has fewer axes of open sizes.",
    fires="At an element-wise operator or an Expand to more than six axes, if a size is open.",
    safe="Such an operator gives the same for vectors, if its operands have one shape.",
    cost="two Reshapes, which copy nothing; a Broadcast of each operand of another shape",
    run=rewriting(*ALL, "Expand", by=of_vectors, where=_is_faulty),
    guess={"Reshape": _of_axes, "Broadcast": _in_both_directions},
)
