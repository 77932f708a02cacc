"""Element types that an operator of ONNX does not accept. The operator then runs in a wider type,
and shapes, axes and indices become i64."""

from functools import cache

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import ELEMENTS, F32, F64, I32, I64, U64, Element, TensorType
from bridge.operators import Result, Rule, required
from bridge.operators.type_constraints import TypeSignature, schema_type, type_signature
from bridge.vocabulary import has_trait, operator


@cache
def steps_of(op: str) -> tuple[Rule, ...]:
    """The steps that bring the inputs of an operator to types that ONNX takes, so that the rules
    of the operators need not."""
    row = operator(op)
    if row is None:
        return ()
    steps: list[Rule] = []
    if row.integers or "gives_i64" in row.traits:
        steps.append(integer_types)
    if "rounds_integers" in row.traits:
        steps.append(rounded_integers)
    if "runs_wider" in row.traits or "reals_run_wider" in row.traits:
        steps.append(wider_types)
    if "reals_in_f32" in row.traits:
        steps.append(reals_in_f32)
    return tuple(steps)


def allowed_elements(type: str, opset: int, variable: str | None = None) -> frozenset[str]:
    """The element types that a type variable of ONNX's operator allows in operator set `opset`. By
    default, it is the variable of input 0. The set is empty if the operator set lacks the
    operator."""
    signature = type_signature(type, opset)
    if signature is None:
        return frozenset()
    allowed = signature.allowed[variable or signature.inputs[0]]
    return frozenset(
        name for name, element in ELEMENTS.items() if schema_type(TensorType(element)) in allowed
    )


def _wider(element: Element, allowed: frozenset[str]) -> Element | None:
    if element.kind not in ("bool", "float", "int", "uint"):
        return None
    if element.is_float:
        candidates = [F32]
    elif element.name == "bool" or element.bits < 32:
        candidates = [I32, I64, F32, F64]
    else:
        candidates = [*([U64] if element.kind == "uint" else []), I64, I32, F32, F64]
    return next((c for c in candidates if c.name in allowed), None)


def wider_types(b: Builder, node: Node) -> Result:
    """Runs the operator in a wider type if ONNX's schema does not allow the element type in this
    operator set. The result of a function of real numbers on integers is rounded, as in
    OpenVINO."""
    reals = has_trait(node.op, "reals_run_wider")
    signature = type_signature(node.op, b.opset)
    disallowed = None if signature is None else _first_disallowed(node, signature)
    if signature is None or disallowed is None:
        return None
    variable, element = disallowed
    if element.is_integer and has_trait(node.op, "exact_on_integers"):
        return b.op("Identity", node.inputs[0])
    wide = _wider(element, allowed_elements(node.op, b.opset, variable))
    if wide is None or (reals and not element.is_float):
        return None
    return in_type(b, node, signature, variable, element, wide)


def in_type(
    b: Builder,
    node: Node,
    signature: TypeSignature,
    variable: str,
    element: Element,
    wide: Element,
) -> list[Value]:
    """The outputs of a node whose inputs of a type variable are cast from an element type to a
    wider one; the outputs have the types that they had."""
    inputs: list[Value | None] = [
        b.cast(value, wide) if value is not None and signature.input(i) == variable else value
        for i, value in enumerate(node.inputs)
    ]
    results = []
    outputs = b.node(node.op, inputs, len(node.outputs), node.attributes).outputs
    for i, output in enumerate(outputs):
        if signature.output(i) == variable:
            if element.is_integer and wide.is_float:
                output = b.op("Round", output)
            output = b.cast(output, node.outputs[i].element or element)
        results.append(output)
    return results


def reals_in_f32(b: Builder, node: Node) -> Result:
    """Runs the operator in f32. Each input of real numbers may have a type of its own."""
    inputs = [
        v if v is None or not v.element or not v.element.is_float else b.cast(v, F32)
        for v in node.inputs
    ]
    if inputs == node.inputs:
        return None
    outputs = b.node(node.op, inputs, len(node.outputs), node.attributes).outputs
    first = node.operand(0).element
    return [b.cast(y, old.element or first) for y, old in zip(outputs, node.outputs, strict=True)]


def rounded_integers(b: Builder, node: Node) -> Result:
    """Operators on integers that OpenVINO computes in f32. It rounds the result to the nearest
    number of the integer type."""
    x = node.input(0)
    if x is None or x.element is None or not x.element.is_integer:
        return None
    if node.attributes.get("mode") == "nearest":
        return None
    y = b.op("Round", b.op(node.op, b.cast(x, F32), *node.inputs[1:], **node.attributes))
    if x.element.bits <= 16:
        limits = np.iinfo(x.element.dtype)
        y = b.op("Clip", y, float(limits.min), float(limits.max))
    return b.cast(y, x.element)


def _first_disallowed(node: Node, signature: TypeSignature) -> tuple[str, Element] | None:
    """The first type variable of an input that does not allow the input's element type, or another
    one beside it, and this element type."""
    reals: dict[str, Element] = {}
    for index, value in enumerate(node.inputs):
        variable = signature.input(index)
        if value is None or value.element is None or variable is None:
            continue
        if schema_type(value.type) not in signature.allowed[variable]:
            return variable, value.element
        if (
            reals.setdefault(variable, value.element) is not value.element
            and value.element.is_float
        ):
            return variable, value.element
    return None


def integer_types(b: Builder, node: Node) -> Result:
    """Integer types of shapes, axes and indices. IR accepts any type. ONNX accepts i64 only, or i32
    and i64 if all such inputs have the same type."""
    if has_trait(node.op, "gives_i64"):
        return _i64_result(b, node)
    row = operator(node.op)
    if row is None or not row.integers:
        return None
    places = {row.places[name]: kind for name, kind in row.integers.items()}
    elements = {_element(node, i) for i in places if node.input(i) is not None}
    if "i64" not in places.values() and elements <= {I32}:
        return None
    indices = [i for i in places if _element(node, i) is not I64]
    if not indices:
        return None
    inputs = list(node.inputs)
    for index, value in zip(indices, required(node, *indices), strict=True):
        inputs[index] = b.as_i64(value)
    return b.node(node.op, inputs, len(node.outputs), node.attributes).outputs


def _i64_result(b: Builder, node: Node) -> Value | None:
    wanted = node.attributes["output_type"]
    if wanted is I64:
        return None
    return b.cast(b.op(node.op, *node.inputs, **node.attributes | {"output_type": I64}), wanted)


def _element(node: Node, index: int) -> object:
    value = node.input(index)
    return I64 if value is None else value.element
