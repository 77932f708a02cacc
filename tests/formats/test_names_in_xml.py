"""Names that XML cannot hold: the IR is read again, by Bridge and by OpenVINO."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import openvino
import pytest

import bridge

MODELS = {
    "two inputs": "(float[2] A, float[2] B) => (float[2] C) { C = Add (A, B) }",
    "sequences": "(seq(float[2]) A, int64 B) => (seq(float[2]) C) { C = SequenceErase (A, B) }",
    "a branch": """(bool A, float[2] B) => (float[2] C) { C = If (A) <
        then_branch = t () => (float[2] u) { u = Neg (B) },
        else_branch = e () => (float[2] v) { v = Abs (B) }> }""",
}


@pytest.mark.parametrize(
    "character", ["\0", "\x01", "\x0b", "\x1f", "\ufffe", "\uffff", "\t", "\n"]
)
@pytest.mark.parametrize("name", MODELS)
def test_it_is_read_again(name: str, character: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> g {MODELS[name]}')
    graphs = [model.graph, *(a.g for node in model.graph.node for a in node.attribute)]
    other = {"A": f"n{character}", "B": f"n{character}{character}", "C": f"o{character}"}
    for graph in graphs:
        for info in (*graph.input, *graph.output):
            info.name = other.get(info.name, info.name)
        for node in graph.node:
            for names in (node.input, node.output):
                names[:] = [other.get(each, each) for each in names]
    bridge.convert(model, tmp_path / "m.xml")
    read = openvino.Core().read_model(tmp_path / "m.xml")
    back = bridge.to_onnx(tmp_path / "m.xml")
    assert len({each.name for each in back.graph.input}) == 2
    assert len(read.inputs) == len(bridge.load(tmp_path / "m.xml").graph.inputs)
