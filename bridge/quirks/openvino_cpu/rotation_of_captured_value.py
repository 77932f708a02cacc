"""Rotary embedding of what the body of a Loop captures, which the CPU plugin's RoPE does where the
value lies."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.ports import Invariant
from bridge.operators import Result
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_a_copy(b: Builder, node: Node, place: Place) -> Result:
    """The split of the heads, whose parts are multiplied alone, as RoPE is recognised by, of a
    maximum with itself."""
    data, holder, body = node.inputs[0], place.holder, place.body
    if data is None or holder is None or body is None or holder.op != "Loop":
        return None
    captured = {value for value, port in body.entries() if isinstance(port, Invariant)}
    if data.behind("Reshape", "Squeeze", "Unsqueeze") not in captured:
        return None
    users = [user for value in node.outputs for user in place.users(value)]
    if not users or any(user.op != "Mul" for user in users):
        return None
    copy = opaque(b, data, "memory")
    return b.ops(node.op, len(node.outputs), copy, *node.inputs[1:], **node.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A rotary embedding of a value that a Loop captures writes over it, so that each "
    "iteration turns it further.",
    fires="At a split in the body of a Loop, of a value from outside, if all parts are multiplied.",
    safe="The greatest of a value and itself is the value.",
    cost="a Maximum of the value with itself",
    run=rewriting("VariadicSplit", by=of_a_copy, uses=True),
    undo=undone("memory"),
)
