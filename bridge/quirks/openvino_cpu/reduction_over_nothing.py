"""A reduction over an axis of size 0. Old releases of the CPU plugin compute nothing, and keep the
result of the previous run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.types import low
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting

OF_NOTHING = {
    "ReduceL1": 0, "ReduceL2": 0, "ReduceLogicalAnd": True, "ReduceLogicalOr": False,
    "ReduceProd": 1, "ReduceSum": 0,
}  # fmt: skip
"""The results of reductions over an empty axis, if both formats define them."""


def chosen(b: Builder, node: Node, place: Place) -> Result:
    """The reduction, or its defined result if the axis is empty."""
    data, (output,) = node.inputs[0], node.outputs
    if data is None or data.rank is None or data.element is None:
        return None
    axes = known_axes(node.input(1), data.rank)
    empty = [axis for axis in axes or () if low(data.dims[axis]) == 0]
    if not empty or _is_chosen(output, place):
        return None
    is_empty = reduce(
        lambda one, other: one | other,
        [b.op("Equal", b.size(data, axis), 0) for axis in empty],
    )
    result = b.op(node.op, *node.inputs, **node.attributes)
    return b.where(is_empty, OF_NOTHING[node.op], result)


def _is_chosen(output: Value, place: Place) -> bool:
    users = place.users(output)
    return len(users) == 1 and users[0].op == "Where" and users[0].inputs[2] is output


def _reductions(b: Builder, node: Node) -> Iterator[Value]:
    """The reduction without the selection."""
    reduced = node.inputs[2].producer if node.inputs[2] is not None else None
    if reduced is not None and reduced.op in OF_NOTHING:
        yield b.op(reduced.op, *reduced.inputs, **reduced.attributes)


QUIRK = Quirk(
    releases="2024.0 to 2024.5",
    symptom="A sum, or another reduction, over an empty axis keeps the result of the previous "
    "inference.",
    fires="At a reduction over an axis that may have size 0.",
    safe="If the axis has size 0, the result is the one that the standard defines for an empty "
    "axis.",
    cost="a ShapeOf, an Equal and a Select behind each such reduction. Only for those releases.",
    run=rewriting(*OF_NOTHING, by=chosen, uses=True),
    guess={"Where": _reductions},
)
