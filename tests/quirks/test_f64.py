"""Numbers of f64 that OpenVINO's CPU plugin keeps, and those that it folds without end."""

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import bridge
from tests.support.running import OpenVino

ODD = np.array([1e300, 1.1, -1e-310])


@pytest.mark.parametrize("kind, x", [("double", ODD), ("uint64", np.array([2**63 + 1], np.uint64))])
@pytest.mark.parametrize("size", ["n", "static"])
def test_an_input_that_is_an_output(kind: str, x: np.ndarray, size: str, tmp_path: Path) -> None:
    n = "n" if size == "n" else x.size
    outputs = ", ".join(f"{kind}[{n}] {name}" for name in "yz")
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 18]> g ({kind}[{n}] x) => ({outputs}) '
        "{ y = Identity (x) z = Identity (x) }"
    )
    bridge.convert(model, tmp_path / "m.xml", debug=True)
    for got in OpenVino(tmp_path / "m.xml").run([x]):
        np.testing.assert_array_equal(got, x)
    bridge.convert(tmp_path / "m.xml", tmp_path / "back.onnx")
    bridge.convert(tmp_path / "back.onnx", tmp_path / "again.xml")
    assert (tmp_path / "again.xml").read_bytes() == (tmp_path / "m.xml").read_bytes()


def test_sums_of_constants_compile(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> g (double[2] x) => (double[2] y) '
        "<float[2] f = {1.5, 2}, double[2] b = {0.5, 3}, double c = {1.5}> "
        "{ a = Cast <to = 11> (f) s = Add (a, b) t = Sub (s, c) u = Add (t, c) y = Mul (x, u) }"
    )
    bridge.convert(model, tmp_path / "m.xml", debug=True)
    (got,) = OpenVino(tmp_path / "m.xml").run([np.array([1.0, 2])])
    np.testing.assert_array_equal(got, [2, 10])
