"""Pads, starts, ends, repeats and sizes that are a part of a tensor.

The GPU plugin makes the part in place, as a view. What reads sizes on the host takes the elements
from the start of the whole tensor.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.opaque import undone, with_hidden
from bridge.quirks.quirk import PARTS, Place, Quirk, rewriting

IN_PLACE = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators whose result has the elements of their first input."""

READERS = {
    "Broadcast": 1, "Expand": 1, "Interpolate": 1, "Slice": 1, "StridedSlice": 1, "Tile": 1,
    "ir::Pad": 1,
}  # fmt: skip
"""Operators that read inputs on the host, and the first of these inputs."""


def copied(b: Builder, node: Node, place: Place) -> Result:
    """The reader of copies of parts."""
    wanted = [
        at >= READERS[node.op] and value is not None and _is_part(value)
        for at, value in enumerate(node.inputs)
    ]
    return with_hidden(b, node, "memory", wanted)


def _is_part(value: Value) -> bool:
    """Whether a value is a part of a tensor of data. The plugin has parts of shapes on the host."""
    node = value.producer
    if node is None or known_of(value).array is not None:
        return False
    if value.element is None or not value.element.is_integer:
        return False
    before = node.inputs[0]
    if node.op in IN_PLACE and before is not None:
        return _is_part(before)
    if node.op == "Gather" and node.inputs[1] is not None and node.inputs[1].rank != 0:
        return False  # It has memory of its own.
    return node.op in PARTS and before is not None and not _is_of_shapes(before)


def _is_of_shapes(value: Value) -> bool:
    """Whether a value is computed from shapes and constants alone."""
    seen, left = set[Value](), [value]
    while left:
        one = left.pop()
        if one in seen or one.constant is not None:
            continue
        seen.add(one)
        node = one.producer
        if node is None or node.bodies:
            return False
        if node.op != "Shape":
            left += [each for each in node.inputs if each is not None]
    return True


QUIRK = Quirk(
    releases="2026.4",
    symptom="The pads of a Pad are the two halves of one tensor, and both are read from its start. "
    "So are the starts and ends of a Slice, the shape of a Broadcast and the repeats of a Tile.",
    fires="At such an input that is a part of a tensor, unless the tensor is computed from shapes.",
    safe="The maximum of a value with itself is the value.",
    cost="a Maximum of a few integers for each such input",
    run=rewriting(*READERS, by=copied),
    undo=undone("memory"),
)
