"""Conversions between element types."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.inference.math import promoted
from bridge.neutral.types import BY_ONNX, STRING, Element
from bridge.rules import Refused, Result, expands, reads
from bridge.rules.idioms import cast

_LARGEST = {"f8e4m3fn": 448.0, "f8e5m2": 57344.0}
"""The largest finite numbers of the types of 8 bits that saturate (ONNX, Float 8)."""


@reads("Cast", format="onnx", until=5)
def named_type(b: Builder, node: Node) -> Result:
    """Cast-1 names the type with a string."""
    import onnx

    name = node.attributes["to"]
    return b.op("Cast", node.inputs[0], to=BY_ONNX[onnx.TensorProto.DataType.Value(name)])


@expands("CastLike", target="ir")
@expands("CastLike", target="onnx")
def cast_like(b: Builder, node: Node) -> Result:
    """Cast, where the type is known and the operator does not say it as well."""
    x, like = node.inputs
    assert like is not None and b.target is not None
    if like.element is None:
        return None
    if (
        b.target.format == "ir"
        and node.attributes["saturate"]
        and like.element.name not in _LARGEST
    ):
        return None
    if b.target.format == "onnx" and b.target.opset >= 15:
        return None
    keys = ("saturate", "round_mode")
    return b.op("Cast", x, to=like.element, **{k: node.attributes[k] for k in keys})


@expands("Cast", target="ir")
def convert(b: Builder, node: Node) -> Result:
    """IR's Convert takes no strings; it does not saturate to types of 8 bits."""
    x = node.inputs[0]
    assert x is not None
    to: Element = node.attributes["to"]
    for element in (to, x.element):
        if element is STRING:
            raise Refused(
                "OpenVINO converts neither to nor from strings; take them out of the model"
            )
        if element is not None and element.ir is None:
            raise Refused(f"OpenVINO has no element type {element}")
    saturate, up = node.attributes["saturate"], node.attributes["round_mode"] == "up"
    if saturate and up and to.name not in _LARGEST:
        return None
    if not up:
        if to.name == "f8e8m0":
            raise Refused(
                f"OpenVINO rounds to f8e8m0 in one way; round_mode must be up, not {node.attributes['round_mode']}"
            )
        return b.op("Cast", x, to=to, saturate=saturate)
    if not saturate:
        # Out of range, Convert gives what ONNX wants without saturation: NaN, or an infinity.
        return b.op("Cast", x, to=to)
    return None


@expands("ConvertPromoteTypes", target="onnx")
def convert_promote_types(b: Builder, node: Node) -> Result:
    """Both inputs, converted to their common type."""
    element = promoted(node)
    if element is None:
        raise Refused("the element types of both inputs must be known")
    return [cast(b, value, element) for value in node.inputs if value is not None]


@expands("BitCast", target="ir")
def bit_cast(b: Builder, node: Node) -> Result:
    """IR cannot take bits for those of another type."""
    x = node.inputs[0]
    assert x is not None
    if x.element is node.attributes["to"]:
        return b.op("Identity", x)
    raise Refused(
        f"OpenVINO cannot take the bits of {x.element} for those of {node.attributes['to']}"
    )
