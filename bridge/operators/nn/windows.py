"""The windows of pooling: their number, and the last window in both formats.

If the number is rounded up, ONNX's last window starts inside the input or the padding before it.
This is IR's rounding "ceil_torch". With IR's "ceil", one more window may start in the padding
behind the input.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.neutral.inference.constraints import contradiction
from bridge.neutral.types import ANY, BF16, F32, F64, is_static, low
from bridge.operators import Builder, Node, Refused, Value
from bridge.operators.guarding import SafeInputs, Unsafe, guards, with_at_least
from bridge.operators.nn.conv import explicitly_padded
from bridge.operators.nn.shapes import full_attributes, windows


def window_of(node: Node) -> dict[str, Any]:
    """The explicit attributes of a pooling's window. With rounding up, VALID means no padding in
    both engines, although ONNX's formula rounds down."""
    kernel, given = node.attributes["kernel_shape"], node.attributes
    attributes = {"kernel_shape": kernel, **full_attributes(given, len(kernel))}
    rounds_up = given.get("ceil_mode") or given.get("rounding_type", "floor") != "floor"
    if rounds_up and attributes["auto_pad"] == "VALID":
        attributes["auto_pad"] = "NOTSET"
    return attributes


def window_for_onnx(node: Node) -> tuple[dict[str, Any], str]:
    """The explicit attributes of a window of IR for ONNX, and the rounding in ONNX's words. IR may
    have pads and auto_pad together. In ONNX, auto_pad never rounds up, and the pads of SAME are
    negative if a kernel is shorter than its stride."""
    data, attributes, rounding = node.operand(0), window_of(node), node.attributes["rounding_type"]
    auto_pad = attributes["auto_pad"]
    if auto_pad == "NOTSET":
        return attributes, rounding
    if not node.attributes.get("pads"):
        return attributes, "floor"
    kernel, explicit = attributes["kernel_shape"], False
    if auto_pad != "VALID":
        short = is_short(attributes)
        if not short or rounding == "ceil_torch":
            rounding = "floor"  # The windows end at the end of the padding.
        known = data.shape is not None and is_static(data.shape[2:])
        known = known or all(1 in step for step in zip(kernel, attributes["strides"], strict=True))
        if short and not known:
            return {**attributes, "pads": (0,) * (2 * len(kernel))}, rounding
        explicit = short
    if explicit or rounding != "floor":
        attributes = explicitly_padded(data, kernel, attributes)
    return attributes, rounding


def has_open_pads(node: Node, attributes: dict[str, Any]) -> bool:
    """Whether the pads of such a window are left to be computed from open sizes."""
    same = attributes["auto_pad"].startswith("SAME") and bool(node.attributes.get("pads"))
    return same and is_short(attributes)


def is_short(attributes: dict[str, Any]) -> bool:
    """Whether a kernel is shorter than its stride."""
    kernel, strides = attributes["kernel_shape"], attributes["strides"]
    return any(size < stride for size, stride in zip(kernel, strides, strict=True))


def lean(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes without dilations if all are 1, because older operators lack them."""
    dilated = any(d != 1 for d in attributes["dilations"])
    return attributes if dilated else {**attributes, "dilations": None}


def no_larger(data: Value, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes with a kernel that fits the padded input if sizes round up. For a larger
    kernel, ONNX has one window, but IR refuses it."""
    if data.shape is None or lean(attributes)["dilations"] is not None:
        return attributes
    kernel = list(attributes["kernel_shape"])
    pads, rank = attributes["pads"], len(kernel)
    for i, dim in enumerate(data.shape[2:]):
        if isinstance(dim, int) and dim:
            kernel[i] = min(kernel[i], dim + pads[i] + pads[rank + i])
    return {**attributes, "kernel_shape": tuple(kernel)}


def same_either_way(data: Value, attributes: dict[str, Any]) -> bool:
    """Whether "ceil" and "ceil_torch" are known to have the same size."""
    rank = len(attributes["kernel_shape"])
    kernel, stride = np.array(attributes["kernel_shape"]), np.array(attributes["strides"])
    reach = (kernel - 1) * (attributes["dilations"] or (1,) * rank) + 1
    if not (stride + attributes["pads"][rank:] > reach).any():
        return True  # The last window cannot start in the padding.
    first, second = (counts(data, attributes, r) for r in ("ceil", "ceil_torch"))
    return first is not None and first == second


def counts(data: Value, attributes: dict[str, Any], rounding: str) -> list[int] | None:
    """The number of windows along each axis, if it is known."""
    spatial = None if data.shape is None else data.shape[2:]
    if not is_static(spatial):
        return None
    window = {**attributes, "rounding_type": rounding}
    return [low(dim) for dim in windows(window, spatial, attributes["kernel_shape"])]


def with_padding(
    b: Builder,
    data: Value,
    attributes: dict[str, Any],
    fill: float = 0.0,
    pads: Sequence[int] | None = None,
) -> tuple[Value, dict[str, Any]]:
    """`data` with its spatial axes padded by `pads` or by the pads of the window, and the
    attributes of a window without pads."""
    pads = attributes["pads"] if pads is None else pads
    rank = len(pads) // 2
    full = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
    y = b.op("Pad", data, b.constant(full), b.like(fill, data), mode="constant")
    return y, {**attributes, "pads": (0,) * len(pads)}


def with_same_padding(
    b: Builder, data: Value, attributes: dict[str, Any], fill: Value
) -> tuple[Value, Value]:
    """`data` with the padding of SAME for open sizes, and the number of elements that it adds to
    each axis. If a kernel is shorter than its stride, it depends on the size whether there are
    any."""
    strides, kernel = (b.constant(list(attributes[n])) for n in ("strides", "kernel_shape"))
    reach = (kernel - [1]) * list(attributes["dilations"]) + [1]
    sizes = b.sizes(data, *range(2, len(attributes["strides"]) + 2))
    total = b.max(reach - strides + (strides - sizes % strides) % strides, [0])
    half = total / [2]
    begin = half if attributes["auto_pad"] == "SAME_UPPER" else total - half
    none = b.constant([0, 0])
    pads = b.concat(0, none, begin, none, total - begin)
    return b.op("Pad", data, pads, fill, mode="constant"), total


def average_of_elements(
    b: Builder, data: Value, attributes: dict[str, Any], rounding: str, include: bool
) -> Value:
    """The average over windows that may reach behind the end of the padding, or begin there. Each
    sum is divided by the number of elements, which may be 0."""
    ones, whole = b.expand(b.like(1, data), b.op("Shape", data)), None
    if attributes["auto_pad"].startswith("SAME"):
        room, total = with_same_padding(b, data, attributes, b.like(0, data))
        ones, _ = with_same_padding(b, ones, attributes, b.like(int(include), data))
        whole = b.op("ReduceMax", total, [0], keepdims=False) > 0 if include else None
        data, attributes = room, {**attributes, "auto_pad": "NOTSET"}
    pads = with_room(attributes) if rounding == "ceil" else attributes["pads"]
    sums, counts = (
        b.op("AveragePool", room, **lean(inner), count_include_pad=True)
        for room, inner in (with_padding(b, x, attributes, pads=pads) for x in (data, ones))
    )
    if whole is not None:
        counts = b.where(whole, b.like(1, counts), counts)
    return sums / counts


def with_room(attributes: dict[str, Any]) -> tuple[int, ...]:
    """Larger pads, so that rounding down gives the same size as rounding up without them."""
    rank = len(attributes["kernel_shape"])
    pads = attributes["pads"]
    ends = (p + s - 1 for p, s in zip(pads[rank:], attributes["strides"], strict=True))
    return (*pads[:rank], *ends)


def rounded_down(b: Builder, data: Value, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes with pads for the size of "ceil_torch" by rounding down. Operator sets before
    22 infer the size of "ceil", which would contradict it. {} if the sizes are equal or unknown, or
    from operator set 22 on."""
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
    """The result `y` of pooling with "ceil", cut to the size of "ceil_torch"."""
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
    """The average over windows with rounding up ("ceil"). Each sum is divided by the whole size of
    the window."""
    room, inner = with_padding(b, data, attributes, pads=with_room(attributes))
    return b.op(op, room, **lean(inner), **include)


def onnx_pads(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes without pads if auto_pad is set, because ONNX forbids both."""
    return attributes if attributes["auto_pad"] == "NOTSET" else {**attributes, "pads": None}


def computable(b: Builder, data: Value) -> tuple[Value, Any]:
    """`data` in an element type that ONNX can pool, and its original type."""
    element = data.element
    if element is not None and element.is_integer:
        return b.cast(data, F64), element
    if element is BF16 and b.opset < 22:
        return b.cast(data, F32), element
    return data, element


@guards("AveragePool", "AvgPool", "Conv", "LpPool", "MaxPool")
def fitting_window(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """A window that moves over axes of open sizes: it fits once."""
    data, *others = node.inputs
    assert data is not None
    filters = others[0].shape if others and others[0] is not None else None
    kernel = node.attributes.get("kernel_shape") or (filters and filters[2:])
    if data.shape is None or not kernel or len(kernel) != len(data.shape) - 2:
        raise Unsafe("the rank of its input is not known")
    sizes = [data.shape[1], *kernel, *(d for v in others if v for d in v.shape or (ANY,))]
    if contradiction(node) or not all(isinstance(size, int) for size in sizes):
        raise Unsafe("it fails for some values of its open sizes")
    full = full_attributes(node.attributes, len(kernel))
    least = {}
    for place, size in enumerate(kernel):
        assert isinstance(size, int)
        reach = (size - 1) * full["dilations"][place] + 1
        reach -= full["pads"][place] + full["pads"][place + len(kernel)]
        least[2 + place] = 1 if full["auto_pad"].startswith("SAME") else max(reach, 1)
    return [with_at_least(b, data, least, counts), *others]
