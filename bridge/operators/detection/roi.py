"""Pooling of regions of interest.

IR's aligned_mode "half_pixel_for_nn" is ONNX's half_pixel, and "asymmetric" is ONNX's
output_half_pixel. IR's "half_pixel" is half a pixel of the input farther.
"""

from itertools import product, starmap

import numpy as np

from bridge.neutral.types import I64
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required

_ALIGNED = {"half_pixel": "half_pixel_for_nn", "output_half_pixel": "asymmetric"}


@legalizes("RoiAlign", target="ir")
def roi_align_to_ir(b: Builder, node: Node) -> Result:
    """RoiAlign (10 to 22) as ROIAlign-9. Only in ONNX does the mode "max" mean the maximum of the
    weighted corners."""
    attributes = node.attributes
    if attributes["mode"] == "max":
        return _maximum_of_corners(b, node)
    data, rois, batches = required(node, 0, 1, 2)
    if not rois.shape or rois.shape[-1] != 4:
        rois = b.reshape(rois, -1, 4)  # ROIAlign-9 requires rows of four.
    return b.op(
        "ROIAlign", data, rois, batches, pooled_h=attributes["output_height"],
        pooled_w=attributes["output_width"], sampling_ratio=attributes["sampling_ratio"],
        spatial_scale=attributes["spatial_scale"], mode=attributes["mode"],
        aligned_mode=_ALIGNED[attributes["coordinate_transformation_mode"]],
    )  # fmt: skip


def _maximum_of_corners(b: Builder, node: Node) -> Value:
    """ONNX's mode max. Each sample has four neighbours with bilinear weights. The result is the
    maximum of the weighted neighbours of all samples of a bin. The standard's reference and
    onnxruntime compute the same."""
    data, rois, batches = node.operands
    attributes, samples = node.attributes, node.attributes["sampling_ratio"]
    if samples < 1:
        raise Refused("mode max with a sampling_ratio of 0 has no fixed number of samples")
    bins = attributes["output_height"], attributes["output_width"]
    rows = _neighbours(b, node, 1, bins[0], b.sizes(data, 2))
    columns = _neighbours(b, node, 0, bins[1], b.sizes(data, 3))
    channels = b.sizes(data, 1)
    images = b.op("Gather", b.transpose(data, 0, 2, 3, 1), batches, 0)
    pixels = b.reshape(images, b.sizes(rois, 0), -1, channels)
    width = b.sizes(data, 3)

    def weighted(row: tuple[Value, Value], column: tuple[Value, Value]) -> Value:
        (y, y_weight), (x, x_weight) = row, column
        start = b.unsqueeze(y, 2) * width
        place = b.reshape(start + b.unsqueeze(x, 1), b.sizes(rois, 0), -1)
        weight = b.unsqueeze(y_weight, 2) * b.unsqueeze(x_weight, 1)
        weight = b.reshape(weight, b.sizes(rois, 0), -1, 1)
        return b.op("Gather", pixels, place, 1, batch_dims=1) * weight

    greatest = b.fold("Max", starmap(weighted, product(rows, columns)))
    grid = b.reshape(greatest, -1, bins[0], samples, bins[1], samples, channels)
    return b.transpose(b.op("ReduceMax", grid, [2, 4], keepdims=False), 0, 3, 1, 2)


def _neighbours(
    b: Builder, node: Node, axis: int, bins: int, size: Value
) -> list[tuple[Value, Value]]:
    """The lower and the higher neighbour of every sample along an axis, and their weights. Each is
    [rois, bins * samples]. The weights are 0 outside the image."""
    attributes, rois = node.attributes, node.operand(1)
    aligned = attributes["coordinate_transformation_mode"] == "half_pixel"
    scaled = rois * attributes["spatial_scale"] - (0.5 if aligned else 0.0)
    start, end = b.take(scaled, 1, axis), b.take(scaled, 1, axis + 2)
    extent = end - start
    if not aligned:
        extent = b.max(extent, 1.0)
    count = bins * attributes["sampling_ratio"]
    b.room(count)
    steps = (np.arange(count).reshape(1, -1) + 0.5) / count
    place = start + extent * steps
    length = b.cast(size, rois.element)
    inside = b.cast((place >= -1.0) & (place <= length), rois.element)
    last = length - 1.0
    place = b.min(b.max(place, 0.0), last)
    low = b.op("Floor", place)
    high = b.min(low + 1.0, last)
    share = place - low
    rest = 1.0 - share
    return [
        (b.cast(low, I64), rest * inside),
        (b.cast(high, I64), share * inside),
    ]


@legalizes("ROIAlign", target="onnx")
def ir_roi_align_to_onnx(b: Builder, node: Node) -> Result:
    """ROIAlign (3 to 9). ONNX's mode max takes the maximum of weighted corners, but IR's mode takes
    the maximum of the samples and 0. The conversion therefore computes averages of one sample each
    and pools them."""
    data, rois, batches = required(node, 0, 1, 2)
    attributes = node.attributes
    aligned = attributes["aligned_mode"]
    scale = attributes["spatial_scale"]
    if aligned == "half_pixel":
        rois += 0.5
    samples, height, width = (attributes[k] for k in ("sampling_ratio", "pooled_h", "pooled_w"))
    mode = "output_half_pixel" if aligned == "asymmetric" else "half_pixel"
    largest = attributes["mode"] == "max"
    if largest and samples == 0:
        raise Refused("mode max with a sampling_ratio of 0 has no fixed number of samples")
    finer = samples if largest else 1
    y = b.op(
        "RoiAlign", data, rois, b.cast(batches, I64), mode="avg", spatial_scale=scale,
        output_height=height * finer, output_width=width * finer,
        sampling_ratio=1 if largest else samples,
        coordinate_transformation_mode=mode,
    )  # fmt: skip
    if not largest:
        return y
    window = (samples, samples)
    return b.op("Relu", b.op("MaxPool", y, kernel_shape=window, strides=window))


@legalizes("MaxRoiPool", target="ir")
def max_roi_pool_to_ir(b: Builder, node: Node) -> Result:
    """MaxRoiPool (1 to 22) as ROIPooling-2 with the method "max"."""
    height, width = node.attributes["pooled_shape"]
    x, regions = required(node, 0, 1)
    return b.op(
        "ROIPooling", x, b.reshape(regions, -1, 5), pooled_h=height, pooled_w=width, method="max",
        spatial_scale=node.attributes["spatial_scale"],
    )  # fmt: skip


@legalizes("ROIPooling", target="onnx")
def roi_pooling_to_onnx(b: Builder, node: Node) -> Result:
    """ROIPooling-1 and -2: MaxRoiPool for the method "max". The method "bilinear" is written with
    other operators."""
    attributes = node.attributes
    if attributes["method"] != "max":
        return _samples_of_corners(b, node)
    return b.op(
        "MaxRoiPool", *node.inputs, pooled_shape=(attributes["pooled_h"], attributes["pooled_w"]),
        spatial_scale=attributes["spatial_scale"],
    )  # fmt: skip


def _samples_of_corners(b: Builder, node: Node) -> Value:
    """ROIPooling's bilinear method. Regions are fractions of the image, sampled from corner to
    corner, with 0 outside. RoiAlign samples the middle of a bin, so that bins are placed around the
    samples."""
    data, rois = node.operands
    starts, ends, inside = [], [], []
    for axis, name in ((3, "pooled_w"), (2, "pooled_h")):
        count, column = node.attributes[name], 4 - axis
        last = b.cast(b.sizes(data, axis), rois.element) - 1.0
        start, end = (b.take(rois, 1, i) for i in (column, column + 2))
        if count > 1:
            step = (end - start) * last / (count - 1.0)
            first = start * last
        else:
            first, step = (start + end) * 0.5 * last, start * 0.0
        b.room(count)
        place = step * np.arange(count, dtype=np.float32) + first
        inside.append(b.unsqueeze((place >= 0.0) & (place <= last), 1, 5 - axis))
        # RoiAlign subtracts half a pixel.
        begin = first + 0.5 - step * 0.5
        starts.append(begin)
        ends.append(begin + step * float(count))
    y = b.op(
        "RoiAlign", data, b.concat(1, *starts, *ends),
        b.cast(b.squeeze(b.take(rois, 1, 0), 1), I64), mode="avg", sampling_ratio=1,
        output_height=node.attributes["pooled_h"], output_width=node.attributes["pooled_w"],
        spatial_scale=1.0, coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    return b.where(b.op("And", *inside), y, 0.0)
