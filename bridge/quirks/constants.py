"""Constants that an engine computes or scales when it compiles a model."""

from collections.abc import Iterable

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.types import (
    F4E2M1,
    F8E4M3FN,
    F8E5M2,
    F16,
    F32,
    I2,
    I4,
    I8,
    U1,
    U2,
    U3,
    U4,
    U6,
    U8,
)
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.passes.uses import Uses
from bridge.quirks.known import KnownAt, is_known, is_unfolded, when_known
from bridge.quirks.quirk import (
    GPU,
    MOVES,
    RECURRENT,
    Place,
    barrier,
    graph_quirk,
    may_hold,
    quirk,
    rewriting,
)

TAKERS = (
    "Add", "And", "BitwiseAnd", "BitwiseLeftShift", "BitwiseOr", "BitwiseRightShift", "BitwiseXor",
    "Div", "Equal", "FakeQuantize", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
    "Min", "Mod", "Mul", "NotEqual", "Or", "PRelu", "Pow", "SquaredDifference", "Sub", "Where",
    "Xor", "ir::Mod",
)  # fmt: skip
"""Elementwise operators with several operands."""

CONVOLUTIONS = (
    "Conv", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData",
)  # fmt: skip


# OpenVINO folds operators of constants if it can evaluate them. The CPU plugin runs the other ones
# once, when it compiles the model. An elementwise operator may then write its result over such a
# value. The next inference, or the next iteration of a Loop, reads the overwritten value.
@barrier(
    *TAKERS,
    *CONVOLUTIONS,
    hides="content",
    beside=is_unfolded,
    after=("integers_in_f32",),
    symptom="An operator of constants that OpenVINO does not fold (GatherElements, GatherND, Conv, "
    "Elu, ..., a Gather or MatMul of scaled bytes, arithmetic in 8 bits) is computed once. An "
    "elementwise operator writes over its result, which is wrong from the second inference or "
    "iteration on. A convolution of quantised constants reads freed memory, or does not compile.",
    cost="a Gather of the constant, and a 0 from a Bucketize of a random number below 1/2",
)
def computed_constant(node: Node, place: Place) -> list[bool]:
    """At an elementwise operator with one input that the plugin computes from constants and one
    that it does not know. At a convolution that knows all."""
    known = [when_known(value, place) for value in node.operands]
    if node.op in CONVOLUTIONS:
        return [max(known) < KnownAt.UNKNOWN, *[False] * (len(known) - 1)]
    return [
        fact is KnownAt.COMPUTED < max(known) and may_hold(value, node.outputs[0])
        for value, fact in zip(node.operands, known, strict=True)
    ]


EXACT = frozenset({F4E2M1, F8E4M3FN, F8E5M2, I2, I4, I8, U1, U2, U3, U4, U6, U8})
"""The types of 8 bits or fewer with no numbers outside f16. f16 lacks numbers of nf4 and f8e8m0."""


# The CPU plugin converts such weights once, and scales them in place at each inference.
@quirk(
    "Mul",
    recorded=True,
    symptom="A constant of 8 bits or fewer is scaled again at each inference. This happens if it "
    "is converted, and its scale or its zero point is computed.",
    cost="a Convert, and memory for the constant in f32",
)
def scaled_in_place(b: Builder, node: Node, place: Place) -> Result:
    """f16 has all numbers of these types. So the conversion through f16 changes none."""
    (weights, scale), offset = node.inputs, None
    assert weights is not None and scale is not None
    if weights.producer is not None and weights.producer.op == "Sub":
        weights, offset = weights.producer.inputs
    narrow = _narrow(weights)
    given = [value for value in (scale, offset) if value is not None]
    if narrow is None or weights is None:
        return None
    if all(when_known(value, place) <= KnownAt.COMPUTED for value in given):
        return None
    wide = b.cast(b.cast(narrow, F16), weights.element)
    scale = b.unsqueeze(scale, *range((narrow.rank or 0) - (scale.rank or 0)))
    return (wide if offset is None else wide - offset) * scale


def _narrow(value: Value | None) -> Value | None:
    """The constant of an exact type before its conversion to a value; None without such a
    constant."""
    if value is None or value.producer is None or value.producer.op != "Cast":
        return None
    source = value.producer.inputs[0]
    if source is None or source.element not in EXACT or source.behind("Cast").constant is None:
        return None
    return source


# OpenVINO keeps such weights scaled. A recurrent layer expects constants, and the kernel of 8 bits
# of ConvolutionBackpropData takes no zero point of weights.
@graph_quirk(
    "FakeQuantize",
    symptom="A model that quantises values does not compile if a recurrent layer has weights of 8 "
    "bits or fewer: expects Constant. A ConvolutionBackpropData of quantised data ignores the zero "
    "point of such weights.",
    cost="a Convert, which OpenVINO folds, and memory for the weights in f32",
)
def unscaled_weights(graph: Graph, context: Context) -> bool | None:
    """f16 has all numbers of these types. So the conversion through f16 changes none."""
    weights = _leading_to(
        value
        for node in graph.walk()
        for value in (node.inputs[2:] if node.op in RECURRENT else _shifted(node))
    )

    def widened_twice(b: Builder, node: Node, place: Place) -> Result:
        stored = node.inputs[0]
        if stored is None or stored.element not in EXACT or node.attributes["to"] is not F32:
            return None
        if node.outputs[0] not in weights or when_known(stored, place) is not KnownAt.FOLDED:
            return None
        return b.cast(b.cast(stored, F16), F32)

    name = "unscaled_weights"
    return bool(weights) and rewriting("Cast", by=widened_twice, name=name)(graph, context)


def _shifted(node: Node) -> list[Value]:
    """The weights of a ConvolutionBackpropData that have a zero point."""
    if node.op != "ConvolutionBackpropData":
        return []
    weights = node.operand(1)
    source = weights.behind("Cast", "Mul", "Reshape", "Transpose")
    return [weights] if source.producer is not None and source.producer.op == "Sub" else []


def _leading_to(values: Iterable[Value | None]) -> set[Value]:
    """These values, and all of which they are computed."""
    found: set[Value] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value is not None and value not in found:
            found.add(value)
            waiting += value.producer.inputs if value.producer is not None else ()
    return found


@unscaled_weights.undoes("Cast")
def _once(b: Builder, node: Node, uses: Uses) -> Value | None:
    half = node.inputs[0].producer if node.inputs[0] is not None else None
    if half is None or half.op != "Cast" or half.attributes["to"] is not F16:
        return None
    stored = half.inputs[0]
    exact = stored is not None and stored.element in EXACT and node.attributes["to"] is F32
    return b.op("Cast", stored, **node.attributes) if exact else None


# With known indices, the GPU plugin computes it when it compiles the model, and takes wrong
# elements, or elements without their scale. With computed indices, its kernel takes wrong scales.
@barrier(
    "Gather",
    hides="memory",
    engines=(GPU,),
    symptom="A Gather of scaled bytes with known indices gives elements of one row for all rows. "
    "With one index it leaves out the scale. With computed indices and scales of shape [1, 3, 1] "
    "it gives wrong numbers, or ends the process.",
    cost="a Maximum of the constant, which the plugin computes when it compiles the model",
)
def rows_of_scaled_bytes(node: Node, place: Place) -> list[bool]:
    """At a Gather of a scaled constant of at most 8 bits, if its indices are known when the model
    is compiled, or if the constant has three axes and scales that are the same for all rows.
    """
    wanted = is_unfolded(node) and (is_known(node.inputs[1], place) or _has_equal_rows(node))
    return [wanted, False, False]


def _has_equal_rows(node: Node) -> bool:
    """Whether the rows of a table with three axes have the same scales, and more than one."""
    table = node.inputs[0]
    scaled = table.behind("Cast", *MOVES).producer if table is not None else None
    if scaled is None or scaled.outputs[0].rank != 3:
        return False
    factors = [value.dims for value in scaled.inputs if value is not None]
    shapes = [(1,) * (3 - len(dims)) + dims for dims in factors]
    return any(shape[0] == 1 and set(shape) != {1} for shape in shapes)
