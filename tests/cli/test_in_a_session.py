"""A session of Python: how it shows a loaded model, and how it calls the package of checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx.parser
import pytest

import bridge

IF = Path(__file__).parents[2] / "roundtrip_models" / "if_bool.onnxtxt"


@pytest.mark.parametrize(
    "before", ["import bridge.check", "from bridge.check import check", "import bridge.testing", ""]
)
def test_check_can_be_called(before: str) -> None:
    """After any imports, `bridge.check` is the package, and calls its function."""
    code = (
        f"import bridge; {before or 'pass'}\n"
        "assert 'bridge.check' in str(bridge.check) and 'model' in bridge.check.__doc__\n"
        f"print(bridge.check({str(IF)!r}, samples=1).ok)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.returncode) == ("True", 0), ran.stderr


def test_a_loaded_model_is_one_line() -> None:
    model = bridge.load(IF)
    said = repr(model)
    assert said.startswith("<Model 'if_bool' of onnx: ") and "\n" not in said
    assert "1 If" in said and "1 output," in said


def test_a_notebook_shows_a_summary() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n,3] x) => (float[n,3] y) { z = Abs (x) y = Neg (z) }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.output[0].name = proto.graph.node[1].output[0] = "<b>y"
    shown = bridge.load(proto)._repr_html_()
    assert "<td>x</td><td>f32[n,3]</td>" in shown and "<td>&lt;b&gt;y</td>" in shown
    assert "<td>Abs</td><td>1</td>" in shown
