"""`com.microsoft::UnfoldTensor`: overlapping slices along an axis."""

import numpy as np

from bridge.operators import Builder, Node, Refused, Result, legalizes, ranked


@legalizes("com.microsoft::UnfoldTensor", target="ir")
def unfold(b: Builder, node: Node) -> Result:
    """`com.microsoft::UnfoldTensor` (1): Gather of the places of each slice, whose axis becomes the
    last one."""
    x, rank = ranked(node)
    axis, step = node.attributes.get("dim", -1), node.attributes.get("step", 1)
    size = node.attributes["size"]
    if not -rank <= axis < rank or size < 1 or step < 1:
        raise Refused(f"it has no slices of {size} in steps of {step} along axis {axis}")
    axis %= rank
    count = b.size(x, axis)
    starts = b.op("Range", b.constant(0), count - b.constant(size - 1), b.constant(step))
    places = b.unsqueeze(starts, 1) + b.constant(np.arange(size))
    slices = b.op("Gather", x, places, b.constant(axis))
    return b.transpose(slices, *(a for a in range(rank + 1) if a != axis + 1), axis + 1)
