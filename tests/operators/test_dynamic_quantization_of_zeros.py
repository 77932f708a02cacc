"""DynamicQuantizeLinear of zeros alone has the scale 1, as in onnxruntime: a bias that is divided
by the scale, and multiplied with it again, stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from tests.support.running import OnnxRuntime, OpenVino

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n,4] x, int8[4,3] w, float[3] bias) => (float[n,3] y) {
  q, s, z = DynamicQuantizeLinear(x)
  i = MatMulInteger(q, w, z)
  r = Div(bias, s) f = Round(r) b = Cast<to = 6>(f) j = Add(i, b) k = Cast<to = 1>(j)
  y = Mul(k, s)
}"""


@pytest.mark.parametrize("number", [0, 3, -2.5])
def test_a_bias_of_zeros_that_are_quantised(number: float, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    bridge.convert(tmp_path / "m.onnx", tmp_path / "m.xml")
    feeds = {
        "x": np.full((2, 4), number, np.float32),
        "w": np.arange(12, dtype=np.int8).reshape(4, 3),
        "bias": np.float32([3, -7, 5]),
    }
    (expected,) = OnnxRuntime(tmp_path / "m.onnx").run(feeds)
    (found,) = OpenVino(tmp_path / "m.xml").run([*feeds.values()])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    bridge.convert(tmp_path / "m.xml", tmp_path / "back.onnx")
    ops = [node.op_type for node in onnx.load(tmp_path / "back.onnx").graph.node]
    assert ops.count("DynamicQuantizeLinear") == 1 and "Where" not in ops
