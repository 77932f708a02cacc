"""IR 10: OpenVINO reads some inputs and outputs in other types than its file says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from openvino import opset8 as op

import bridge
from bridge.check import check
from bridge.vocabulary.elements import BY_IR, BY_ONNX

TYPES = ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "boolean")


def saved(folder: Path, outputs: list[openvino.Node], inputs: list[openvino.Node]) -> Path:
    model = openvino.Model([op.result(output) for output in outputs], inputs, "m")
    openvino.save_model(model, folder / "m.xml", compress_to_fp16=False)
    text = (folder / "m.xml").read_text()
    (folder / "m.xml").write_text(text.replace('version="11"', 'version="10"', 1))
    return folder / "m.xml"


def said(path: Path) -> tuple[list[str], list[str]]:
    graph = onnx.load(path).graph
    given, made = (
        [str(BY_ONNX[value.type.tensor_type.elem_type].ir) for value in values]
        for values in (graph.input, graph.output)
    )
    return given, made


@pytest.mark.parametrize("type", TYPES)
def test_types_are_those_of_the_file(type: str, tmp_path: Path) -> None:
    """The ONNX has the file's types. So has the check, although OpenVINO reads other ones."""
    x = op.parameter([1, 3], BY_IR[type].dtype, name="x")
    others = [op.convert(x, other) for other in ("f16", "f32", "i64", "u8", "boolean")]
    path = saved(tmp_path, [*others, op.concat([x, x], 1)], [x])
    bridge.convert(path, tmp_path / "m.onnx")
    assert said(tmp_path / "m.onnx") == ([type], ["f16", "f32", "i64", "u8", "boolean", type])
    report = check(path, samples=2, ranges={"x": (0, 1 if type == "boolean" else 9)})
    assert report.ok, str(report)


def test_a_difference_is_still_told(tmp_path: Path) -> None:
    x = op.parameter([1, 3], np.float16, name="x")
    path = saved(tmp_path, [op.convert(op.multiply(x, x), "i64")], [x])
    bridge.convert(path, tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    next(node for node in model.graph.node if node.op_type == "Mul").op_type = "Add"
    onnx.save(model, tmp_path / "m.onnx")
    assert not check(path, tmp_path / "m.onnx", samples=2).ok
