"""Element types that an operator of the target does not take: it runs in a wider one."""

from __future__ import annotations

from functools import cache

import onnx.defs

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import ELEMENTS, F32, F64, I32, I64, U64, Element
from bridge.rules import Result, expands
from bridge.rules.idioms import cast

_ONNX_NAMES = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16"} | {
    f"{'u' * (kind == 'u')}int{bits}": f"{kind}{bits}"
    for kind in "iu"
    for bits in (2, 4, 8, 16, 32, 64)
}

_EXACT_ON_INTEGERS = {"Floor", "Ceil", "Round"}
"""Operators that leave integers as they are."""


@cache
def _types(op: str, opset: int) -> tuple[frozenset[str], tuple[bool, ...], tuple[bool, ...]] | None:
    """The elements that input 0 of ONNX's `op` may have in `opset`, and which inputs (the last
    stands for all further ones) and outputs have the same type. None where `opset` lacks it."""
    try:
        schema = onnx.defs.get_schema(op, opset)
    except onnx.defs.SchemaError:
        return None
    variable = schema.inputs[0].type_str
    allowed = {variable}
    for constraint in schema.type_constraints:
        if constraint.type_param_str == variable:
            allowed = set(constraint.allowed_type_strs)
    names = (a.removeprefix("tensor(").removesuffix(")") for a in allowed)
    return (
        frozenset(_ONNX_NAMES.get(name, name) for name in names),
        tuple(i.type_str == variable for i in schema.inputs),
        tuple(o.type_str == variable for o in schema.outputs),
    )


def _wider(element: Element, allowed: frozenset[str]) -> Element | None:
    if element.is_float:
        candidates = [F32]
    elif element.name == "bool" or element.bits < 32:
        candidates = [I32, I64, F32, F64]
    else:
        candidates = [*([U64] if element.kind == "uint" else []), I64, I32, F64, F32]
    return next((c for c in candidates if c.name in allowed), None)


@expands(
    "Abs", "Acos", "Acosh", "Add", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "BitShift",
    "Ceil", "Clip", "Cos", "Cosh", "CumSum", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu",
    "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less",
    "LessOrEqual", "Log", "LogSoftmax", "Max", "Min", "Mish", "Mod", "Mul", "Neg", "PRelu", "Pow",
    "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign",
    "Sqrt", "Sub", "Swish", "Tan", "Tanh", "TopK", "Where",
    target="onnx",
)  # fmt: skip
def onnx_elements(b: Builder, node: Node) -> Result:
    """Where ONNX's schema does not allow the element type in this operator set, the operator
    runs in a wider type. A function of real numbers on integers is rounded, as in OpenVINO."""
    first = node.inputs[1 if node.op == "Where" else 0]
    assert b.target is not None
    if first is None or first.element is None:
        return None
    found = _types(node.op, b.target.opset)
    if found is None or first.element.name in found[0]:
        return None
    allowed, same_inputs, same_outputs = found
    if node.op == "Where":
        same_inputs = (False, True, True)
    element = first.element
    if element.is_integer and node.op in _EXACT_ON_INTEGERS:
        return b.op("Identity", first)
    wide = _wider(element, allowed)
    if wide is None:
        return None
    inputs: list[Value | None] = [
        cast(b, value, wide) if value is not None and _at(same_inputs, i) else value
        for i, value in enumerate(node.inputs)
    ]
    outputs = b.node(node.op, inputs, len(node.outputs), node.attributes).outputs
    results = []
    for i, output in enumerate(outputs):
        if _at(same_outputs, i):
            if element.is_integer and wide.is_float:
                output = b.op("Round", output)
            output = cast(b, output, element)
        results.append(output)
    return results


def _at(flags: tuple[bool, ...], index: int) -> bool:
    return flags[min(index, len(flags) - 1)]


@expands("Add", "Mul", "Sub", target="ir")
def wrapping(b: Builder, node: Node) -> Result:
    """8-bit arithmetic wraps around in ONNX and saturates in OpenVINO."""
    a, other = node.inputs
    assert a is not None and other is not None
    if a.element not in (ELEMENTS["i8"], ELEMENTS["u8"]):
        return None
    return cast(b, b.op(node.op, cast(b, a, I32), cast(b, other, I32)), a.element)
