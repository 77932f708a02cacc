"""MaxUnpool."""

from __future__ import annotations

import numpy as np

from bridge.neutral.inference import constraints as must, first, infers, require
from bridge.neutral.types import ANY, TensorType, Type
from bridge.operators import Builder, Node, Result, legalizes, required
from bridge.operators.nn.shapes import full_attributes, pooling, sizes_in, window_faults
from bridge.operators.nn.windows import window_of


@legalizes("MaxUnpool", target="ir")
def max_unpool_to_ir(b: Builder, node: Node) -> Result:
    """MaxUnpool (9 to 22): scatters into zeros of the size that pooling undoes, then adds zeros
    up to output_shape."""
    data, indices = required(node, 0, 1)
    output = node.input(2)
    attributes = window_of(node)
    kernel, pads = np.array(attributes["kernel_shape"]), attributes["pads"]
    rank = len(kernel)
    strides = np.array(attributes["strides"])
    removed = np.array(pads[:rank]) + pads[rank:]
    before = b.sizes(data, *range(2, rank + 2))
    grown = b.op("Mul", before, strides)
    after = b.op("Add", grown, kernel - strides - removed)
    shape = b.concat(0, b.sizes(data, 0, 1), after)
    flat = b.constant([-1])
    empty = b.op("Expand", b.like(0.0, data), b.op("ReduceProd", shape, [0]))
    y = b.op(
        "ScatterElements", empty, b.op("Reshape", indices, flat), b.op("Reshape", data, flat),
        0,
    )  # fmt: skip
    y = b.op("Reshape", y, shape)
    if output is None:
        return y
    missing = b.op("Sub", b.as_i64(output), shape)
    return b.op("Pad", y, b.concat(0, b.constant([0] * (rank + 2)), missing), mode="constant")


@infers("MaxUnpool")
def infer_max_unpool(node: Node) -> list[Type]:
    """MaxUnpool: the shape of input 2, or the data's before a pooling that left nothing over."""
    data = first(node)
    if node.input(2) is not None:
        known = sizes_in(node.input(2))
        return [TensorType(data.element, known or (data.shape and (ANY,) * len(data.shape)))]
    if data.shape is None:
        return [data]
    kernel = node.attributes["kernel_shape"]
    require(len(data.shape) == len(kernel) + 2)
    require(not next(window_faults(node.attributes, len(kernel)), ""))
    full = full_attributes(node.attributes, len(kernel))
    strides, pads = full["strides"], full["pads"]
    spatial = [
        (dim - 1) * strides[i] + kernel[i] - pads[i] - pads[i + len(kernel)]
        if isinstance(dim, int)
        else ANY
        for i, dim in enumerate(data.shape[2:])
    ]
    return [TensorType(data.element, (*data.shape[:2], *spatial))]


must.hold("MaxUnpool", pooling)
