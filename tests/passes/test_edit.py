"""Models cut at other outputs, and with other names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import bridge
from tests.support.command_line import bridge as command
from tests.support.running import OnnxRuntime

MODELS = Path(__file__).parents[2] / "roundtrip_models"
MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[n] x, float[n] z, bool c) => (float[n] y, float[n] w) {
  a = Exp (x)
  b = If (c) <
    then_branch = t () => (float[n] p) { image = Neg (a)  p = Abs (image) },
    else_branch = e () => (float[n] q) { q = Identity (z) }
  >
  y = Add (a, b)
  w = Mul (z, z)
}"""


@pytest.fixture(params=["onnx", "ir"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The model in either format."""
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    if request.param == "onnx":
        return tmp_path / "m.onnx"
    bridge.convert(tmp_path / "m.onnx", tmp_path / "m.xml")
    return tmp_path / "m.xml"


def names(proto: onnx.ModelProto) -> tuple[list[str], list[str]]:
    onnx.checker.check_model(proto, full_check=True)
    return [v.name for v in proto.graph.input], [v.name for v in proto.graph.output]


@pytest.mark.parametrize(
    ("outputs", "inputs"),
    [(["a"], ["x"]), (["b", "a"], ["x", "z", "c"]), (["w"], ["z"]), (["w", "x"], ["x", "z"])],
    ids=str,
)
def test_cut(outputs: list[str], inputs: list[str], model: Path, tmp_path: Path) -> None:
    proto = bridge.to_onnx(model, outputs=outputs)
    assert names(proto) == (inputs, outputs)
    bridge.convert(model, tmp_path / "cut.xml", outputs=outputs)
    assert names(bridge.to_onnx(tmp_path / "cut.xml")) == (inputs, outputs)


def test_rename(model: Path, tmp_path: Path) -> None:
    """A name is free for an input although an inner value has it."""
    given = {"x": "image", "z": "x", "y": "out"}
    proto = bridge.to_onnx(model, rename=given, input_shapes={"image": (3,), "x": (3,)})
    assert names(proto) == (["image", "x", "c"], ["out", "w"])
    for source in (model, proto):
        bridge.convert(source, tmp_path / "r.xml", rename=given if source is model else {})
        assert names(bridge.to_onnx(tmp_path / "r.xml")) == (["image", "x", "c"], ["out", "w"])
    x, z = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    onnx.save(proto, tmp_path / "r.onnx")
    out, w = OnnxRuntime(tmp_path / "r.onnx").run({"image": x, "x": z, "c": np.array(False)})
    np.testing.assert_allclose(out, np.exp(x) + z)
    np.testing.assert_allclose(w, z * z)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--outputs", "nothing"], 'no value in its top graph that is called "nothing"'),
        (["--outputs", "a,a"], "each once"),
        (["--rename", "imag=b"], 'no input or output "imag"; it has x, z, c, y, w'),
        (["--rename", "x=y"], '"x" cannot be called "y"'),
        (["--rename", "x=q", "--rename", "z=q"], "cannot have one name"),
        (["--rename", "x"], "is not OLD=NEW"),
        (["--outputs", "a", "--check"], "compares whole models"),
    ],
)
def test_what_cannot_be(arguments: list[str], says: str, model: Path, tmp_path: Path) -> None:
    finished = command("convert", model, tmp_path / "out.onnx", *arguments)
    assert finished.code == 2 and says in finished.err
    assert not (tmp_path / "out.onnx").exists()


def test_what_a_record_names_stays(tmp_path: Path) -> None:
    bridge.convert(MODELS / "sequence_input.onnxtxt", tmp_path / "s.xml")
    with pytest.raises(bridge.UsageError, match="record of its boundary"):
        bridge.to_onnx(tmp_path / "s.xml", rename={"parts.data": "p"})
