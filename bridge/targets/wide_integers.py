"""Notes integers that may leave the 32 bits in which OpenVINO's CPU plugin computes them.

Inputs, conversions of 32 bits and large constants may have such numbers. What is an index, a size
or a count fits, also if it is one after sums and products. So do masks: numbers that are compared
with a constant for equality, or converted to f32, which would round large ones.
"""

from collections.abc import Sequence
from enum import IntFlag

from bridge.neutral.dataflow import Analysis, Facts, Now, Updates
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.inference.indexes import is_index
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition
from bridge.neutral.types import F64, I32, I64, U32, U64
from bridge.passes.context import Context
from bridge.quirks.bits import is_beyond, is_limit
from bridge.quirks.quirk import COMPARISONS
from bridge.quirks.simplified import OfShape
from bridge.vocabulary import has_trait, operator

WIDE = (I64, U64)

KEPT = (
    "Abs", "Add", "Clip", "CumSum", "Max", "Min", "Mul", "Neg", "Range", "ReduceMax", "ReduceMin",
    "ReduceProd", "ReduceSum", "Sub", "Sum",
)  # fmt: skip
"""Operators whose operands are no larger than their results, but for differences and zeros."""

COMPUTED = (
    *KEPT, "Einsum", "Gemm", "MatMul", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
    "ReduceMean", "ReduceSumSquare",
)  # fmt: skip
"""Operators that compute with numbers, beside those of single elements."""


class Use(IntFlag):
    """What becomes of the elements of a value."""

    NONE = 0
    NUMBER = 1
    """They are computed with, or an output of the model."""
    INDEX = 2
    """They are indices, sizes or counts, perhaps after sums and products."""


class OfCount(OfShape):
    """Whether a value may be computed from sizes or counts."""

    iteration = True

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """The length of a sequence is a count."""
        return [True] if node.op == "SequenceLength" else super().transfer(node, facts)


class Uses(Analysis[Use]):
    """What becomes of the elements of each value of 64 bits."""

    bottom = Use.NONE
    backward = True

    def __init__(self, sizes: Facts[bool]) -> None:
        self._sizes = sizes

    def join(self, one: Use, other: Use) -> Use:
        """Both uses."""
        return one | other

    def outside(self, value: Value) -> Use:
        """An output is read as a number."""
        return Use.NUMBER

    def settled(self, value: Value, fact: Use) -> Use:
        """Numbers of other types are right."""
        return fact if value.element in WIDE else Use.NONE

    def node(self, node: Node, now: Now[Use]) -> Updates[Use]:
        """The uses of the operands, by those of the results."""
        after = Use.NONE
        for output in node.outputs:
            after |= now(output)
        for position, value in enumerate(node.inputs):
            if value is not None and not has_trait(node.op, "reads_shape"):
                yield value, self._of(node, position, after)

    def _of(self, node: Node, position: int, after: Use) -> Use:
        row = operator(node.op)
        places = row.shaped_by if row is not None else ()
        last = node.op.startswith("Sequence") and position == len(node.inputs) - 1
        if position in places or last or is_index(node, position):
            return Use.INDEX
        if node.op in ("Cast", "CastLike") and node.outputs[0].element not in WIDE:
            return Use.NUMBER if node.outputs[0].element is F64 else Use.NONE
        if node.op in ("Dropout", "Identity", "Where") or has_trait(node.op, "elements_of_first"):
            return after
        if node.op in COMPARISONS:
            if any(self._sizes.of(value) or _are_places(value) for value in node.operands):
                return Use.INDEX
            is_known = any(known_of(v).array is not None for v in node.operands)
            return Use.NONE if is_known and node.op in ("Equal", "NotEqual") else Use.NUMBER
        by_element = has_trait(node.op, "broadcasts") or has_trait(node.op, "by_element")
        if not by_element and node.op not in COMPUTED:
            return after
        return Use.NUMBER | (after & Use.INDEX if node.op in KEPT else Use.NONE)

    def leave(self, node: Node, now: Now[Use]) -> Updates[Use]:
        """The uses of body outputs."""
        for body in node.bodies:
            for value, port in body.exits():
                if not isinstance(port, Condition) and port.output is not None:
                    yield value, now(node.outputs[port.output])

    def enter(self, node: Node, now: Now[Use]) -> Updates[Use]:
        """The uses of captured values, of states, and of the trip count."""
        if node.op == "Loop" and node.trip_count is not None:
            yield node.trip_count, Use.INDEX
        for body in node.bodies:
            for value, port in body.entries():
                use, outer = now(value), node.outer(port)
                if isinstance(port, Carried):
                    last, exit = body.exit_of(port)
                    yield last, use
                    if not isinstance(exit, Condition) and exit.output is not None:
                        use |= now(node.outputs[exit.output])
                if outer is not None:
                    yield outer, use


def _are_places(value: Value) -> bool:
    """Whether a constant numbers the elements of an axis."""
    known = known_of(value).ints
    return known is not None and len(known) > 1 and known == (*range(len(known)),)


def note_wide_integers(model: Model, context: Context) -> bool:
    """Notes the numbers that may leave 32 bits and are computed with."""
    sources = [value for value in model.graph.inputs if value.element in WIDE]
    for node in model.graph.walk():
        made = node.outputs[0] if node.op in ("Cast", "CastLike", "Constant") else None
        if made is not None and made.element in WIDE:
            source = node.input(0)
            is_wide = is_beyond(made) and not is_limit(made)
            if is_wide or (source is not None and source.element in (I32, U32)):
                sources.append(made)
    uses = Facts(Uses(Facts(OfCount(), model.graph)), model.graph) if sources else None
    wide = [value.name for value in sources if uses is not None and uses.of(value) is Use.NUMBER]
    if wide:
        names = ", ".join(f'"{name}"' for name in dict.fromkeys(wide))
        context.report.notes.append(f"integers are computed in 32 bits: {names}")
    return False
