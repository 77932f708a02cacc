"""What OpenVINO knows before a model runs, and what keeps it from that.

What follows from constants it folds where it can evaluate the operators; the CPU plugin computes
the rest once, when it compiles the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from bridge.neutral.dataflow import Forward, Now, Updates
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Carried, InputPort, Invariant, Yield, outer_input
from bridge.quirks.quirk import Place

UNFORESEEN = {"RandomUniform", "RandomUniformLike", "ReadValue", "ir::RandomUniform"}
"""Operators whose results are not known before a model runs."""

UNFOLDED = frozenset((
    "AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "BinaryConvolution", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "Bucketize", "CTCGreedyDecoder",
    "CTCGreedyDecoderSeqLen", "CTCLoss", "Col2Im", "Conv", "ConvolutionBackpropData",
    "DeformableConvolution", "DeformablePSROIPooling", "DetectionOutput", "Elu",
    "EmbeddingBagOffsets", "EmbeddingBagPacked", "EmbeddingSegmentsSum", "ExtractImagePatches",
    "GRN", "GRUCell", "GRUSequence", "GatherElements", "GatherND", "GatherTree",
    "GroupConvolution", "GroupConvolutionBackpropData", "GroupNormalization", "HardSigmoid",
    "IDFT", "IRDFT", "ISTFT", "If", "Inverse", "IsFinite", "IsInf", "IsNaN", "LRN", "LSTMCell",
    "LSTMSequence", "Loop", "MatrixNms", "MaxPool", "MulticlassNms", "NMSRotated", "NormalizeL2",
    "PSROIPooling", "PriorBox", "PriorBoxClustered", "Proposal", "RDFT", "RNNCell", "RNNSequence",
    "ROIAlign", "ROIAlignRotated", "ROIPooling", "RegionYolo", "ReorgYolo", "ReverseSequence",
    "Roll", "SearchSorted", "SegmentMax", "Selu", "SliceScatter", "Softsign", "Unique", "ir::DFT",
    "ir::Mod", "ir::NonMaxSuppression", "ir::STFT",
))  # fmt: skip
"""Operators that OpenVINO does not fold, or that nobody saw it fold."""


def is_unfolded(node: Node) -> bool:
    """Whether OpenVINO leaves a node of constants to the plugin."""
    operands = {"Gather": 1, "MatMul": 2}.get(node.op, 0)
    return node.op in UNFOLDED or any(map(_is_compressed, node.inputs[:operands]))


def _is_compressed(value: Value | None) -> bool:
    """Whether a value is a constant of 8 bits or fewer that is scaled: OpenVINO leaves it so for a
    Gather and a MatMul."""
    if value is None:
        return False
    scaled = value.behind("Cast", "Reshape", "Squeeze", "Transpose", "Unsqueeze").producer
    if scaled is None or scaled.op != "Mul":
        return False
    made = [factor.producer for factor in scaled.inputs if factor is not None]
    parts = [*scaled.inputs, *(n.inputs[0] for n in made if n is not None and n.op == "Sub")]
    stored = [part.behind("Cast") for part in parts if part is not None]
    return any(v.constant is not None and v.element and 1 < v.element.bits <= 8 for v in stored)


class Known(IntEnum):
    """When OpenVINO knows a value, the best first."""

    FOLDED = 0
    """It is a constant once OpenVINO has folded what it can evaluate."""
    COMPUTED = 1
    """The plugin computes it when it compiles the graph that holds the value."""
    INLINED = 2
    """As COMPUTED, if OpenVINO puts the body that holds it in the place of its node."""
    UNKNOWN = 3
    """It is computed at each inference."""


class WhenKnown(Forward[Known]):
    """When OpenVINO knows each value."""

    bottom = Known.FOLDED
    iteration = Known.UNKNOWN

    def join(self, one: Known, other: Known) -> Known:
        """The later of two."""
        return max(one, other)

    def outside(self, value: Value) -> Known:
        """Inputs of the model are known when it runs."""
        return Known.UNKNOWN

    def settled(self, value: Value, fact: Known) -> Known:
        """A value without elements is folded."""
        return Known.FOLDED if 0 in (value.shape or ()) else fact

    def transfer(self, node: Node, facts: Sequence[Known | None]) -> list[Known]:
        """What follows from known values is known, if the operator is not one of chance."""
        known = Known.FOLDED
        for fact in facts:
            if fact is not None and fact > known:
                known = fact
        if node.op in UNFORESEEN:
            known = Known.UNKNOWN
        elif is_unfolded(node):
            known = max(known, Known.COMPUTED)
        return [known] * len(node.outputs)

    def entry(
        self, node: Node, body: Body, value: Value, port: InputPort, now: Now[Known]
    ) -> Known:
        """Constants move into bodies; what the plugin computes outside is given at run time."""
        stays = isinstance(port, Invariant) or (
            isinstance(port, Carried) and body.exit_of(port)[0].behind("Identity") is value
        )
        index = outer_input(port) if stays else None
        outer = None if index is None else node.inputs[index]
        known = Known.UNKNOWN if outer is None else now(outer)
        return Known.INLINED if known is Known.COMPUTED else known

    def leave(self, node: Node, now: Now[Known]) -> Updates[Known]:
        """A Loop is computed as a whole. An If may become either branch if its condition is
        known."""
        given = max((now(value) for value in node.inputs if value is not None), default=0)
        known = [Known.COMPUTED if given <= Known.COMPUTED else Known(given)] * len(node.outputs)
        if node.op == "If":
            decided = node.condition is not None and now(node.condition) < Known.UNKNOWN
            whole = min(known[0], Known.INLINED) if decided and known else Known.UNKNOWN
            known = [Known.UNKNOWN] * len(node.outputs)
            for body in node.bodies:
                for value, port in body.exits():
                    assert isinstance(port, Yield) and port.output is not None
                    if now(value) < Known.UNKNOWN:
                        known[port.output] = whole
        return zip(node.outputs, known, strict=True)


def when_known(value: Value | None, place: Place) -> Known:
    """When OpenVINO knows a value of a graph; an absent one it knows at once."""
    return Known.FOLDED if value is None else place.facts(WhenKnown).of(value)


def is_known(value: Value | None, place: Place) -> bool:
    """Whether OpenVINO may know a value of a graph before the model runs."""
    return when_known(value, place) < Known.UNKNOWN
