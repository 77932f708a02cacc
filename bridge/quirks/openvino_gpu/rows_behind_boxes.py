"""NonMaxSuppression in a model of known sizes. The GPU plugin gives as many rows as there may be at
most, and fills them with -1."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.quirk import Place, Quirk, rewriting


def counted(b: Builder, node: Node, place: Place) -> Result:
    """The rows up to the number of selected boxes, which the operator gives as well."""
    indices, scores, count = node.outputs
    if not all(value is None or is_static(value.shape) for value in node.inputs[:2]):
        return None
    readers = [reader for value in (indices, scores) for reader in place.users(value)]
    if all(_is_counted(reader, count) for reader in readers) and not {
        indices, scores
    } & {*place.graph.outputs}:  # fmt: skip
        return None
    made = b.node(node.op, node.inputs, 3, node.attributes, extras=node.extras).outputs
    return *(_up_to(b, value, made[2]) for value in made[:2]), made[2]


def _up_to(b: Builder, value: Value, count: Value) -> Value:
    return b.op("Slice", value, [0], count, [0], [1])


def _is_counted(node: Node, count: Value) -> bool:
    """Whether a node takes the first rows, as many as a value says."""
    return node.op == "Slice" and node.inputs[2] is count and known_of(node.inputs[1]).ints == (0,)


def _whole(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The output of NonMaxSuppression of which the selected rows are taken."""
    rows = node.inputs[0]
    made = rows.producer if rows is not None else None
    if made is None or made.op != "ir::NonMaxSuppression" or rows is made.outputs[2]:
        return None
    return rows if _is_counted(node, made.outputs[2]) else None


QUIRK = Quirk(
    releases="2026.4",
    symptom="In a model whose sizes are all known, NonMaxSuppression always gives as many rows as "
    "there may be at most. The rows behind the selected boxes hold -1.",
    fires="At a NonMaxSuppression of boxes and scores whose sizes are known.",
    safe="The operator gives the number of its rows as its third output.",
    cost="a Slice for the indices, and one for the scores if they are used",
    run=rewriting("ir::NonMaxSuppression", by=counted, uses=True),
    undo={"Slice": _whole},
)
