"""IR's ROIAlignRotated."""

import numpy as np

from bridge.neutral.inference import first
from bridge.neutral.types import F32
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.detection.sampling import pixels, sampled


@legalizes("ROIAlignRotated", target="onnx")
def roi_align_rotated_to_onnx(b: Builder, node: Node) -> Result:
    """ROIAlignRotated-14 and -15: the mean of the samples of each bin of rotated regions (centre,
    size, angle)."""
    images, regions, numbers = required(node, 0, 1, 2)
    images, attributes = b.cast(images, F32), node.attributes
    *scaled, angle = b.split(b.cast(regions, F32), 1, 1, 1, 1, 1, 1)
    x, y, width, height = (v * attributes["spatial_scale"] for v in scaled)
    ratio = attributes["sampling_ratio"]
    # Shape: `[regions, rows, columns, samples along y, samples along x]`.
    u, used_x, count_x = _along(b, width, attributes["pooled_w"], ratio)
    v, used_y, count_y = _along(b, height, attributes["pooled_h"], ratio)
    u, used_x, v, used_y = (
        b.unsqueeze(x, *axes)
        for x, axes in ((u, (1, 3)), (used_x, (1, 3)), (v, (2, 4)), (used_y, (2, 4)))
    )
    if attributes["clockwise_mode"]:
        angle = -angle
    cosine, sine = (b.unsqueeze(b.op(f, angle), 2, 3, 4) for f in ("Cos", "Sin"))
    x, y = (b.unsqueeze(c - 0.5, 2, 3, 4) for c in (x, y))
    place_y = v * cosine - u * sine
    place_x = v * sine + u * cosine
    places = place_y + y, place_x + x
    number = b.reshape(b.as_i64(numbers), -1, 1, 1, 1, 1)
    values, _ = sampled(b, images, pixels(b, images, b.sizes(images, 1)), number, places, 1.0)
    if not ratio:
        used = b.unsqueeze(used_x & used_y, 5)
        values = b.where(used, values, 0.0)
    total = b.op("ReduceSum", values, [3, 4], keepdims=False)
    mean = total / b.unsqueeze(b.max(count_x * count_y, 1.0), 2, 3)
    return b.cast(b.transpose(mean, 0, 3, 1, 2), first(node).element)


def _along(b: Builder, extent: Value, bins: int, ratio: int) -> tuple[Value, Value, Value]:
    """The places [regions, bins, samples] of samples along an axis, relative to the middle of the
    region. Also a mask of the used samples [regions, 1, samples], and their number in a bin
    [regions, 1]. The sizes of the regions are [regions, 1]. Without a ratio, a bin has as many
    samples as its length."""
    size = extent / float(bins)
    if ratio:
        count, most = b.constant(np.full((1, 1), ratio, np.float32)), b.constant(ratio)
    else:
        count = b.op("Ceil", size)
        flat = b.concat(0, b.constant([1.0]), b.reshape(count, -1))
        most = b.as_i64(b.op("ReduceMax", flat, [0], keepdims=False))
    index = b.cast(b.op("Range", 0, most, 1), F32)
    fine = b.unsqueeze(size / b.max(count, 1.0), 2) * (index + 0.5)
    start = size * b.counted(bins, F32) - extent * 0.5
    used = b.reshape(index, 1, 1, -1) < b.reshape(count, -1, 1, 1)
    return b.unsqueeze(start, 2) + fine, used, count
