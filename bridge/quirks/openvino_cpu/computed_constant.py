"""Constants that the CPU plugin computes itself.

OpenVINO folds what follows from constants where it can evaluate the operators; the CPU plugin runs
the others once, when it compiles the model. What is computed element by element of such a result
and of something else it then writes where the result lies, so that the next inference, or the next
iteration of a Loop, begins with that: `y = GatherElements(constant, indices) * x` is multiplied
again each time. A recurrent layer takes such weights for constants, and fails. In a body, the
subtraction of a zero point moves behind the operator that is computed and joins the FakeQuantize
that follows; its Convert then stays behind, without a user. A product of a constant with scaled
bytes has no element type, where OpenVINO keeps the bytes for later.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.quirks.known import Known, is_unfolded, when_known
from bridge.quirks.opaque import undone, with_hidden
from bridge.quirks.quirk import RECURRENT, Place, Quirk, may_hold, rewriting

TAKERS = (
    "Add", "And", "BitwiseAnd", "BitwiseLeftShift", "BitwiseOr", "BitwiseRightShift", "BitwiseXor",
    "Div", "Equal", "FakeQuantize", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
    "Min", "Mod", "Mul", "NotEqual", "Or", "PRelu", "Pow", "SquaredDifference", "Sub", "Where",
    "Xor", "ir::Mod",
)  # fmt: skip
"""Operators element by element, of more than one operand."""


def of_copies(b: Builder, node: Node, place: Place) -> Result:
    """The operator of copies of such constants, made at each inference: of the only row of a stack,
    by a number that OpenVINO does not know."""
    known = [when_known(value, place) for value in node.inputs]
    is_written = node.op not in RECURRENT and max(known) > Known.COMPUTED
    wanted = [
        value is not None
        and fact is Known.COMPUTED
        and (node.op in RECURRENT or (is_written and may_hold(value, node.outputs[0])))
        for value, fact in zip(node.inputs, known, strict=True)
    ]
    if node.op == "FakeQuantize" and place.outer is not None:
        wanted[0] = known[0] is Known.COMPUTED
    if node.op == "MatMul":
        wanted = [is_unfolded(node) and max(known) < Known.UNKNOWN, False]
    return with_hidden(b, node, "content", wanted)


def copy_constants(graph: Graph, context: Context) -> bool | None:
    """Has such operators take copies, in place, where the plugin may compute any constant."""
    return any(map(is_unfolded, graph.walk())) and _with_copies(graph, context)


_with_copies = rewriting(*TAKERS, *RECURRENT, "MatMul", by=of_copies)

QUIRK = Quirk(
    releases="2026.4",
    symptom="What an operator that OpenVINO does not fold makes of constants (GatherElements, "
    "GatherND, Conv, Elu, ..., a Gather or MatMul of scaled bytes) is overwritten by what is "
    "computed of it element by element, and wrong from the second inference or iteration on. As "
    "weights of a recurrent layer, or in a body quantised with a zero point before a FakeQuantize, "
    "it does not load, and so does a MatMul of scaled bytes itself.",
    fires="At an operator element by element of a value that the plugin computes from constants "
    "and one that it does not know; at a recurrent layer of such a value, at a FakeQuantize of one "
    "in a body, and at a MatMul of scaled bytes and of a constant.",
    safe="The only row of a stack of one value is the value.",
    cost="a Gather of the constant, and a random number below 1/2, of which a Bucketize makes 0",
    run=copy_constants,
    undo=undone("content"),
)
