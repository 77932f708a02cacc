"""Simplifications of OpenVINO that change the meaning of a model."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import May
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import BOOL, U8, is_static
from bridge.operators import Result
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses
from bridge.quirks.known import KnownAt, is_known, when_known
from bridge.quirks.quirk import BOTH, Place, barrier, quirk


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


PRODUCTS = frozenset({"MatMul", "Einsum"})
"""Operators that OpenVINO treats as a matrix product."""


# OpenVINO moves the Reshape in front of the product, where the empty shape crashes.
@quirk(
    "Reshape",
    needs=("Einsum", "MatMul"),
    symptom="OpenVINO crashes when it compiles a MatMul of one row and one column that is reshaped "
    "to a scalar. Operators of one input may stand between.",
    cost="none: a Squeeze takes the place of the Reshape",
)
def scalar_of_product(b: Builder, node: Node, place: Place) -> Result:
    """A value that becomes a scalar has one element. So all its axes have size 1, and are
    removed.
    """
    data, sizes = node.inputs
    assert data is not None and sizes is not None
    if sizes.shape != (0,) or not data.rank or not _is_of_product(data):
        return None
    return b.op("Squeeze", data, [*range(data.rank)])


def _is_of_product(value: Value) -> bool:
    """Whether a product computes a value, perhaps through operators with one computed input."""
    while (made := value.producer) is not None and not made.bodies:
        if made.op in PRODUCTS:
            return True
        computed = [v for v in made.inputs if v is not None and v.constant is None]
        if len(computed) != 1:
            return False
        value = computed[0]
    return False


@barrier(
    "GatherElements",
    hides="memory",
    symptom="OpenVINO removes a Slice from the first element in front of a GatherElements. "
    "Negative indices then count from another end, and the sizes of other axes no longer match.",
    cost="a maximum of the Slice with itself",
)
def slice_before_gather_elements(node: Node, place: Place) -> list[bool]:
    """At a GatherElements of a Slice that begins at 0 with step 1."""
    cut = node.operand(0).producer
    if cut is None or cut.op != "Slice":
        return []
    starts, steps = known_of(cut.inputs[1]).ints, known_of(cut.input(4)).ints
    return [set(starts or (-1,)) == {0} and set(steps or (-1,)) == {1}, False]


@quirk(
    "MatMul",
    recorded=True,
    symptom="A MatMul of a matrix of unknown size and a constant of rank 3 does not compile or "
    "does not run. OpenVINO converts it to a FullyConnected, which gives one matrix.",
    cost="an Unsqueeze of the constant and a Squeeze",
)
def matrix_times_stack(b: Builder, node: Node, place: Place) -> Result:
    """A product broadcasts leading axes of size 1. The added axis is removed again."""
    matrix, stack = node.inputs
    if matrix is None or is_static(matrix.shape) or matrix.rank not in (2, 3):
        return None
    if matrix.rank == 3 and isinstance(matrix.dims[0], int) and matrix.dims[0] != 1:
        return None
    if stack is None or stack.rank != 3 or stack.dims[0] == 1:
        return None
    if when_known(stack, place) > KnownAt.COMPUTED:
        return None
    first = b.constant([0])
    product = b.op("MatMul", matrix, b.op("Unsqueeze", stack, first), **node.attributes)
    return b.op("Squeeze", product, first)


# The CPU plugin treats all three inputs as one value of type bool. Its kernel does not support
# results of this type.
@quirk(
    "Where",
    engines=BOTH,
    symptom="A Select does not run if all three inputs are one value of type bool, or this value "
    'converted to u8 ("unsupported dst_prc: boolean").',
    cost="none: the value replaces the Select",
)
def selection_by_itself(b: Builder, node: Node, place: Place) -> Result:
    """Both choices are one value with the shape of the condition."""
    condition, one, other = node.inputs
    assert condition is not None and one is not None
    if one.element not in (BOOL, U8):
        return None
    same = condition is _truth(one) is _truth(other)
    return one if same else None


def _truth(value: Value | None) -> Value | None:
    """The truth value before its conversion to numbers, or the value itself."""
    made = value.producer if value is not None else None
    source = made.inputs[0] if made is not None and made.op == "Cast" else None
    return source if source is not None and source.element is BOOL else value
