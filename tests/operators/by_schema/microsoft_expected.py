"""What operators of onnxruntime give that its CPU has no kernel for, by their descriptions
(onnxruntime's ContribOperators)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

Found = Sequence[np.ndarray]


def standard(op: str, *inputs: np.ndarray | None, **attributes: Any) -> np.ndarray:
    """The output of the standard's operator."""
    names = ["" if x is None else f"x{place}" for place, x in enumerate(inputs)]
    node = helper.make_node(op, names, ["y"], **attributes)
    shown = [helper.make_tensor_value_info(name, 1, None) for name in names if name]
    graph = helper.make_graph([node], "g", shown, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    feeds = {name: x for name, x in zip(names, inputs, strict=True) if name}
    found: np.ndarray = ReferenceEvaluator(model).run(None, feeds)[0]
    return found


def _in_f64(*values: np.ndarray | None) -> list[Any]:
    return [None if x is None else x.astype(np.float64) for x in values]


def gemm_fast_gelu(x: np.ndarray, w: np.ndarray, bias: np.ndarray | None = None) -> Found:
    a, b, c = _in_f64(x, w, bias)
    y = standard("Gelu", a @ b + (0 if c is None else c), approximate="tanh")
    return [y.astype(x.dtype)]


def bias_add(x: np.ndarray, bias: np.ndarray, skip: np.ndarray) -> Found:
    """Y = X (N, S, C) + bias (C) + skip (N, S, C)"""
    return [sum(_in_f64(x, bias, skip)).astype(x.dtype)]


def bias_split_gelu(x: np.ndarray, bias: np.ndarray) -> Found:
    """The left half of the sum times the Gelu of the right half."""
    left, right = np.split(sum(_in_f64(x, bias)), 2, axis=-1)
    return [(left * standard("Gelu", right)).astype(x.dtype)]


def bias_softmax(x: np.ndarray, bias: np.ndarray, axis: int = 1, **_: Any) -> Found:
    """ "apply softmax to elements for dimensions axis or higher": all of them together."""
    total = sum(_in_f64(x, bias))
    y = standard("Softmax", total.reshape(int(np.prod(x.shape[:axis])), -1))
    return [y.reshape(x.shape).astype(x.dtype)]


def fused_matmul(
    a: np.ndarray, b: np.ndarray, activation: bytes, alpha: float = 1.0, transA: int = 0,
    transB: int = 0, transBatchA: int = 0, transBatchB: int = 0, **parameters: float,
) -> Found:  # fmt: skip
    """ "Whether A should be transposed on the 1st dimension and batch dimensions (dim-1 to
    dim-rank-2)", then on the last two dimensions."""

    def turned(x: np.ndarray, batch: int, last: int) -> Any:
        x = np.moveaxis(x, 0, -2) if batch else x
        return (x.swapaxes(-1, -2) if last else x).astype(np.float64)

    y = turned(a, transBatchA, transA) @ turned(b, transBatchB, transB) * alpha
    names = {f"activation_{name}": name for name in ("alpha", "beta", "gamma")}
    given = {names[key]: value for key, value in parameters.items() if key in names}
    return [standard(activation.decode(), y, **given).astype(a.dtype)]


def nhwc_conv(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray | None = None, **attributes: Any
) -> Found:
    """Conv with the channels last in the data, the weights, and the result."""
    data, weights = (np.moveaxis(value, -1, 1) for value in (x, w))
    return [np.moveaxis(standard("Conv", data, weights, bias, **attributes), 1, -1)]


def nhwc_fused_conv(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray | None = None, z: np.ndarray | None = None,
    activation: bytes = b"", **attributes: Any,
) -> Found:  # fmt: skip
    """An activation of a convolution plus Z, with the channels last in all but the weights."""
    y = np.moveaxis(standard("Conv", np.moveaxis(x, -1, 1), w, bias, **attributes), 1, -1)
    y = y if z is None else y + z
    return [standard(activation.decode(), y) if activation else y]


def qlinear_reduce_mean(
    x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, y_scale: np.ndarray,
    y_zero: np.ndarray | None, axes: Sequence[int] = (), keepdims: int = 1,
) -> Found:  # fmt: skip
    """The mean of the dequantised elements, quantised."""
    wide = standard("DequantizeLinear", x, scale, zero)
    mean = wide.mean(tuple(axes) or None, keepdims=bool(keepdims), dtype=np.float64)
    y_zero = np.zeros((), x.dtype) if y_zero is None else y_zero
    return [standard("QuantizeLinear", mean.astype(np.float32), y_scale, y_zero)]


def group_norm(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, skip: np.ndarray | None = None,
    bias: np.ndarray | None = None, *, groups: int, activation: int, channels_last: int = 1,
    epsilon: float = 1e-5,
) -> Found:  # fmt: skip
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta over each group of channels, perhaps
    with SiLU behind it; also the sum that is normalised, if there is a skip."""
    total, scale, shift, more, added = _in_f64(x, gamma, beta, skip, bias)
    if more is not None:
        more = more.reshape(more.shape[0], 1, 1, -1) if more.ndim == 2 else more
        total = total + more + (0 if added is None else added)
    first = np.moveaxis(total, -1, 1) if channels_last else total
    parts = first.reshape(len(first), groups, -1)
    mean, variance = parts.mean(-1, keepdims=True), parts.var(-1, keepdims=True)
    y = ((parts - mean) / np.sqrt(variance + epsilon)).reshape(first.shape)
    y = y * scale.reshape(-1, 1, 1) + shift.reshape(-1, 1, 1)
    y = y / (1 + np.exp(-y)) if activation else y
    y = np.moveaxis(y, 1, -1) if channels_last else y
    return [each.astype(x.dtype) for each in ([y] if more is None else [y, total])]


def relative_position_bias(
    table: np.ndarray, queries: np.ndarray, keys: np.ndarray, max_distance: int,
    is_bidirectional: int = 0,
) -> Found:  # fmt: skip
    """T5's buckets. The table is "COL-major"."""
    count, heads = table.shape
    distance = np.arange(int(keys))[None] - np.arange(int(queries))[:, None]
    bucket = np.zeros(distance.shape, np.int64)
    if is_bidirectional:
        count //= 2
        bucket += np.where(distance > 0, count, 0)
        distance = abs(distance)
    else:
        distance = -np.minimum(distance, 0)
    exact = count // 2
    steps = np.log(np.maximum(distance, 1) / exact) / np.log(max_distance / exact)
    far = np.minimum(exact + (steps * (count - exact)).astype(np.int64), count - 1)
    bucket += np.where(distance < exact, distance, far)
    return [table.ravel().reshape(heads, -1)[:, bucket][None]]
