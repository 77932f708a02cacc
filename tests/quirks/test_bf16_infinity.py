"""Infinities of bf16 stay infinite, as inputs and as constants, on processors with and without
instructions for bf16."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from tests.support.running import OpenVino

X = np.array([np.inf, -np.inf, np.nan, 3.3895314e38, -3.3895314e38, 0, 1], np.float32)
EQUAL = """<ir_version: 10, opset_import: ["" : 21]>
equal (float[7] x, bool[7] chosen) => (bool[7] computed, bool[7] either)
<bfloat16 stored = {0}, float wide = {INFINITY}> {
  narrow = Cast <to = 16> (x)
  infinity = Cast <to = 16> (wide)
  computed = Equal (narrow, infinity)
  mixed = Where (chosen, stored, narrow)
  either = Equal (stored, mixed)
}"""


@pytest.mark.parametrize("infinity", [np.float32(np.inf), np.float32(-np.inf)])
def test_equal(infinity: np.float32, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(EQUAL.replace("INFINITY", str(infinity)))
    bits = int(infinity.view(np.uint32)) >> 16
    model.graph.initializer[0].ClearField("int32_data")
    model.graph.initializer[0].int32_data.append(bits)
    chosen = np.array([False] * 5 + [True] * 2)
    bridge.convert(model, tmp_path / "a.xml")
    computed, either = OpenVino(tmp_path / "a.xml").run([X, chosen])
    np.testing.assert_array_equal(computed, infinity == X)
    np.testing.assert_array_equal(either, (infinity == X) | chosen)


def test_row_without_a_key(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 23]>
    attention (float[1,1,2,4] x, float[2,2] mask) => (float[1,1,2,4] y) {
      narrow = Cast <to = 16> (x)
      added = Cast <to = 16> (mask)
      attended = Attention (narrow, narrow, narrow, added)
      y = Cast <to = 1> (attended)
    }""")
    bridge.convert(model, tmp_path / "a.xml")
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
    mask = np.array([[-np.inf, -np.inf], [-np.inf, 0]], np.float32)
    (y,) = OpenVino(tmp_path / "a.xml").run([x, mask])
    np.testing.assert_array_equal(y[0, 0], [[0] * 4, x[0, 0, 1]])
