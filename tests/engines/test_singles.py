"""What engines round of 16-bit floats is within the noise of the original, and hides no fault that
is larger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from bridge.check import CheckReport, check

UP = "p = Concat <axis = 1> (x, one) t = MatMul (p, raises) s = Flatten (t)"
DOWN = "q = Concat <axis = 1> (s, one) y = MatMul (q, lowers)"
CANCELS = f"{UP} {DOWN}"
"""1024.25 is no f16: onnxruntime rounds it before a Flatten, OpenVINO computes in f32."""

CONSTANTS = {
    "one": [[1]], "raises": [*np.eye(3), [1024] * 3], "lowers": [*np.eye(3), [-1024] * 3],
    "more": [8], "low": [-65504],
}  # fmt: skip


def written(path: Path, body: str) -> Path:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float16[1,3] x, bool c) => (float16[1,3] y) {'
        f" y = If (c) < then_branch = t () => (float16[1,3] y) {{ {body} }}, "
        "else_branch = e () => (float16[1,3] z) { z = Neg (x) } > }"
    )
    for name, numbers in CONSTANTS.items():
        tensor = onnx.numpy_helper.from_array(np.array(numbers, np.float16), name)
        model.graph.initializer.append(tensor)
    onnx.save(model, path)
    return path


def compared(folder: Path, one: Path, other: Path) -> CheckReport:
    np.savez(folder / "x.npz", x=np.array([[0.25, 0.75, 0.125]], np.float16), c=np.array(True))
    return check(one, other, inputs=folder / "x.npz", samples=0)


@pytest.mark.parametrize("first", ["onnx", "ir"])
def test_what_engines_round_is_told(first: str, tmp_path: Path) -> None:
    one = written(tmp_path / "a.onnx", CANCELS)
    other = tmp_path / "a.xml"
    bridge.convert(one, other)
    report = compared(tmp_path, *((one, other) if first == "onnx" else (other, one)))
    assert report.ok, str(report)
    assert "; 'y' is not shown: the original's noise is " in str(report).splitlines()[0], str(
        report
    )


@pytest.mark.parametrize(
    "other",
    [
        CANCELS.replace("(x, one)", "(z, one)").replace("p =", "z = Mul (x, more) p ="),
        CANCELS.replace("y =", "d =") + " z = Add (d, low) y = Add (z, low)",
    ],
    ids=["wrong", "overflows"],
)
def test_a_fault_stays_one(other: str, tmp_path: Path) -> None:
    bridge.convert(written(tmp_path / "b.onnx", other), tmp_path / "b.xml")
    report = compared(tmp_path, written(tmp_path / "a.onnx", CANCELS), tmp_path / "b.xml")
    assert report.different, str(report)


def test_all_inputs_are_told_once(tmp_path: Path) -> None:
    report = check(written(tmp_path / "a.onnx", CANCELS))
    assert report.ok, str(report)
    assert str(report).splitlines()[0].count("'y' is not shown") == 1, str(report)
