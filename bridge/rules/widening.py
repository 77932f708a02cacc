"""Element types that an operator of the target does not take: it runs in a wider one."""

from __future__ import annotations

from functools import cache

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import ELEMENTS, F32, F64, I32, I64, U64, Element
from bridge.rules import Result, expands
from bridge.rules.idioms import cast

_ONNX_NAMES = {
    "float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16",
    "float8e4m3fn": "f8e4m3fn", "float8e4m3fnuz": "f8e4m3fnuz", "float8e5m2": "f8e5m2",
    "float8e5m2fnuz": "f8e5m2fnuz", "float8e8m0": "f8e8m0", "float4e2m1": "f4e2m1",
    "complex64": "c64", "complex128": "c128",
    **{f"int{bits}": f"i{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)},
}  # fmt: skip
"""Neutral names of the element types that schemas name otherwise."""

_EXACT_ON_INTEGERS = {"Floor", "Ceil", "Round"}
"""Operators that leave integers as they are."""


@cache
def _types(op: str, opset: int) -> tuple[frozenset[str], range | set[int], set[int]] | None:
    """The elements that input 0 of ONNX's `op` may have in `opset`, and which inputs and outputs
    have the same type. None where `opset` lacks it."""
    import onnx.defs

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
        range(schema.max_input)
        if schema.max_input > len(schema.inputs)
        else {i for i, formal in enumerate(schema.inputs) if formal.type_str == variable},
        {i for i, formal in enumerate(schema.outputs) if formal.type_str == variable},
    )


def allowed_elements(op: str, opset: int) -> frozenset[str]:
    """The elements that input 0 of ONNX's `op` may have in `opset`; none where that lacks it."""
    found = _types(op, opset)
    return frozenset() if found is None else found[0]


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
    "Sqrt", "Sub", "Swish", "Tan", "Tanh", "TopK",
    target="onnx",
)  # fmt: skip
def onnx_elements(b: Builder, node: Node) -> Result:
    """Where ONNX's schema does not allow the element type in this operator set, the operator
    runs in a wider type. A function of real numbers on integers is rounded, as in OpenVINO."""
    first = node.inputs[0]
    assert b.target is not None
    if first is None or first.element is None:
        return None
    found = _types(node.op, b.target.opset)
    if found is None or first.element.name in found[0]:
        return None
    allowed, same_inputs, same_outputs = found
    element = first.element
    if element.is_integer and node.op in _EXACT_ON_INTEGERS:
        return b.op("Identity", first)
    wide = _wider(element, allowed)
    if wide is None:
        return None
    inputs: list[Value | None] = [
        cast(b, value, wide) if value is not None and i in same_inputs else value
        for i, value in enumerate(node.inputs)
    ]
    outputs = b.node(node.op, inputs, len(node.outputs), node.attributes).outputs
    results = []
    for i, output in enumerate(outputs):
        if i in same_outputs:
            if element.is_integer and wide.is_float:
                output = b.op("Round", output)
            output = cast(b, output, element)
        results.append(output)
    return results


@expands("Add", "Div", "Mul", "Sub", target="ir")
def wrapping(b: Builder, node: Node) -> Result:
    """8-bit arithmetic wraps around in ONNX; OpenVINO saturates, and rounds quotients where shapes
    are dynamic."""
    a, other = node.inputs
    assert a is not None and other is not None
    if a.element not in (ELEMENTS["i8"], ELEMENTS["u8"]):
        return None
    wide = b.op(node.op, cast(b, a, I32), cast(b, other, I32), **node.attributes)
    return cast(b, wide, a.element)
