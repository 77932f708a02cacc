"""Operators that an engine computes in one kernel with others, or instead of others."""

from functools import partial, reduce
from itertools import zip_longest
from operator import or_

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value, producer_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, Term, is_number, op, var
from bridge.neutral.types import F64, Dim, high, is_same, is_static, low, size_of
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.opaque import is_hidden
from bridge.quirks.quirk import (
    ARITHMETIC,
    BOTH,
    ELEMENTWISE,
    GPU,
    MOVES,
    REDUCTIONS,
    RESHAPES,
    Place,
    barrier,
    quirk,
)

SCALING = ("Add", "Div", "Mul", "Sub")
"""Arithmetic that the plugin fuses into a reduction, a product or a FakeQuantize."""

BOUNDS = ("Clip", "Max", "Min")
"""Operators that the plugin fuses into a FakeQuantize before the arithmetic."""

VIEWS = ("Cast", "Identity", *RESHAPES)
"""Operators that may stand between a reduction and the arithmetic."""

PRODUCTS = (
    "Conv", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData", "MatMul",
)  # fmt: skip
"""Operators whose kernels compute the arithmetic and the FakeQuantize behind them."""

LEVELS = (16, 255, 256)
"""The levels for which OpenVINO moves the arithmetic into the limits of the FakeQuantize."""

TINY = 1e-9
"""An epsilon up to which the variance of quantised values outweighs it."""

FAR = 8
"""The number of operators between two parts of what one kernel may compute."""


# The kernel of a reduction divides integers in f32. It reads a constant with one number for each
# channel along the wrong axis. The kernel of a MatMul has the columns of the product as channels.
@barrier(
    *SCALING,
    "BatchNormalization",
    "FakeQuantize",
    "Neg",
    "PRelu",
    hides="memory",
    after=("axes_of_interpolation",),
    uses=True,
    needs=(*REDUCTIONS, "Einsum", "FakeQuantize", "MatMul"),
    releases="2026.4, of channels behind a reduction with AVX2",
    symptom="Arithmetic with a constant for each channel in one kernel with another operator reads "
    "wrong elements of the constant. Behind a reduction of three axes that keeps the second, it "
    "takes another axis. A product of shape [n, 4, 3, 4] plus a constant of shape [1, 4, 1, 1] has "
    "this constant along the last axis; with another size there, or with a constant along a last "
    "axis of open size, the model fails. A FakeQuantize behind the arithmetic has the constant of "
    "the first channel for all, in a body or with a dynamic shape. Behind a reduction, an integer "
    "Divide by a constant rounds to the nearest integer. A constant divided by the result of a "
    "reduction or a product exchanges its operands, also of floats from which sizes follow. Behind "
    "a reduction of a tensor of three axes of f64, a Divide by one "
    "constant computes the first batch alone, and so does all arithmetic with one constant behind "
    "one of integers, a Subtract from another tensor and a Negative too.",
    cost="a maximum of the operand with itself",
)
def channels_in_kernel(node: Node, place: Place) -> list[bool]:
    """At arithmetic behind a reduction of three axes: of integers or f64, or with a constant of
    several elements. At a Div of integers or f64 behind any reduction, and at a constant divided by
    what comes from a reduction or a product. At arithmetic with a constant of several elements
    behind a product, unless they lie along a last axis of known size.

    At a FakeQuantize in a body or of open shape, behind arithmetic with constants of several
    elements, where nothing else reads the arithmetic. Not if a convolution or a MatMul in front
    computes all of it. Not if OpenVINO moves the constants into the limits: without bounds, with
    16, 255 or 256 levels, a known number of channels, and no scale below 0.
    """
    if node.op == "FakeQuantize":
        return [_is_quantised(node, place), *[False] * 4]
    one, other = node.operands[0], node.operands[-1]
    if node.op in ("BatchNormalization", "Neg"):
        return [_is_confused(one, other, node, place), *[False] * (len(node.inputs) - 1)]
    return [_is_confused(one, other, node, place), _is_confused(other, one, node, place)]


def _is_confused(data: Value, other: Value, node: Node, place: Place) -> bool:
    """Whether the kernel that computes an operand may compute the node wrongly."""
    kernel = _kernel(data, place)
    if kernel is None:
        return False
    if node.op == "Div" and data is node.operands[1] and is_known(other, place):
        return True
    several = _is_several(other, place)
    if kernel.op in REDUCTIONS:
        in_batches = kernel.operand(0).rank in (3, None)
        narrow = data.element is not None and data.element.is_float and data.element is not F64
        return (in_batches and several) or (not narrow and (in_batches or node.op == "Div"))
    behind = len(other.dims) - (node.outputs[0].rank or 0) if several else 0
    sizes = (*[1] * -behind, *other.dims) if node.op != "PRelu" or other.rank != 1 else (0, 1)
    return several and (sizes[-1] == 1 or not isinstance(data.dims[-1], int))


def _is_several(value: Value, place: Place) -> bool:
    """Whether OpenVINO knows a value of several elements."""
    return is_known(value, place) and is_static(value.shape) and size_of(value.shape) > 1


def _kernel(value: Value, place: Place) -> Node | None:
    """The reduction or product behind element-wise operators and views, each with one operand that
    is computed."""
    for _ in range(FAR):
        made = value.producer
        if made is None or is_hidden(value, "memory") or value.constant is not None:
            break
        if made.op in REDUCTIONS or made.op in ("Einsum", "MatMul"):
            return made
        if made.op not in (*ELEMENTWISE, *VIEWS, "PRelu"):
            break
        operands = made.operands[:1] if made.op in VIEWS else made.operands
        computed = [operand for operand in operands if not is_known(operand, place)]
        if len(computed) != 1:
            break
        value = computed[0]
    return None


def _is_quantised(node: Node, place: Place) -> bool:
    """Whether the kernel of a FakeQuantize computes arithmetic with channels."""
    x = node.operand(0)
    if (x.rank or 0) < 2 or (place.body is None and is_static(x.shape)):
        return False
    value, behind, moves = x, False, node.attributes["levels"] in LEVELS and place.body is None
    while (made := place.single_use(value, *SCALING, *BOUNDS)) and not is_hidden(value, "memory"):
        computed = [v for v in made.operands if not is_known(v, place)]
        if len(computed) != 1:
            break
        before = computed[0]
        moves &= made.op not in BOUNDS
        for constant in (v for v in made.operands if _is_several(v, place)):
            scale, behind = known_of(constant).reals, True
            moves &= before.rank == x.rank and isinstance(before.dims[1], int)
            moves &= made.op in ("Add", "Sub") or (scale is not None and bool((scale > 0).all()))
        value = before
    is_product = value.producer is not None and value.producer.op in PRODUCTS
    return behind and not (place.count(value) == 1 if is_product else moves)


USUAL_AXES = 4
"""The rank up to which the GPU plugin lays out all values alike."""

BROADCASTING = (*ARITHMETIC, "Mod", "ir::Mod", "SquaredDifference")
"""Operators that broadcast their inputs."""


# The CPU plugin drops a broadcast that only arithmetic reads, since arithmetic broadcasts. If the
# broadcast gives an empty tensor, and the other input has one element, the result then has one
# element instead of none.
@barrier(
    *BROADCASTING,
    hides="memory",
    engines=BOTH,
    after=("copied_output",),
    symptom="A Broadcast to a size of 0 is dropped if only arithmetic reads it. The sum of the "
    "empty tensor and one number was that number.",
    cost="a Max of the broadcast value",
)
def broadcast_into_arithmetic(node: Node, place: Place) -> list[bool]:
    """At arithmetic on a Broadcast that may be empty, if the other input may have a size of 1
    there.
    """
    if len(node.inputs) != 2 or node.inputs[0] is node.inputs[1]:
        return []
    one, other = node.inputs
    assert one is not None and other is not None
    first = _is_dropped(one, other)
    return [first, not first and _is_dropped(other, one)]


def _is_dropped(value: Value, beside: Value) -> bool:
    """Whether a broadcast value may be empty along an axis that may have size 1 in the other."""
    made = value.producer
    if made is None or made.op not in ("Broadcast", "Expand"):
        return False
    if value.shape is None or beside.shape is None:
        return False
    pairs = zip_longest(reversed(value.shape), reversed(beside.shape), fillvalue=1)
    return any(dim != other and low(dim) == 0 and _may_be_one(other) for dim, other in pairs)


def _may_be_one(dim: Dim) -> bool:
    most = high(dim)
    return low(dim) <= 1 and (most is None or most >= 1)


# The plugin moves the scale of quantised operands behind the product, and fuses it into the kernel.
# With open sizes, it fuses a scale that several operators read into none of them.
@barrier(
    *PRODUCTS,
    hides="memory",
    outputs=True,
    uses=True,
    needs=("FakeQuantize",),
    symptom="A product of quantised values of open size by ones of known size loses its scale if "
    "several operators read it, or one and an output.",
    cost="a maximum of the product with itself",
)
def scale_of_product(node: Node, place: Place) -> list[bool]:
    """At such a product, in a model with a FakeQuantize."""
    data, other = node.operands[:2]
    (product,) = node.outputs
    is_open = not is_static(data.shape) and is_static(other.shape)
    return [is_open and len(place.users(product)) + place.is_output(product) > 1]


# OpenVINO treats arithmetic as the dequantisation of integers, and moves it behind other operators.
@barrier(
    "GroupNormalization",
    "MVN",
    "Sub",
    hides="memory",
    needs=("FakeQuantize",),
    symptom="An MVN or a GroupNormalization of quantised values adds its epsilon to the "
    "variance of the integers. Quantised values that are scaled by a computed zero point and a "
    "computed scale are the least number.",
    cost="a Max of the value",
)
def moved_dequantisation(node: Node, place: Place) -> list[bool]:
    """In a model with a FakeQuantize, at a Sub of computed bytes from others, and at an MVN or a
    GroupNormalization of a computed value, if its epsilon counts.
    """
    if node.op == "Sub":
        return [all(map(_is_of_bytes, node.operands)), False]
    x = node.operand(0)
    epsilon = node.attributes["eps" if node.op == "MVN" else "epsilon"]
    is_scaled = epsilon > TINY and x.producer is not None and not is_hidden(x, "memory")
    return [is_scaled, *[False] * (len(node.inputs) - 1)]


def _is_of_bytes(value: Value) -> bool:
    """Whether a value, perhaps reshaped, is converted from computed bytes. Weights are not
    computed."""
    while made := producer_of(value, "Cast", "ir::Convert", "Reshape"):
        value = made.operand(0)
        if value.element is not None and value.element.bits == 8:
            return value.element.is_integer and value.constant is None
    return False


@barrier(
    "Transpose",
    hides="memory",
    symptom="An attention that is transposed to the shape of its queries is written over those "
    "that are still to be read. Its shape is theirs if there are as many queries as heads.",
    cost="a maximum of the attention with itself",
)
def attention_over_queries(node: Node, place: Place) -> list[bool]:
    """At a Transpose that exchanges the second and the third of four axes of an attention, if they
    have one known size above 1."""
    data, made = node.operand(0), node.operand(0).producer
    if made is None or known_of(node.inputs[1]).ints != (0, 2, 1, 3):
        return []
    size, is_product = data.dims[1], made.op == "MatMul"
    if not isinstance(size, int) or size < 2 or size != data.dims[2]:
        return []
    is_attention = is_product and _found(made.inputs[0], "Softmax", "Where") is not None
    return [is_attention or made.op == "ScaledDotProductAttention", False]


def _found(value: Value | None, op: str, through: str) -> Node | None:
    """The nearest node of an operator, behind operators that move elements and `through`."""
    todo = [value]
    for one in todo:
        made = None if one is None else one.behind("Cast", *MOVES).producer
        if made is not None and made.op == op:
            return made
        if made is not None and made.op == through and len(todo) < FAR:
            todo += made.inputs
    return None


def _gate(x: Term) -> Term:
    return op("Relu | Sigmoid | Tanh", x)


def _part(split: Term, *places: int) -> Term:
    """One of these parts of a value that is split along its second axis."""
    whole = op("ir::Split", split, var())
    return reduce(or_, (whole.taking(place) for place in places))


def _product(left: Term, bias: Term) -> Term:
    product = op("MatMul", left)
    return (product + bias) | product


INPUT, INPUT_AGAIN, STATE, STATE_AGAIN, STATE_AT_LAST = (var() for _ in range(5))
WHOLE, WHOLE_AGAIN, BIAS, BIAS_AGAIN = (var() for _ in range(4))
BOTH_INPUTS = op("Concat", INPUT, STATE)
GATES = _gate(_product(BOTH_INPUTS, BIAS))
RESET = _part(GATES, 0, 1)
UPDATE, UPDATE_AGAIN = _part(GATES, 0, 1), _part(GATES, 0, 1)
CANDIDATE = _gate(_product(op("Concat", INPUT_AGAIN, RESET * STATE_AGAIN), BIAS_AGAIN))
GRU = (WHOLE - UPDATE) * CANDIDATE + UPDATE_AGAIN * STATE_AT_LAST
UPDATED = (WHOLE_AGAIN - var()) * UPDATE
AUGRU = UPDATED * STATE_AT_LAST + (WHOLE - UPDATED) * CANDIDATE


# OpenVINO's GRUCellFusion and AUGRUCellFusion compare types of operators, and few of their
# operands.
@barrier(
    "Add",
    hides="memory",
    needs=("ir::Split",),
    symptom="Arithmetic like that of a GRU's cell is taken for it, though another number stands "
    "for 1, or other values for the input and the state.",
    cost="a maximum of a sum of the cell with itself, and the arithmetic itself",
)
def cell_of_other_operands(node: Node, place: Place) -> list[bool]:
    """At the last Add of what OpenVINO takes for a GRU's cell, if the operands are not those of
    such a cell.
    """
    for pattern in (GRU, AUGRU):
        for found in pattern.matches(node.outputs[0], Found(), lambda value: 1, root=True):
            return [not _is_cell(found), False]
    return []


def _is_cell(found: Found) -> bool:
    """Whether the matched operands are those of the cell."""
    x, state = found[INPUT], found[STATE]
    joined = found.node(BOTH_INPUTS)
    if (x.rank, state.rank) != (2, 2) or joined.attributes["axis"] not in (1, -1):
        return False
    if found[INPUT_AGAIN] is not x or not found[STATE_AGAIN] is found[STATE_AT_LAST] is state:
        return False
    update, biases = found[UPDATE], [found[bias] for bias in (BIAS, BIAS_AGAIN) if bias in found]
    if update is found[RESET] or not is_number(found[WHOLE], 1):
        return False
    if WHOLE_AGAIN in found:  # The parts of an AUGRU have one order.
        return is_number(found[WHOLE_AGAIN], 1) and update.node.outputs[1] is update
    return found[UPDATE_AGAIN] is update and all(bias.rank == 2 for bias in biases)


# If the plugin fuses such arithmetic into an activation or a normalization, it no longer
# broadcasts.
@quirk(
    *ARITHMETIC,
    recorded=True,
    engines=BOTH,
    symptom="Arithmetic fused into a Clamp, HSwish, Gelu, SoftPlus, MVN or similar gives a result "
    "of too low a rank. This happens if a constant of one element has the higher rank.",
    cost="an Unsqueeze",
)
def constant_of_higher_rank(b: Builder, node: Node, place: Place) -> Result:
    """Broadcasting gives the other operand the same axes of size 1."""
    first, second = node.inputs
    for value, constant in ((first, second), (second, first)):
        if value is None or constant is None or not constant.shape or value.rank is None:
            continue
        lacking = len(constant.shape) - value.rank
        if lacking <= 0 or set(constant.shape) != {1} or is_known(value, place):
            continue
        if is_known(constant, place):
            longer = b.unsqueeze(value, *range(lacking))
            operands = [longer if operand is value else operand for operand in node.inputs]
            return b.op(node.op, *operands, **node.attributes)
    return None


@barrier(
    "Mul",
    hides="memory",
    symptom="Integers in the form of HSwish are computed as such, in floats, and rounded: 1 times "
    "4 is 6.",
    cost="a maximum of the limited number with itself",
)
def activation_of_integers(node: Node, place: Place) -> list[bool]:
    """At a product of an integer and a limited sum of it."""
    x, y = node.operands
    if x.element is None or not x.element.is_integer:
        return []
    sums = [producer_of(v.behind(*BOUNDS), "Add") for v in (x, y)]
    return [
        made is not None and other in made.operands and not is_hidden(v, "memory")
        for made, other, v in zip(sums, (y, x), (x, y), strict=True)
    ]


# The plugin takes the layout of the first operand for the result, and it has too few axes.
@quirk(
    *ELEMENTWISE,
    recorded=True,
    engines=(GPU,),
    symptom="A result of five axes or more and open sizes is wrong, or the model does not compile, "
    "if the first operand has fewer axes.",
    cost="an Unsqueeze",
)
def first_operand_of_lower_rank(b: Builder, node: Node, place: Place) -> Result:
    """Broadcasting gives the operand the same axes of size 1."""
    if len(node.inputs) != 2:
        return None
    first, second = node.operands
    lacking = (second.rank or 0) - (first.rank or 0)
    if lacking <= 0 or (second.rank or 0) <= USUAL_AXES or first.constant is not None:
        return None
    longer = b.unsqueeze(first, *range(lacking))
    return b.op(node.op, longer, second, **node.attributes)


WITH_PARAMETERS = ("FakeQuantize", "PRelu")
"""Such operators whose further operands are broadcast in other ways, unless they are numbers."""

OF_ONE_RANK = (*ELEMENTWISE, *WITH_PARAMETERS)

MOST_AXES = 6
"""The rank up to which the plugin has such kernels."""


def _is_faulty(node: Node) -> bool:
    output = node.outputs[0]
    if output.rank is None or output.rank <= MOST_AXES or is_static(output.shape):
        return False
    if node.op == "Expand":  # OpenVINO writes a product with ones.
        return node.inputs[1] is not None and node.inputs[1].dims == (output.rank,)
    wide = [value for value in node.inputs if value is not None and not _is_number(value)]
    if node.op in WITH_PARAMETERS:
        return wide == node.inputs[:1]
    return node.op in ELEMENTWISE and bool(wide)


# The CPU plugin keeps kernels, and takes the one of a node of fewer axes. A bidirectional
# Broadcast is a product with ones there.
@quirk(
    *OF_ONE_RANK,
    "Expand",
    recorded=True,
    symptom="An element-wise operator of more than six axes of open sizes gives wrong numbers, if "
    "another node of this operator has fewer axes of open sizes.",
    cost="two Reshapes, which copy nothing; a Broadcast of each operand of another shape",
)
def kernel_of_lower_rank(b: Builder, node: Node, place: Place) -> Result:
    """Such an operator gives the same for vectors, if its operands have one shape."""
    if not _is_faulty(node):
        return None
    values = [value for value in node.inputs if value is not None]
    rank = node.outputs[0].rank or 0
    if node.op == "Expand":
        return b.op("Broadcast", values[0], _joined(b, _sizes(b, values[0], rank), values[1]))
    wide = list(dict.fromkeys(value for value in values if not _is_number(value)))
    same = [value for value in wide if is_same(value.shape, node.outputs[0].shape)]
    if len(wide) == 1 or len(same) == len(wide):
        same, shape = wide, b.op("Shape", wide[0])
    elif same:
        shape = b.op("Shape", same[0])
    else:
        shape = reduce(partial(_joined, b), [_sizes(b, value, rank) for value in wide])

    def flat(value: Value) -> Value:
        if _is_number(value):
            return b.reshape(value) if (value.rank or 0) > 1 else value
        return b.reshape(value if value in same else b.op("Broadcast", value, shape), -1)

    made = b.op(node.op, *map(flat, values), **node.attributes)
    return b.op("Reshape", made, shape, allowzero=True)


def _sizes(b: Builder, value: Value, rank: int) -> Value:
    """The shape of a value with so many axes, of which the first ones are new."""
    new = rank - (value.rank or 0)
    sizes = b.op("Shape", value)
    return b.op("Concat", b.constant([1] * new), sizes, axis=0) if new else sizes


def _joined(b: Builder, one: Value, other: Value) -> Value:
    """The sizes to which two values are broadcast. A size of 1 gives way to 0, too."""
    return b.where(one.equal(1), other, one)


def _is_number(value: Value) -> bool:
    return value.rank == 0 or (value.constant is not None and value.constant.size == 1)
