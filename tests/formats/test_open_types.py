"""An IR whose Parameters have no element type, like the IR of a scripted module of PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from openvino import opset13 as op

import bridge
from bridge.check import check
from tests.support.command_line import bridge as command
from tests.support.reports import feeds_of
from tests.support.running import OnnxRuntime


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    x = op.parameter(openvino.PartialShape.dynamic(), openvino.Type.dynamic, name="x")
    model = openvino.Model([op.result(op.relu(x))], [x], "m")
    openvino.save_model(model, tmp_path / "m.xml")
    return tmp_path / "m.xml"


@pytest.mark.parametrize("given", [(), ("--input-shape",), ("--input-type",)])
def test_what_is_missing_is_asked_for(given: tuple[str, ...], xml: Path) -> None:
    texts = {"--input-shape": "x=[2,3]", "--input-type": "x=f32"}
    options = [part for option in given for part in (option, texts[option])]
    finished = command("convert", xml, xml.with_suffix(".onnx"), *options)
    assert finished.code == 2
    for option in texts:
        assert (f"{option} gives inputs" in finished.err) == (option not in given)


@pytest.mark.parametrize("type", ["f32", "f16", "i32"])
def test_a_type_that_is_given(type: str, xml: Path) -> None:
    made = xml.with_suffix(".onnx")
    options = ("--input-type", f"x={type}", "--input-shape", "x=[?,2]")
    finished = command("convert", xml, made, *options)
    assert finished.code == 0, finished.err
    assert onnx.load(made).graph.output[0].type.tensor_type.elem_type
    x = np.array([[1, -2]], {"f32": np.float32, "f16": np.float16, "i32": np.int32}[type])
    found = OnnxRuntime(made).run({"x": x})[0]
    np.testing.assert_array_equal(found, np.maximum(x, 0))
    assert found.dtype == x.dtype


@pytest.mark.parametrize(
    ("types", "says"),
    [
        ({"y": "f32"}, 'no input "y"'),
        ({"x": "float"}, '"float" is no element type'),
        ("f32", "`input_types` maps names to types"),
    ],
)
def test_types_that_make_no_sense(types: object, says: str, xml: Path) -> None:
    with pytest.raises(bridge.UsageError, match=says):
        bridge.convert(xml, xml.with_suffix(".onnx"), input_types=types)


def test_a_type_that_the_file_says_stays(xml: Path) -> None:
    made = xml.with_suffix(".onnx")
    bridge.convert(xml, made, input_types={"x": "f32"}, input_shapes={"x": [2]})
    with pytest.raises(bridge.UsageError, match="cannot be of f16"):
        bridge.convert(made, xml.with_name("c.xml"), input_types={"x": "f16"})


def test_a_check_runs_the_original_with_types_that_are_given(xml: Path) -> None:
    options = ("--input-type", "x=i32", "--input-shape", "x=[?,2]")
    for arguments in (("check", xml), ("convert", xml, xml.with_suffix(".onnx"), "--check")):
        finished = command(*arguments, *options)
        assert finished.code == 0 and "\nOK: " in f"\n{finished.out}", finished.err
    report = check(xml, input_types={"x": "f16"}, input_shapes={"x": [3]})
    assert report.ok and feeds_of(report)[0]["x"].dtype == np.float16, str(report)
    assert not check(xml).compared
