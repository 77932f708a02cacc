"""An If whose output has an open shape, and whose memory is used before the output has been read.

OpenVINO's CPU plugin runs operators in sections: first it finds the shapes of all results of a
section, and enlarges memory for them, then it computes them. Results live in one memory where none
is alive in the section of another. Of an If's output the plugin takes it that it is not alive in
the section behind the If, so that it is lost where something in there needs more of that memory
than ever before: in the first inference, and again with larger inputs. An operator whose shape is
computed begins a section of its own. A broadcast to the shape that the output has is one, and what
it gives is kept.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import F32, I8, I32, STRING, U8, is_static
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting

OWN_MEMORY = {F32, I8, I32, U8}
"""Types of which an output of the model has a memory of its own: the plugin computes in them. It
converts others in front of the output. What leaves a body has a memory of its own in any case."""


def kept(b: Builder, node: Node, place: Place) -> Result:
    """The outputs that are read later are broadcast to the shapes that they have."""
    lost = [_is_lost(value, place) for value in node.outputs]
    if not any(lost):
        return None
    made = [Value(value.type) for value in node.outputs]
    b.nodes.append(Node("If", list(node.inputs), made, {}, node.bodies, node.name))
    return [
        b.op("Expand", value, b.op("Shape", value)) if is_lost else value
        for value, is_lost in zip(made, lost, strict=True)
    ]


def _is_lost(value: Value, place: Place) -> bool:
    """Whether the memory of an output may be used too early."""
    if value.rank in (None, 0) or is_static(value.shape) or value.element in (None, STRING):
        return False
    if value in place.graph.outputs:
        return place.holder is None and value.element not in OWN_MEMORY
    users = place.users(value)
    return not all(user.op == "Shape" or _is_whole(user, value) for user in users)


def _is_whole(node: Node, value: Value) -> bool:
    """Whether a node broadcasts a value to the shape that it has."""
    if node.op != "Expand" or node.inputs[0] is not value:
        return False
    sizes = node.inputs[1].producer if node.inputs[1] is not None else None
    return sizes is not None and sizes.op == "Shape" and sizes.inputs[0] is value


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="The first inference, and the first with larger inputs, are wrong where an operator "
    "behind an If whose output has an open shape needs memory before the output has been read.",
    cost="a ShapeOf and a Broadcast for each such output, which is copied once more",
    run=rewriting("If", by=kept),
)
