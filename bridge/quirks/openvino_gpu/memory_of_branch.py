"""Values that leave an If.

Each branch has memory of its own for them. What reads them keeps the memory of the branch that ran
first, and an If with two outputs gives them other values, or does not compile.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.opaque import is_hidden, opaque, undone
from bridge.quirks.quirk import Place, Quirk, is_computed_in, rewriting


def copied(b: Builder, node: Node, place: Place) -> Result:
    """The If with a copy of each output, in its branches and behind it."""
    wanted = [
        index
        for index, output in enumerate(node.outputs)
        if all(_is_copied_here(value) for value in (output, *_ends(node, index)))
        and not all(map(_is_copy, _ends(node, index)))
    ]
    if not wanted:
        return None
    bodies = tuple(map(clone_body, node.bodies))
    for body in bodies:
        inner = Builder(body.graph.nodes, node.name, b.target)
        with inner:
            for index in wanted:
                end = body.graph.outputs.index(body.given(index))
                body.graph.outputs[end] = _copy(inner, body.given(index))
    made = b.node(
        "If", node.inputs, len(node.outputs), dict(node.attributes), bodies, node.name, node.extras
    ).outputs
    results = []
    for index, (new, old) in enumerate(zip(made, node.outputs, strict=True)):
        if index in wanted:
            behind = opaque(b, opaque(b, new, "sizes", [0]), "memory")
            new = b.reshape(behind) if old.rank == 0 else behind
        new.type = new.declared = old.type
        results.append(new)
    return results


def _ends(node: Node, output: int) -> list[Value]:
    return [body.given(output) for body in node.bodies]


def _is_copied_here(value: Value) -> bool:
    """Whether the plugin can copy a value, and whether there is something to copy."""
    element = value.element
    if element is None or not is_computed_in(element) or value.rank is None:
        return False
    return 0 not in value.dims


def _is_copy(value: Value) -> bool:
    """Whether a value is such a copy, and not the copy of another If's output."""
    made = value.producer
    if made is None or not is_hidden(value, "memory"):
        return False
    inside = made.inputs[0]
    return inside is not None and not is_hidden(inside, "sizes")


def _copy(b: Builder, value: Value) -> Value:
    return opaque(b, b.reshape(value, 1) if value.rank == 0 else value, "memory")


QUIRK = Quirk(
    releases="2026.4",
    symptom="A node that reads an If keeps the memory of the branch that ran first. An If with two "
    "outputs does not compile, or a branch that hands its inputs through gives other values.",
    fires="At each output of an If.",
    safe="A copy has the same elements; the only part of a value is the value.",
    cost="two Maximum and a VariadicSplit for each output; a scalar becomes a vector inside, which "
    "stays on the way back to ONNX",
    run=rewriting("If", by=copied),
    undo={**undone("memory"), **undone("sizes")},
)
