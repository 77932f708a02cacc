"""Information in an ONNX model beside its computation survives the way through IR."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import openvino
import pytest

import bridge

TEXT = """
<
  ir_version: 8, opset_import: ["": 17, "com.example": 3], producer_name: "maker",
  producer_version: "1.2", model_version: 7, doc_string: "about it", metadata_props: ["k": "v"]
>
named (float[batch, 4] x, bool choose, int64 trips)
  => (float[batch, 4] y, float[other, 4] z, float[batch, 4] s, float[steps, batch, 4] all)
  <float[batch, 4] a, float[items, 4] d, float[batch, 4] g>
{
  [first] a = Relu (x)
  b = Softmax (a)
  [Add_3] c = Add (a, b)
  [first_1] d = Mul (c, c)
  g = Celu <alpha = 2.0> (d)
  y = If (choose) <
    then_branch = chosen () => (float[batch, 4] t) { t = Neg (d) },
    else_branch = otherwise () => (float[rows, 4] e) { [inner] e = Abs (g) }
  >
  z = LeakyRelu <alpha = 0.01> (d)
  s, all = Loop (trips, "", x) <
    body = step (int64 i, bool go, float[lines, 4] state)
      => (bool on, float[lines, 4] next, float[lines, 4] part) {
      on = Identity (go)
      next = Exp (state)
      part = Neg (state)
    }
  >
}
"""


def model() -> onnx.ModelProto:
    made = onnx.parser.parse_model(TEXT)
    (branch,) = (node for node in made.graph.node if node.op_type == "If")
    then, otherwise = (attribute.g for attribute in branch.attribute)
    loop = next(node for node in made.graph.node if node.op_type == "Loop").attribute[0].g
    parts = {
        "a graph": made.graph, "an input": made.graph.input[0], "an output": made.graph.output[1],
        "a value": made.graph.value_info[0], "a node": made.graph.node[0], "an If": branch,
        "what is decomposed": made.graph.node[4], "a branch": then, "its value": then.output[0],
        "a node inside": otherwise.node[0], "a body": loop, "its input": loop.input[2],
    }  # fmt: skip
    for text, part in parts.items():
        part.doc_string = text
        part.metadata_props.add(key="of", value=text)
    return made


def through_ir(source: onnx.ModelProto, folder: Path, **options: int) -> onnx.ModelProto:
    bridge.convert(source, folder / "a.xml")
    return bridge.to_onnx(folder / "a.xml", **options)


def names(graph: onnx.GraphProto) -> list[tuple[str, str]]:
    return [(node.op_type, node.name) for node in graph.node if node.op_type != "Constant"]


def graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The graph of a model and all its nested graphs."""
    stack = [model.graph]
    while stack:
        graph = stack.pop()
        yield graph
        stack += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]


def said(part: Any) -> tuple[str, dict[str, str]]:
    return part.doc_string, {entry.key: entry.value for entry in part.metadata_props}


def infos(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    return [*graph.input, *graph.output, *graph.value_info]


KEPT: dict[str, Callable[[onnx.ModelProto], Any]] = {
    "who made it": lambda m: (m.producer_name, m.producer_version, m.model_version, m.domain),
    "notes of the model": said,
    "operator sets": lambda m: {entry.domain: entry.version for entry in m.opset_import},
    "names of graphs": lambda m: [graph.name for graph in graphs(m)],
    "notes of graphs": lambda m: [said(graph) for graph in graphs(m)],
    "notes of values": lambda m: [
        {i.name: said(i) for i in infos(g) if any(said(i))} for g in graphs(m)
    ],
    "notes of nodes": lambda m: [
        {n.output[0]: said(n) for n in g.node if any(said(n))} for g in graphs(m)
    ],
    "inputs": lambda m: list(m.graph.input),
    "outputs": lambda m: list(m.graph.output),
    "inputs and outputs of bodies": lambda m: [
        {i.name: i.type.SerializeToString() for i in (*g.input[2:], *g.output[-2:])}
        for g in list(graphs(m))[1:]
    ],
    "types of inner values": lambda m: {i.name: i for i in m.graph.value_info if i.name in "adg"},
}  # fmt: skip


@pytest.mark.parametrize("what", KEPT)
def test_what_comes_back(what: str, tmp_path: Path) -> None:
    source = model()
    assert KEPT[what](through_ir(source, tmp_path)) == KEPT[what](source)


def test_sizes_of_other_shapes_are_not_kept(tmp_path: Path) -> None:
    """A declared shape goes if the user fixes the shape of an input."""
    source = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[n, 4] x, int64[1] k) => (float[m, 8] y)
        { y = Reshape (x, k) }"""
    )
    source.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 5
    bridge.convert(source, tmp_path / "a.xml", input_shapes={"k": [3]})
    dims = bridge.to_onnx(tmp_path / "a.xml").graph.output[0].type.tensor_type.shape.dim
    assert [(dim.dim_param, dim.dim_value) for dim in dims] == [("m", 0), ("", 0), ("", 0)]


@pytest.mark.parametrize("op", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_comparisons_come_back_with_their_operands(op: str, tmp_path: Path) -> None:
    source = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[2] x, float[2] k) => (bool[2] y)
        {{ y = {op} (x, k) }}"""
    )
    (node,) = through_ir(source, tmp_path).graph.node
    assert (node.op_type, *node.input) == (op, "x", "k")


def test_names_of_nodes_and_bodies(tmp_path: Path) -> None:
    back = through_ir(model(), tmp_path)
    kept = [(op, name) for op, name in names(back.graph)]
    for own in (
        ("Relu", "first"), ("Softmax", ""), ("Add", "Add_3"), ("Mul", "first_1"), ("If", ""),
    ):  # fmt: skip
        assert own in kept
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
    """A changed IR may need a newer operator set than its origin."""
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
