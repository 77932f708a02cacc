"""Attention of one head and one batch, without a scale behind the scores. The GPU plugin does not
compile it."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.opaque import undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting

MOVES = ("Cast", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators between the parts of an attention."""

FAR = 8
"""The number of values between two parts."""


def of_copy(b: Builder, node: Node, place: Place) -> Result:
    """The product of a copy of the weights, in which the plugin finds no attention."""
    weights, output = node.inputs[0], node.outputs[0]
    if weights is None or (output.rank or 0) < 3 or any(dim != 1 for dim in output.dims[:-2]):
        return None
    softmax = _found(weights, "Softmax", "Where")
    scores = softmax and _found(softmax.inputs[0], "MatMul", "Add")
    if not scores or _is_scaled(scores.inputs[1]):
        return None
    return with_hidden(b, node, "memory", [True, False])


def _found(value: Value | None, op: str, through: str) -> Node | None:
    """The nearest node of an operator, behind operators that move elements and `through`."""
    todo = [value]
    for one in todo:
        made = None if one is None else one.behind(*MOVES).producer
        if made is not None and made.op == op:
            return made
        if made is not None and made.op == through and len(todo) < FAR:
            todo += made.inputs
    return None


def _is_scaled(keys: Value | None) -> bool:
    """Whether keys are multiplied by a known number that is not 1."""
    made = None if keys is None else keys.behind(*MOVES).producer
    if made is None or made.op not in ("Div", "Mul"):
        return False
    known = [known_of(value).reals for value in made.inputs]
    return any(numbers is not None and (numbers != 1).any() for numbers in known)


QUIRK = Quirk(
    releases="2026.4",
    symptom="An attention of one head and one batch does not compile if neither its scores nor its "
    "keys have a scale.",
    fires="At a MatMul behind a Softmax of another MatMul, perhaps with a mask and without a "
    "scale, if all axes of the product but the last two have size 1.",
    safe="The maximum of a value with itself is the value.",
    cost="a maximum of the weights with themselves",
    run=rewriting("MatMul", by=of_copy),
    undo=undone("memory"),
)
