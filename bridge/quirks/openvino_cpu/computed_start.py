"""A variable whose computed start has no other reader.

The CPU plugin moves the nodes that compute the start into the node that reads the variable. That
node supports only the sizes of the start, and no Concat can read its output.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import I64, Interval
from bridge.operators import Result
from bridge.passes.fuse.replay import are_same
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting

_WITHIN_ATTENTION = (
    "Concat", "Expand", "Gather", "Reshape", "Transpose", "Unsqueeze",
)  # fmt: skip
"""Operators that may stand between a cache and its attention. The plugin fuses both into one node,
which has no such fault."""


def beside_its_start(b: Builder, node: Node, place: Place) -> Result:
    """The variable as the only part of a split. The length is -1 plus a remainder by 1 of a number
    from the start, which is 0."""
    (start,), held = node.inputs, node.outputs[0]
    if start is None or not start.rank or start.rank != held.rank or _is_shared(start, node, place):
        return None
    users = place.users(held)
    fixed = any(isinstance(d, int) and d != h for d, h in zip(start.dims, held.dims, strict=True))
    wanted = fixed or any(user.op == "Concat" for user in users) or _may_differ(node, start, place)
    if not wanted or _for_attention(users, place):
        return None
    axes = list(range(start.rank))
    found = b.cast(b.op("Equal", start, start), I64)
    number = b.reshape(b.op("ReduceSum", found, axes, keepdims=False), 1)
    read = b.node("ReadValue", [start], 1, dict(node.attributes)).outputs[0]
    axis = next((a for a in axes if not isinstance(held.dims[a], int)), 0)
    return opaque(b, read, "sizes", [axis], b.op("Mod", number, [1]))


def _may_differ(node: Node, start: Value, place: Place) -> bool:
    """Whether what the variable takes may have other sizes than its start."""
    variable = node.attributes["variable_id"]
    taken = (n for n in place.graph.nodes if n.op == "Assign")
    return any(
        n.attributes["variable_id"] == variable and not _is_alike(n.inputs[0], start) for n in taken
    )


def _is_alike(value: Value | None, start: Value) -> bool:
    """Whether a value is known to have the sizes of the start."""
    known = value is not None and value.shape == start.shape and start.shape is not None
    return known and not any(isinstance(dim, Interval) for dim in start.dims)


def _is_shared(start: Value, node: Node, place: Place) -> bool:
    """Whether the start is not computed, has another reader, or is the start of another variable
    too."""
    if start.producer is None or start.constant is not None or place.users(start) != [node]:
        return True
    leaves = {value: value for value in place.graph.inputs}
    others = (n for n in place.graph.nodes if n.op == "ReadValue" and n is not node)
    return any(are_same([(start, other.inputs[0])], leaves) for other in others)


def _for_attention(users: list[Node], place: Place) -> bool:
    """Whether attention reads the variable."""
    found = [*users]
    for user in found:
        if user.op in _WITHIN_ATTENTION:
            found += (n for n in place.users(user.outputs[0]) if n not in found)
    return any(user.op == "ScaledDotProductAttention" for user in found)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A variable whose computed start has no other reader does not compile or run in two "
    "cases: a Concat reads the variable, or its sizes differ from the start. If it takes a value "
    "of another size, it keeps that size after a reset.",
    fires="At a ReadValue with such a start, unless it leads to ScaledDotProductAttention or takes "
    "a value of the start's size.",
    safe="A remainder by 1 is 0. The only part of a value, with the rest as its length, is the "
    "value.",
    cost="a VariadicSplit, and a sum over the start in each call.",
    run=rewriting("ReadValue", by=beside_its_start, uses=True),
    undo=undone("sizes"),
)
