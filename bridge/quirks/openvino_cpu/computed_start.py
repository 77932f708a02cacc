"""The CPU plugin moves what computes the start of a variable into the node that reads it, where
nothing else takes it. That node knows no other sizes than those of the start, and no Concat takes
what it gives."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import I64
from bridge.operators import Result
from bridge.passes.fuse.replay import are_same
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting

_WITHIN_ATTENTION = (
    "Concat", "Expand", "Gather", "Reshape", "Transpose", "Unsqueeze",
)  # fmt: skip
"""What may stand between a cache and the attention that it is for. The plugin makes one node of
both, which has none of the faults."""


def beside_its_start(b: Builder, node: Node, place: Place) -> Result:
    """What is read as one part, to whose length a remainder of what is found in the start is added,
    which is nothing."""
    (start,), held = node.inputs, node.outputs[0]
    if start is None or not start.rank or start.rank != held.rank or _is_shared(start, node, place):
        return None
    users = place.users(held)
    fixed = any(isinstance(d, int) and d != h for d, h in zip(start.dims, held.dims, strict=True))
    if not (fixed or any(user.op == "Concat" for user in users)) or _for_attention(users, place):
        return None
    axes = list(range(start.rank))
    found = b.cast(b.op("Equal", start, start), I64)
    number = b.reshape(b.op("ReduceSum", found, axes, keepdims=False), 1)
    read = b.node("ReadValue", [start], 1, dict(node.attributes)).outputs[0]
    axis = next((a for a in axes if not isinstance(held.dims[a], int)), 0)
    return opaque(b, read, "sizes", [axis], b.op("Mod", number, [1]))


def _is_shared(start: Value, node: Node, place: Place) -> bool:
    """Whether the start is not computed, or is that of another variable too, or has other uses."""
    if start.producer is None or start.constant is not None or place.users(start) != [node]:
        return True
    leaves = {value: value for value in place.graph.inputs}
    others = (n for n in place.graph.nodes if n.op == "ReadValue" and n is not node)
    return any(are_same([(start, other.inputs[0])], leaves) for other in others)


def _for_attention(users: list[Node], place: Place) -> bool:
    """Whether what is read leads to attention."""
    found = [*users]
    for user in found:
        if user.op in _WITHIN_ATTENTION:
            found += (n for n in place.users(user.outputs[0]) if n not in found)
    return any(user.op == "ScaledDotProductAttention" for user in found)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A variable whose start is computed for it alone does not compile or run, if a Concat "
    "reads it or its sizes are not those of the start.",
    fires="At a ReadValue with such a start, unless it leads to ScaledDotProductAttention.",
    safe="A remainder by 1 is 0. The only part of a value, as long as what is left, is the value.",
    cost="a VariadicSplit, and a sum over the start in each call.",
    run=rewriting("ReadValue", by=beside_its_start, uses=True),
    undo=undone("sizes"),
)
