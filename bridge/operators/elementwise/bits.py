"""Constants of element types that ONNX lacks: nf4 (NormalFloat, used by NNCF for compressed
weights), u1, u3 and u6. IR converts them before it computes with them."""

from collections.abc import Iterator

import numpy as np

from bridge.neutral.tensor import Tensor
from bridge.neutral.types import F32, I32, NF4, U4, U8
from bridge.operators import Builder, Node, Refused, Result
from bridge.operators.element_types import allowed_elements

NORMAL_FLOATS = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
"""The values of the 16 codes of nf4 (QLoRA, appendix E). OpenVINO converts to the same values."""


class Bytes:
    """Unsigned numbers of few bits, unpacked to one byte each when they are written."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def chunks(self) -> Iterator[memoryview]:
        """Yields all bytes at once."""
        yield self.tensor.array().astype(np.uint8).reshape(-1).data


def converted_constant(b: Builder, node: Node) -> Result:
    """A constant that ONNX cannot hold, as values of the table or as bytes."""
    x, to = node.operand(0), node.attributes["to"]
    for element in (x.element, to):
        if element is not None and element.onnx is None and (x.constant is None or element is to):
            raise Refused(f"ONNX has no element type {element}")
    tensor = x.constant
    if tensor is None or tensor.element.onnx is not None:
        return None
    codes = tensor
    if tensor.element is NF4:
        codes = Tensor(U4, tensor.shape, tensor.source)
    if codes.element is not U4 or U4.name not in allowed_elements("Cast", b.opset):
        codes = Tensor(U8, tensor.shape, Bytes(codes))
    if tensor.element is not NF4:
        return b.op("Cast", b.tensor(codes), to=to)
    table = b.constant(NORMAL_FLOATS, to if to.is_float else F32)
    y = b.op("Gather", table, b.cast(b.tensor(codes), I32), 0)
    return b.cast(y, to)
