"""Parts of tensors of known sizes, which the GPU plugin reads at their place in the whole tensor.

Some kernels then read other elements. A kernel that broadcasts reads one row of a matrix at
`(start + f) % size`, which is always the first row. The kernel for a MatMul with known weights
steps from row to row as if no element were left out between them.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.quirks.opaque import hides, opaque, undone
from bridge.quirks.quirk import PARTS, Place, Quirk, is_computed_in, rewriting

MOST_AXES = 4
"""The plugin copies parts of tensors with more axes."""

SPLITS = frozenset({"VariadicSplit", "ir::Split"})
"""Operators whose parts are read in place whether their sizes are known or not."""

READERS = frozenset({"GatherND", "MatMul"})
"""Operators that read parts of more axes than two wrongly."""


def copied(b: Builder, node: Node, place: Place) -> Result:
    """The same node, with a copy of each part that is read wrongly."""
    wanted = [_is_misread(node, part, place) for part in node.outputs]
    if not any(wanted):
        return None
    made = b.node(node.op, node.inputs, len(wanted), node.attributes, extras=node.extras).outputs
    return [
        opaque(b, part, "memory") if copy else part for part, copy in zip(made, wanted, strict=True)
    ]


def _is_misread(node: Node, part: Value, place: Place) -> bool:
    """Whether readers of a part of a tensor may read other elements."""
    whole = node.inputs[0]
    if whole is None or whole.rank is None or not 2 <= whole.rank <= MOST_AXES:
        return False
    if part.element is None or not is_computed_in(part.element) or known_of(part).array is not None:
        return False
    readers = place.users(part)
    if all(hides(reader, "memory") for reader in readers):
        return False
    sizes = _sizes_in_whole(node, part)
    if whole.rank > 2 and any(reader.op in READERS for reader in readers):
        return node.op in SPLITS or (sizes is not None and sizes != whole.shape)
    return sizes is not None and sizes != whole.shape and _is_row(sizes)


def _sizes_in_whole(node: Node, part: Value) -> tuple[int, ...] | None:
    """The sizes of a part, along the axes of the whole tensor; None if not all sizes are known, or
    if the plugin copies the part."""
    whole, sizes = node.inputs[0], part.shape
    if whole is None or not is_static(whole.shape) or not is_static(sizes):
        return None
    if node.op != "Gather":
        return sizes
    index, axis = node.inputs[1], known_of(node.inputs[2]).ints
    if index is None or index.rank or axis is None or known_of(index).array is None:
        return None
    at = axis[0] % len(whole.shape)
    return (*sizes[:at], 1, *sizes[at:])


def _is_row(sizes: tuple[int, ...]) -> bool:
    """Whether a part has elements along its second axis alone."""
    return sizes[1] > 1 and all(size == 1 for axis, size in enumerate(sizes) if axis != 1)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A row `x[1:2]` times a number gives the products of the first row. A MatMul or a "
    "GatherND takes wrong elements of a part of a tensor with three or four axes.",
    fires="At a part that is one row, and at a part of a tensor with three or four axes that a "
    "MatMul or a GatherND reads; at a Slice or a Gather only if all sizes are known.",
    safe="The maximum of a value with itself is the value.",
    cost="a Maximum, or a LogicalOr, for each such part",
    run=rewriting(*PARTS, by=copied, uses=True),
    undo=undone("memory"),
)
