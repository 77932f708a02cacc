"""Simplifications of OpenVINO that change the meaning of a model."""

from collections.abc import Sequence
from operator import itemgetter, or_

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import May
from bridge.neutral.graph import Node, Value, producer_of
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import Dim, is_same, is_static
from bridge.operators import Result
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.quirk import BOTH, MOVES, RECURRENT, REDUCTIONS, RESHAPES, Place, barrier, quirk


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
    """At a view of a reduction without `keep_dims`, if it has the rank of the reduction, and all
    its axes but one are copied, or have size 1 and the number of a reduced axis. At such a
    reduction of a Transpose that moves axes of size 1 past those that stay. At a reduction behind
    new axes of size 1, if it keeps an axis before them, or counts from the end. At a GatherElements
    of a Slice that begins at 0 with step 1. At a Gather along a new axis of a tensor with several
    open sizes, but for a scalar index. At a Gather of known places in a vector that a Concat makes
    of one output of several. At a Transpose of the states of one of several recurrent layers of a
    tensor, with an axis for their one direction.
    """
    if None in (node.operand(0).rank, node.outputs[0].rank):
        return []
    if node.op == "GatherElements":
        wrong = _is_cut_from_start(node)
    elif node.op == "Gather":
        wrong = _is_gathered(node) or _is_of_part(node)
    elif node.op in MOVES:
        wrong = _is_dropped(node, place) or _is_of_steps(node, place)
    else:
        wrong = _is_moved(node, place)
    return [wrong, *[False] * (len(node.inputs) - 1)]


def _is_cut_from_start(node: Node) -> bool:
    cut = producer_of(node.operand(0), "Slice")
    starts, steps = (known_of(cut.input(i)).ints if cut else None for i in (1, 4))
    return set(starts or (-1,)) == {0} and set(steps or (-1,)) == {1}


def _is_gathered(node: Node) -> bool:
    """Whether OpenVINO removes an Unsqueeze of open sizes with what gathers along its axis."""
    data = node.operand(0)
    view = producer_of(data, "Unsqueeze")
    if not view or node.operand(1).rank == 0:
        return False
    new, along = (known_axes(v, data.rank or 0) for v in (view.input(1), node.input(2)))
    is_open = sum(not isinstance(dim, int) for dim in data.dims) > 1
    return is_open and not {*(new or ())}.isdisjoint(along or ())


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
    """Whether OpenVINO takes a view of a reduction for one that only keeps the reduced axes."""
    output, reduced = node.outputs[0], _before_views(node, place)
    reduction = producer_of(reduced, *REDUCTIONS)
    if not reduction or reduction.attributes["keepdims"] or place.count(output) != 1:
        return False
    if output.rank != reduced.rank or is_same(output.shape, reduced.shape):
        return False
    axes = known_axes(reduction.input(1), reduction.operand(0).rank or 0) or ()
    asked = known_of(node.input(1)).ints or ()
    copied = [False] * len(output.dims)
    if node.op == "Transpose":
        copied = [at == old for at, old in enumerate(asked)]
    elif node.op == "Reshape" and not node.attributes["allowzero"]:
        copied = [size == 0 for size in asked]
    # OpenVINO counts the axes otherwise once it has moved a view that stands in front.
    moves = producer_of(reduction.operand(0), *MOVES) is not None
    known = [dim == 1 and (moves or at in axes) for at, dim in enumerate(output.dims)]
    return _is_reshape(node) and sum(not one for one in map(or_, copied, known)) <= 1


def _is_moved(node: Node, place: Place) -> bool:
    """Whether OpenVINO moves a view of the data behind a reduction, and to a wrong place."""
    data = node.operand(0)
    axes = known_axes(node.input(1), data.rank or 0)
    if not axes:
        return False
    if not node.attributes["keepdims"]:
        order = [(old, data.dims[at]) for at, old in _order(data, place) if at not in axes]
        moving = [old for old, dim in order if dim != 1]
        if order != sorted(order, key=itemgetter(0)) and moving == sorted(moving):
            return True
    is_negative = min(known_of(node.inputs[1]).ints or ()) < 0
    view = place.single_use(data, *RESHAPES)
    if not view:
        return is_negative and _is_of_view(data, place)
    before = _before_views(view, place).shape or ()
    new = _new_axes(data.dims, before)
    if view.op == "Unsqueeze" and not new:
        new = [*(known_axes(view.input(1), data.rank or 0) or ())]
    if not new or not {*new}.isdisjoint(axes):
        return False
    others = [dim for at, dim in enumerate(data.dims) if at not in new]
    if others != [*before] or any(data.dims[at] != 1 for at in new):
        return True
    is_kept = node.attributes["keepdims"] and is_static(data.shape)
    return (is_kept and min(axes) < max(new)) or (is_negative and min(new) > max(axes))


def _order(value: Value, place: Place) -> list[tuple[int, int]]:
    """For each axis its place before Transposes, which OpenVINO moves behind reductions."""
    order = [*range(len(value.dims))]
    while made := place.single_use(value, "Transpose", *REDUCTIONS):
        old = known_of(made.input(1)).ints if made.op == "Transpose" else None
        if old is not None:
            order = [old[at] for at in order]
        elif made.op == "Transpose" or not made.attributes["keepdims"]:
            break
        value = made.operand(0)
    return [*enumerate(order)]


def _is_of_view(value: Value, place: Place) -> bool:
    """Whether reductions stand between a value and a view, which OpenVINO moves behind them."""
    while made := place.single_use(value, *REDUCTIONS):
        value = made.operand(0)
    return place.single_use(value, *RESHAPES) is not None


def _before_views(node: Node, place: Place) -> Value:
    """The value in front of a view, and of views that only this one reads."""
    value = node.operand(0)
    while (view := place.single_use(value, *MOVES)) and _is_reshape(view):
        value = view.operand(0)
    return value


def _is_reshape(view: Node) -> bool:
    order = known_of(view.input(1)).ints if view.op == "Transpose" else ()
    return order is not None and _moves_ones_alone(order, view.operand(0).shape or ())


def _moves_ones_alone(order: Sequence[int], dims: Sequence[Dim]) -> bool:
    """Whether the axes of other sizes than 1 keep their order among themselves."""
    others = [axis for axis in order if dims[axis : axis + 1] != (1,)]
    return others == sorted(others)


def _new_axes(wanted: Sequence[Dim], sizes: Sequence[Dim]) -> list[int]:
    """The axes of a view of known shape that OpenVINO takes for new ones of size 1."""
    if not is_static((*wanted, *sizes)):
        return []
    new: list[int] = []
    at = 0
    for place, size in enumerate(wanted):
        if at + 1 < len(sizes) and size == sizes[at]:
            at += 1
        elif size == 1 and (place >= len(sizes) + len(new) or sizes[at] != 1):
            new.append(place)
    return new if at + 1 >= len(sizes) else []
