"""TopK of an open size: OpenVINO sorts the candidates alone, in ONNX's order of equal elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from tests.support.running import OnnxRuntime, OpenVino

INPUTS = ((1, 1), (50, 7), (50, 50), (500, 90))
"""Elements, and how many of them are asked for."""


def model_of(shape: str, k: str, element: str, **attributes: int) -> onnx.ModelProto:
    given = ", ".join(f"{name} = {value}" for name, value in attributes.items())
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g ({element}[{shape}] x, int64[1] count) => ({element}[{shape.replace("n", "m")}] values,
        int64[{shape.replace("n", "m")}] places) {{
            few = Constant <value_ints = [3]> ()
            all = Shape <start = {attributes["axis"]}, end = {attributes["axis"] + 1}> (x)
            values, places = TopK <{given}> (x, {k})
        }}""")


@pytest.mark.parametrize("element", ["float", "int64"])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [("n", 0), ("n", -1), ("1, n, 1", -2)])
def test_equal_elements_keep_their_order(
    shape: str, axis: int, largest: int, element: str, tmp_path: Path
) -> None:
    model = model_of(shape, "count", element, axis=axis, largest=largest)
    bridge.convert(model, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert "NonZero" in (tmp_path / "a.xml").read_text()
    assert "TopK" in [node.op_type for node in onnx.load(tmp_path / "b.onnx").graph.node]
    bridge.convert(tmp_path / "b.onnx", tmp_path / "b.xml")
    assert (tmp_path / "b.xml").read_bytes() == (tmp_path / "a.xml").read_bytes()
    onnxruntime, openvino = OnnxRuntime(model), OpenVino(tmp_path / "a.xml")
    rng = np.random.default_rng(0)
    for size, count in INPUTS:
        x = rng.integers(-3, 3, size).astype(np.float32 if element == "float" else np.int64)
        if element == "float":
            x[::17], x[5::19] = np.inf, -np.inf
        x = x.reshape([size if dim == "n" else 1 for dim in shape.split(", ")])
        expected = onnxruntime.run({"x": x, "count": np.array([count])})
        actual = openvino.run([x, np.array([count])])
        for one, other in zip(expected, actual, strict=True):
            np.testing.assert_array_equal(one, other)


def test_not_a_number_is_a_candidate(tmp_path: Path) -> None:
    bridge.convert(model_of("n", "count", "float", axis=0), tmp_path / "a.xml")
    engine = OpenVino(tmp_path / "a.xml")
    for holes in ([0], [299], range(0, 300, 7), range(290, 300), range(300)):
        x = np.random.default_rng(0).normal(size=300).astype(np.float32)
        x[holes] = np.nan
        for count in (1, 10, 200, 300):
            values, places = engine.run([x, np.array([count])])
            assert len(set(places.tolist())) == count
            np.testing.assert_array_equal(values, x[places])


@pytest.mark.parametrize(
    ("shape", "k"), [("n", "few"), ("n", "all"), ("2, n", "count"), ("400", "count")]
)
def test_there_are_no_candidates(shape: str, k: str, tmp_path: Path) -> None:
    """Few are found quickly, all are sorted anyway, and rows have different numbers of them."""
    bridge.convert(model_of(shape, k, "float", axis=shape.count(",")), tmp_path / "a.xml")
    assert "NonZero" not in (tmp_path / "a.xml").read_text()
