"""An If whose output has an open shape, and whose memory is used before the output has been read.

OpenVINO's CPU plugin runs operators in sections: first it finds the shapes of all results of a
section, and enlarges memory for them, then it computes them. Results live in one memory where none
is alive in the section of another. Of an If's output the plugin takes it that it is not alive in
the section behind the If, so that it is lost where something in there needs more of that memory
than ever before: in the first inference, and again with larger inputs. An operator whose shape is
computed begins a section of its own. A split into one part of the length that the output has is
one, and what it gives is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import Must, Now
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import InputPort, Iteration, OutputPort, Yield, outer_input
from bridge.neutral.types import F32, I8, I32, STRING, U8, is_static
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.opaque import opaque, recognise, undone
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.vocabulary import operator

OWN_MEMORY = {F32, I8, I32, U8}
"""Types of which an output of the model has a memory of its own: the plugin computes in them. It
converts others in front of the output. What leaves a body has a memory of its own in any case."""


def kept(b: Builder, node: Node, place: Place) -> Result:
    """The outputs that are read later are split into one part; where Bridge knows the shape, the
    branches tell OpenVINO."""
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
            results[position] = opaque(b, value, "section")
    return results


def _tell_shape(body: Body, position: int, shape: tuple[int, ...]) -> None:
    b = Builder([])
    exits: list[tuple[Value, OutputPort]] = [
        (b.reshape(value, *shape) if port == Yield(position) else value, port)
        for value, port in body.exits()
    ]
    body.graph.nodes += b.nodes
    body.set_exits(exits)


def _is_lost(value: Value, place: Place) -> bool:
    """Whether the memory of an output may be used too early."""
    if value.rank in (None, 0) or value.element in (None, STRING):
        return False
    if place.facts(FixedShape).of(value):
        return False
    if value in place.graph.outputs:
        return place.holder is None and value.element not in OWN_MEMORY
    users = place.users(value)
    return not all(
        user.op == "Shape" or _is_kept(user, value) or _begins_a_section(user, place)
        for user in users
    )


def _begins_a_section(node: Node, place: Place) -> bool:
    """Whether all that is computed before a node is computed while what it reads is alive. An If
    whose condition is known may be put into the section before it."""
    return node.op == "If" and not is_known(node.condition, place)


class FixedShape(Must):
    """Whether OpenVINO finds, too, that a value has one shape: it knows less than Bridge of shapes
    that are computed."""

    def outside(self, value: Value) -> bool:
        """An input of the model is fixed if the file says so."""
        return True

    def settled(self, value: Value, fact: bool) -> bool:
        """OpenVINO knows no shape that Bridge does not know."""
        return fact and is_static(value.shape)

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """What is computed of fixed shapes, and of constants where elements decide, is fixed."""
        fixed = node.op in ("Constant", "Shape")
        if node.op == "Reshape":
            fixed = min(known_of(node.inputs[1]).ints or (0,)) > 0
        elif not fixed:
            row = operator(node.op)
            shaping = row.shaped_by if row is not None else ()
            fixed = all(
                value is None or (value.constant is not None if at in shaping else facts[at])
                for at, value in enumerate(node.inputs)
            )
        return [fixed] * len(node.outputs)

    def entry(self, node: Node, body: Body, value: Value, port: InputPort, now: Now[bool]) -> bool:
        """What goes round in a Loop is taken for what it is at first."""
        outer = None if isinstance(port, Iteration) else outer_input(port)
        source = None if outer is None else node.inputs[outer]
        return source is None or now(source)

    def exit(self, node: Node, value: Value, port: OutputPort, now: Now[bool]) -> bool:
        """OpenVINO knows no shape of a stack."""
        return isinstance(port, Yield) and now(value)


def _is_kept(node: Node, value: Value) -> bool:
    """Whether a node splits a value into one part."""
    return recognise(node) == ("section", value)


def untold(b: Builder, node: Node, uses: Uses) -> Value | None:
    """What a branch gives in the shape that it has: of its sizes at most one is not known."""
    (value, sizes), output = node.inputs, node.outputs[0]
    told = known_of(sizes).ints
    in_branch = uses.holder is not None and uses.holder.op == "If"
    if not in_branch or output not in uses.graph.outputs or value is None or told is None:
        return None
    if len(told) != value.rank or min(told, default=1) < 1:
        return None
    others = [dim for dim, size in zip(value.dims, told, strict=True) if dim != size]
    return None if len(others) > 1 or any(isinstance(dim, int) for dim in others) else value


QUIRK = Quirk(
    releases="2026.4",
    symptom="The first inference, and the first with larger inputs, are wrong where an operator "
    "behind an If whose output has an open shape needs memory before the output has been read.",
    fires="At an output of open shape of an If that something later in the same graph reads.",
    safe="The only part of a value, and a value in the shape that it has, are the value.",
    cost="a ShapeOf, a Gather and a VariadicSplit for each such output, which is copied once more",
    run=rewriting("If", by=kept, uses=True),
    undo={**undone("section"), "Reshape": untold},
)
