"""The file of a quirk undoes its forms, whichever quirks the user asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from tests.support.choices import CHOICES
from tests.support.running import OnnxRuntime


@pytest.mark.parametrize("asked", CHOICES)
def test_the_record_does_not_depend_on_quirks(asked: str, tmp_path: Path) -> None:
    """Two operators that are rewritten for old releases. A pass expands one of them before."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]>
        g (float[n,m] x, int64[k,m] i) => (float[k] y) <int64[1] axes = {1}>
        { z = GatherElements (x, i) y = ReduceLogSumExp <keepdims = 0> (z, axes) }"""
    )
    bridge.convert(model, tmp_path / "a.xml", **CHOICES[asked])
    back = bridge.to_onnx(tmp_path / "a.xml")
    assert [node.op_type for node in back.graph.node] == ["GatherElements", "ReduceLogSumExp"]


def test_absolute_values_of_shapes(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]>
        g (float[n,m] x, int64[2] some) => (int64[2] y)
        { sizes = Shape (x) less = Sub (sizes, some) y = Abs (less) }"""
    )
    bridge.convert(model, tmp_path / "a.xml")
    assert '"Squeeze"' in (tmp_path / "a.xml").read_text(encoding="utf-8")
    back = bridge.to_onnx(tmp_path / "a.xml")
    assert [node.op_type for node in back.graph.node] == ["Shape", "Sub", "Abs"]


def test_what_no_undo_recognises_loads(tmp_path: Path) -> None:
    """A 0 that is hidden from an older OpenVINO is known again: onnxruntime has no RandomUniform of
    operator set 22."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 24]>
        g (float[N,3] x, int64 k) => (float[M,3] y) <int64[1] z = {0}, int64[1] most = {6}> {
        y = Loop (k, , x) < body = b (int64 i, bool g, float[] s) => (bool on, float[] u)
        { on = Identity (g) t = Concat <axis = 0> (s, x) u = Slice (t, z, most, z) } > }""")
    bridge.convert(model, tmp_path / "a.xml", openvino="2024.0")
    feed = {"x": np.ones((2, 3), np.float32), "k": np.array(3)}
    again = OnnxRuntime(bridge.to_onnx(tmp_path / "a.xml")).run(feed)
    np.testing.assert_array_equal(again[0], np.ones((6, 3), np.float32))
