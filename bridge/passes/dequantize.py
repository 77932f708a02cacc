"""Weights that IR stores in few bits, and scales in the graph, become DequantizeLinear in ONNX.

IR has `Convert` from integers, `Subtract` of a zero point, `Multiply` by a scale, often in f16 with
a `Reshape` that joins blocks and a `Convert` to f32 behind. OpenVINO computes that in f32, and so
does DequantizeLinear; ONNX's f16 operators would round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.rewrite import Substitution
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import F16, F32, I4, I8, U4, U8, is_static
from bridge.passes.context import Context

_NARROW = (I8, U8, I4, U4)


@dataclass
class Weights:
    """Integers, their scale and zero point in f32 (None: 0), and the shape to give the result."""

    integers: Tensor
    scale: np.ndarray
    zero_point: np.ndarray | None
    shape: tuple[int, ...]


def restore_dequantization(model: Model, context: Context) -> None:
    """Puts DequantizeLinear in the place of scaled integer constants, in all nested graphs too."""
    _graph(model.graph, context.target)


def _graph(graph: Graph, target: Target) -> None:
    substitution = Substitution()
    nodes: list[Node] = []
    for node in graph.nodes:
        substitution.apply(node)
        for body in node.bodies:
            _graph(body.graph, target)
        weights = _weights(node)
        made = None
        if weights is not None:
            builder = Builder(nodes, node.name, target)
            made = _dequantized(builder, weights)
        if made is None:
            nodes.append(node)
        else:
            substitution.replace(node.outputs[0], made)
    graph.nodes = nodes
    substitution.finish(graph)


def _weights(node: Node) -> Weights | None:
    """What a node computes, if it is the last of such a chain."""
    if node.op == "Mul":
        return _scaled(node.outputs[0]) if node.outputs[0].element is F32 else None
    if node.op == "Reshape":
        return _joined_later(node)
    if node.op != "Cast" or node.attributes["to"] is not F32:
        return None
    value = node.inputs[0]
    if value is None or value.element is not F16 or not is_static(value.shape):
        return None
    shape = value.shape
    if value.producer is not None and value.producer.op == "Reshape":
        value = value.producer.inputs[0]
    found = _scaled(value)
    if found is not None:
        found.shape = shape
    return found


def _joined_later(node: Node) -> Weights | None:
    """Blocks that were scaled in f32, then joined."""
    inner = node.inputs[0].producer if node.inputs[0] is not None else None
    shape = node.outputs[0].shape
    if inner is None or inner.op != "DequantizeLinear" or not is_static(shape):
        return None
    integers = inner.inputs[0].constant if inner.inputs[0] is not None else None
    scale, zero_point = _known(inner.inputs[1]), _known(inner.input(2))
    if integers is None or scale is None or scale.ndim != len(integers.shape):
        return None
    return Weights(integers, scale, zero_point, shape)


def _scaled(value: Value | None) -> Weights | None:
    product = value.producer if value is not None else None
    if product is None or product.op != "Mul":
        return None
    for inner, factor in (product.inputs, product.inputs[::-1]):
        node: Node | None = inner.producer if inner is not None else None
        offset: Value | None = None
        if node is not None and node.op == "Sub":
            shifted, offset = node.inputs
            node = shifted.producer if shifted is not None else None
        if node is None or node.op != "Cast" or node.inputs[0] is None:
            continue
        integers = node.inputs[0].constant
        if integers is None or integers.element not in _NARROW:
            continue
        scale, zero_point = _known(factor), _known(offset)
        if scale is not None and (offset is None or zero_point is not None):
            return Weights(integers, scale, zero_point, integers.shape)
    return None


def _known(value: Value | None) -> np.ndarray | None:
    """The values of a constant, or of one converted, in f32."""
    if value is not None and value.producer is not None and value.producer.op == "Cast":
        value = value.producer.inputs[0]
    tensor = value.constant if value is not None else None
    return None if tensor is None else tensor.array().astype(np.float32)


def _dequantized(b: Builder, weights: Weights) -> Value | None:
    integers = weights.integers
    shape, rank = integers.shape, len(integers.shape)
    if weights.scale.ndim > rank:
        return None
    scale = weights.scale.reshape((1,) * (rank - weights.scale.ndim) + weights.scale.shape)
    form = _form(shape, scale.shape)
    if form is None:
        return None
    zero_point = _zero_points(weights, scale.shape)
    if zero_point is None:
        return None
    wanted = weights.shape
    axis = form.get("axis", 0)
    if "block_size" in form and axis > 0 and scale.shape[axis] == 1:
        joined = (*shape[: axis - 1], shape[axis - 1] * shape[axis], *shape[axis + 1 :])
        if wanted == joined:
            integers = Tensor(integers.element, joined, integers.source)
            form["axis"] -= 1
            scale = scale.squeeze(axis)
    elif "block_size" not in form:
        scale = scale.reshape(-1) if form else scale.reshape(())
    inputs = [b.tensor(integers), b.constant(scale)]
    # Of 8 bits it is written where it is 0, too, as quantisers do: onnxruntime has an integer Gemm
    # for weights with it alone.
    spelled = integers.element in (I8, U8) and "block_size" not in form
    if weights.zero_point is not None or spelled:
        inputs.append(b.constant(zero_point.reshape(scale.shape)))
    y = b.op("DequantizeLinear", *inputs, **form)
    return y if integers.shape == wanted else b.op("Reshape", y, b.constant(list(wanted)))


def _zero_points(weights: Weights, shape: tuple[int, ...]) -> np.ndarray | None:
    """The zero points for scales of this shape, 0 where there are none; None where they are not
    whole or do not fit."""
    known: Any = np.zeros(shape, np.float32) if weights.zero_point is None else weights.zero_point
    if np.broadcast_shapes(known.shape, shape) != shape:
        return None
    wide = np.broadcast_to(known, shape)
    whole: np.ndarray = wide.astype(weights.integers.element.dtype)
    return whole if np.array_equal(whole.astype(np.float32), wide) else None


def _form(shape: tuple[int, ...], scale: tuple[int, ...]) -> dict[str, int] | None:
    """The attributes of a DequantizeLinear with a scale of this shape, of the data's rank; {} for
    one scale, None where there is no such form."""
    wide = [axis for axis, size in enumerate(scale) if size > 1]
    if not wide:
        return {}
    if len(wide) == 1 and scale[wide[0]] == shape[wide[0]]:
        return {"axis": wide[0]}
    blocked = [axis for axis, size in enumerate(scale) if size != shape[axis]]
    if len(blocked) != 1 or shape[blocked[0]] % scale[blocked[0]]:
        return None
    return {"axis": blocked[0], "block_size": shape[blocked[0]] // scale[blocked[0]]}
