"""Divisions of integers by what may be 0, which OpenVINO computes and onnxruntime refuses."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.passes.fuse.uses import Uses, is_number


def guarded_division(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A quotient or remainder that a Where takes where the divisor is not 0 alone: elsewhere, it is
    divided by 1."""
    condition, quotient, other = node.inputs
    made = uses.single_use(quotient, "Div", "Mod", "ir::Mod")
    if made is None or quotient is None or quotient.element is None:
        return None
    x, divisor = made.inputs
    if not quotient.element.is_integer or not _is_no_zero(condition, divisor):
        return None
    assert divisor is not None
    safe = b.op("Where", condition, divisor, b.like(1, divisor))
    b.name = made.name
    again = b.op(made.op, x, safe, **made.attributes)
    b.name = node.name
    return b.op("Where", condition, again, other)


def _is_no_zero(condition: Value | None, value: Value | None) -> bool:
    """Whether a condition says that a value is not 0, or that it is above."""
    made = condition.producer if condition is not None else None
    wanted: tuple[str, ...] = ("Greater", "NotEqual")
    if made is not None and made.op == "Not":
        made = made.inputs[0].producer if made.inputs[0] is not None else None
        wanted = ("Equal",)
    return (
        made is not None
        and made.op in wanted
        and made.inputs[0] is value
        and is_number(made.inputs[1], 0)
    )
