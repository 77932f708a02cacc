"""The file of a quirk undoes its forms, whichever quirks the user asked for."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import bridge
from tests.support.choices import CHOICES


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
