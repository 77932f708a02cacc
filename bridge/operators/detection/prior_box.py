"""IR's PriorBox and PriorBoxClustered: boxes around the centre of every cell of a grid.

A box is the centre of its cell plus a constant, divided by the size of the image. The model
computes only the number of cells and the size of the image, so that they may be unknown.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from bridge.neutral.arrays import spend
from bridge.neutral.types import F32
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes


@dataclass(frozen=True)
class Box:
    """A box relative to the centre of its cell: its size and its own centre. A clipped box ends at
    the border of the image."""

    width: float
    height: float
    x: float = 0
    y: float = 0
    clipped: bool = False


def aspect_ratios(attributes: dict[str, Any]) -> list[float]:
    """The distinct aspect ratios with 1 first. With `flip`, each ratio has its reciprocal too."""
    ratios = [1.0]
    for ratio in attributes["aspect_ratio"]:
        if all(abs(ratio - known) >= 1e-6 for known in ratios):
            ratios.append(ratio)
            if attributes["flip"]:
                ratios.append(1.0 / ratio)
    return ratios


def boxes_of(node: Node) -> list[Box]:
    """The boxes of one cell in the order of the output (PriorBox-8, PriorBoxClustered-1)."""
    attributes = node.attributes
    if node.op == "PriorBoxClustered":
        return [Box(*size) for size in zip(attributes["width"], attributes["height"], strict=True)]
    others = [r for r in aspect_ratios(attributes) if abs(r - 1) >= 1e-6]
    boxes: list[Box] = []
    for index, size in enumerate(attributes["fixed_size"]):
        boxes += _dense(attributes, size, index, others)
    sizes, largest = attributes["min_size"], attributes["max_size"]
    every = attributes["scale_all_sizes"]
    for index, size in enumerate(sizes):
        between = [Box(*((size * largest[index]) ** 0.5,) * 2)] if index < len(largest) else []
        stretched = []
        if every or index == len(sizes) - 1:
            base = size if every else sizes[0]
            stretched = [Box(base * r**0.5, base / r**0.5) for r in others]
        in_order = attributes["min_max_aspect_ratios_order"]
        boxes += [Box(size, size), *(between + stretched if in_order else stretched + between)]
    return boxes


def _dense(attributes: dict[str, Any], size: float, index: int, others: list[float]) -> list[Box]:
    """The boxes of a fixed size on a grid inside the cell. The distances of the grid are whole
    numbers."""
    density = int(attributes["density"][index]) if index < len(attributes["density"]) else 0
    ratios, whole = attributes["fixed_ratio"] or others, float(int(size))
    sides = [] if attributes["fixed_ratio"] else [(whole, whole)]
    sides += [(size * ratio**0.5, size / ratio**0.5) for ratio in ratios]
    spend((density, density, 4 * len(sides)), np.int64, "the boxes of a PriorBox")
    shift = int(size / density) if density else 0
    places = [shift / 2 - whole / 2 + i * shift for i in range(density)]
    return [Box(*side, x, y, clipped=True) for side, y, x in product(sides, places, places)]


def priors_per_cell(node: Node) -> int:
    """The number of boxes of a cell, as OpenVINO infers it (PriorBox-8)."""
    attributes = node.attributes
    if node.op == "PriorBoxClustered":
        return len(attributes["width"])
    ratios, sizes = len(aspect_ratios(attributes)), attributes["min_size"]
    if attributes["fixed_size"]:
        count = ratios * len(attributes["fixed_size"])
    elif attributes["scale_all_sizes"]:
        count = ratios * len(sizes) + len(attributes["max_size"])
    else:
        count = ratios + len(sizes) - 1
    dense = len(attributes["fixed_ratio"]) or ratios
    return count + sum(dense * (int(d) ** 2 - 1) for d in attributes["density"])


@legalizes("PriorBox", "PriorBoxClustered", target="onnx")
def prior_box_to_onnx(b: Builder, node: Node) -> Result:
    """PriorBox-1 and -8, PriorBoxClustered-1, which ONNX lacks: corners around the centres of
    cells, and variances."""
    cells, image = (b.cast(v, F32) for v in node.operands)
    attributes, boxes = node.attributes, boxes_of(node)
    if len(boxes) != priors_per_cell(node):
        raise Refused("its sizes, ratios and densities contradict the number of boxes")
    rows, columns = b.take(cells, 0, 0), b.take(cells, 0, 1)
    height, width = b.take(image, 0, 0), b.take(image, 0, 1)
    step_y, step_x, offset = _steps(b, node, (rows, columns), (height, width))
    y = _centres(b, rows, offset, step_y, (-1, 1, 1))
    x = _centres(b, columns, offset, step_x, (1, -1, 1))
    clip, flags = attributes["clip"], np.array([box.clipped for box in boxes])
    unit: Value | None = None
    if not attributes.get("scale_all_sizes", True):
        # Sizes are fractions of the height, except for fixed sizes.
        unit = b.where(b.constant(flags), 1.0, height) if flags.any() else height
    across = np.array([(box.x, box.width * 0.5) for box in boxes]).reshape(-1, 2)
    down = np.array([(box.y, box.height * 0.5) for box in boxes]).reshape(-1, 2)
    edges = []
    for sign in (-1, 1):
        for centre, places, size in ((x, across, width), (y, down, height)):
            relative = b.constant(places[:, 0] + sign * places[:, 1], F32)
            relative = relative if unit is None else relative * unit
            edge = (centre + relative) / size
            if clip:
                edge = b.op("Clip", edge, 0.0, 1.0)
            elif flags.any():
                limit = np.where(flags, 0.0 if sign < 0 else 1.0, sign * np.inf)
                edge = b.op("Max" if sign < 0 else "Min", edge, limit.astype(np.float32))
            edges.append(edge)
    grid = b.op("Shape", x + y + edges[0])
    corners = [b.unsqueeze(b.op("Expand", edge, grid), 3) for edge in edges]
    priors = b.reshape(b.concat(3, *corners), 1, -1)
    variance = b.constant(np.array(attributes["variance"] or [0.1], np.float32))
    quads = b.op("Expand", variance, b.op("Shape", b.reshape(priors, -1, 4)))
    return b.concat(0, priors, b.reshape(quads, 1, -1))


def _steps(
    b: Builder, node: Node, cells: tuple[Value, Value], image: tuple[Value, Value]
) -> tuple[Value, Value, float]:
    """The distances between centres, and the place of a centre in its cell."""
    attributes = node.attributes
    natural = [size / count for size, count in zip(image, cells, strict=True)]
    step, offset = attributes["step"], attributes["offset"]
    if node.op == "PriorBoxClustered":
        given = attributes["step_h"] or step, attributes["step_w"] or step
        if not any(given):
            return natural[0], natural[1], offset
        return b.constant([given[0]]), b.constant([given[1]]), offset
    if not attributes["scale_all_sizes"] and step:
        one = natural[0] if step == -1 else image[0] * [step]
        return one, one, offset
    if step == 0:
        return natural[0], natural[1], 0.5
    return b.constant([step]), b.constant([step]), offset


def _centres(
    b: Builder, count: Value, offset: float, step: Value, dims: tuple[int, int, int]
) -> Value:
    numbers = b.op("Range", b.constant(0.0), b.scalar(count), 1.0)
    return b.reshape((numbers + offset) * step, *dims)
