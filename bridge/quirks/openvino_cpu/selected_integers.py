"""A selection among integers behind a comparison. The CPU plugin computes both in one kernel, in
f32, which is not exact above 2^24."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BOOL, is_static, size_of
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.magnitude import NUMBERS, MayBeLarge
from bridge.quirks.quirk import ELEMENTWISE, Place, Quirk, rewriting


def by_product(b: Builder, node: Node, place: Place) -> Result:
    """The difference of both operands times the condition, plus the second operand."""
    condition, x, y = (value for value in node.inputs if value is not None)
    facts = place.facts(MayBeLarge)
    if not facts.of(x) and not facts.of(y):
        return None
    return y + b.cast(condition, x.element) * (x - y)


def _is_in_one_kernel(node: Node) -> bool:
    condition, x, y = node.inputs
    made = condition.producer if condition is not None else None
    if made is None or made.op not in ELEMENTWISE or x is None or y is None:
        return False
    shape = node.outputs[0].shape
    if is_static(shape) and size_of(shape) == 1:  # Trip counts and sizes are no such numbers.
        return False
    return x.element in NUMBERS and x.element is y.element


def _selection(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The selection between the operands of the difference."""
    y, product = node.inputs
    made = product.producer if product is not None else None
    if made is None or made.op != "Mul" or y is None or y.element not in NUMBERS:
        return None
    cast, difference = (value.producer if value is not None else None for value in made.inputs)
    if cast is None or cast.op != "Cast" or difference is None or difference.op != "Sub":
        return None
    condition, (x, other) = cast.inputs[0], difference.inputs
    if condition is None or condition.element is not BOOL or x is None or other is not y:
        return None
    return b.where(condition, x, y)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Select of integers behind a comparison rounds them to f32: 16777217 becomes "
    "16777216.",
    fires="At a Select whose condition an element-wise operator gives, of integers that may be "
    "2^24 or more: more than one, that follow from data rather than from sizes, places and types "
    "of few bits.",
    safe="y + 1 * (x - y) is x and y + 0 * (x - y) is y, also if the difference overflows.",
    cost="a Convert, a Subtract and a Multiply",
    run=rewriting("Where", by=by_product, where=_is_in_one_kernel),
    undo={"Add": _selection},
)
