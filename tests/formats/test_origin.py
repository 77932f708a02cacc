"""What an ONNX model says beside what it computes survives the way through IR."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import openvino
import pytest

import bridge

TEXT = """
<
  ir_version: 8, opset_import: ["": 17, "com.example": 3], producer_name: "maker",
  producer_version: "1.2", model_version: 7, doc_string: "about it", metadata_props: ["k": "v"]
>
named (float[batch, 4] x, bool choose) => (float[batch, 4] y, float[batch, 4] z) {
  [first] a = Relu (x)
  b = Softmax (a)
  [Add_3] c = Add (a, b)
  [first_1] d = Mul (c, c)
  y = If (choose) <
    then_branch = chosen () => (float[batch, 4] t) { t = Neg (d) },
    else_branch = otherwise () => (float[batch, 4] e) { [inner] e = Abs (d) }
  >
  z = LeakyRelu <alpha = 0.01> (d)
}
"""


def model() -> onnx.ModelProto:
    made = onnx.parser.parse_model(TEXT)
    made.graph.doc_string = "a graph"
    made.graph.input[0].doc_string = "an input"
    return made


def through_ir(source: onnx.ModelProto, folder: Path, **options: int) -> onnx.ModelProto:
    bridge.convert(source, folder / "a.xml")
    return bridge.to_onnx(folder / "a.xml", **options)


def names(graph: onnx.GraphProto) -> list[tuple[str, str]]:
    return [(node.op_type, node.name) for node in graph.node if node.op_type != "Constant"]


def test_everything_but_the_computation(tmp_path: Path) -> None:
    source, back = model(), through_ir(model(), tmp_path)
    for field in ("producer_name", "producer_version", "model_version", "doc_string"):
        assert getattr(back, field) == getattr(source, field)
    assert {p.key: p.value for p in back.metadata_props} == {"k": "v"}
    assert back.opset_import[0].version == 17
    assert back.graph.doc_string == "a graph"
    assert back.graph.input[0].doc_string == "an input"
    assert back.graph.input[0].type == source.graph.input[0].type


def test_names_of_nodes_and_bodies(tmp_path: Path) -> None:
    back = through_ir(model(), tmp_path)
    kept = [(op, name) for op, name in names(back.graph) if op != "PRelu"]
    assert kept == [
        ("Relu", "first"), ("Softmax", ""), ("Add", "Add_3"), ("Mul", "first_1"), ("If", ""),
    ]  # fmt: skip
    (branch,) = (node for node in back.graph.node if node.op_type == "If")
    bodies = {a.name: a.g for a in branch.attribute}
    assert bodies["then_branch"].name == "chosen"
    assert bodies["else_branch"].name == "otherwise"
    assert names(bodies["else_branch"]) == [("Abs", "inner")]
    assert names(bodies["then_branch"]) == [("Neg", "")]


def test_attributes_at_their_default_stay_unwritten(tmp_path: Path) -> None:
    back = through_ir(model(), tmp_path)
    (softmax,) = (node for node in back.graph.node if node.op_type == "Softmax")
    assert not softmax.attribute


def test_an_operator_set_that_is_asked_for_wins(tmp_path: Path) -> None:
    assert through_ir(model(), tmp_path, opset=19).opset_import[0].version == 19


def test_openvino_keeps_the_record(tmp_path: Path) -> None:
    bridge.convert(model(), tmp_path / "a.xml")
    core = openvino.Core()
    openvino.save_model(core.read_model(tmp_path / "a.xml"), tmp_path / "b.xml", False)
    assert bridge.to_onnx(tmp_path / "b.xml").producer_name == "maker"


@pytest.mark.parametrize(
    "record",
    ["", "[]", "{}", '{"opset": "17"}', '{"opset": 0}', '{"opset": 99999}', "[" * 1000],
)
def test_a_record_that_is_none_says_nothing(record: str, tmp_path: Path) -> None:
    bridge.convert(model(), tmp_path / "a.xml")
    text = (tmp_path / "a.xml").read_text()
    start = text.index('name="onnx" value=') + len('name="onnx" value=')
    quote = text[start]
    end = text.index(quote, start + 1)
    other = record.replace('"', "&quot;")
    (tmp_path / "a.xml").write_text(f'{text[:start]}"{other}"{text[end + 1 :]}')
    assert bridge.to_onnx(tmp_path / "a.xml").opset_import[0].version == 21


def test_a_newer_operator_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """An IR that has changed since may need more than the operator set that it came from."""
    bridge.convert(model(), tmp_path / "a.xml")
    text = (tmp_path / "a.xml").read_text()
    record = json.dumps({"opset": 28, "bodies": ["x"], "named": 3, "notes": [], "about": "?"})
    start = text.index('name="onnx" value=') + len('name="onnx" value=')
    end = text.index(text[start], start + 1)
    quoted = record.replace('"', "&quot;")
    (tmp_path / "a.xml").write_text(f'{text[:start]}"{quoted}"{text[end + 1 :]}')
    assert bridge.to_onnx(tmp_path / "a.xml").opset_import[0].version == min(
        28, onnx.defs.onnx_opset_version()
    )
