"""IR's BinaryConvolution."""

from __future__ import annotations

import numpy as np

from bridge.neutral.types import U1
from bridge.operators import Builder, Node, Refused, Result, element_type, legalizes, required
from bridge.operators.nn.conv import explicitly_padded
from bridge.operators.nn.windows import with_padding


@legalizes("BinaryConvolution", target="onnx")
def binary_convolution_to_onnx(b: Builder, node: Node) -> Result:
    """BinaryConvolution-1: a Conv of signs. What is above 0 is 1 and all else -1; of other numbers
    than 0 and 1 the specification says nothing. A `pad_value` of 0 pads with nothing. The bits of a
    byte of its filters are in the order in which the Model Optimizer wrote them: the first is the
    lowest, unlike in any other constant."""
    data, filters = required(node, 0, 1)
    bits = filters.constant
    if bits is None or bits.element is not U1:
        raise Refused("its filters must be a constant of type u1")
    b.room(*bits.shape)
    flat = bits.array().reshape(-1)
    flat = np.pad(flat, (0, -flat.size % 8)).reshape(-1, 8)[:, ::-1].reshape(-1)[: flat.size]
    signs = b.constant((flat.astype(np.int8) * 2 - 1).reshape(bits.shape))
    attributes = explicitly_padded(data, bits.shape[2:], node.attributes)
    fill = attributes["pad_value"]
    element = element_type(data)
    data = b.op("Where", data > 0, b.like(1, data), b.like(-1, data))
    if fill and any(attributes["pads"]):
        data, attributes = with_padding(b, data, attributes, 1.0 if fill == 1 else -1.0)
    return b.op(
        "Conv", data, b.cast(signs, element), auto_pad="NOTSET", pads=attributes["pads"],
        strides=attributes["strides"], dilations=attributes["dilations"],
    )  # fmt: skip
