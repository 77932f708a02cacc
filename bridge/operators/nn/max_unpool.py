"""MaxUnpool."""

import numpy as np

from bridge.neutral.inference import constraints as must
from bridge.operators import Builder, Node, Result, legalizes, required
from bridge.operators.nn.shapes import pooling
from bridge.operators.nn.windows import window_of


@legalizes("MaxUnpool", target="ir")
def max_unpool_to_ir(b: Builder, node: Node) -> Result:
    """MaxUnpool (9 to 22): scatters into zeros of the size before pooling, then adds zeros up to
    output_shape."""
    data, indices = required(node, 0, 1)
    output = node.input(2)
    attributes = window_of(node)
    kernel, pads = np.array(attributes["kernel_shape"]), attributes["pads"]
    rank = len(kernel)
    strides = np.array(attributes["strides"])
    removed = np.array(pads[:rank]) + pads[rank:]
    before = b.sizes(data, *range(2, rank + 2))
    after = before * strides + (kernel - strides - removed)
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
    missing = b.as_i64(output) - shape
    return b.op("Pad", y, b.concat(0, b.constant([0] * (rank + 2)), missing), mode="constant")


must.hold("MaxUnpool", pooling)
