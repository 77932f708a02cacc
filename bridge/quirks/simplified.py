"""Simplifications of OpenVINO that change the meaning of a model."""

from collections.abc import Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import May
from bridge.neutral.graph import Node, Value, producer_of
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import is_same
from bridge.operators import Result
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.quirk import BOTH, MOVES, RECURRENT, REDUCTIONS, Place, barrier, quirk


class OfShape(May):
    """Whether a value may be computed from the shape of another value."""

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """The results of such a value are computed from the shape, too."""
        return [node.op in ("Shape", "Size") or any(facts)] * len(node.outputs)


FORWARDING = frozenset((
    "Abs", "Add", "Broadcast", "Cast", "Div", "Expand", "Flatten", "Gather", "GatherElements",
    "Mul", "Pad", "Reshape", "Reverse", "Roll", "ScatterElements", "ScatterND", "ScatterUpdate",
    "Slice", "SliceScatter", "Split", "Squeeze", "StridedSlice", "Sub", "Tile", "Transpose",
    "Unsqueeze", "VariadicSplit", "Where", "ir::Convert", "ir::Pad", "ir::Split",
))  # fmt: skip
"""Operators that OpenVINO replaces by one of their operands, if they change nothing."""


class MayBeConcat(May):
    """Whether OpenVINO may treat a value as a Concat.

    OpenVINO merges equal Concats. So a Concat with one reader may get others.
    """

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """The analysis finds each Concat, and each forwarding operator behind a Concat."""
        found = node.op == "Concat" or (node.op in FORWARDING and any(facts))
        return [found] * len(node.outputs)


# If the vector is a Concat, OpenVINO takes the absolute value of its inputs, so all readers of
# the Concat see it (AbsSinking of SimplifyShapeOfSubGraph).
@quirk(
    "Abs",
    engines=BOTH,
    symptom="The Abs of a vector that comes from a ShapeOf is dropped. If the vector is a Concat, "
    "other readers of this Concat, or of an equal one, read the absolute values.",
    issue="https://github.com/openvinotoolkit/openvino/issues/38166",
    cost="an Unsqueeze and a Squeeze",
)
def absolute_value_of_shape(b: Builder, node: Node, place: Place) -> Result:
    """Abs works element by element, so it gives the same for a matrix of one row. The row axis is
    removed again.
    """
    (x,) = node.inputs
    if x is None or x.rank != 1:
        return None
    if not is_known(x, place) and not any(place.facts(a).of(x) for a in (OfShape, MayBeConcat)):
        return None
    axis = b.constant([0])
    return b.op("Squeeze", abs(b.op("Unsqueeze", x, axis)), axis)


X = var()

ABS = abs(op("Unsqueeze", X, 0))


@absolute_value_of_shape.undoes("Squeeze")
@fuses(op("Squeeze", ABS, 0), ABS)
def of_vector(b: Builder, found: Found, uses: Uses) -> Value:
    """The Abs of the vector, from the Abs of the matrix."""
    return abs(found[X])


# OpenVINO moves the Reshape in front of the product, where the empty shape crashes. Operators of
# one input may stand between.
@quirk(
    "Reshape",
    needs=("Einsum", "MatMul"),
    recorded=True,
    model="while_loop, conjugate gradients",
    symptom="OpenVINO crashes when it compiles a MatMul of one row and one column that is reshaped "
    "to a scalar.",
    cost="none: a Squeeze takes the place of the Reshape",
)
def scalar_of_product(b: Builder, node: Node, place: Place) -> Result:
    """A value that becomes a scalar has one element. So all its axes have size 1, and are
    removed.
    """
    data, sizes = node.operands[:2]
    return b.op("Squeeze", data, [*range(data.rank)]) if sizes.shape == (0,) and data.rank else None


# Passes of OpenVINO: EliminateReduceReshape, PullReshapeThroughReduce, TransposeReduction,
# EliminateSlice.
@barrier(
    *REDUCTIONS,
    *MOVES,
    "Gather",
    "GatherElements",
    hides="memory",
    uses=True,
    symptom="OpenVINO merges or moves views beside another operator wrongly. A Reshape of a "
    "reduction without `keep_dims` to the same rank is dropped, so a maximum of shape [1, 2] that "
    "is reshaped to [2, 1] stays as it is. A reduction with `keep_dims` of an unsqueezed tensor "
    "has its axes at other places. A Slice from the first element in front of a GatherElements is "
    "dropped, so negative indices count from another end. A Gather of rows along a new axis of "
    "open sizes gives one row. A Gather from a vector that joins parts of a Split reads the first "
    "part. Of a forward and a reverse recurrent layer of one tensor, one gets wrong steps if both "
    "keep the axis of directions.",
    cost="a maximum of the view, or of its operand, with itself",
)
def rearranged_views(node: Node, place: Place) -> list[bool]:
    """At a view of a reduction without `keep_dims` that has the rank of the reduction and another
    shape. At a reduction of a view that has an axis of size 1 at a new place, and keeps this axis.
    At a GatherElements of a Slice. At a Gather from an Unsqueeze with several open sizes, but for a
    scalar index. At a Gather of known places in a vector that a Concat makes of one output of
    several. At a Transpose of the states of one of several recurrent layers of a tensor, with an
    axis for their one direction.
    """
    data, output = node.operand(0), node.outputs[0]
    if None in (data.rank, output.rank):
        return []
    if node.op == "GatherElements":
        wrong = producer_of(data, "Slice") is not None
    elif node.op == "Gather":
        is_open = sum(not isinstance(dim, int) for dim in data.dims) > 1
        is_new = is_open and producer_of(data, "Unsqueeze") is not None
        wrong = (is_new and node.operand(1).rank != 0) or _is_of_part(node)
    elif node.op in MOVES:
        wrong = _is_dropped(node, place) or _is_of_steps(node, place)
    else:
        wrong = _is_moved(node, place)
    return [wrong, *[False] * (len(node.inputs) - 1)]


def _is_of_part(node: Node) -> bool:
    """Whether OpenVINO takes the first output of the node that makes a part of a vector."""
    joined = producer_of(node.operand(0), "Concat")
    makers = [value.producer for value in joined.operands] if joined else []
    is_known = node.operand(0).rank == 1 and known_of(node.input(1)).ints is not None
    return is_known and any(made is not None and len(made.outputs) > 1 for made in makers)


def _is_of_steps(node: Node, place: Place) -> bool:
    """Whether OpenVINO joins a Transpose with one of several recurrent layers of a tensor."""
    states = node.operand(0)
    layer = producer_of(states, *RECURRENT) if node.op == "Transpose" else None
    if layer is None or states.rank != 4 or states.dims[1] != 1:
        return False
    readers = [*place.users(layer.operand(0).behind("Transpose"))]
    readers += [user for view in readers for user in place.users(view.outputs[0])]
    return sum(reader.op in RECURRENT for reader in readers) > 1


def _is_dropped(node: Node, place: Place) -> bool:
    """Whether OpenVINO may take a view of a reduction for one that only keeps the reduced axes."""
    reduced, output = node.operand(0), node.outputs[0]
    while (view := place.single_use(reduced, *MOVES)) and _is_reshape(view):
        reduced = view.operand(0)
    reduction = producer_of(reduced, *REDUCTIONS)
    if not reduction or reduction.attributes["keepdims"] or output.rank != reduced.rank:
        return False
    return _is_reshape(node) and not is_same(output.shape, reduced.shape)


def _is_moved(node: Node, place: Place) -> bool:
    """Whether OpenVINO may move a view of the data behind a reduction, and to a wrong place."""
    data = node.operand(0)
    value, axes = data, known_axes(node.input(1), data.rank or 0) or ()
    while made := place.single_use(value, *REDUCTIONS):
        value = made.operand(0)
    view = place.single_use(value, *MOVES)
    before = view.operand(0).dims if view else data.dims
    kept = (at for at, dim in enumerate(data.dims) if dim == 1 and at not in axes)
    return any(before[at : at + 1] != (1,) for at in kept)


def _is_reshape(view: Node) -> bool:
    """Whether a view keeps the order of the axes of other sizes than 1."""
    if view.op != "Transpose":
        return True
    order, dims = known_of(view.input(1)).ints, view.operand(0).dims
    others = [axis for axis in order or () if axis is not None and dims[axis] != 1]
    return order is not None and others == sorted(others)
