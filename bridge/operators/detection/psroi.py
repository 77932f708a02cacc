"""IR's pooling of regions with separate channels for each bin.

Regions are rows (image, x1, y1, x2, y2). An image of -1 ends the regions, and zeros follow.
"""

import math
from typing import Any

import numpy as np

from bridge.neutral.arrays import counted
from bridge.neutral.inference import first
from bridge.neutral.types import F32, I64
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required
from bridge.operators.detection.sampling import pixels, sampled


@legalizes("PSROIPooling", target="onnx")
def psroi_pooling_to_onnx(b: Builder, node: Node) -> Result:
    """PSROIPooling-1: averages of the pixels of bins, or of samples between pixels."""
    images, regions = (b.cast(v, F32) for v in required(node, 0, 1))
    pooled = _averages if node.attributes["mode"] == "average" else _bilinear
    return _until_the_end(b, node, pooled(b, images, regions, node.attributes), regions)


def _averages(b: Builder, images: Value, regions: Value, attributes: dict[str, Any]) -> Value:
    """The mean of the pixels that a bin touches, in channel (output * group + row) * group +
    column. It is a matrix product of all pixels and a mask of the bin's pixels."""
    group, outputs, scale = (attributes[k] for k in ("group_size", "output_dim", "spatial_scale"))
    number = b.reshape(_images_of(b, regions), 1, 1, -1, 1, 1, 1)
    # Shape: `[rows, columns, regions, images, height, width]`.
    chosen = number.equal(b.reshape(b.positions(images, 0), 1, 1, 1, -1, 1, 1))
    extents = []
    for along in (0, 1):  # y and x
        corners = (b.squeeze(b.take(regions, 1, i - along), 1) for i in (2, 4))
        start, end = (_rounded(b, v) for v in _last_pixel_counted(corners))
        start, end = (v * scale for v in (start, end))
        step = b.max(end - start, 0.1) / float(group)
        size, edges = b.sizes(images, 2 + along), []
        for index, whole in enumerate(("Floor", "Ceil")):
            bins = b.constant(counted(group, np.float32)[:, None] + index)
            edge = b.min(b.max(b.op(whole, bins * step + start), 0.0), b.cast(size, F32))
            edges.append(b.unsqueeze(edge, 1 - along))
        low, high = (b.unsqueeze(v, 3, 4, 5) for v in edges)
        extents.append(edges[1] - edges[0])
        place = b.cast(b.positions(images, 2 + along), F32)
        place = b.reshape(place, 1, 1, 1, 1, *((1, -1) if along else (-1, 1)))
        chosen = chosen & (place >= low) & (place < high)
    area = b.sizes(images, 2) * b.sizes(images, 3)
    cells = group * group
    every = b.sizes(images, 0) * area
    chosen = b.reshape(b.cast(chosen, F32), cells, -1, every)
    planes = b.reshape(b.cut(images, 1, 0, outputs * cells), -1, outputs, cells, area)
    planes = b.reshape(b.transpose(planes, 2, 0, 3, 1), cells, -1, outputs)
    total = b.reshape(b.op("MatMul", chosen, planes), group, group, -1, outputs)
    covered = b.max(extents[0] * extents[1], 1.0)
    return b.transpose(total / b.unsqueeze(covered, 3), 2, 3, 0, 1)


def _bilinear(b: Builder, images: Value, regions: Value, attributes: dict[str, Any]) -> Value:
    """The mean of one sample of each part of the region, in channel part * outputs + output. The
    sample moves through its part from corner to corner, as the bin moves through the output."""
    group, outputs = attributes["group_size"], attributes["output_dim"]
    parts = attributes["spatial_bins_y"], attributes["spatial_bins_x"]
    places = []
    for along, count in enumerate(parts):  # y and x
        corners = (b.take(regions, 1, i - along) for i in (2, 4))
        start, end = (v * attributes["spatial_scale"] for v in corners)
        size = b.unsqueeze(end - start, 2)
        step = size / float(count)
        step = counted(count + 1, np.float32)[:, None] * step
        edges = b.unsqueeze(start, 2) + step
        low, high = b.cut(edges, 1, 0, count), b.cut(edges, 1, 1, count + 1)
        last = b.cast(b.sizes(images, 2 + along) - [1], F32)
        if group > 1:
            bins = b.counted(group, F32)
            width = (high - low) * last / (group - 1.0)
            place = bins * width + low * last
        else:
            place = (low + high) * 0.5 * last
        places.append(b.unsqueeze(place, *((1, 3) if along else (2, 4))))
    used = b.cut(images, 1, 0, parts[0] * parts[1] * outputs)
    number = _planes(b, b.unsqueeze(_images_of(b, regions), 2, 3, 4), (1, *parts, 1, 1))
    values, _ = sampled(b, used, pixels(b, used, outputs), number, places, 0.0)
    return b.transpose(b.op("ReduceMean", values, [1, 2], keepdims=False), 0, 3, 1, 2)


@legalizes("DeformablePSROIPooling", target="onnx")
def deformable_psroi_pooling_to_onnx(b: Builder, node: Node) -> Result:
    """DeformablePSROIPooling-1: averages of samples of bins, moved by fractions of their region.
    Samples outside the image do not count."""
    images, regions = (b.cast(v, F32) for v in required(node, 0, 1))
    attributes = node.attributes
    group, outputs = attributes["group_size"], attributes["output_dim"]
    moves = _moves(b, node)
    classes = 1 if moves is None else _classes(node)
    places = []
    for along, name in enumerate(("spatial_bins_y", "spatial_bins_x")):
        corners = (_rounded(b, b.take(regions, 1, i - along)) for i in (2, 4))
        start, end = (v * attributes["spatial_scale"] - 0.5 for v in _last_pixel_counted(corners))
        size = b.max(end - start, 0.1)
        start, size = (b.unsqueeze(v, 2, 3, 4, 5) for v in (start, size))
        step = size / float(group)
        count = attributes[name]
        bins, samples = (counted(n, np.float32) for n in (group, count))
        bins = bins.reshape(1, 1, *((1, -1) if along else (-1, 1)), 1, 1)
        samples = samples.reshape(1, 1, 1, 1, *((1, -1) if along else (-1, 1)))
        place = bins * step + start
        if moves is not None:
            place += moves[along] * size
        places.append(place + samples * (step / float(count)))
    used = b.cut(images, 1, 0, outputs * group * group)
    rows = pixels(b, used, outputs // classes, group * group)
    number = b.unsqueeze(_images_of(b, regions), 2, 3, 4, 5)
    number = _planes(b, number, (1, classes, group, group, 1, 1))
    values, inside = sampled(b, used, rows, number, places, 0.5)
    total = b.op("ReduceSum", values, [4, 5], keepdims=False)
    found = b.op("ReduceSum", b.cast(inside, F32), [4, 5], keepdims=False)
    mean = total / b.unsqueeze(b.max(found, 1.0), 4)
    result = b.reshape(b.transpose(mean, 0, 1, 4, 2, 3), -1, outputs, group, group)
    return _until_the_end(b, node, result, regions)


def _classes(node: Node) -> int:
    """The number of classes with offsets; each class has two channels."""
    shape = first(node, 2).shape
    if shape is None or not isinstance(shape[1], int):
        raise Refused("the number of channels of its offsets is not known; declare their shape")
    return shape[1] // 2


def _moves(b: Builder, node: Node) -> list[Value] | None:
    """The moves of bins along y and along x as fractions of the region's size. Each is [regions,
    classes, rows, columns, 1, 1]. None if bins do not move."""
    offsets, group = node.input(2), node.attributes["group_size"]
    if offsets is None:
        return None
    b.room(group)
    part = [i * node.attributes["part_size"] // group for i in range(group)]
    offsets = b.take(b.take(b.cast(offsets, F32), 2, *part), 3, *part)
    offsets *= node.attributes["trans_std"]
    offsets = b.reshape(offsets, -1, _classes(node), 2, group, group)
    return [b.unsqueeze(b.squeeze(b.take(offsets, 2, i), 2), 4, 5) for i in (1, 0)]


def _images_of(b: Builder, regions: Value) -> Value:
    """The indices of the images [regions, 1]."""
    return b.cast(b.take(regions, 1, 0), I64)


def _planes(b: Builder, images: Value, shape: tuple[int, ...]) -> Value:
    """The indices of the planes of images. `shape` is the shape of the planes of an image."""
    planes = counted(math.prod(shape)).reshape(shape)
    return b.max(images, 0) * planes.size + planes


def _last_pixel_counted(corners: Any) -> tuple[Value, Value]:
    start, end = corners
    return start, end + 1.0


def _rounded(b: Builder, x: Value) -> Value:
    """The nearest whole numbers. Halves are rounded away from 0."""
    size = abs(x)
    low = b.op("Floor", size)
    half = size - low >= 0.5
    return b.op("Sign", x) * (low + b.cast(half, F32))


def _until_the_end(b: Builder, node: Node, result: Value, regions: Value) -> Value:
    """The result, with zeros from the first region of image -1 on."""
    ended = b.op("CumSum", b.cast(_images_of(b, regions).equal(-1), I64), 0)
    live = b.unsqueeze(ended, 2, 3).equal(0)
    return b.cast(b.where(live, result, 0.0), first(node).element)
