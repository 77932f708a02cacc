"""Average, maximum and Lp pooling.

When sizes round up, ONNX's last window starts inside the input or the padding before it, which is
IR's rounding "ceil_torch"; IR's "ceil" has one window more where that starts in the padding behind.
An average that counts the padding divides by the window's part inside the padded input in ONNX, by
all of the window in IR unless there is no padding (AvgPool-14; tried).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.nn import window_size
from bridge.neutral.types import BF16, F32, F64, I8, I64, U8, is_static
from bridge.rules import Refused, Result, expands, reads
from bridge.rules.conv import full_attributes
from bridge.rules.idioms import as_i64, cast, concat, cut, ranks, sizes


def _window(node: Node) -> dict[str, Any]:
    kernel = node.attributes["kernel_shape"]
    return {"kernel_shape": kernel, **full_attributes(node, len(kernel))}


def _may_start_in_padding(attributes: dict[str, Any]) -> bool:
    """Whether "ceil" can give one window more than "ceil_torch"."""
    rank = len(attributes["kernel_shape"])
    kernel, stride = np.array(attributes["kernel_shape"]), np.array(attributes["strides"])
    reach = (kernel - 1) * (attributes["dilations"] or (1,) * rank) + 1
    return bool((stride + attributes["pads"][rank:] > reach).any())


def _same_either_way(data: Value, attributes: dict[str, Any]) -> bool:
    """Whether "ceil" and "ceil_torch" are known to give the same size."""
    if not _may_start_in_padding(attributes):
        return True
    first, second = (_sizes(data, attributes, r) for r in ("ceil", "ceil_torch"))
    return first is not None and first == second


def _sizes(data: Value, attributes: dict[str, Any], rounding: str) -> list[int] | None:
    rank = len(attributes["kernel_shape"])
    if data.shape is None or not all(isinstance(dim, int) for dim in data.shape[2:]):
        return None
    result = []
    for i, dim in enumerate(data.shape[2:]):
        window = attributes["kernel_shape"][i], attributes["strides"][i], attributes["dilations"][i]
        ends = attributes["pads"][i], attributes["pads"][i + rank]
        size = window_size(dim, *window, ends, rounding)
        assert isinstance(size, int)
        result.append(size)
    return result


def _padded(b: Builder, data: Value, pads: Sequence[int], fill: float) -> Value:
    rank = len(pads) // 2
    full = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
    return b.op("Pad", data, b.constant(full), b.like(fill, data), mode="constant")


def _room(attributes: dict[str, Any]) -> tuple[int, ...]:
    """The pads with which rounding down gives what rounding up gives without."""
    rank = len(attributes["kernel_shape"])
    pads = attributes["pads"]
    ends = (p + s - 1 for p, s in zip(pads[rank:], attributes["strides"], strict=True))
    return (*pads[:rank], *ends)


def _known_to_onnx(b: Builder, data: Value, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes with pads that, rounding down, give "ceil_torch"'s size, where that is known
    and operator sets before 22, which infer the size of "ceil", would contradict it; else {}."""
    assert b.target is not None
    if b.target.opset >= 22 or _same_either_way(data, attributes):
        return {}
    wanted = _sizes(data, attributes, "ceil_torch")
    if wanted is None:
        return {}
    rank = len(wanted)
    begins, ends = attributes["pads"][:rank], []
    for i, count in enumerate(wanted):
        reach = (attributes["kernel_shape"][i] - 1) * attributes["dilations"][i] + 1
        last = (count - 1) * attributes["strides"][i] + reach
        ends.append(max(last - data.shape[i + 2] - begins[i], 0))
    return {**attributes, "pads": (*begins, *ends)}


def _without_late_windows(b: Builder, y: Value, data: Value, attributes: dict[str, Any]) -> Value:
    """`y`, pooled with "ceil", cut to the size that "ceil_torch" gives."""
    if _same_either_way(data, attributes):
        return y
    wanted = _sizes(data, attributes, "ceil_torch")
    if wanted is None:
        raise Refused(
            "its last window may start in the padding, which depends on the size of the input; "
            "give the input a static shape"
        )
    for axis, size in enumerate(wanted, 2):
        y = cut(b, y, axis, 0, size)
    return y


def _average_of_full_windows(
    b: Builder, data: Value, attributes: dict[str, Any], op: str, **include: bool
) -> Value:
    """The average over windows whose number rounds up ("ceil"), each divided by all its size."""
    room = _padded(b, data, _room(attributes), 0.0)
    return b.op(op, room, **_lean({**attributes, "pads": (0,) * len(attributes["pads"])}), **include)


def _lean(attributes: dict[str, Any]) -> dict[str, Any]:
    """Without dilations where they do nothing: older operators have none."""
    dilated = any(d != 1 for d in attributes["dilations"])
    return attributes if dilated else {**attributes, "dilations": None}


@expands("AveragePool", target="ir")
def average_pool_to_ir(b: Builder, node: Node) -> Result:
    data = node.inputs[0]
    assert data is not None
    attributes, include = _window(node), node.attributes["count_include_pad"]
    explicit = attributes["auto_pad"] == "NOTSET"
    up = node.attributes["ceil_mode"] and explicit
    if not (up and include and any(attributes["pads"])):
        rounding = "ceil_torch" if up else "floor"
        lean = _lean(attributes)
        return b.op("AvgPool", data, **lean, exclude_pad=not include, rounding_type=rounding)
    inner = {**_lean(attributes), "pads": (0,) * len(attributes["pads"])}
    padded = _padded(b, data, attributes["pads"], 0.0)
    y = b.op("AvgPool", padded, **inner, exclude_pad=True, rounding_type="ceil_torch")
    return _without_late_windows(b, y, data, attributes)


@expands("AvgPool", target="onnx")
def avg_pool_to_onnx(b: Builder, node: Node) -> Result:
    data = node.inputs[0]
    assert data is not None
    attributes, rounding = _window(node), node.attributes["rounding_type"]
    include = not node.attributes["exclude_pad"]
    data, element = _computable(b, data)
    if rounding != "floor" and attributes["auto_pad"] == "NOTSET":
        if include and any(attributes["pads"]):
            y = _average_of_full_windows(b, data, attributes, "AveragePool")
            if rounding == "ceil_torch":
                y = _without_late_windows(b, y, data, attributes)
            return cast(b, y, element)
        if rounding == "ceil" and not _same_either_way(data, attributes):
            raise Refused(
                'a window of rounding type "ceil" may start in the padding, which ONNX has not; '
                "give the input a static shape"
            )
        exact = _known_to_onnx(b, data, attributes)
        if exact:
            return cast(b, b.op("AveragePool", data, **_lean(exact)), element)
    y = b.op(
        "AveragePool", data, **_onnx_pads(_lean(attributes)), count_include_pad=include,
        ceil_mode=rounding != "floor" and attributes["auto_pad"] == "NOTSET",
    )  # fmt: skip
    return cast(b, y, element)


def _onnx_pads(attributes: dict[str, Any]) -> dict[str, Any]:
    """ONNX takes no pads beside auto_pad."""
    return attributes if attributes["auto_pad"] == "NOTSET" else {**attributes, "pads": None}


def _computable(b: Builder, data: Value) -> tuple[Value, Any]:
    """`data` in an element type that ONNX pools, and its own."""
    assert b.target is not None
    element = data.element
    if element is not None and element.is_integer:
        return cast(b, data, F64), element
    if element is BF16 and b.target.opset < 22:
        return cast(b, data, F32), element
    return data, element


@expands("MaxPool", target="ir")
def max_pool_to_ir(b: Builder, node: Node) -> Result:
    data = node.inputs[0]
    assert data is not None
    attributes, order = _window(node), node.attributes["storage_order"]
    rounding = node.attributes["rounding_type"]
    if attributes["auto_pad"] != "NOTSET":
        rounding = "floor"
    indexed = len(node.outputs) > 1
    if not indexed:
        attributes = _lean(attributes)
    elif attributes["auto_pad"].startswith("SAME") and not is_static(data.shape):
        raise Refused(
            "OpenVINO computes indices wrongly with auto_pad and an input of unknown size; "
            "give the input a static shape"
        )
    attributes |= {
        "axis": node.attributes["axis"],
        "index_element_type": node.attributes["index_element_type"],
        "rounding_type": rounding,
        "storage_order": 0,
    }
    if node.attributes == attributes:
        return None
    if not indexed and attributes["dilations"] is None and rounding != "ceil_torch":
        return b.op("MaxPool", data, **attributes)
    y, indices = b.ops("MaxPool", 2, data, **(attributes | {"dilations": _window(node)["dilations"]}))
    return y, _column_major(b, data, indices, ranks(node, 0)[0]) if indexed and order else indices


def _column_major(b: Builder, data: Value, indices: Value, rank: int) -> Value:
    """Indices that count the last axis fastest as ones that count the first spatial axis fastest."""
    spatial = range(2, rank)
    plane = b.op("ReduceProd", sizes(b, data, *spatial), b.constant([0]))
    rest = b.op("Mod", indices, plane)
    result = b.op("Sub", indices, rest)
    parts: list[Value] = []
    for axis in reversed(spatial):
        size = sizes(b, data, axis)
        parts.insert(0, b.op("Mod", rest, size))
        rest = b.op("Div", rest, size)
    stride: Value | None = None
    for axis, part in zip(spatial, parts, strict=True):
        size = sizes(b, data, axis)
        result = b.op("Add", result, part if stride is None else b.op("Mul", part, stride))
        stride = size if stride is None else b.op("Mul", stride, size)
    return result


@expands("MaxPool", target="onnx")
def max_pool_to_onnx(b: Builder, node: Node) -> Result:
    data = node.inputs[0]
    assert data is not None
    attributes, rounding = _window(node), node.attributes["rounding_type"]
    axis, index_element = node.attributes["axis"], node.attributes["index_element_type"]
    explicit = attributes["auto_pad"] == "NOTSET"
    pooled, element = (data, data.element) if data.element in (I8, U8) else _computable(b, data)
    bare = explicit or not node.attributes.get("pads")
    exact = _known_to_onnx(b, data, attributes) if rounding != "floor" and explicit else {}
    plain_enough = pooled is data and axis == 0 and index_element is I64 and bare and not exact
    if plain_enough and rounding != "ceil":
        return None
    plain = {**_onnx_pads(attributes), "storage_order": node.attributes["storage_order"]}
    plain["rounding_type"] = "floor" if rounding == "floor" or not explicit else "ceil_torch"
    if rounding == "ceil" and explicit and not _same_either_way(data, attributes):
        if len(node.outputs) > 1:
            raise Refused('a window of rounding type "ceil" may start in the padding')
        half = len(attributes["pads"]) // 2
        none = (0,) * half
        room = _room({**attributes, "pads": none + attributes["pads"][half:]})
        # What OpenVINO gives for a window without any element.
        pooled = _padded(b, pooled, room, float(np.finfo((pooled.element or F32).dtype).min))
        plain |= {"pads": attributes["pads"][:half] + none, "rounding_type": "floor"}
    elif exact:
        plain |= {**exact, "rounding_type": "floor"}
    if len(node.outputs) == 1:
        return cast(b, b.op("MaxPool", pooled, **plain), element)
    y, indices = b.ops("MaxPool", 2, pooled, **plain)
    rank = len(attributes["kernel_shape"]) + 2
    if axis % rank:
        counted = sizes(b, data, *range(axis % rank, rank))
        indices = b.op("Mod", indices, b.op("ReduceProd", counted, b.constant([0])))
    return cast(b, y, element), cast(b, indices, index_element)


@reads("LpPool", "GlobalLpPool", format="onnx", until=1)
def read_lp_pool(b: Builder, node: Node) -> Result:
    """Operator set 1 has `p` as a float, and LpPool without a kernel over everything."""
    power = node.attributes.get("p", 2.0)
    if power != int(power):
        raise Refused(f"p = {power} is no whole number, which newer operator sets ask for")
    given = {**node.attributes, "p": int(power)}
    op = node.op if "kernel_shape" in given else "GlobalLpPool"
    return b.op(op, node.inputs[0], **given)


def _power(b: Builder, data: Value, p: int) -> Value:
    if p == 1:
        return b.op("Abs", data)
    if p == 2:
        return b.op("Mul", data, data)
    return b.op("Pow", b.op("Abs", data), b.like(float(p), data))


def _root(b: Builder, total: Value, p: int) -> Value:
    if p == 1:
        return total
    if p == 2:
        return b.op("Sqrt", total)
    return b.op("Pow", total, b.like(1.0 / p, total))


@expands("LpPool", target="ir")
def lp_pool_to_ir(b: Builder, node: Node) -> Result:
    data = node.inputs[0]
    assert data is not None
    attributes, p = _window(node), node.attributes["p"]
    powers = _power(b, data, p)
    if node.attributes["ceil_mode"] and attributes["auto_pad"] == "NOTSET":
        mean = _average_of_full_windows(b, powers, attributes, "AvgPool", exclude_pad=False)
        mean = _without_late_windows(b, mean, data, attributes)
    else:
        mean = b.op("AvgPool", powers, **_lean(attributes), exclude_pad=False)
    count = float(np.prod(attributes["kernel_shape"]))
    return _root(b, b.op("Mul", mean, b.like(count, mean)), p)


@expands("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", target="ir")
def global_pool_to_ir(b: Builder, node: Node) -> Result:
    data = node.inputs[0]
    assert data is not None
    axes = b.constant(list(range(2, ranks(node, 0)[0])))
    if node.op == "GlobalLpPool":
        p = node.attributes["p"]
        return _root(b, b.op("ReduceSum", _power(b, data, p), axes), p)
    return b.op("ReduceMean" if node.op == "GlobalAveragePool" else "ReduceMax", data, axes)


@expands("MaxUnpool", target="ir")
def max_unpool_to_ir(b: Builder, node: Node) -> Result:
    """Scatters into zeros of the size that pooling undoes, then adds zeros up to output_shape."""
    data, indices, output = node.inputs[0], node.inputs[1], node.input(2)
    assert data is not None and indices is not None
    attributes = _window(node)
    kernel, pads = np.array(attributes["kernel_shape"]), attributes["pads"]
    rank = len(kernel)
    strides = np.array(attributes["strides"])
    removed = np.array(pads[:rank]) + pads[rank:]
    before = sizes(b, data, *range(2, rank + 2))
    after = b.op("Add", b.op("Mul", before, b.constant(strides)), b.constant(kernel - strides - removed))  # fmt: skip
    shape = concat(b, 0, sizes(b, data, 0, 1), after)
    flat = b.constant([-1])
    empty = b.op("Expand", b.like(0.0, data), b.op("ReduceProd", shape, b.constant([0])))
    y = b.op("ScatterElements", empty, b.op("Reshape", indices, flat), b.op("Reshape", data, flat))
    y = b.op("Reshape", y, shape)
    if output is None:
        return y
    missing = b.op("Sub", as_i64(b, output), shape)
    return b.op("Pad", y, concat(b, 0, b.constant([0] * (rank + 2)), missing), mode="constant")
