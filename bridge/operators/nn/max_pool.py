"""MaxPool."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.neutral.inference import constraints as must, infers
from bridge.neutral.types import F32, I8, I64, U8, TensorType, Type
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, ranks
from bridge.operators.nn import windows
from bridge.operators.nn.shapes import pooled, pooling


@legalizes("MaxPool", target="ir")
def max_pool_to_ir(b: Builder, node: Node) -> Result:
    """MaxPool (1 to 22). MaxPool-1 has one output and no dilations, but later versions of IR always
    have both outputs and dilations."""
    data = node.operand(0)
    attributes, order = windows.window_of(node), node.attributes["storage_order"]
    explicit = attributes["auto_pad"] == "NOTSET"
    if explicit and node.attributes["rounding_type"] != "floor":
        attributes = windows.no_larger(data, attributes)
    attributes |= {
        "axis": node.attributes["axis"],
        "index_element_type": node.attributes["index_element_type"],
        "rounding_type": node.attributes["rounding_type"] if explicit else "floor",
        "storage_order": 0,
    }
    indexed = len(node.outputs) > 1
    first_version = not indexed and attributes["rounding_type"] != "ceil_torch"
    if first_version and windows.lean(attributes)["dilations"] is None:
        attributes = windows.lean(attributes)
        return None if node.attributes == attributes else b.op("MaxPool", data, **attributes)
    if indexed and node.attributes == attributes:
        return None
    y, indices = b.ops("MaxPool", 2, data, **attributes)
    if order and indexed:
        indices = _column_major(b, data, indices, ranks(node, 0)[0])
    return y, indices


def _column_major(b: Builder, data: Value, indices: Value, rank: int) -> Value:
    """Indices with the first spatial axis counting fastest, from indices with the last axis
    counting fastest."""
    spatial = range(2, rank)
    plane = b.op("ReduceProd", b.sizes(data, *spatial), [0])
    rest = indices % plane
    result = indices - rest
    parts: list[Value] = []
    for axis in reversed(spatial):
        size = b.sizes(data, axis)
        parts.insert(0, rest % size)
        rest /= size
    stride: Value | None = None
    for axis, part in zip(spatial, parts, strict=True):
        size = b.sizes(data, axis)
        result += part if stride is None else part * stride
        stride = size if stride is None else stride * size
    return result


def poolable(b: Builder, data: Value) -> tuple[Value, Any]:
    """`data` in an element type of ONNX's MaxPool, and its original type."""
    return (data, data.element) if data.element in (I8, U8) else windows.computable(b, data)


def with_lowest(
    b: Builder, data: Value, attributes: dict[str, Any], pads: Sequence[int]
) -> tuple[Value, dict[str, Any]]:
    """`data` with its padding as elements, and the attributes of a window without pads. They are
    the lowest number, as the maximum of a window in the padding is in OpenVINO."""
    return windows.with_padding(b, data, attributes, _lowest(data), pads)


def _lowest(data: Value) -> float:
    kind = data.element or F32
    return (np.finfo if kind.is_float else np.iinfo)(kind.dtype).min


@legalizes("MaxPool", target="onnx")
def max_pool_to_onnx(b: Builder, node: Node) -> Result:
    """MaxPool-1, -8 and -14. ONNX has fewer ways of rounding, and its indices count through the
    whole tensor."""
    data = node.operand(0)
    attributes, rounding = windows.window_for_onnx(node)
    axis, index_element = node.attributes["axis"], node.attributes["index_element_type"]
    pooled, element = poolable(b, data)
    bare = node.attributes["auto_pad"] == "NOTSET" or not node.attributes.get("pads")
    exact = windows.rounded_down(b, data, attributes) if rounding != "floor" else {}
    plain_enough = pooled is data and axis == 0 and index_element is I64 and bare and not exact
    if plain_enough and rounding != "ceil":
        return None
    plain = {**windows.onnx_pads(attributes), "storage_order": node.attributes["storage_order"]}
    plain["dilations"] = node.attributes.get("dilations")
    plain["rounding_type"] = "floor" if rounding == "floor" else "ceil_torch"
    if exact:
        plain |= {**exact, "rounding_type": "floor"}
    late = rounding == "ceil" and not windows.same_either_way(data, attributes)
    pads_are_open = windows.has_open_pads(node, attributes)
    if len(node.outputs) > 1 and (late or pads_are_open):
        raise Refused("a window may start in the padding, which depends on the size of the input")
    if pads_are_open:
        fill = b.like(_lowest(pooled), pooled)
        pooled, _ = windows.with_same_padding(b, pooled, attributes, fill)
        plain |= {"auto_pad": "NOTSET", "pads": attributes["pads"]}
    if late:
        pooled, plain = with_lowest(b, pooled, plain, windows.with_room(attributes))
        plain["rounding_type"] = "floor"
    if len(node.outputs) == 1:
        return b.cast(b.op("MaxPool", pooled, **plain), element)
    y, indices = b.ops("MaxPool", 2, pooled, **plain)
    rank = len(attributes["kernel_shape"]) + 2
    if axis % rank:
        counted = b.sizes(data, *range(axis % rank, rank))
        indices %= b.op("ReduceProd", counted, [0])
    return b.cast(y, element), b.cast(indices, index_element)


@infers("MaxPool")
def infer_max_pool(node: Node) -> list[Type]:
    """MaxPool: batch and channels, and the number of windows; the indices likewise."""
    type = pooled(node)
    return [type, TensorType(node.attributes["index_element_type"], type.shape)]


must.hold("MaxPool", pooling)
