"""Gather of a scaled constant of at most 8 bits.

With known indices, the GPU plugin computes it when it compiles the model, and takes wrong elements,
or elements without their scale. With computed indices, its kernel takes wrong scales of a table
with three axes, if all rows have the same scales.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.known import is_known, is_unfolded
from bridge.quirks.opaque import undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting

MOVES = ("Cast", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators between a scaled constant and a Gather."""


def of_copy(b: Builder, node: Node, place: Place) -> Result:
    """The Gather of a copy of the scaled constant."""
    wanted = is_unfolded(node) and (is_known(node.inputs[1], place) or _has_equal_rows(node))
    return with_hidden(b, node, "memory", [wanted, False, False]) if wanted else None


def _has_equal_rows(node: Node) -> bool:
    """Whether the rows of a table with three axes have the same scales, and more than one."""
    table = node.inputs[0]
    scaled = table.behind(*MOVES).producer if table is not None else None
    if scaled is None or scaled.outputs[0].rank != 3:
        return False
    factors = [value.dims for value in scaled.inputs if value is not None]
    shapes = [(1,) * (3 - len(dims)) + dims for dims in factors]
    return any(shape[0] == 1 and set(shape) != {1} for shape in shapes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Gather of scaled bytes with known indices gives elements of one row for all rows. "
    "With one index it leaves out the scale. With computed indices and scales of shape [1, 3, 1] "
    "it gives wrong numbers, or ends the process.",
    fires="At a Gather of a scaled constant of at most 8 bits, if its indices are known when the "
    "model is compiled, or if the constant has three axes and scales that are the same for all "
    "rows.",
    safe="The maximum of a value with itself is the value.",
    cost="a Maximum of the constant, which the plugin computes when it compiles the model",
    run=rewriting("Gather", by=of_copy),
    undo=undone("memory"),
)
