"""Conversions between element types."""

from bridge.neutral.inference import first, knows
from bridge.neutral.types import (
    BOOL,
    BY_ONNX,
    ELEMENTS,
    F16,
    F32,
    STRING,
    Element,
)
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, reads, required
from bridge.operators.element_types import allowed_elements
from bridge.operators.elementwise.bits import converted_constant
from bridge.operators.elementwise.known_values import Number, holds, numbers_of

_LARGEST = {"f8e4m3fn": 448.0, "f8e5m2": 57344.0}
"""The largest finite numbers of the saturating 8-bit types (ONNX, Float 8)."""


@reads("Cast", format="onnx", until=5)
def named_type(b: Builder, node: Node) -> Result:
    """Cast-1 has a string attribute with the name of the type."""
    import onnx

    name = node.attributes["to"]
    to = BY_ONNX.get(dict(onnx.TensorProto.DataType.items()).get(name, 0))
    if to is None:
        raise Refused(f'there is no element type "{name}"; ONNX names them FLOAT, INT64, ...')
    return b.op("Cast", node.inputs[0], to=to)


@reads("Convert", format="ir")
def read_convert(b: Builder, node: Node) -> Result:
    """Convert-1 does not saturate to 8-bit types, and it rounds to the nearest f8e8m0."""
    return _without_saturation(b, node, node.attributes["destination_type"])


@reads("ConvertLike", format="ir")
def read_convert_like(b: Builder, node: Node) -> Result:
    """ConvertLike-1 saturates and rounds as Convert-1."""
    return _without_saturation(b, node, node.operand(1).element)


def _without_saturation(b: Builder, node: Node, to: Element | None) -> Result:
    if to is not None and to.name == "f8e8m0":
        return b.op("Cast", node.inputs[0], to=to, round_mode="nearest")
    if to is not None and to.name in _LARGEST:
        return b.op("Cast", node.inputs[0], to=to, saturate=False)
    return None


@legalizes("CastLike", target="ir")
def cast_like(b: Builder, node: Node) -> Result:
    """CastLike (15 to 25) as Cast, if saturation or the direction of rounding matters."""
    x, like = required(node, 0, 1)
    if like.element is None or like.element.name not in (*_LARGEST, "f8e8m0"):
        return None
    return b.op("Cast", x, to=like.element, **node.attributes)


@legalizes("Cast", target="ir")
def convert(b: Builder, node: Node) -> Result:
    """Cast (1 to 28). IR's Convert does not accept strings, does not saturate, and rounds to the
    nearest f8e8m0."""
    x, to = node.operand(0), node.attributes["to"]
    for element in (x.element, to):
        if element is STRING:
            raise Refused("IR converts neither from nor to strings")
        if element is not None and element.ir is None:
            raise Refused(f"IR has no element type {element}")
    if to.name == "f8e8m0":
        return _power_of_two(b, b.cast(x, F32), to, node.attributes["round_mode"])
    if to.name not in _LARGEST:
        defaults = node.attributes["saturate"] and node.attributes["round_mode"] == "up"
        return None if defaults else b.op("Cast", x, to=to)
    if node.attributes["saturate"]:
        wide = b.cast(x, F32)
        most = b.constant(_LARGEST[to.name])
        inside = b.op("Clip", wide, -most, most)
        x = b.where(b.op("IsNaN", wide), wide, inside)
    return b.op("ir::Convert", x, to=to)


def _power_of_two(b: Builder, x: Value, to: Element, mode: str) -> Value:
    nearest = b.op("ir::Convert", x, to=to)
    if mode == "nearest":
        return nearest
    power = b.cast(nearest, F32)
    beyond = b.op("Less" if mode == "up" else "Greater", power, x)
    other = power * (2.0 if mode == "up" else 0.5)
    return b.op("ir::Convert", b.where(beyond, other, power), to=to)


@legalizes("Cast", target="onnx")
def known_types(b: Builder, node: Node) -> Result:
    """Cast (1 to 28). The operator set must have both types. Constants of types that no operator
    set has are expanded."""
    if (expanded := converted_constant(b, node)) is not None:
        return expanded
    x = node.operand(0)
    allowed = allowed_elements("Cast", b.opset)
    for element in (x.element, node.attributes["to"]):
        if element is None or element.onnx is None:
            continue
        if element.name not in allowed:
            raise Refused(f"{b.target} has no element type {element}; write a newer operator set")
    return None


@legalizes("ConvertPromoteTypes", target="onnx")
def convert_promote_types(b: Builder, node: Node) -> Result:
    """ConvertPromoteTypes-14: converts both inputs to their common type."""
    element = promoted(node)
    if element is None:
        raise Refused("the element types of both inputs must be known")
    return [b.cast(value, element) for value in node.operands]


@legalizes("BitCast", target="ir")
def bit_cast(b: Builder, node: Node) -> Result:
    """BitCast-26. IR cannot reinterpret bits as another type. Between integers of one width, a
    conversion that wraps around gives the same bits."""
    x, to = node.operand(0), node.attributes["to"]
    if x.element is to:
        return b.op("Identity", x)
    if x.element is not None and to.is_integer and (x.element.is_integer or x.element is BOOL):
        return b.op("Cast", x, to=to)
    raise Refused(f"IR cannot take the bits of {x.element} for those of {to}")


@knows("Cast")
def content_of_cast(node: Node) -> tuple[Number, ...] | None:
    """Cast: the numbers, if the type can hold them. As bools, they are 0 or 1."""
    content, to = numbers_of(node.inputs[0]), node.attributes["to"]
    if content is None:
        return None
    if to is BOOL:
        return tuple(int(x != 0) if isinstance(x, int) else None for x in content)
    return content if holds(to, content) else None


@knows("CastLike")
def content_of_cast_like(node: Node) -> tuple[Number, ...] | None:
    """CastLike: the numbers, if the type of input 1 can hold them."""
    content, to = numbers_of(node.inputs[0]), first(node, 1).element
    return content if content is not None and holds(to, content) else None


_SIGNIFICAND = {"f16": (11, 5), "bf16": (8, 8), "f32": (24, 8), "f64": (53, 11)}


def promoted(node: Node) -> Element | None:
    """The common type of the inputs of ConvertPromoteTypes-14, by the promotion rules of its
    specification."""
    a, b = first(node), first(node, 1)
    x, y = a.element, b.element
    if x is None or y is None or x is y:
        return x if x is y else None
    order = {"bool": 0, "uint": 1, "int": 1, "float": 2}
    if order[x.kind] != order[y.kind]:
        return x if order[x.kind] > order[y.kind] else y
    if node.attributes["pytorch_scalar_promotion"] and (a.rank == 0) != (b.rank == 0):
        return y if a.rank == 0 else x
    if x.is_float:
        if x.bits == y.bits == 8:
            return F16
        if x.name not in _SIGNIFICAND or y.name not in _SIGNIFICAND:
            return max(x, y, key=lambda e: e.bits)
        need = [max(pair) for pair in zip(_SIGNIFICAND[x.name], _SIGNIFICAND[y.name], strict=True)]
        fitting = (n for n, has in _SIGNIFICAND.items() if has[0] >= need[0] and has[1] >= need[1])
        return ELEMENTS[next(fitting)]
    if x.is_signed == y.is_signed:
        return x if x.bits > y.bits else y
    signed, unsigned = (x, y) if x.is_signed else (y, x)
    bits = max(signed.bits, 2 * unsigned.bits)
    if bits > 64:
        promoted: Element = node.attributes["u64_integer_promotion_target"]
        return promoted
    return ELEMENTS[f"i{bits}"]
