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

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Iteration, OutputPort, Yield, outer_input
from bridge.neutral.types import F32, I8, I32, STRING, U8, is_static
from bridge.operators import Result
from bridge.operators.builder_helpers import reshape
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting
from bridge.vocabulary import operator

OWN_MEMORY = {F32, I8, I32, U8}
"""Types of which an output of the model has a memory of its own: the plugin computes in them. It
converts others in front of the output. What leaves a body has a memory of its own in any case."""

LOOK_BACK = 100
"""How many values are looked at to find whether a shape is fixed."""


def kept(b: Builder, node: Node, place: Place) -> Result:
    """The outputs that are read later are broadcast to the shapes that they have; where Bridge
    knows the shape, the branches tell OpenVINO."""
    lost = [_is_lost(value, place) for value in node.outputs]
    if not any(lost):
        return None
    bodies = tuple(body.copy() for body in node.bodies)
    made = [Value(value.type) for value in node.outputs]
    b.nodes.append(Node("If", list(node.inputs), made, {}, bodies, node.name))
    results = list(made)
    for position, value in enumerate(made):
        if lost[position] and is_static(value.shape):
            for body in bodies:
                _tell_shape(body, position, value.shape)
        elif lost[position]:
            # OpenVINO multiplies by ones for an Expand, which it cannot in every type.
            results[position] = b.op("Broadcast", value, b.op("Shape", value), mode="numpy")
    return results


def _tell_shape(body: Body, position: int, shape: tuple[int, ...]) -> None:
    b = Builder([])
    exits: list[tuple[Value, OutputPort]] = [
        (reshape(b, value, *shape) if port == Yield(position) else value, port)
        for value, port in body.exits()
    ]
    body.graph.nodes += b.nodes
    body.set_exits(exits)


def _is_lost(value: Value, place: Place) -> bool:
    """Whether the memory of an output may be used too early."""
    if value.rank in (None, 0) or value.element in (None, STRING):
        return False
    fixed = place.found[value] = _is_fixed(value, place, {})
    if fixed:
        return False
    if value in place.graph.outputs:
        return place.holder is None and value.element not in OWN_MEMORY
    users = place.users(value)
    return not all(user.op == "Shape" or _is_whole(user, value) for user in users)


def _is_fixed(value: Value, place: Place, asked: dict[Value, bool]) -> bool:
    """Whether OpenVINO finds, too, that a value has one shape: it knows less than Bridge of shapes
    that are computed."""
    if value in place.found:
        return place.found[value]
    if value not in asked:
        # What goes round in a Loop, and what lies far behind, is taken for fixed.
        asked[value] = True
        asked[value] = is_static(value.shape) and (
            len(asked) > LOOK_BACK or _is_fixed_by_origin(value, place, asked)
        )
    return asked[value]


def _is_fixed_by_origin(value: Value, place: Place, asked: dict[Value, bool]) -> bool:
    node = value.producer
    if node is None:
        if place.body is None or place.holder is None or place.outer is None:
            return True
        port = place.body.inputs[place.graph.inputs.index(value)]
        outer = None if isinstance(port, Iteration) else outer_input(port)
        source = None if outer is None else place.holder.inputs[outer]
        return source is None or _is_fixed(source, place.outer, asked)
    if node.op in ("Constant", "Shape"):
        return True
    if node.op == "Reshape":
        return min(integers(node.inputs[1]) or (0,)) > 0
    if node.bodies:
        position = node.outputs.index(value)
        return all(
            isinstance(port, Yield) and _is_fixed(exit, place.inside(node, body), asked)
            for body in node.bodies
            for exit, port in body.exits()
            if getattr(port, "output", None) == position
        )
    row = operator(node.op)
    shaping = row.shaped_by if row is not None else ()
    return all(
        source is None
        or (source.constant is not None if at in shaping else _is_fixed(source, place, asked))
        for at, source in enumerate(node.inputs)
    )


def _is_whole(node: Node, value: Value) -> bool:
    """Whether a node broadcasts a value to the shape that it has (`broadcast_of_nothing` adds a 0
    to it)."""
    if node.op not in ("Broadcast", "Expand") or node.inputs[0] is not value:
        return False
    sizes = node.inputs[1].producer if node.inputs[1] is not None else None
    if sizes is not None and sizes.op == "Add" and sizes.inputs[0] is not None:
        sizes = sizes.inputs[0].producer
    return sizes is not None and sizes.op == "Shape" and sizes.inputs[0] is value


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="The first inference, and the first with larger inputs, are wrong where an operator "
    "behind an If whose output has an open shape needs memory before the output has been read.",
    cost="a ShapeOf and a Broadcast for each such output, which is copied once more",
    run=rewriting("If", by=kept, uses=True),
)
