"""IR's BinaryConvolution."""

import numpy as np

from bridge.neutral.types import U1
from bridge.operators import Builder, Node, Refused, Result, legalizes, required
from bridge.operators.nn.conv import explicitly_padded
from bridge.operators.nn.windows import with_padding


@legalizes("BinaryConvolution", target="onnx")
def binary_convolution_to_onnx(b: Builder, node: Node) -> Result:
    """BinaryConvolution-1: a Conv of signs. A number above 0 becomes 1, and any other becomes -1.
    The specification defines only the numbers 0 and 1. With a `pad_value` of 0, the padding adds
    nothing to the sums. The first bit in a byte of filters is the lowest, as the Model Optimizer
    wrote it. Other constants have the opposite order."""
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
    element = data.known_element
    data = b.op("Where", data > 0, b.like(1, data), b.like(-1, data))
    if fill and any(attributes["pads"]):
        data, attributes = with_padding(b, data, attributes, 1.0 if fill == 1 else -1.0)
    return b.op(
        "Conv", data, b.cast(signs, element), auto_pad="NOTSET", pads=attributes["pads"],
        strides=attributes["strides"], dilations=attributes["dilations"],
    )  # fmt: skip
