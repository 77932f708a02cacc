"""Metadata that exporters write for debugging stays out of an IR, unless the user asks for it."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import bridge

TRACE = 'File "/home/somebody/train.py", line 7, in forward'
ENTRIES = {
    "pkg.torch.onnx.stack_trace": TRACE,
    "pkg.onnxscript.rewriter.rule_name": "rule",
    "namespace": ": model.Net/body",
    "task": "classification",
}


@pytest.fixture
def model() -> onnx.ModelProto:
    """A model with each kind of entry at the model, its graph, a node, a value and in a branch."""
    proto = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 21]>
        g (float[n] x, bool c) => (float[n] y) <float[n] h> {
            h = Relu(x)
            y = If(c) <then_branch = t () => (float[n] a) { a = Neg(h) },
                       else_branch = e () => (float[n] b) { b = Abs(h) }>
        }""")
    graph = proto.graph
    branch = graph.node[1].attribute[0].g
    for part in (proto, graph, graph.node[0], graph.value_info[0], branch, branch.node[0]):
        for key, value in ENTRIES.items():
            part.metadata_props.add(key=key, value=value)
    graph.node[0].doc_string = TRACE
    branch.node[0].doc_string = "a gate"
    return proto


def entries(proto: onnx.ModelProto) -> list[set[str]]:
    graph = proto.graph
    branch = graph.node[1].attribute[0].g
    parts = (proto, graph, graph.node[0], branch, branch.node[0])
    return [{entry.key for entry in part.metadata_props} & ENTRIES.keys() for part in parts]


def test_an_ir_has_none_and_says_so(model: onnx.ModelProto, tmp_path: Path) -> None:
    report = bridge.convert(model, tmp_path / "a.xml")
    text = (tmp_path / "a.xml").read_text()
    assert "somebody" not in text and "pkg." not in text and "namespace" not in text
    (note,) = (note for note in report.notes if "metadata" in note)
    assert note.startswith("19 entries") and "`keep_metadata=True`" in note
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    back = onnx.load(tmp_path / "b.onnx")
    assert entries(back) == [{"task"}] * 5
    assert back.graph.node[1].attribute[0].g.node[0].doc_string == "a gate"


@pytest.mark.parametrize("path", [["a.xml", "b.onnx"], ["b.onnx"]], ids=["kept", "within ONNX"])
def test_all_is_kept(model: onnx.ModelProto, tmp_path: Path, path: list[str]) -> None:
    source: onnx.ModelProto | Path = model
    for name in path:
        options = {"keep_metadata": True} if name.endswith(".xml") else {}
        report = bridge.convert(source, tmp_path / name, **options)
        assert not any("metadata" in note for note in report.notes)
        source = tmp_path / name
    back = onnx.load(source)
    assert entries(back) == [set(ENTRIES)] * 5
    assert back.graph.node[0].doc_string == TRACE


def test_a_loaded_model_keeps_them(model: onnx.ModelProto, tmp_path: Path) -> None:
    """An IR of the model has no such entries; the model in memory keeps them."""
    loaded = bridge.load(model)
    bridge.save(loaded, tmp_path / "a.xml")
    bridge.save(loaded, tmp_path / "b.onnx")
    written = onnx.load(tmp_path / "b.onnx")
    assert entries(written) == entries(model)
    assert [len(info.metadata_props) for info in written.graph.value_info] == [len(ENTRIES)]
