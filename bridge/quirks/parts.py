"""Parts of tensors, which the GPU plugin reads at their place in the whole."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import (
    is_static,
    size_of,
)
from bridge.operators import Result
from bridge.quirks.opaque import hides
from bridge.quirks.quirk import (
    GPU,
    PARTS,
    RESHAPES,
    Place,
    barrier,
    is_computed_in,
    quirk,
)

READERS = {
    "Broadcast": 1, "Expand": 1, "Interpolate": 1, "Slice": 1, "StridedSlice": 1, "Tile": 1,
    "ir::NonMaxSuppression": 0, "ir::Pad": 1,
}  # fmt: skip
"""Operators that read inputs on the host, and the first of these inputs."""


IN_PLACE = frozenset({"Identity", *RESHAPES})
"""Operators whose result has the elements of their first input."""


# The plugin reads such a row on the host with a wrong layout, also behind arithmetic.
@quirk(
    "Gather",
    recorded=True,
    engines=(GPU,),
    model="list as a stack",
    symptom="One row of a matrix of integers with an open size, as an end of a Slice: memory runs "
    "out, or the process ends.",
    cost="a Squeeze",
)
def row_on_host(b: Builder, node: Node, place: Place) -> Result:
    """A row by a list of one index is a matrix of one row."""
    data, index, axis = node.operands
    is_wanted = index.rank == 0 and (data.rank or 0) > 1 and not is_static(data.shape)
    if not is_wanted or data.element is None or not data.element.is_integer:
        return None
    if node.attributes["batch_dims"] or known_of(axis).ints is None:
        return None
    rows = b.op("Gather", data, b.reshape(index, 1), axis, **node.attributes)
    return b.op("Squeeze", rows, b.reshape(axis, 1))


# The GPU plugin does not wait until an input of the model has been copied to the device.
@barrier(
    *READERS,
    hides="memory",
    engines=(GPU,),
    symptom="The pads of a Pad are the two halves of one tensor, and both are read from its start. "
    "So are the starts and ends of a Slice, the shape of a Broadcast and the repeats of a Tile. A "
    "NonMaxSuppression behind a Reshape of an input of the model often selects the boxes of the "
    "inference before.",
    cost="a Maximum for each such input",
)
def read_on_host(node: Node, place: Place) -> list[bool]:
    """At such an input that is a part of a tensor, unless the tensor is computed from shapes; at an
    input of NonMaxSuppression that is a reshaped input of the graph."""
    is_wrong = _is_view_of_input if node.op == "ir::NonMaxSuppression" else _is_part
    return [
        at >= READERS[node.op] and value is not None and is_wrong(value)
        for at, value in enumerate(node.inputs)
    ]


def _is_view_of_input(value: Value) -> bool:
    """Whether a value is an input of the graph with other sizes."""
    before = value.behind(*IN_PLACE)
    return before is not value and before.producer is None and before.constant is None


def _is_part(value: Value) -> bool:
    """Whether a value is a part of a tensor of data. The plugin has parts of shapes on the host."""
    node = value.producer
    if node is None or known_of(value).array is not None:
        return False
    if value.element is None or not value.element.is_integer:
        return False
    before = node.inputs[0]
    if node.op in IN_PLACE and before is not None:
        return _is_part(before)
    if node.op == "Gather" and node.inputs[1] is not None and node.inputs[1].rank != 0:
        return False  # It has memory of its own.
    return node.op in PARTS and before is not None and not is_of_shapes(before)


def is_of_shapes(value: Value) -> bool:
    """Whether a value is computed from shapes and constants alone."""
    seen, left = set[Value](), [value]
    while left:
        one = left.pop()
        if one in seen or one.constant is not None:
            continue
        seen.add(one)
        node = one.producer
        if node is None or node.bodies:
            return False
        if node.op != "Shape":
            left += [each for each in node.inputs if each is not None]
    return True


MOST_AXES = 4
"""The plugin copies parts of tensors with more axes."""


SPLITS = frozenset({"VariadicSplit", "ir::Split"})
"""Operators whose parts are read in place whether their sizes are known or not."""


MISREADERS = frozenset({"GatherND", "MatMul"})
"""Operators that read parts of more axes than two wrongly."""


# The GPU plugin reads parts of tensors of known sizes at their place in the whole tensor. A kernel
# that broadcasts reads one row of a matrix at `(start + f) % size`, which is always the first row.
# The kernel for a MatMul with known weights steps from row to row as if no element were left out.
@barrier(
    *PARTS,
    hides="memory",
    outputs=True,
    uses=True,
    engines=(GPU,),
    symptom="A row `x[1:2]` times a number gives the products of the first row. A MatMul or a "
    "GatherND takes wrong elements of a part of a tensor with three or four axes. A MatMul whose "
    "second operand is a part does not compile.",
    cost="a Maximum, or a LogicalOr, for each such part",
)
def parts_in_place(node: Node, place: Place) -> list[bool]:
    """At a part that is one row, at the second operand of a MatMul, and at a part of a tensor with
    three or four axes that a MatMul or a GatherND reads; at a Slice or a Gather only if all sizes
    are known.
    """
    return [_is_misread(node, part, place) for part in node.outputs]


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
    turned = [part, *(reader.outputs[0] for reader in readers if reader.op == "Transpose")]
    products = [(v, user) for v in turned for user in place.users(v) if user.op == "MatMul"]
    if any(user.inputs[1] is v for v, user in products) or (
        whole.rank > 2 and any(reader.op in MISREADERS for reader in readers)
    ):
        return node.op in SPLITS or (sizes is not None and sizes != whole.shape)
    is_row = sizes is not None and size_of(sizes) == sizes[1] > 1
    return is_row and sizes != whole.shape


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
