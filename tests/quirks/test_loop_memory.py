"""States of a Loop that OpenVINO would compute in the memory of another value. The numbers equal
onnxruntime's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

# h and g are states, x a slice, w is the same in every iteration; p and q are the next states.
BODIES = {
    "a sum": "p = Add(x, h) q = Identity(g)",
    "a product": "p = Mul(x, h) q = Identity(g)",
    "a recurrence": "m = MatMul(h, w) s = Sub(x, m) p = Tanh(s) q = Identity(g)",
    "Fibonacci": "p = Identity(g) q = Add(h, g)",
    "Fibonacci backwards": "q = Identity(h) p = Add(h, g)",
    "a swap": "p = Identity(g) q = Identity(h)",
    "the slice itself": "p = Identity(x) q = Identity(x)",
    "a constant state": "p = Identity(w) q = Add(w, x)",
    "an overwritten constant": "s = Softmax(w) p = Add(s, x) q = Add(w, g)",
    "through views": (
        "k = Constant<value_ints=[2, 8]>() r = Reshape(x, k) s = Neg(r) "
        "l = Constant<value_ints=[4, 4]>() n = Reshape(s, l) p = Max(n, h) q = Min(n, g)"
    ),
    "under a condition": "c = Less(h, x) p = Where(c, x, h) q = Where(c, h, g)",
}


@pytest.mark.parametrize("rows", ["4", "N"])
@pytest.mark.parametrize("name", BODIES)
def test_states(name: str, rows: str, tmp_path: Path) -> None:
    if rows == "N" and "Reshape" in BODIES[name]:
        pytest.skip("the shape is a constant")
    state = f"float[{rows},4]"
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
    loop (float[5,{rows},4] X, {state} h0, {state} g0, float[4,4] w)
        => ({state} a, {state} b, float[5,{rows},4] Y) {{
      a, b, Y = Scan<num_scan_inputs = 1, body = step ({state} h, {state} g, {state} x)
          => ({state} p, {state} q, {state} y) {{ {BODIES[name]} y = Add(p, q) }}>(h0, g0, X)
    }}""")
    rng = np.random.default_rng(1)
    shapes = {"X": (5, 4, 4), "h0": (4, 4), "g0": (4, 4), "w": (4, 4)}
    feed = {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    expected = OnnxRuntime(model).run(feed)
    bridge.convert(model, tmp_path / "loop.xml", debug=True)
    assert_close(OpenVino(tmp_path / "loop.xml").run(list(feed.values())), expected)
