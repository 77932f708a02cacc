"""What the engine of the original rounds is no fault of a conversion, and hides none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from bridge.check.exact import ExactModel, widen
from bridge.check.outputs import Comparison

import bridge
from bridge.check import CheckReport, check
from bridge.check.engines import Reference
from bridge.vocabulary.elements import F32, F64
from tests.support.running import OnnxRuntime

CANCELS = "s = Add (x, large) y = Sub (s, large)"
EXACT = "y = Identity (x)"


def compared(folder: Path, one: str, other: str) -> CheckReport:
    for name, body in (("a.onnx", one), ("b.onnx", other)):
        text = (
            '<ir_version: 9, opset_import: ["": 18]> m (float[3] x) => (float[3] y) '
            f"<float[1] large = {{1e8}}, float[1] two = {{2}}> {{ {body} }}"
        )
        onnx.save(onnx.parser.parse_model(text), folder / name)
    np.savez(folder / "x.npz", x=np.array([0.1, 0.2, 0.7], np.float32))
    return check(folder / "a.onnx", folder / "b.onnx", inputs=folder / "x.npz", samples=0)


def test_what_the_original_rounds_is_a_note(tmp_path: Path) -> None:
    report = compared(tmp_path, CANCELS, EXACT)
    assert report.ok, str(report)
    (note,) = report.notes
    assert "computed in 64 bits by onnxruntime, gives what b.onnx gives" in note


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (EXACT, CANCELS),  # the version rounds
        (CANCELS, "y = Mul (x, two)"),
        (CANCELS, "y = Neg (x)"),
        (CANCELS, "z = Mul (x, large) s = Add (z, large) y = Sub (s, large)"),
    ],
)
def test_a_fault_stays_one(one: str, other: str, tmp_path: Path) -> None:
    report = compared(tmp_path, one, other)
    assert report.different and not report.notes, str(report)


IN_PARTS = """q = QuantizeLinear (x, step, zero) d = DequantizeLinear (q, step, zero)
    n, s, z = DynamicQuantizeLinear (d) m = DequantizeLinear (n, s, z)"""


@pytest.mark.parametrize(
    ("opset", "body"),
    [
        # The evaluator mixes the statistics of the batch in.
        (11, "y = BatchNormalization <momentum = 0.5> (x, two, two, two, two)"),
        (13, f"{IN_PARTS} y = Sqrt (m)"),
        (13, 'y = Resize <mode = "linear"> (x, , scales)'),
        (17, "y = LayerNormalization (x, two)"),
    ],
)
def test_operators_that_are_exact(opset: int, body: str, tmp_path: Path) -> None:
    """Their definitions have no 64-bit floats, or onnx.reference has faults."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 9, opset_import: ["": {opset}]> m (float[1,2,2] x) => (float[n,m,k] y)
        <float[2] two = {{2, 3}}, float[3] scales = {{1, 1, 2}}, float step = {{0.1}},
        uint8 zero = {{3}}> {{ {body} }}""")
    onnx.save(model, tmp_path / "m.onnx")
    feed = {"x": np.array([[[0.5, 1.25], [2.0, 3.125]]], np.float32)}
    (expected,) = OnnxRuntime(model).run(feed)
    comparison = Comparison(1e-3, 1e-5, lambda note: None)
    exact = ExactModel(tmp_path / "m.onnx", comparison, tmp_path).run(feed)
    assert exact is not None and exact.bits == 64
    np.testing.assert_allclose(exact.results["y"], expected, 1e-5)
    if opset == 11:
        (evaluated,) = Reference().load(model).run(feed).values()
        np.testing.assert_allclose(evaluated, expected, 1e-5)


def test_every_float_is_widened(tmp_path: Path) -> None:
    """In bodies and attributes too."""
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 18]>
        m (float[n] x, bool c, float16[1] h) => (float[k] y) <float[1] third = {0.333333343}> {
          y = If (c) <
            then_branch = t () => (float[k] p) {
              half = Constant <value_float = 0.5> ()
              tenths = Constant <value_floats = [0.1, 0.2]> ()
              n = Shape (x)
              zeros = ConstantOfShape (n)
              wide = Cast <to = 1> (h)
              a = Mul (x, half) b = Add (a, zeros) d = Add (b, wide)
              p = Concat <axis = 0> (d, tenths, third)
            },
            else_branch = e () => (float[k] q) { q = Mul (x, third) }
          >
        }""")
    x = np.array([0.1, 1e-9], np.float64)
    feed = {"x": x, "c": np.array(True), "h": np.array([1.5], np.float16)}
    wide = bridge.load(model)
    assert widen(wide, {F32: F64})
    bridge.save(wide, tmp_path / "wide.onnx")
    (found,) = OnnxRuntime(onnx.load(tmp_path / "wide.onnx")).run(feed)
    assert found.dtype == np.float64
    parts = np.array([0.1, 0.2, 0.333333343], np.float32).astype(np.float64)
    np.testing.assert_array_equal(found, [*(x * 0.5 + 1.5), *parts])
    assert OnnxRuntime(model).run(feed | {"x": x.astype(np.float32)})[0].dtype == np.float32
