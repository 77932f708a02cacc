"""Pictures from cameras and decoders: one brightness for each pixel, and colours for each four
pixels.

In NV12, the two colours are side by side; in I420, each colour has its own plane. Either format is
one tensor or several parts (NV12toRGB-8, I420toRGB-8). The last rows of one tensor `[N, H * 3 / 2,
W, 1]` are the colours.
"""

import numpy as np

from bridge.neutral.inference import constraints as must
from bridge.neutral.types import F32, I64_MAX
from bridge.operators import Builder, Node, Value, legalizes

OFFSET = (16.0, 128.0, 128.0)
TO_RGB = ((1.164, 1.164, 1.164), (0.0, -0.391, 2.018), (1.596, -0.813, 0.0))
"""The contribution of brightness and of the two colours, less `OFFSET`, to red, green and blue
(NV12toRGB-8)."""


@legalizes("I420toBGR", "I420toRGB", "NV12toBGR", "NV12toRGB", target="onnx")
def colors_for_onnx(b: Builder, node: Node) -> Value:
    """I420toBGR-8, I420toRGB-8, NV12toBGR-8, NV12toRGB-8, which ONNX lacks: enlarged colour planes
    and a matrix product."""
    planes = node.operands
    element, together = planes[0].element, node.op.startswith("NV12")
    luma, *chroma = [b.cast(plane, F32) for plane in planes]
    if not chroma:
        luma, joined = _parts(b, luma, together)
        chroma = [joined]
    # Each colour applies to two rows and two columns.
    wide = b.op(
        "Resize", b.concat(3, *chroma), None, np.array([1, 2, 2, 1], np.float32),
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip
    picture = b.concat(3, luma, wide) - OFFSET
    matrix = np.array(TO_RGB, np.float32)
    if node.op.endswith("BGR"):
        matrix = matrix[:, ::-1]
    result = b.op("Clip", b.op("MatMul", picture, matrix), 0.0, 255.0)
    if element is not None and not element.is_float:
        result = b.op("Round", result)
    return b.cast(result, element)


def _planes(node: Node) -> must.Constraints:
    """NV12toRGB-8 and similar operators with several planes: colours have half of the rows and
    columns."""
    luma, *chroma = must.operands(node, len(node.inputs))
    for plane in chroma:
        yield must.Same(plane[0], luma[0], "planes {} and {} are of several pictures", plane, luma)
        for axis in (1, 2):
            yield must.Same(
                plane[axis], chroma[0][axis], "colours {} and {} differ", plane, chroma[0]
            )
            yield must.Double(luma[axis], plane[axis], "a plane {} is not half of {}", plane, luma)


must.hold(("I420toBGR", "I420toRGB", "NV12toBGR", "NV12toRGB"), _planes)


def _parts(b: Builder, whole: Value, together: bool) -> tuple[Value, Value]:
    """The brightness `[N, H, W, 1]` and the colours `[N, H / 2, W / 2, 2]` of one tensor."""
    third = b.sizes(whole, 1) / [3]
    height = third * [2]
    luma = b.cut(whole, 1, 0, height)
    rest = b.cut(whole, 1, height, I64_MAX)
    if together:
        return luma, b.reshape(rest, 0, third, -1, 2)
    return luma, b.transpose(b.reshape(rest, 0, 2, third, -1), 0, 2, 3, 1)
