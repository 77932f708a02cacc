"""`bridge check --device GPU` where OpenVINO has a GPU: here the emulated one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

from tests.gpu import device

HEADER = '<ir_version: 10, opset_import: ["": 21]> g '

RIGHT = """(float[4] x, bool c) => (float[4] y) { y = If (c) <
  then_branch = t () => (float[4] p) { p = Neg (x) },
  else_branch = e () => (float[4] q) { q = Exp (x) }> }"""

OVERFLOWS = """(float[64] x) => (float[64] y) <float[1] k = {100000.0}> {
  a = Mul (x, k) b = Relu (a) y = Div (b, k) }"""


@pytest.mark.parametrize("text", [RIGHT, OVERFLOWS])
@pytest.mark.usefixtures("emulated_gpu")
def test_the_device_runs_the_file(text: str, tmp_path: Path) -> None:
    """In 32 bits it is right, also where 16 bits, its default, overflow."""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(HEADER + text), path)
    command = [sys.executable, "-m", "bridge", "check", str(path), "--device", "GPU"]
    ran = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "for GPU, and run there" in ran.stdout
    assert "f32 on GPU, Emulated Intel(R) UHD Graphics" in ran.stdout
    assert "by default it computes in f16" in ran.stdout


def test_where_there_is_none_the_cpu_plugin_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(HEADER + RIGHT), path)
    hidden = {**os.environ, "OCL_ICD_FILENAMES": "", "OCL_ICD_VENDORS": str(device.SHIM)}
    command = [sys.executable, "-m", "bridge", "check", str(path), "--device", "GPU"]
    ran = subprocess.run(command, capture_output=True, text=True, env=hidden)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "for GPU, but run on the CPU plugin" in ran.stdout
