"""Blocks of models as exporters write them, to show that the emulated device computes right. Each
was wrong on it once, or has a kernel that was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser

from tests.gpu.cases import Case, Made

HEADER = '<ir_version: 10, opset_import: ["": 17]> g '

ATTENTION = """
  q0 = MatMul (n, wq) k0 = MatMul (n, wk) v0 = MatMul (n, wv)
  q1 = Reshape (q0, heads) k1 = Reshape (k0, heads) v1 = Reshape (v0, heads)
  q2 = Transpose <perm = [0, 2, 1, 3]> (q1)
  k2 = Transpose <perm = [0, 2, 3, 1]> (k1)
  v2 = Transpose <perm = [0, 2, 1, 3]> (v1)
  q3 = Mul (q2, scale) k3 = Mul (k2, scale)
  s0 = MatMul (q3, k3) s1 = Add (s0, mask) s2 = Softmax <axis = -1> (s1)
  c0 = MatMul (s2, v2) c1 = Transpose <perm = [0, 2, 1, 3]> (c0) c2 = Reshape (c1, joined)
  c3 = MatMul (c2, wo) h = Add (x, c3)
"""
"""Attention of `n` with four heads, added to `x`."""

TEXTS = {
    # The work-items of the kernel hand values on in step.
    "transposed, then added": """(float[2,16,4,16] x) => (float[2,4,16,16] y) {
      a = Transpose <perm = [0, 2, 1, 3]> (x) b = Reshape (a, flat)
      c = Transpose <perm = [0, 2, 1]> (b) d = Reshape (c, four) y = Add (d, one) }""",
    # The kernel takes native_powr of negative numbers.
    "root mean square": """(float[2,s,32] x) => (float[2,s,32] y) {
      a = Mul (x, x) b = ReduceMean <axes = [-1]> (a) c = Add (b, small) d = Sqrt (c)
      e = Div (x, d) y = Mul (e, gain) }""",
    "decoder layer": f"""(float[2,5,32] x, float[2,1,5,5] mask) => (float[2,5,32] y) {{
      a = Pow (x, two) b = ReduceMean <axes = [-1]> (a) c = Add (b, small) d = Sqrt (c)
      e = Div (x, d) n = Mul (e, gain) {ATTENTION}
      g0 = MatMul (h, wg) g1 = Sigmoid (g0) g2 = Mul (g0, g1) u = MatMul (h, wu)
      m = Mul (g2, u) w = MatMul (m, wd) y = Add (h, w) }}""",
    "encoder layer": f"""(float[2,6,32] x, float[2,1,6,6] mask) => (float[2,6,32] y) {{
      n = LayerNormalization <axis = -1> (x, gain, bias) {ATTENTION}
      g0 = MatMul (h, wg) g1 = Div (g0, root) g2 = Erf (g1) g3 = Add (g2, one) g4 = Mul (g0, g3)
      g5 = Mul (g4, half) w = MatMul (g5, wd) z = Add (h, w)
      y = LayerNormalization <axis = -1> (z, gain, bias) }}""",
    "convolutions": """(float[1,3,16,16] x) => (float[1,8] y) {
      a = Conv <pads = [1, 1, 1, 1]> (x, filters) b = Relu (a)
      c = Conv <pads = [1, 1, 1, 1], group = 8> (b, depthwise) d = HardSwish (c) e = Add (b, d)
      p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (e)
      q = GlobalAveragePool (p) y = Flatten (q) }""",
}

SIZES = {
    "wq": (32, 32), "wk": (32, 32), "wv": (32, 32), "wo": (32, 32), "wg": (32, 64), "wu": (32, 64),
    "wd": (64, 32), "gain": (32,), "bias": (32,), "filters": (8, 3, 3, 3),
    "depthwise": (8, 1, 3, 3),
}  # fmt: skip

CONSTANTS: Mapping[str, Any] = {
    "heads": np.int64([0, 0, 4, 8]), "joined": np.int64([0, 0, 32]), "flat": np.int64([8, 16, 16]),
    "four": np.int64([2, 4, 16, 16]), "scale": np.float32(8**-0.25), "one": np.float32(1),
    "two": np.float32(2), "half": np.float32(0.5), "root": np.float32(2**0.5),
    "small": np.float32(1e-6),
}  # fmt: skip


def blocks() -> Sequence[Case]:
    """All of them."""
    return [Case(name, _of_text, (name,)) for name in TEXTS]


def _of_text(name: str, _: Path) -> Made:
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(HEADER + TEXTS[name])
    used = {value for node in model.graph.node for value in node.input}
    for kind, sizes in SIZES.items():
        if kind in used:
            values = (rng.standard_normal(sizes) / sizes[0] ** 0.5).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(values, kind))
    for kind, value in CONSTANTS.items():
        if kind in used:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), kind))
    return model, [_feed(model, size) for size in (5, 7, 5)]


def _feed(model: onnx.ModelProto, size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(size)
    feed = {}
    for value in model.graph.input:
        sizes = [dim.dim_value or size for dim in value.type.tensor_type.shape.dim]
        feed[value.name] = rng.standard_normal(sizes).astype(np.float32)
        if value.name == "mask":
            feed["mask"] = np.triu(np.full(sizes, np.finfo(np.float32).min, np.float32), 1)
    return feed
