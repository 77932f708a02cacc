"""Loops that no engine ends cost a check the time of one run."""

from __future__ import annotations

import time
from pathlib import Path

import onnx
import pytest

import bridge
from bridge.check import check

MODEL = """<ir_version: 9, opset_import: ["": 18]> g (float[2] x) => (float[2] y)
<int64 n = {4611686018427387904}> {
  y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] v) => (bool e, float[2] w) {
    e = Identity (c) w = Neg (v)
  }>
}"""


@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_a_model_that_never_ends(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"m{suffix}"
    bridge.convert(onnx.parser.parse_model(MODEL), path)
    began = time.monotonic()
    report = check(path, timeout=2)
    assert time.monotonic() - began < 20
    assert not report.ok and not report.different
    assert "it did not end within 2 s (--timeout)" in str(report)


ENDS = """<ir_version: 9, opset_import: ["": 18]> g (float[2] x) => (float[2] y)
<int64 n = {3}> {
  y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] v) => (bool e, float[2] w) {
    e = Identity (c) w = Neg (v)
  }>
}"""


def test_a_version_that_never_ends_runs_once(tmp_path: Path) -> None:
    for name, text in (("a", ENDS), ("b", MODEL)):
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")
    report = check(tmp_path / "a.onnx", tmp_path / "b.onnx", timeout=2, samples=8)
    assert not report.ok and len(report.verdict.failed) == 1, str(report)
    assert "b.onnx, input 0: onnxruntime: it did not end within 2 s" in str(report)
