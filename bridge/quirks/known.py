"""The values that OpenVINO knows before a model runs, and the operators that keep it from this.

OpenVINO folds operators of constants if it can evaluate them. The CPU plugin computes the other
operators of constants once, when it compiles the model.
"""

from collections.abc import Sequence
from enum import IntEnum

from bridge.neutral.dataflow import Forward, Now, Updates
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Carried, InputPort, Invariant, Yield, outer_input
from bridge.neutral.types import I8, U8
from bridge.quirks.quirk import MOVES, Place

UNFORESEEN = {"RandomUniform", "RandomUniformLike", "ReadValue", "ir::RandomUniform"}
"""Operators whose results are not known before a model runs."""

UNFOLDED = frozenset((
    "AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "BinaryConvolution", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "Bucketize", "CTCGreedyDecoder",
    "CTCGreedyDecoderSeqLen", "CTCLoss", "Col2Im", "Conv", "ConvolutionBackpropData",
    "DeformableConvolution", "DeformablePSROIPooling", "DetectionOutput", "Elu",
    "EmbeddingBagOffsets", "EmbeddingBagPacked", "EmbeddingSegmentsSum", "ExtractImagePatches",
    "FakeQuantize",
    "GRN", "GRUCell", "GRUSequence", "GatherElements", "GatherND", "GatherTree", "GroupConvolution",
    "GroupConvolutionBackpropData", "GroupNormalization", "GroupedMatMul", "HardSigmoid", "IDFT",
    "IRDFT", "ISTFT", "If", "Inverse", "IsFinite", "IsInf", "IsNaN", "LRN", "LSTMCell",
    "LSTMSequence", "Loop", "MatrixNms", "MaxPool", "MulticlassNms", "NMSRotated", "NormalizeL2",
    "PSROIPooling", "PriorBox", "PriorBoxClustered", "Proposal", "RDFT", "RNNCell", "RNNSequence",
    "ROIAlign", "ROIAlignRotated", "ROIPooling", "RegionYolo", "ReorgYolo", "ReverseSequence",
    "Roll", "SearchSorted", "SegmentMax", "Selu", "SliceScatter", "Softsign", "Unique", "ir::DFT",
    "ir::Mod", "ir::NonMaxSuppression", "ir::STFT",
))  # fmt: skip
"""Operators that OpenVINO does not fold, or that nobody saw it fold."""

UNFOLDED_INTEGERS = frozenset((
    "CumSum", "HSigmoid", "HardSwish", "Interpolate", "PRelu", "ReduceL2", "Softmax",
    "SquaredDifference",
))  # fmt: skip
"""Operators that OpenVINO folds for floats alone."""

UNFOLDED_BYTES = frozenset((
    "Abs", "Acos", "Asin", "Atan", "BitwiseLeftShift", "BitwiseRightShift", "Cos", "Cosh", "Div",
    "Einsum", "Erf", "Exp", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Log", "LogSoftmax",
    "MVN", "MatMul", "Max", "Min", "Mul", "Neg", "Not", "NotEqual", "Pow", "ReduceL1", "ReduceMean",
    "ReduceProd", "ReduceSum", "Relu", "ScatterElements", "ScatterND", "Sigmoid", "Sign", "Sin",
    "Sinh", "Sqrt", "Tan", "Tanh", "ir::OneHot", "ir::TopK",
))  # fmt: skip
"""Operators that OpenVINO does not fold for integers of 8 bits. The plugin widens other types that
OpenVINO does not fold, and folds them then."""


def is_unfolded(node: Node) -> bool:
    """Whether OpenVINO leaves a node of constants to the plugin."""
    first = node.input(0)
    element = None if first is None else first.element
    is_integer = element is not None and element.is_integer
    unfolded = is_integer and node.op in UNFOLDED_INTEGERS
    if unfolded or (element in (I8, U8) and node.op in UNFOLDED_BYTES):
        return True
    operands = {"Gather": 1, "MatMul": 2}.get(node.op, 0)
    return node.op in UNFOLDED or any(map(_is_compressed, node.inputs[:operands]))


def _is_compressed(value: Value | None) -> bool:
    """Whether a value is a scaled constant of at most 8 bits. OpenVINO does not fold such a value
    for a Gather or a MatMul."""
    if value is None:
        return False
    scaled = value.behind("Cast", *MOVES).producer
    if scaled is None or scaled.op != "Mul":
        return False
    made = [factor.producer for factor in scaled.inputs if factor is not None]
    parts = [*scaled.inputs, *(n.inputs[0] for n in made if n is not None and n.op == "Sub")]
    stored = [part.behind("Cast") for part in parts if part is not None]
    return any(v.constant is not None and v.element and 1 < v.element.bits <= 8 for v in stored)


class KnownAt(IntEnum):
    """The time at which OpenVINO knows a value, earliest first."""

    FOLDED = 0
    """OpenVINO folds the value to a constant."""
    COMPUTED = 1
    """The plugin computes the value when it compiles the graph that holds it."""
    INLINED = 2
    """Like COMPUTED, if OpenVINO inlines the body that holds the value."""
    UNKNOWN = 3
    """The plugin computes the value at each inference."""


class WhenKnown(Forward[KnownAt]):
    """The analysis that finds when OpenVINO knows each value."""

    bottom = KnownAt.FOLDED
    iteration = KnownAt.UNKNOWN

    def join(self, one: KnownAt, other: KnownAt) -> KnownAt:
        """The later time of the two."""
        return max(one, other)

    def outside(self, value: Value) -> KnownAt:
        """The inputs of the model are known at inference."""
        return KnownAt.UNKNOWN

    def settled(self, value: Value, fact: KnownAt) -> KnownAt:
        """An empty tensor is folded."""
        return KnownAt.FOLDED if 0 in (value.shape or ()) else fact

    def transfer(self, node: Node, facts: Sequence[KnownAt | None]) -> list[KnownAt]:
        """The results of known inputs are known, unless the operator is random."""
        known = KnownAt.FOLDED
        for fact in facts:
            if fact is not None and fact > known:
                known = fact
        if node.op in UNFORESEEN:
            known = KnownAt.UNKNOWN
        elif known < KnownAt.COMPUTED and is_unfolded(node):
            known = KnownAt.COMPUTED
        return [known] * len(node.outputs)

    def entry(
        self, node: Node, body: Body, value: Value, port: InputPort, now: Now[KnownAt]
    ) -> KnownAt:
        """Constants move into bodies. Values that the plugin computes outside enter the body at run
        time."""
        stays = isinstance(port, Invariant) or (
            isinstance(port, Carried) and body.exit_of(port)[0].behind("Identity") is value
        )
        index = outer_input(port) if stays else None
        outer = None if index is None else node.inputs[index]
        known = KnownAt.UNKNOWN if outer is None else now(outer)
        return KnownAt.INLINED if known is KnownAt.COMPUTED else known

    def leave(self, node: Node, now: Now[KnownAt]) -> Updates[KnownAt]:
        """A Loop is computed as a whole. An If may become one of its branches if its condition is
        known."""
        given = max((now(value) for value in node.inputs if value is not None), default=0)
        known = [KnownAt.COMPUTED if given <= KnownAt.COMPUTED else KnownAt(given)] * len(
            node.outputs
        )
        if node.op == "If":
            decided = node.condition is not None and now(node.condition) < KnownAt.UNKNOWN
            whole = min(known[0], KnownAt.INLINED) if decided and known else KnownAt.UNKNOWN
            known = [KnownAt.UNKNOWN] * len(node.outputs)
            for body in node.bodies:
                for value, port in body.exits():
                    assert isinstance(port, Yield) and port.output is not None
                    if now(value) < KnownAt.UNKNOWN:
                        known[port.output] = whole
        return zip(node.outputs, known, strict=True)


def when_known(value: Value | None, place: Place) -> KnownAt:
    """The time at which OpenVINO knows a value of a graph. An absent value counts as folded."""
    return KnownAt.FOLDED if value is None else place.facts(WhenKnown).of(value)


def is_known(value: Value | None, place: Place) -> bool:
    """Whether OpenVINO may know a value of a graph before the model runs."""
    return when_known(value, place) < KnownAt.UNKNOWN
