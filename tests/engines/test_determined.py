"""What the original itself does not determine is not compared; all else of the same output is.
What it determines by a condition is no matter of rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import bridge
from bridge.check import check
from bridge.check.compare import Tolerances, unlike
from bridge.check.determined import settled

WINDOW = """
<ir_version: 9, opset_import: ["" : 20, "com.microsoft" : 1]>
cache (float[1,n,24] x, float[1,1,p,8] key, float[1,1,p,8] value)
=> (float[1,n,8] y, float[1,1,k,8] key_after, float[1,1,k,8] value_after)
<int32[1,1] last = {15}, int32 all = {16}> {
  y, key_after, value_after = com.microsoft.GroupQueryAttention
    <num_heads = 1, kv_num_heads = 1, local_window_size = 4, sliding_window_cache = 1>
    (x, , , key, value, last, all)
}
"""
"""Behind the valid length of its cache, onnxruntime leaves memory as it was."""


def _saved(folder: Path) -> Path:
    onnx.save(onnx.parser.parse_model(WINDOW), folder / "m.onnx")
    return folder / "m.onnx"


def _with(fault: str) -> str:
    changed = WINDOW.replace("key_after, value_after = com", "kept, value_after = com")
    return changed.rstrip().rstrip("}") + fault + "\n}"


def test_memory_that_nobody_wrote_is_not_compared(tmp_path: Path) -> None:
    report = check(_saved(tmp_path))
    assert report.ok, str(report)
    first = str(report).splitlines()[0]
    for name in ("key_after", "value_after"):
        assert f"'{name}' is not shown: " in first and " % of its elements are not" in first, first
    assert "'y'" not in first


@pytest.mark.parametrize("fault", [
    "one = Constant<value = float[8] {0, 0, 0, 0, 0, 0, 0, 0.1}>() key_after = Add(kept, one)",
    "key_after = Neg(kept)",
])  # fmt: skip
def test_a_fault_in_what_is_determined_is_found(fault: str, tmp_path: Path) -> None:
    right = _saved(tmp_path)
    bridge.convert(onnx.parser.parse_model(_with(fault)), tmp_path / "m.xml")
    report = check(right, tmp_path / "m.xml")
    wrong = {one.output for one in report.verdict.results if not one.ok}
    assert report.different and wrong == {"key_after"}, str(report)
    assert "at fault: m.xml" in str(report), str(report)


def test_what_is_unlike() -> None:
    one, other = np.array([1, 2, np.nan], np.float32), np.array([1, 3, np.nan], np.float32)
    assert unlike(one, other, *Tolerances().of("")).tolist() == [False, True, False]
    assert unlike(one, other[:2], 0.0, 0.0).all() and unlike([one], [other], 0.0, 0.0).all()
    assert settled({"y": other}, {"y": np.array([0, 1, 1], bool)}, {})["y"].tolist() == [1, 0, 0]


TIE = """
<ir_version: 9, opset_import: ["" : 17]>
until (float x, int64 trips) => (float y)
<float limit = {6}, float one = {1}, bool go = {1}> {
  y = Loop(trips, go, x) <body = more (int64 i, bool c, float s) => (bool c_out, float s_out) {
    s_out = Add(s, one)
    c_out = Less(s_out, limit)
  }>
}
"""


def test_noise_with_other_iterations_excuses_nothing(tmp_path: Path) -> None:
    right = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(TIE), right)
    bridge.convert(
        onnx.parser.parse_model(TIE.replace("Less(", "LessOrEqual(")), tmp_path / "m.xml"
    )
    report = check(right, tmp_path / "m.xml")
    assert report.different and "at fault: m.xml" in str(report), str(report)
