"""Which integers may be too large for f32, in which engines compute some of them."""

from collections.abc import Sequence

from bridge.neutral.dataflow import May
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import F32, F64, I16, I32, I64, U16, U32, U64, Element
from bridge.vocabulary import has_trait

EXACT = 1 << 24
"""The first integer beside one that f32 lacks."""

FEW = 1 << 12
"""The most elements of a constant that are read."""

PLACES = (
    "ArgMax", "ArgMin", "Bucketize", "CTCGreedyDecoderSeqLen", "Equal", "Greater",
    "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "NonMaxSuppression", "NonZero",
    "NotEqual", "SearchSorted", "Shape", "Size",
)  # fmt: skip
"""Operators that give sizes, places and conditions."""

NUMBERS = (I32, I64)
"""The types of which OpenVINO computes with such numbers."""

UNSIGNED = (U32, U64)
"""The types whose numbers the CPU plugin holds with a sign."""

HELD: dict[Element | None, Element] = {F64: F32, I64: I32, U64: I32, U32: I32, I16: I32, U16: I32}
"""The types that the CPU plugin holds and computes in others."""


class MayBeLarge(May):
    """Whether a number may be 2^24 or more: whether it comes from the data of the model."""

    def outside(self, value: Value) -> bool:
        """Inputs may have any numbers of their type."""
        return True

    def settled(self, value: Value, fact: bool) -> bool:
        """Types of few bits have no such numbers."""
        return fact and (value.element is None or value.element.bits >= 32)

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """A remainder is smaller than the divisor, and some bits of a number are no more than the
        mask."""
        match node.op:
            case "Constant":
                fact = _is_large(node.outputs[0])
            case "Mod" | "ir::Mod":
                fact = bool(facts[1])
            case "BitwiseAnd":
                fact = any(facts) and not any(map(_is_mask, node.inputs))
            case "ir::TopK" | "Unique":
                return [bool(facts[0]), *[False] * (len(node.outputs) - 1)]
            case _ if has_trait(node.op, "elements_of_first"):
                fact = bool(facts[0])
            case _:
                fact = node.op not in PLACES and any(facts)
        return [fact] * len(node.outputs)


def _is_mask(value: Value | None) -> bool:
    """Whether a value is a small number that is not negative."""
    numbers = known_of(value).ints
    return numbers is not None and all(0 <= number < EXACT for number in numbers)


def _is_large(value: Value) -> bool:
    constant = value.constant
    if constant is None or value.element not in NUMBERS or constant.size > FEW:
        return True
    numbers = constant.array()
    return bool(((numbers >= EXACT) | (numbers <= -EXACT)).any())
