"""Variables."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import I64, Interval
from bridge.operators import Result
from bridge.operators.matmul.attention import is_cache
from bridge.quirks.known import is_known
from bridge.quirks.magnitude import HELD
from bridge.quirks.opaque import is_hidden, opaque
from bridge.quirks.quirk import Place, quirk


# The CPU plugin has variables of some types alone. It computes i64 and f64 in 32 bits, in which
# it can hold them, too. It moves the nodes that compute a start into the node that reads the
# variable. That node supports only the sizes of the start, and no Concat can read its output. It
# holds an assigned value in the place of the start, and an input in its own memory.
@quirk(
    "ReadValue",
    "Assign",
    uses=True,
    symptom="A variable of f64, of 16-bit integers or of integers wider than i32 holds garbage, or "
    "does not compile. Nor does one whose conversion is an output, nor one with a computed start, "
    "if a Concat reads it or takes other sizes. One that takes an input of the model is a call "
    "ahead, one that takes a constant keeps its old value, and one of open size that takes a value "
    "of known size is empty or keeps the size of its start.",
    cost="two Converts, which the plugin drops; a copy of what is read or assigned, and a 0 from a "
    "Bucketize of a random number below 1/2, or from a sum over the start",
)
def copied_variable(b: Builder, node: Node, place: Place) -> Result:
    """The plugin computes i64, u64 and u32 modulo 2^32 and f64 as f32, so nothing that it computes
    needs more. A 16-bit integer is an i32. A state of 64 bits that is passed on as it is, which
    the plugin does exactly, is no variable. The types are in the metadata for the way back
    (`bridge/passes/state/variable_types.py`). The only row of a stack of a value is the value, and
    so is its only part, with the rest as its length. A remainder by 1 is 0.
    """
    value = node.outputs[0] if node.op == "ReadValue" else node.inputs[0]
    if value is None or value.element is None:
        return None
    held, attributes = HELD.get(value.element, value.element), dict(node.attributes)
    if node.op == "Assign":
        stored = _stored(b, node, value, place)
        if stored is value and held is value.element:
            return None
        return b.node("Assign", [b.cast(stored, held)], len(node.outputs), attributes).outputs
    (start,) = node.inputs
    is_moved = start is not None and _is_moved(start, node, place)
    if held is value.element and not is_moved and not _is_cast_for_output(value, place):
        return None
    if "variable_type" in attributes:
        attributes["variable_type"] = held
    given = None if start is None else b.cast(start, held)
    read = b.node("ReadValue", [given], 1, attributes).outputs[0]
    if is_moved and start is not None:
        axes = list(range(start.rank or 0))
        found = b.cast(b.op("Equal", start, start), I64)
        number = b.reshape(b.op("ReduceSum", found, axes, keepdims=False), 1)
        axis = next((a for a in axes if not isinstance(value.dims[a], int)), 0)
        read = opaque(b, read, "sizes", [axis], b.op("Mod", number, [1]))
    elif place.is_output(value) or _is_cast_for_output(value, place):
        read = opaque(b, read, "memory")
    return b.cast(read, value.element)


def _stored(b: Builder, node: Node, value: Value, place: Place) -> Value:
    """What a variable takes: a copy of an input, of a view of one, or of a known value, whose size
    is not known along an axis of open size."""
    variable = node.attributes["variable_id"]
    readers = (n for n in place.graph.nodes if n.op == "ReadValue")
    held = [n.outputs[0] for n in readers if n.attributes["variable_id"] == variable]
    stored = value
    if is_known(value, place) or _source(value) in place.graph.inputs:
        stored = opaque(b, value, "content")
    if held and held[0].rank == value.rank:
        sizes = enumerate(zip(held[0].shape or (), value.shape or (), strict=True))
        axes = [a for a, (own, new) in sizes if not isinstance(own, int) and isinstance(new, int)]
        stored = opaque(b, stored, "sizes", axes) if axes else stored
    return stored


# Its kernel for a cache takes the mask's last axis to be as long as the cache.
@quirk(
    "ScaledDotProductAttention",
    recorded=True,
    symptom="Attention that keeps its keys in a variable reads beyond a mask with one number for "
    "all keys: with hundreds of keys, numbers are wrong, or the process ends.",
    cost="a Broadcast of the mask to the number of keys",
)
def mask_of_one_key(b: Builder, node: Node, place: Place) -> Result:
    """A mask is broadcast to the scores, whose last axis is that of the keys."""
    key, mask = node.operand(1), node.input(3)
    if mask is None or not mask.rank or mask.dims[-1] != 1 or key.rank is None:
        return None
    if not is_cache(key.behind(traits=frozenset({"repeats", "view"}))):
        return None
    whole = b.expand(mask, *[1] * (mask.rank - 1), b.sizes(key, key.rank - 2))
    inputs = [whole if at == 3 else value for at, value in enumerate(node.inputs)]
    return b.op(node.op, *inputs, **node.attributes)


VIEWS = {
    "Broadcast", "Cast", "Concat", "Expand", "Identity", "Reshape", "Slice", "Split", "Squeeze",
    "Tile", "Transpose", "Unsqueeze", "VariadicSplit", "ir::Split",
}  # fmt: skip
"""Operators whose output may share the memory of their first or only operand."""


def _source(value: Value) -> Value:
    """The value whose memory a value may share."""
    while (made := value.producer) is not None and made.op in VIEWS and made.inputs[0] is not None:
        value = made.inputs[0]
    return value


def _is_cast_for_output(value: Value, place: Place) -> bool:
    """Whether a value in another type is an output of the model."""
    outputs = {output.behind("Identity") for output in place.graph.outputs}
    return any(
        user.op == "Cast"
        and user.outputs[0] in outputs
        and user.attributes["to"] is not value.element
        for user in place.users(value)
    )


_WITHIN_ATTENTION = (
    "Concat", "Expand", "Gather", "Reshape", "Transpose", "Unsqueeze",
)  # fmt: skip
"""Operators that may stand between a cache and its attention. The plugin fuses both into one node,
which has no such fault."""


def _is_moved(start: Value, node: Node, place: Place) -> bool:
    """Whether the plugin moves the computation of a start into the variable, which then has other
    sizes or a Concat as its reader."""
    held = node.outputs[0]
    if not start.rank or start.rank != held.rank or _is_shared(start, node, place):
        return False
    users = place.users(held)
    wanted = any(user.op == "Concat" for user in users) or _may_differ(node, start, place)
    return (
        wanted
        and not all(is_hidden(u.outputs[0], "sizes") for u in users)
        and not _for_attention(users, place)
    )


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
    from bridge.passes.wayback.replay import are_same

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
