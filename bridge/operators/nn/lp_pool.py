"""LpPool: the root of a sum of powers. The sum is an average of powers times the window's size.
Also global pooling, of means, maxima and powers."""

import numpy as np

from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, ranks, reads
from bridge.operators.nn.windows import (
    average_of_full_windows,
    lean,
    window_of,
    without_late_windows,
)


@reads("LpPool", "GlobalLpPool", format="onnx", until=1)
def read_lp_pool(b: Builder, node: Node) -> Result:
    """LpPool and GlobalLpPool of operator set 1. `p` is a float, and LpPool without a kernel pools
    over all elements."""
    power = node.attributes.get("p", 2.0)
    if power != int(power):
        raise Refused(f"p = {power} is not a whole number, but newer operator sets need one")
    given = {**node.attributes, "p": int(power)}
    op = node.op if "kernel_shape" in given else "GlobalLpPool"
    return b.op(op, node.inputs[0], **given)


def power_of(b: Builder, data: Value, p: int) -> Value:
    """The power |x|^p."""
    if p == 1:
        return abs(data)
    if p == 2:
        return data * data
    return abs(data) ** b.like(float(p), data)


def root_of(b: Builder, total: Value, p: int) -> Value:
    """The p-th root of a non-negative total."""
    if p == 1:
        return total
    if p == 2:
        return b.op("Sqrt", total)
    return total ** b.like(1.0 / p, total)


@legalizes("LpPool", target="ir")
def lp_pool_to_ir(b: Builder, node: Node) -> Result:
    """LpPool (1 to 22), which IR lacks: the root of an average of powers times the window's
    size."""
    return _lp_pool(b, node, "AvgPool", exclude_pad=False)


@legalizes("LpPool", target="onnx")
def lp_pool_to_older_onnx(b: Builder, node: Node) -> Result:
    """LpPool (1 to 22). Before operator set 18, sizes do not round up, and there are no dilations,
    not even of 1."""
    if b.opset >= 18:
        return None
    if node.attributes["ceil_mode"]:
        return _lp_pool(b, node, "AveragePool", count_include_pad=True)
    if lean(window_of(node))["dilations"] or not node.attributes.get("dilations"):
        return None
    return b.op("LpPool", node.inputs[0], **{**node.attributes, "dilations": None})


def _lp_pool(b: Builder, node: Node, average: str, **include: bool) -> Value:
    data = node.operand(0)
    attributes, p = window_of(node), node.attributes["p"]
    mean = power_of(b, data, p)
    if node.attributes["ceil_mode"] and attributes["auto_pad"] == "NOTSET":
        mean = average_of_full_windows(b, mean, attributes, average, **include)
        mean = without_late_windows(b, mean, data, attributes)
    else:
        mean = b.op(average, mean, **lean(attributes), **include)
    count = float(np.prod(attributes["kernel_shape"]))
    return root_of(b, mean * count, p)


@legalizes("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", target="ir")
def global_pool_to_ir(b: Builder, node: Node) -> Result:
    """GlobalAveragePool, GlobalMaxPool, GlobalLpPool (1 to 22), which IR lacks, as reductions over
    the spatial axes."""
    data = node.operand(0)
    axes = b.constant(list(range(2, ranks(node, 0)[0])))
    if node.op == "GlobalLpPool":
        p = node.attributes["p"]
        return root_of(b, b.op("ReduceSum", power_of(b, data, p), axes), p)
    return b.op("ReduceMean" if node.op == "GlobalAveragePool" else "ReduceMax", data, axes)
