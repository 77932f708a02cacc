"""Values that the CPU plugin computes from constants when it compiles the model.

OpenVINO folds operators of constants if it can evaluate them. The CPU plugin runs the other ones
once, when it compiles the model. An elementwise operator may then write its result over such a
value. The next inference, or the next iteration of a Loop, reads the overwritten value. For
example, `y = GatherElements(constant, indices) * x` is multiplied again each time.

There are more faults. A recurrent layer expects constant weights, and fails. In a body, the plugin
moves the subtraction of a zero point behind the computed operator, and fuses it into the next
FakeQuantize. Its Convert stays without a user. The product of a constant with scaled bytes has no
element type, if OpenVINO keeps the bytes compressed.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.quirks.known import KnownAt, is_unfolded, when_known
from bridge.quirks.opaque import undone, with_hidden
from bridge.quirks.quirk import RECURRENT, Place, Quirk, may_hold, rewriting

TAKERS = (
    "Add", "And", "BitwiseAnd", "BitwiseLeftShift", "BitwiseOr", "BitwiseRightShift", "BitwiseXor",
    "Div", "Equal", "FakeQuantize", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
    "Min", "Mod", "Mul", "NotEqual", "Or", "PRelu", "Pow", "SquaredDifference", "Sub", "Where",
    "Xor", "ir::Mod",
)  # fmt: skip
"""Elementwise operators with several operands."""


def of_copies(b: Builder, node: Node, place: Place) -> Result:
    """The operator on copies of such values. Each inference makes the copy: a Gather of the only
    row of a stack, with an index that OpenVINO does not know."""
    known = [when_known(value, place) for value in node.inputs]
    is_written = node.op not in RECURRENT and max(known) > KnownAt.COMPUTED
    wanted = [
        value is not None
        and fact is KnownAt.COMPUTED
        and (node.op in RECURRENT or (is_written and may_hold(value, node.outputs[0])))
        for value, fact in zip(node.inputs, known, strict=True)
    ]
    if node.op == "FakeQuantize" and place.outer is not None:
        wanted[0] = known[0] is KnownAt.COMPUTED
    if node.op == "MatMul":
        wanted = [is_unfolded(node) and max(known) < KnownAt.UNKNOWN, False]
    return with_hidden(b, node, "content", wanted)


def copy_constants(graph: Graph, context: Context) -> bool | None:
    """Has such operators read copies, in place, if the plugin may compute any constant."""
    return any(map(is_unfolded, graph.walk())) and _with_copies(graph, context)


_with_copies = rewriting(*TAKERS, *RECURRENT, "MatMul", by=of_copies)

QUIRK = Quirk(
    releases="2026.4",
    symptom="An operator of constants that OpenVINO does not fold (GatherElements, GatherND, Conv, "
    "Elu, ..., a Gather or MatMul of scaled bytes) is computed once. An elementwise operator "
    "writes over its result, which is wrong from the second inference or iteration on. A model "
    "does not compile if such a result is a weight of a recurrent layer. Neither does one with "
    "such a result quantised in a body with a zero point before a FakeQuantize, nor a MatMul of "
    "scaled bytes itself.",
    fires="At an elementwise operator with one input that the plugin computes from constants and "
    "one that it does not know. At a recurrent layer of such a value, at a FakeQuantize of one in "
    "a body, and at a MatMul of scaled bytes and a constant.",
    safe="A stack of one value has this value as its only row.",
    cost="a Gather of the constant, and a 0 from a Bucketize of a random number below 1/2",
    run=copy_constants,
    undo=undone("content"),
)
