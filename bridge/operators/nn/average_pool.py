"""ONNX's AveragePool, IR's AvgPool.

The formats differ if sizes round up and the average counts the padding. ONNX divides by the part of
the window inside the padded input. IR divides by the whole window, unless there is no padding
(AvgPool-14, confirmed by experiment).
"""

from bridge.neutral.inference import constraints as must, infers
from bridge.neutral.types import Type
from bridge.operators import Builder, Node, Result, legalizes
from bridge.operators.nn import windows
from bridge.operators.nn.shapes import pooled, pooling


@legalizes("AveragePool", target="ir")
def average_pool_to_ir(b: Builder, node: Node) -> Result:
    """AveragePool (1 to 25) as AvgPool-14. Rounding up becomes "ceil_torch", which does not count
    the padding that it adds."""
    data = node.operand(0)
    attributes, include = windows.window_of(node), node.attributes["count_include_pad"]
    explicit = attributes["auto_pad"] == "NOTSET"
    up = node.attributes["ceil_mode"] and explicit
    if up:
        attributes = windows.no_larger(data, attributes)
    if not (up and include and any(attributes["pads"])):
        rounding = "ceil_torch" if up else "floor"
        window = windows.lean(attributes)
        return b.op("AvgPool", data, **window, exclude_pad=not include, rounding_type=rounding)
    room, inner = windows.with_padding(b, data, windows.lean(attributes))
    y = b.op("AvgPool", room, **inner, exclude_pad=True, rounding_type="ceil_torch")
    return windows.without_late_windows(b, y, data, attributes)


@legalizes("AveragePool", target="onnx")
def average_pool_to_older_onnx(b: Builder, node: Node) -> Result:
    """AveragePool (1 to 22). Before operator set 19, it has no dilations, not even of 1. Before
    operator set 22, the last window may start in the padding if sizes round up."""
    data, window = node.operand(0), windows.window_of(node)
    up = node.attributes["ceil_mode"] and window["auto_pad"] == "NOTSET"
    if up and (exact := windows.rounded_down(b, data, window)):
        if not node.attributes["count_include_pad"]:
            return b.op("AveragePool", data, **windows.lean(exact))
        room, inner = windows.with_padding(b, data, windows.lean(window))
        y = b.op("AveragePool", room, **inner, ceil_mode=True)
        return windows.without_late_windows(b, y, data, window)
    if b.opset >= 19 or windows.lean(window)["dilations"] or not node.attributes.get("dilations"):
        return None
    return b.op("AveragePool", data, **{**node.attributes, "dilations": None})


@legalizes("AvgPool", target="onnx")
def avg_pool_to_onnx(b: Builder, node: Node) -> Result:
    """AvgPool-1 and AvgPool-14 as AveragePool. `exclude_pad` is negated, and two ways of rounding
    express three."""
    data = node.operand(0)
    attributes, rounding = windows.window_for_onnx(node)
    include = not node.attributes["exclude_pad"]
    data, element = windows.computable(b, data)
    pads_are_open = windows.has_open_pads(node, attributes)
    if rounding != "floor" or pads_are_open:
        if include and any(attributes["pads"]) and not pads_are_open:
            y = windows.average_of_full_windows(b, data, attributes, "AveragePool")
            if rounding == "ceil_torch":
                y = windows.without_late_windows(b, y, data, attributes)
            return b.cast(y, element)
        if pads_are_open or (rounding == "ceil" and not windows.same_either_way(data, attributes)):
            y = windows.average_of_elements(b, data, attributes, rounding, include)
            return b.cast(y, element)
        exact = windows.rounded_down(b, data, attributes)
        if exact:
            return b.cast(b.op("AveragePool", data, **windows.lean(exact)), element)
    window = windows.onnx_pads(windows.lean(attributes))
    up = rounding != "floor"
    y = b.op("AveragePool", data, **window, count_include_pad=include, ceil_mode=up)
    return b.cast(y, element)


@infers("AveragePool", "AvgPool", "LpPool")
def infer_pool(node: Node) -> list[Type]:
    """AveragePool, AvgPool, LpPool: batch and channels, and the number of windows."""
    return [pooled(node)]


must.hold(("AveragePool", "AvgPool", "LpPool"), pooling)
