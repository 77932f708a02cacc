"""MaxUnpool."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.rules import Result, expands
from bridge.rules.idioms import as_i64, concat, sizes
from bridge.rules.windows import window_of


@expands("MaxUnpool", target="ir")
def max_unpool_to_ir(b: Builder, node: Node) -> Result:
    """Scatters into zeros of the size that pooling undoes, then adds zeros up to output_shape."""
    data, indices, output = node.inputs[0], node.inputs[1], node.input(2)
    assert data is not None and indices is not None
    attributes = window_of(node)
    kernel, pads = np.array(attributes["kernel_shape"]), attributes["pads"]
    rank = len(kernel)
    strides = np.array(attributes["strides"])
    removed = np.array(pads[:rank]) + pads[rank:]
    before = sizes(b, data, *range(2, rank + 2))
    grown = b.op("Mul", before, b.constant(strides))
    after = b.op("Add", grown, b.constant(kernel - strides - removed))
    shape = concat(b, 0, sizes(b, data, 0, 1), after)
    flat = b.constant([-1])
    empty = b.op("Expand", b.like(0.0, data), b.op("ReduceProd", shape, b.constant([0])))
    y = b.op(
        "ScatterElements", empty, b.op("Reshape", indices, flat), b.op("Reshape", data, flat),
        b.constant(0),
    )  # fmt: skip
    y = b.op("Reshape", y, shape)
    if output is None:
        return y
    missing = b.op("Sub", as_i64(b, output), shape)
    return b.op("Pad", y, concat(b, 0, b.constant([0] * (rank + 2)), missing), mode="constant")
