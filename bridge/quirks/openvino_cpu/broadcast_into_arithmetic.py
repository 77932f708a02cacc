"""A broadcast that only arithmetic reads. The CPU plugin drops it, since arithmetic broadcasts.

If the broadcast gives an empty tensor, and the other input has one element, the result then has one
element instead of none.
"""

from __future__ import annotations

from itertools import zip_longest

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import Dim, high, low
from bridge.operators import Result
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import ARITHMETIC, Place, Quirk, rewriting

OPS = (*ARITHMETIC, "Mod", "ir::Mod", "SquaredDifference")
"""Operators that broadcast their inputs."""


def beside_memory(b: Builder, node: Node, place: Place) -> Result:
    """The operator on a maximum of the broadcast value with itself."""
    if len(node.inputs) != 2 or node.inputs[0] is node.inputs[1]:
        return None
    one, other = node.inputs
    assert one is not None and other is not None
    if _is_lost(one, other):
        one = opaque(b, one, "memory")
    elif _is_lost(other, one):
        other = opaque(b, other, "memory")
    else:
        return None
    return b.op(node.op, one, other, **node.attributes)


def _is_lost(value: Value, beside: Value) -> bool:
    """Whether a broadcast value may be empty along an axis that may have size 1 in the other."""
    made = value.producer
    if made is None or made.op not in ("Broadcast", "Expand"):
        return False
    if value.shape is None or beside.shape is None:
        return False
    pairs = zip_longest(reversed(value.shape), reversed(beside.shape), fillvalue=1)
    return any(dim != other and low(dim) == 0 and _may_be_one(other) for dim, other in pairs)


def _may_be_one(dim: Dim) -> bool:
    most = high(dim)
    return low(dim) <= 1 and (most is None or most >= 1)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Broadcast to a size of 0 is dropped if only arithmetic reads it. The sum of the "
    "empty tensor and one number was that number.",
    fires="At arithmetic on a Broadcast that may be empty, if the other input may have a size of 1 "
    "there.",
    safe="The maximum of a value with itself is the value.",
    cost="a Max of the broadcast value",
    run=rewriting(*OPS, by=beside_memory),
    undo=undone("memory"),
)
