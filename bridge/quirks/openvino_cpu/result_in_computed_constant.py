"""Constants that the CPU plugin computes itself.

OpenVINO folds what follows from constants where it can evaluate the operators; the CPU plugin runs
the others once, when it compiles the model. What is computed element by element of such a result
and of something else it then writes where the result lies, so that the next inference, or the next
iteration of a Loop, begins with that: `y = GatherElements(constant, indices) * x` is multiplied
again each time.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.quirks.known import Known, is_unfolded, when_known
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, may_hold, rewriting

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
    operands, (output,) = node.inputs, node.outputs
    known = [when_known(value, place) for value in operands]
    if max(known) <= Known.COMPUTED:
        return None
    wanted = [
        value is not None and fact is Known.COMPUTED and may_hold(value, output)
        for value, fact in zip(operands, known, strict=True)
    ]
    if not any(wanted):
        return None
    copied = [
        opaque(b, value, "content") if value is not None and copy else value
        for value, copy in zip(operands, wanted, strict=True)
    ]
    return b.op(node.op, *copied, **node.attributes)


def copy_constants(graph: Graph, context: Context) -> bool | None:
    """Has such operators take copies, in place, where the plugin may compute any constant."""
    return any(map(is_unfolded, graph.walk())) and _with_copies(graph, context)


_with_copies = rewriting(*TAKERS, by=of_copies)

QUIRK = Quirk(
    releases="2026.4",
    symptom="What an operator that OpenVINO does not fold makes of constants (GatherElements, "
    "GatherND, Conv, Elu, ..., a Gather of scaled bytes) is overwritten by what is computed of it "
    "element by element, and wrong from the second inference or iteration on.",
    fires="At an operator element by element of a value that the plugin computes from constants "
    "and one that it does not know.",
    safe="The only row of a stack of one value is the value.",
    cost="a Gather of the constant, and a random number below 1/2, of which a Bucketize makes 0",
    run=copy_constants,
    undo=undone("content"),
)
