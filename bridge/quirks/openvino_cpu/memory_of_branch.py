"""An If with an output of open shape, whose memory the plugin uses again too early.

OpenVINO's CPU plugin runs operators in sections. It first infers the shapes of all results of a
section and enlarges their memory. Then it computes them. Results share memory if their sections do
not overlap. The plugin assumes that the output of an If is not alive in the section behind the If.
So the output is lost if this section needs more of the shared memory than ever before. This happens
in the first inference, and again with larger inputs. An operator with a computed shape begins a
section of its own. A VariadicSplit into one part as long as the axis is such an operator, and its
result is kept.
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
"""Types for which an output of the model has memory of its own, because the plugin computes in
them.

The plugin converts other types in front of the output. An output of a body always has memory of its
own.
"""


def kept(b: Builder, node: Node, place: Place) -> Result:
    """The If with each output that is read later split into one part. If Bridge knows the shape,
    each branch gives the shape to OpenVINO instead."""
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
    """Whether the memory of an output may be used again too early."""
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
    """Whether a node begins a section, so all operators before it run while its inputs are alive.

    An If with a known condition may become a part of the section before it.
    """
    return node.op == "If" and not is_known(node.condition, place)


class FixedShape(Must):
    """Whether OpenVINO, too, knows that a value has one shape. It knows fewer computed shapes than
    Bridge."""

    def outside(self, value: Value) -> bool:
        """The shape of a model input is fixed if the file gives it."""
        return True

    def settled(self, value: Value, fact: bool) -> bool:
        """If Bridge does not know a shape, OpenVINO does not know it either."""
        return fact and is_static(value.shape)

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """A result is fixed if the shapes of the inputs are fixed. An input whose elements decide
        the shape must be a constant."""
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
        """A state of a Loop has the fact of its initial value."""
        outer = None if isinstance(port, Iteration) else outer_input(port)
        source = None if outer is None else node.inputs[outer]
        return source is None or now(source)

    def exit(self, node: Node, value: Value, port: OutputPort, now: Now[bool]) -> bool:
        """OpenVINO does not know the shape of a stack."""
        return isinstance(port, Yield) and now(value)


def _is_kept(node: Node, value: Value) -> bool:
    """Whether a node is a split of a value into one part."""
    return recognise(node) == ("section", value)


def untold(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The result of a branch before its Reshape to its own shape. At most one size of it is
    unknown."""
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
    symptom="The first inference, and the first one with larger inputs, are wrong. This happens if "
    "an operator behind an If needs memory before an output of open shape has been read.",
    fires="At an output of open shape of an If, if a later node in the same graph reads it.",
    safe="The only part of a value is the value, and so is a value reshaped to its own shape.",
    cost="a ShapeOf, a Gather and a VariadicSplit for each such output, which is copied once more",
    run=rewriting("If", by=kept, uses=True),
    undo={**undone("section"), "Reshape": untold},
)
