"""The tools' sources: some of `roundtrip_models/`, and nets with weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tests.support.model_files import FOLDER, load_onnx

NAMES = (
    "if_nested_captures_every_scope", "if_in_loop_in_if_in_loop", "if_branches_differ_in_shape",
    "loop_scan_output", "loop_state_grows", "scan_with_lstm", "sequence_in_loop",
    "detection_if_any",
)  # fmt: skip
"""Names of `roundtrip_models/`."""

_ENCODER = """<ir_version: 8, opset_import: ["" : 17]>
encoder (float[b,s,64] x, bool wide) => (float[b,s,64] y) <
  int64[4] heads = {0, 0, 4, 16}, int64[3] joined = {0, 0, 64}, float quarter = {0.25}
> {
  q = MatMul (x, w1)  k = MatMul (x, w2)  v = MatMul (x, w3)
  qs = Reshape (q, heads)  ks = Reshape (k, heads)  vs = Reshape (v, heads)
  qh = Transpose <perm = [0, 2, 1, 3]> (qs)
  kh = Transpose <perm = [0, 2, 3, 1]> (ks)
  vh = Transpose <perm = [0, 2, 1, 3]> (vs)
  raw = MatMul (qh, kh)
  scaled = Mul (raw, quarter)
  p = Softmax <axis = -1> (scaled)
  taken = MatMul (p, vh)
  back = Transpose <perm = [0, 2, 1, 3]> (taken)
  together = Reshape (back, joined)
  more = Add (together, x)
  norm = LayerNormalization <axis = -1> (more, scale, shift)
  y = If (wide) <
    then_branch = feed () => (float[b,s,64] t) {
      a = MatMul (norm, w4)  c = Relu (a)  d = MatMul (c, w5)  t = Add (d, norm)
    },
    else_branch = keep () => (float[b,s,64] e) { f = MatMul (norm, w6)  e = Add (f, shift) }
  >
}"""

_IMAGES = """<ir_version: 8, opset_import: ["" : 17]>
images (float[b,3,16,16] x) => (float[b,5] y) <float zero = {0}> {
  a = Conv <pads = [1, 1, 1, 1]> (x, w1, b1)
  c = Relu (a)
  d = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
  sum = ReduceMean <keepdims = 0> (d)
  high = Greater (sum, zero)
  e = If (high) <
    then_branch = deep () => (float[b,8,8,8] t) {
      f = Conv <pads = [1, 1, 1, 1]> (d, w2, b2)  t = Sigmoid (f)
    },
    else_branch = flat () => (float[b,8,8,8] u) { u = Conv (d, w3, b2) }
  >
  g = GlobalAveragePool (e)
  h = Flatten (g)
  y = Gemm (h, w4, b4)
}"""

_STEPS = """<ir_version: 8, opset_import: ["" : 17]>
steps (float[4,32] x, float[4,32] start) => (float[4,32] y, float[n,4,32] all) <
  bool go = {1}, int64 three = {3}
> {
  y, all = Loop <body = body (int64 i, bool c, float[4,32] h) => (
    bool again, float[4,32] next, float[4,32] out
  ) {
    again = Identity (c)
    a = MatMul (x, w1)  d = MatMul (h, w2)  e = Add (a, d)
    next = Tanh (e)
    out = MatMul (next, w3)
  }> (three, go, start)
}"""

_NETS = {
    "encoder": (
        _ENCODER,
        {
            **{f"w{i}": (64, 64) for i in (1, 2, 3, 6)},
            **{"w4": (64, 128), "w5": (128, 64), "scale": (64,), "shift": (64,)},
        },
    ),
    "images": (
        _IMAGES,
        {
            **{"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 8, 3, 3), "w3": (8, 8, 1, 1)},
            **{"b2": (8,), "w4": (8, 5), "b4": (5,)},
        },
    ),
    "steps": (_STEPS, {"w1": (32, 32), "w2": (32, 32), "w3": (32, 32)}),
}
"""Text, and the shapes of the weights."""


def sources() -> Iterator[tuple[str, onnx.ModelProto]]:
    """The models by name."""
    for name in NAMES:
        yield name, load_onnx(FOLDER / f"{name}.onnxtxt")
    for name, (text, weights) in _NETS.items():
        model = parser.parse_model(text)
        rng = np.random.default_rng(0)
        for weight, shape in weights.items():
            values = rng.normal(0, 0.5 / np.sqrt(shape[0]), shape).astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(values, weight))
        yield name, model
