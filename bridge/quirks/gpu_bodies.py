"""Values that bodies on the GPU plugin share with the graph around, or with each other."""

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import (
    Carried,
    Condition,
    InputPort,
)
from bridge.neutral.rewrite import ValueUses
from bridge.neutral.types import (
    BOOL,
    F32,
)
from bridge.operators import Result
from bridge.quirks.opaque import hides, is_hidden, opaque
from bridge.quirks.quirk import (
    GPU,
    Place,
    is_computed_in,
    quirk,
)


# Each branch has memory of its own for its outputs.
@quirk(
    "If",
    engines=(GPU,),
    symptom="A node that reads an If keeps the memory of the branch that ran first. An If with two "
    "outputs does not compile, or a branch that hands its inputs through gives other values.",
    cost="two Maximum and a VariadicSplit for each output; a scalar becomes a vector inside, which "
    "stays on the way back to ONNX",
)
def copied_branches(b: Builder, node: Node, place: Place) -> Result:
    """A copy has the same elements; the only part of a value is the value."""
    wanted = [
        index
        for index, output in enumerate(node.outputs)
        if all(_is_copied_here(value) for value in (output, *_ends(node, index)))
        and not all(map(_is_copy_in_branch, _ends(node, index)))
    ]
    if not wanted:
        return None
    bodies = tuple(map(clone_body, node.bodies))
    for body in bodies:
        inner = Builder(body.graph.nodes, node.name, b.target)
        with inner:
            for index in wanted:
                given = body.given(index)
                end = body.graph.outputs.index(given)
                value = inner.reshape(given, 1) if given.rank == 0 else given
                body.graph.outputs[end] = opaque(inner, value, "memory")
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


def _is_copy_in_branch(value: Value) -> bool:
    """Whether a value is such a copy, and not the copy of another If's output."""
    made = value.producer
    if made is None or not is_hidden(value, "memory"):
        return False
    inside = made.inputs[0]
    return inside is not None and not is_hidden(inside, "sizes")


@quirk(
    "Loop",
    engines=(GPU,),
    symptom="A Loop reads an input at its place in an earlier run. A state that becomes another "
    "state is overwritten before it is read. A state that is also stacked keeps its last value. A "
    "state that has one reader keeps its first size. A boolean result is read as the first result "
    "of the Loop, if one of them has more than four axes.",
    cost="a Maximum, a LogicalOr, or two Converts, for each of these values",
)
def copied_loops(b: Builder, node: Node, place: Place) -> Result:
    """A copy has the same elements."""
    inputs = [_copy_of_value(b, value) if at > 1 else value for at, value in enumerate(node.inputs)]
    body = clone_body(node.body)
    head, uses = Builder([], node.name, b.target), ValueUses(body.graph)
    outputs = frozenset(body.graph.outputs)
    with head:
        body.graph.inputs = [
            _read_state(head, value, port, value in outputs, uses) for value, port in body.entries()
        ]
    body.graph.prepend(head.nodes)
    inner = Builder(body.graph.nodes, node.name, b.target)
    with inner:
        ends = [
            value if isinstance(port, Condition) else _copy_of_value(inner, value)
            for value, port in body.exits()
        ]
    mixed = [_is_read_as_first(value, node.outputs[0], place) for value in node.outputs]
    if inputs == node.inputs and ends == body.graph.outputs and not (head.nodes or any(mixed)):
        return None
    body.graph.outputs = [value for value in ends if value is not None]
    made = b.node(
        "Loop", inputs, len(node.outputs), dict(node.attributes), (body,), node.name, node.extras
    )
    for new, old in zip(made.outputs, node.outputs, strict=True):
        new.type = new.declared = old.type
    pairs = zip(made.outputs, mixed, strict=True)
    return [b.cast(b.cast(value, F32), BOOL) if turns else value for value, turns in pairs]


def _is_read_as_first(value: Value, first: Value, place: Place) -> bool:
    """Whether a boolean result of a Loop, which is not only converted, has another layout than the
    first result."""
    if value.element is not BOOL or max(value.rank or 0, 4) == max(first.rank or 0, 4):
        return False
    return place.is_output(value) or any(user.op != "Cast" for user in place.uses.users(value))


def _read_state(
    head: Builder, value: Value, port: InputPort, leaves: bool, uses: ValueUses
) -> Value:
    """The input of a body that stands for a value; a state is only read for its copy."""
    if not isinstance(port, Carried) or value.element is None or not is_computed_in(value.element):
        return value
    if not leaves and all(hides(reader, "memory") for reader in uses.users(value)):
        return value
    state = Value(value.type, value.names)
    value.names = []
    head.node("Or" if value.element is BOOL else "Max", [state, state], [value])
    return state


def _copy_of_value(b: Builder, value: Value | None) -> Value | None:
    if value is None or value.constant is not None or is_hidden(value, "memory"):
        return value
    if value.element is None or not is_computed_in(value.element):
        return value
    return opaque(b, value, "memory")
