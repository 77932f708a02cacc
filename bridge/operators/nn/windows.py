"""The windows of pooling: how many there are, and what both formats make of the last one.

When their number rounds up, ONNX's last window starts inside the input or the padding before it,
which is IR's rounding "ceil_torch"; IR's "ceil" has one window more, if that starts in the padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.neutral.types import BF16, F32, F64, is_static, low
from bridge.operators import Builder, Node, Refused, Value
from bridge.operators.nn.conv import explicitly_padded
from bridge.operators.nn.shapes import full_attributes, windows


def window_of(node: Node) -> dict[str, Any]:
    """The attributes of a pooling's window, spelled out. Where their number rounds up, VALID is no
    padding in both engines, though ONNX's formula for it rounds down."""
    kernel, given = node.attributes["kernel_shape"], node.attributes
    attributes = {"kernel_shape": kernel, **full_attributes(given, len(kernel))}
    rounds_up = given.get("ceil_mode") or given.get("rounding_type", "floor") != "floor"
    if rounds_up and attributes["auto_pad"] == "VALID":
        attributes["auto_pad"] = "NOTSET"
    return attributes


def window_for_onnx(node: Node) -> tuple[dict[str, Any], str]:
    """The attributes of a window of IR, which has pads beside auto_pad, and how their number is
    rounded, in ONNX's words: there auto_pad never rounds up, and in onnxruntime SAME leaves the
    dilations out of the pads and fails where a kernel is shorter than its stride."""
    data, attributes, rounding = node.inputs[0], window_of(node), node.attributes["rounding_type"]
    assert data is not None
    auto_pad = attributes["auto_pad"]
    if auto_pad == "NOTSET":
        return attributes, rounding
    if not node.attributes.get("pads"):
        return attributes, "floor"
    kernel, explicit = attributes["kernel_shape"], False
    if auto_pad != "VALID":
        steps = list(zip(kernel, attributes["strides"], strict=True))
        short = any(k < s for k, s in steps)
        if not short:
            rounding = "floor"  # The windows end where the padding does.
        known = data.shape is not None and is_static(data.shape[2:])
        known = known or all(1 in step for step in steps)
        explicit = lean(attributes)["dilations"] is not None or (short and known)
    if explicit or rounding != "floor":
        attributes = explicitly_padded(data, kernel, attributes)
    return attributes, rounding


def lean(attributes: dict[str, Any]) -> dict[str, Any]:
    """Without dilations where they do nothing: older operators have none."""
    dilated = any(d != 1 for d in attributes["dilations"])
    return attributes if dilated else {**attributes, "dilations": None}


def no_larger(data: Value, attributes: dict[str, Any]) -> dict[str, Any]:
    """With a kernel that, where sizes round up, reaches no further than the padded input: ONNX has
    one window there, which IR refuses."""
    if data.shape is None or lean(attributes)["dilations"] is not None:
        return attributes
    kernel = list(attributes["kernel_shape"])
    pads, rank = attributes["pads"], len(kernel)
    for i, dim in enumerate(data.shape[2:]):
        if isinstance(dim, int) and dim:
            kernel[i] = min(kernel[i], dim + pads[i] + pads[rank + i])
    return {**attributes, "kernel_shape": tuple(kernel)}


def same_either_way(data: Value, attributes: dict[str, Any]) -> bool:
    """Whether "ceil" and "ceil_torch" are known to give the same size."""
    rank = len(attributes["kernel_shape"])
    kernel, stride = np.array(attributes["kernel_shape"]), np.array(attributes["strides"])
    reach = (kernel - 1) * (attributes["dilations"] or (1,) * rank) + 1
    if not (stride + attributes["pads"][rank:] > reach).any():
        return True  # The last window cannot start in the padding.
    first, second = (counts(data, attributes, r) for r in ("ceil", "ceil_torch"))
    return first is not None and first == second


def counts(data: Value, attributes: dict[str, Any], rounding: str) -> list[int] | None:
    """How many windows there are along each axis, where that is known."""
    spatial = None if data.shape is None else data.shape[2:]
    if not is_static(spatial):
        return None
    given = {**attributes, "rounding_type": rounding}
    return [low(dim) for dim in windows(given, spatial, attributes["kernel_shape"])]


def with_padding(
    b: Builder,
    data: Value,
    attributes: dict[str, Any],
    fill: float = 0.0,
    pads: Sequence[int] | None = None,
) -> tuple[Value, dict[str, Any]]:
    """`data` with its spatial axes padded as the window or `pads` say, and the attributes of a
    window without."""
    pads = attributes["pads"] if pads is None else pads
    rank = len(pads) // 2
    full = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
    y = b.op("Pad", data, b.constant(full), b.like(fill, data), mode="constant")
    return y, {**attributes, "pads": (0,) * len(pads)}


def with_room(attributes: dict[str, Any]) -> tuple[int, ...]:
    """The pads with which rounding down gives what rounding up gives without."""
    rank = len(attributes["kernel_shape"])
    pads = attributes["pads"]
    ends = (p + s - 1 for p, s in zip(pads[rank:], attributes["strides"], strict=True))
    return (*pads[:rank], *ends)


def rounded_down(b: Builder, data: Value, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes with pads that, rounding down, give "ceil_torch"'s size, where that is known
    and operator sets before 22, which infer the size of "ceil", would contradict it; else {}."""
    if b.opset >= 22 or same_either_way(data, attributes):
        return {}
    wanted = counts(data, attributes, "ceil_torch")
    if wanted is None:
        return {}
    rank = len(wanted)
    begins, ends = attributes["pads"][:rank], []
    for i, count in enumerate(wanted):
        reach = (attributes["kernel_shape"][i] - 1) * attributes["dilations"][i] + 1
        last = (count - 1) * attributes["strides"][i] + reach
        ends.append(max(last - low(data.dims[i + 2]) - begins[i], 0))
    return {**attributes, "pads": (*begins, *ends)}


def without_late_windows(b: Builder, y: Value, data: Value, attributes: dict[str, Any]) -> Value:
    """`y`, pooled with "ceil", cut to the size that "ceil_torch" gives."""
    if same_either_way(data, attributes):
        return y
    wanted = counts(data, attributes, "ceil_torch")
    if wanted is None:
        raise Refused(
            "its last window may start in the padding, which depends on the size of the input; "
            "give the input a static shape"
        )
    for axis, size in enumerate(wanted, 2):
        y = b.cut(y, axis, 0, size)
    return y


def average_of_full_windows(
    b: Builder, data: Value, attributes: dict[str, Any], op: str, **include: bool
) -> Value:
    """The average over windows whose number rounds up ("ceil"), each divided by all its size."""
    room, inner = with_padding(b, data, attributes, pads=with_room(attributes))
    return b.op(op, room, **lean(inner), **include)


def onnx_pads(attributes: dict[str, Any]) -> dict[str, Any]:
    """ONNX takes no pads beside auto_pad."""
    return attributes if attributes["auto_pad"] == "NOTSET" else {**attributes, "pads": None}


def computable(b: Builder, data: Value) -> tuple[Value, Any]:
    """`data` in an element type that ONNX pools, and its own."""
    element = data.element
    if element is not None and element.is_integer:
        return b.cast(data, F64), element
    if element is BF16 and b.opset < 22:
        return b.cast(data, F32), element
    return data, element
