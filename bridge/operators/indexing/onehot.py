"""OneHot: ONNX has both values in one input, and IR in two inputs."""

import numpy as np

from bridge.neutral.inference import constraints as must, first, infers
from bridge.neutral.inference.dims import axis_of
from bridge.neutral.inference.known import as_dim, known_of
from bridge.neutral.types import (
    ANY,
    I32,
    I64,
    Dim,
    TensorType,
    Type,
)
from bridge.operators import Builder, Node, Value, legalizes, required


@legalizes("OneHot", target="ir")
def one_hot_for_ir(b: Builder, node: Node) -> Value:
    """OneHot-16 counts negative indices from the end, as ONNX. In earlier versions, they match no
    element."""
    indices, depth, values = required(node, 0, 1, 2)
    indices = indices if indices.element in (I32, I64) else b.cast(indices, I64)
    known = known_of(values).array
    if known is not None:
        off, on = (b.constant(known[i]) for i in (0, 1))
    else:
        off, on = (b.op("Gather", values, i, 0) for i in (0, 1))
    known = known_of(indices).array
    mode = "ignore_negative" if known is not None and (known >= 0).all() else "normalize"
    return b.op(
        "ir::OneHot",
        indices,
        b.scalar(b.as_i64(depth)),
        on,
        off,
        axis=node.attributes["axis"],
        negative_indices_mode=mode,
    )


@legalizes("ir::OneHot", target="onnx")
def ir_one_hot_for_onnx(b: Builder, node: Node) -> Value:
    """OneHot (1 to 16). Negative indices count from the end in ONNX, but IR may ignore them.
    Ignored indices are therefore replaced by the depth, which is out of range."""
    indices, depth, on, off = required(node, 0, 1, 2, 3)
    if indices.rank == 0:  # ONNX refuses a scalar; the result has only the depth axis
        line = b.op("Reshape", indices, [1])
        hot = b.op("ir::OneHot", line, depth, on, off, **{**node.attributes, "axis": -1})
        return b.op("Squeeze", hot, [0])
    indices, depth = b.as_i64(indices), b.scalar(b.as_i64(depth))
    if node.attributes["negative_indices_mode"] == "ignore_negative":
        known = known_of(indices).array
        if known is None or (known < 0).any():
            indices = b.where(indices < 0, depth, indices)
    on, off = b.scalar(on), b.scalar(off)
    ends = [known_of(off).array, known_of(on).array]
    if ends[0] is not None and ends[1] is not None:
        values = b.constant(np.stack([ends[0], ends[1]]))
    else:
        values = b.concat(0, b.reshape(off, 1), b.reshape(on, 1))
    return b.op("OneHot", indices, depth, values, axis=node.attributes["axis"])


@infers("OneHot", "ir::OneHot")
def infer_one_hot(node: Node) -> list[Type]:
    """OneHot, ir::OneHot: the indices' shape with the depth at `axis`, of the type of input 2."""
    indices, element = first(node).shape, first(node, 2).element
    if indices is None:
        return [TensorType(element)]
    depth = known_of(node.inputs[1]).parts
    dim: Dim = ANY if depth is None else as_dim(depth[0])
    axis = axis_of(node, len(indices) + 1)
    return [TensorType(element, (*indices[:axis], dim, *indices[axis:]))]


must.hold("OneHot", must.axis_attribute("axis", 1), must.one_element(1), must.has_rank(1, 1, of=2))
must.hold("ir::OneHot", must.axis_attribute("axis", 1), must.one_element(1, 2, 3))
