"""Arithmetic with a constant for each channel behind a reduction, which the CPU plugin does as a
part of that."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.opaque import undone, with_copies
from bridge.quirks.openvino_cpu.division_behind_reduction import reductions_behind
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_copies(b: Builder, node: Node, place: Place) -> Result:
    """A maximum with itself in between, of which the arithmetic is no part."""
    operands = [value for value in node.inputs if value is not None]
    if not any(_has_channels(value) for value in operands):
        return None
    return with_copies(
        b, node, operands, lambda value: any(map(_keeps_channels, reductions_behind(value)))
    )


def _has_channels(value: Value) -> bool:
    """Whether a value is a constant with more than one element."""
    return value.constant is not None and value.constant.size > 1


def _keeps_channels(reduction: Node) -> bool:
    """Whether three axes are reduced, the second of them not."""
    data, axes = reduction.inputs[0], integers(reduction.input(1))
    if data is None or data.rank not in (3, None):
        return False
    return axes is None or not {1, -2} & set(axes)


QUIRK = Quirk(
    releases="2026.4, with AVX2",
    symptom="Behind a reduction of a tensor with three axes that keeps the second, arithmetic with "
    "a constant along that axis takes wrong elements of the constant.",
    fires="At arithmetic of a constant of several elements with what a reduction of three axes "
    "leads to, which keeps the second.",
    safe="The greatest of a value and itself is the value.",
    cost="a Maximum of the reduction's result with itself",
    run=rewriting("Add", "Div", "Mul", "Sub", by=of_copies),
    undo=undone("memory"),
)
