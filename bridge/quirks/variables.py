"""Variables."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import F32, F64, I16, I32, I64, U16, U32, U64, Element, Interval
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.opaque import is_hidden, opaque
from bridge.quirks.quirk import Place, barrier, quirk

HELD: dict[Element, Element] = {F64: F32, I64: I32, U64: I32, U32: I32, I16: I32, U16: I32}
"""The types of variables that do not run, and those in which the plugin computes them."""


# The CPU plugin has variables of some types alone. It computes i64 and f64 in 32 bits, in which
# it can hold them, too.
@quirk(
    "ReadValue",
    "Assign",
    symptom="A variable of f64, of 16-bit integers or of integers wider than i32 holds garbage, or "
    "its model does not compile.",
    cost="two Converts, which the plugin drops.",
)
def wide_variables(b: Builder, node: Node, place: Place) -> Result:
    """The plugin computes i64, u64 and u32 modulo 2^32 and f64 as f32, so nothing that it computes
    needs more. A 16-bit integer is an i32. A state of 64 bits that is passed on as it is, which the
    plugin does exactly, is no variable. The types are in the metadata for the way back
    (`bridge/passes/state/types.py`).
    """
    value = node.outputs[0] if node.op == "ReadValue" else node.inputs[0]
    if value is None or value.element not in HELD:
        return None
    held, attributes = HELD[value.element], dict(node.attributes)
    given = [None if one is None else b.cast(one, held) for one in node.inputs]
    if node.op == "Assign":
        return b.node("Assign", given, len(node.outputs), attributes).outputs
    if "variable_type" in attributes:
        attributes["variable_type"] = held
    return b.cast(b.node("ReadValue", given, 1, attributes).outputs[0], value.element)


_WITHIN_ATTENTION = (
    "Concat", "Expand", "Gather", "Reshape", "Transpose", "Unsqueeze",
)  # fmt: skip
"""Operators that may stand between a cache and its attention. The plugin fuses both into one node,
which has no such fault."""


# The CPU plugin moves the nodes that compute the start into the node that reads the variable.
# That node supports only the sizes of the start, and no Concat can read its output.
@quirk(
    "ReadValue",
    uses=True,
    symptom="A variable whose computed start has no other reader does not compile or run in two "
    "cases: a Concat reads the variable, or its sizes differ from the start. If it takes a value "
    "of another size, it keeps that size after a reset.",
    cost="a VariadicSplit, and a sum over the start in each call.",
)
def computed_start(b: Builder, node: Node, place: Place) -> Result:
    """A remainder by 1 is 0. The only part of a value, with the rest as its length, is the
    value.
    """
    (start,), held = node.inputs, node.outputs[0]
    if start is None or not start.rank or start.rank != held.rank or _is_shared(start, node, place):
        return None
    users = place.users(held)
    fixed = any(isinstance(d, int) and d != h for d, h in zip(start.dims, held.dims, strict=True))
    wanted = fixed or any(user.op == "Concat" for user in users) or _may_differ(node, start, place)
    if not wanted or _for_attention(users, place):
        return None
    axes = list(range(start.rank))
    found = b.cast(b.op("Equal", start, start), I64)
    number = b.reshape(b.op("ReduceSum", found, axes, keepdims=False), 1)
    read = b.node("ReadValue", [start], 1, dict(node.attributes)).outputs[0]
    axis = next((a for a in axes if not isinstance(held.dims[a], int)), 0)
    return opaque(b, read, "sizes", [axis], b.op("Mod", number, [1]))


def _may_differ(node: Node, start: Value, place: Place) -> bool:
    """Whether what the variable takes may have other sizes than its start."""
    variable = node.attributes["variable_id"]
    taken = (n for n in place.graph.nodes if n.op == "Assign")
    return any(
        n.attributes["variable_id"] == variable and not _is_alike(n.inputs[0], start) for n in taken
    )


def _is_alike(value: Value | None, start: Value) -> bool:
    """Whether a value is known to have the sizes of the start."""
    known = value is not None and value.shape == start.shape and start.shape is not None
    return known and not any(isinstance(dim, Interval) for dim in start.dims)


def _is_shared(start: Value, node: Node, place: Place) -> bool:
    """Whether the start is not computed, has another reader, or is the start of another variable
    too."""
    from bridge.passes.fuse.replay import are_same

    if start.producer is None or start.constant is not None or place.users(start) != [node]:
        return True
    leaves = {value: value for value in place.graph.inputs}
    others = (n for n in place.graph.nodes if n.op == "ReadValue" and n is not node)
    return any(are_same([(start, other.inputs[0])], leaves) for other in others)


def _for_attention(users: list[Node], place: Place) -> bool:
    """Whether attention reads the variable."""
    found = [*users]
    for user in found:
        if user.op in _WITHIN_ATTENTION:
            found += (n for n in place.users(user.outputs[0]) if n not in found)
    return any(user.op == "ScaledDotProductAttention" for user in found)


@barrier(
    "Cast",
    hides="memory",
    needs=("ReadValue",),
    symptom="A variable whose conversion is an output does not compile: the plugin gives the "
    "variable itself the type of the output.",
    cost="a copy of the variable.",
)
def cast_of_variable(node: Node, place: Place) -> list[bool]:
    """At a Cast of a ReadValue to another type that is an output of the model."""
    read, (output,) = node.inputs[0], node.outputs
    if read is None or read.producer is None or read.producer.op != "ReadValue":
        return []
    outputs = {value.behind("Identity") for value in place.graph.outputs}
    return [output in outputs and read.element is not output.element]


VIEWS = {
    "Broadcast", "Cast", "Concat", "Expand", "Identity", "Reshape", "Slice", "Split", "Squeeze",
    "Tile", "Transpose", "Unsqueeze", "VariadicSplit", "ir::Split",
}  # fmt: skip
"""Operators whose output may share the memory of their first or only operand."""


@barrier(
    "Assign",
    hides="memory",
    symptom="A variable that takes an input of the model is a call ahead. It shares the memory of "
    "the input, and the next call overwrites it. One that takes a constant keeps its old value.",
    cost="a copy of the assigned value.",
)
def assigned_input(node: Node, place: Place) -> list[bool | str]:
    """At an Assign of an input, of a view of one, or of a value known before the model runs.

    The maximum of a value with itself is the value, as is the only row of a stack of it.
    """
    (after,) = node.inputs
    assert after is not None
    if is_hidden(after, "memory", "content"):
        return []
    return ["content" if is_known(after, place) else _source(after) in place.graph.inputs]


def _source(value: Value) -> Value:
    """The value whose memory a value may share."""
    while (made := value.producer) is not None and made.op in VIEWS and made.inputs[0] is not None:
        value = made.inputs[0]
    return value


# The CPU plugin holds such a value in the place of the variable's start.
@quirk(
    "Assign",
    symptom="A variable of open size that takes a value of known size is empty, or keeps the size "
    "of its start.",
    cost="a VariadicSplit, and a 0 from a Bucketize of a random number below 1/2, along each such "
    "axis.",
)
def assigned_size(b: Builder, node: Node, place: Place) -> Result:
    """The only part of a value, with the rest as its length, is the value."""
    (after,) = node.inputs
    variable = node.attributes["variable_id"]
    held = next(
        (
            reader.outputs[0]
            for reader in place.graph.nodes
            if reader.op == "ReadValue" and reader.attributes["variable_id"] == variable
        ),
        None,
    )
    if after is None or held is None or after.rank != held.rank:
        return None
    sizes = enumerate(zip(held.shape or (), after.shape or (), strict=True))
    axes = [a for a, (own, new) in sizes if not isinstance(own, int) and isinstance(new, int)]
    if not axes:
        return None
    hidden = opaque(b, after, "sizes", axes)
    return b.node("Assign", [hidden], len(node.outputs), dict(node.attributes)).outputs
