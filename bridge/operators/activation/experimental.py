"""ONNX's experimental operators of operator sets 1 to 9, written with today's operators. The
installed standard has dropped them, but onnxruntime still runs them."""

import numpy as np

from bridge.operators import Builder, Node, Refused, Value, reads, required


def _number(node: Node, name: str, otherwise: float | None = None) -> float:
    """An attribute; Refused if it is required and absent."""
    value = node.attributes.get(name, otherwise)
    if value is None:
        raise Refused(f"it has no {name}")
    return float(value)


def _scaled(x: Value, scale: float, offset: float = 0.0) -> Value:
    x = x if scale == 1 else x * scale
    return x if offset == 0 else x + offset


@reads("Affine", "Scale", format="onnx", until=9)
def read_affine(b: Builder, node: Node) -> Value:
    """Affine-1: alpha * x + beta. Scale-1: scale * x."""
    x = node.operand(0)
    if node.op == "Affine":
        y = _scaled(x, _number(node, "alpha", 1), _number(node, "beta", 0))
    else:
        y = _scaled(x, _number(node, "scale", 1))
    return b.op("Identity", x) if y is x else y


@reads("ImageScaler", format="onnx", until=9)
def read_image_scaler(b: Builder, node: Node) -> Value:
    """ImageScaler-1: scale * x + bias, with one bias for each channel."""
    x = node.operand(0)
    bias = np.array(node.attributes.get("bias", ()), np.float64).reshape(-1, 1, 1)
    return _scaled(x, _number(node, "scale", 1)) + b.like(bias, x)


@reads("ScaledTanh", "ParametricSoftplus", format="onnx", until=9)
def read_scaled_function(b: Builder, node: Node) -> Value:
    """ScaledTanh-1 and ParametricSoftplus-1: alpha * f(beta * x) of Tanh and Softplus."""
    function = "Tanh" if node.op == "ScaledTanh" else "Softplus"
    inner = b.op(function, _scaled(node.operand(0), _number(node, "beta")))
    return _scaled(inner, _number(node, "alpha"))


@reads("ThresholdedRelu", format="onnx", until=9)
def read_thresholded_relu(b: Builder, node: Node) -> Value:
    """ThresholdedRelu-1 is the same as ThresholdedRelu-10."""
    return b.op("ThresholdedRelu", node.input(0), alpha=_number(node, "alpha", 1))


@reads("Crop", format="onnx", until=9)
def read_crop(b: Builder, node: Node) -> Value:
    """Crop-1: images without their border (left, top, right, bottom), or a part with the height and
    width `scale` from the top left corner."""
    x = node.operand(0)
    border, size = node.attributes.get("border", ()), node.attributes.get("scale")
    if len(border) != 4 or (size is not None and len(size) != 2):
        raise Refused("its border must be four numbers, and its scale two")
    left, top, right, bottom = border
    if size:
        ends = b.constant([top + size[0], left + size[1]])
    else:
        ends = b.sizes(x, 2, 3) - [bottom, right]
    return b.op("Slice", x, b.constant([top, left]), ends, b.constant([2, 3]))


@reads("DynamicSlice", format="onnx", until=9)
def read_dynamic_slice(b: Builder, node: Node) -> Value:
    """DynamicSlice-1 is Slice-10 without steps."""
    x, starts, ends = required(node, 0, 1, 2)
    return b.op("Slice", x, starts, ends, node.input(3))
