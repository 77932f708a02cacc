"""Files that ask for more than their size allows, refer to foreign places, or contradict
themselves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.checker
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import bridge
import bridge.library.api
from bridge.limits import Limits, limited
from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_node
from bridge.neutral.graph import Node, Value
from bridge.onnx_format.wire import encode
from tests.formats import test_ir_format as hand

MODELS = Path(__file__).parents[2] / "roundtrip_models"
HUGE = 1 << 33

NET = """<?xml version="1.0"?>
<net name="n" version="11">
  <layers>
    <layer id="0" name="p" type="Parameter" version="opset1">
      <data shape="2" element_type="f32"/>
      <output><port id="0" precision="FP32" names="p"><dim>2</dim></port></output>
    </layer>
    <layer id="1" name="r" type="ReLU" version="opset1">
      <input><port id="0" precision="FP32"/></input>
      <output><port id="1" precision="FP32" names="y"><dim>2</dim></port></output>
    </layer>
    <layer id="2" name="y" type="Result" version="opset1">
      <input><port id="0" precision="FP32"/></input>
    </layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
    <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
  </edges>
</net>
"""


def value(name: str, shape: Sequence[int | str] | None = (2,), type: int = 1) -> Any:
    return helper.make_tensor_value_info(name, type, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (value("x"),),
    tensors: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    opset: int = 18,
) -> onnx.ModelProto:
    """A model with the output y."""
    graph = helper.make_graph(nodes, "g", inputs, [value("y", None)], list(tensors))
    imports = {"": opset, "f": 1, "ai.onnx.ml": 3, "com.microsoft": 1}
    ids = [helper.make_opsetid(domain, version) for domain, version in imports.items()]
    return helper.make_model(graph, opset_imports=ids, functions=functions, ir_version=8)


def integers(name: str, *numbers: int) -> onnx.TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers)


def scalar(name: str, number: int) -> onnx.TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [], [number])


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> onnx.NodeProto:
    given = inputs.replace("-", " ").split(" ") if inputs else []
    return helper.make_node(op, given, outputs.split(), **attributes)


def calls(depth: int, twice: bool = True) -> onnx.ModelProto:
    """Functions in a chain: each calls the next one, once or twice."""
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    functions = []
    for level in range(depth):
        steps = ["a", "t", "b"] if twice else ["a", "b"]
        inner = [
            helper.make_node(f"F{level + 1}", [one], [other], domain="f")
            for one, other in pairwise(steps)
        ]
        functions.append(helper.make_function("f", f"F{level}", ["a"], ["b"], inner, imports))
    last = [helper.make_node("Relu", ["a"], ["b"])]
    functions.append(helper.make_function("f", f"F{depth}", ["a"], ["b"], last, imports))
    return model([helper.make_node("F0", ["x"], ["y"], domain="f")], functions=functions)


def sparse(size: int) -> onnx.ModelProto:
    made = model([node("Add", "x w")], [value("x", ["n"])])
    tensor = made.graph.sparse_initializer.add(dims=[size])
    tensor.values.CopyFrom(numpy_helper.from_array(np.zeros(1, np.float32), "w"))
    tensor.indices.CopyFrom(integers("", 0))
    return made


def nested_ifs(depth: int) -> bytes:
    """Ifs within one another, each with a condition of its own, deeper than protobuf would write
    them. y is -x if the sum of x is NaN."""

    def field(number: int, content: bytes) -> bytes:
        return encode(number << 3 | 2) + encode(len(content)) + content

    def branch(name: bytes, graph: bytes) -> bytes:
        return field(5, field(1, name) + encode(20 << 3) + b"\x05" + field(6, graph))

    def graph(nodes: Sequence[bytes], output: str) -> bytes:
        steps = b"".join(field(1, step) for step in nodes)
        return steps + field(2, b"b") + field(12, value(output, None).SerializeToString())

    def made(op: str, *names: str, **attributes: int) -> bytes:
        return helper.make_node(op, names[:1], names[1:], **attributes).SerializeToString()

    body = graph([made("Neg", "x", f"v{depth}")], f"v{depth}")
    other = graph([made("Abs", "x", "w")], "w")
    for level in reversed(range(depth)):
        name = "y" if level == 0 else f"v{level}"
        choice = field(1, f"c{level}".encode()) + field(2, name.encode()) + field(4, b"If")
        choice += branch(b"then_branch", body) + branch(b"else_branch", other)
        total = made("ReduceSum", "x", f"s{level}", keepdims=0)
        body = graph([total, made("IsNaN", f"s{level}", f"c{level}"), choice], name)
    body += field(11, value("x").SerializeToString())
    return b"\x08\x08" + field(7, body) + field(8, helper.make_opsetid("", 17).SerializeToString())


def text_of_ifs(depth: int) -> str:
    opening = (
        "y = If (c) <else_branch = e () => (float[n] z) { z = Neg(x) }, then_branch = g () => "
    )
    return (
        '<ir_version: 8, opset_import: ["": 18]> g (float[n] x, bool c) => (float[n] y) { '
        + f"{opening} (float[n] y) {{ " * depth
        + "y = Relu(x)"
        + "}>" * depth
        + " }"
    )


def trees(targets: int) -> onnx.ModelProto:
    leaf = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets,
        nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[0], nodes_values=[0.0],
        nodes_modes=["LEAF"], nodes_truenodeids=[0], nodes_falsenodeids=[0], target_treeids=[0],
        target_nodeids=[0], target_ids=[0], target_weights=[1.0],
    )  # fmt: skip
    return model([leaf], [value("x", ["n", 3])])


ROI = [value("x", [1, 1, 4, 4]), value("r", [1, 4]), value("b", [1], TensorProto.INT64)]
RNN = [value("x", [1, 1, 1]), value("w", [1, HUGE, 1]), value("r", [1, HUGE, HUGE])]
LOOP = helper.make_graph(
    [node("Identity", "c", "c2"), node("Add", "v v", "w")], "b",
    [value("i", [], 7), value("c", [HUGE], 9), value("v")], [value("c2", [HUGE], 9), value("w")],
)  # fmt: skip

# The demand of a file, and the limit that it exceeds.
DEMANDS: dict[str, tuple[onnx.ModelProto | bytes | str, str]] = {
    "functions that double": (calls(20), "nodes"),
    "functions that double for ever": (calls(60), "nodes"),
    "functions in functions": (calls(1100, twice=False), "depth"),
    "Ifs in Ifs": (nested_ifs(1100), "depth"),
    "Ifs in Ifs, in text": (text_of_ifs(1100), "depth"),
    "brackets": ("(" * 100_000, "depth"),
    "sequences of sequences": (
        '<ir_version: 8, opset_import: ["": 18]> g ('
        + "seq(" * 100_000 + "float" + ")" * 100_000 + " x) => (float y) { y = Relu(x) }",
        "depth",
    ),
    "a sparse initializer": (sparse(HUGE), "constants"),
    "a reduction of nothing": (
        model([node("ReduceMax", "x a", keepdims=0)], [value("x", [0, HUGE])], [integers("a", 0)]),
        "constants",
    ),
    "places of a GatherElements": (
        model(
            [node("GatherElements", "x i")],
            [value("x", [4, HUGE + 1]), value("i", [4, HUGE], TensorProto.INT64)],
        ),
        "constants",
    ),
    "a padded DFT": (
        model([node("DFT", "x n", axis=1)], [value("x", [1, 9, 1])], [scalar("n", HUGE)]),
        "constants",
    ),
    "samples of a RoiAlign": (
        model([node("RoiAlign", "x r b", sampling_ratio=HUGE, mode="max")], ROI),
        "constants",
    ),
    "targets of trees": (trees(HUGE), "constants"),
    "the state of an RNN": (
        model([node("RNN", "x w r", "z y", hidden_size=HUGE)], RNN),
        "constants",
    ),
    "zero points of few bits": (
        model(
            [
                helper.make_node(
                    "MatMulNBits", ["x", "q", "s"], ["y"], domain="com.microsoft", N=HUGE, K=32,
                    bits=4, block_size=32,
                )
            ],
            [value("x", [1, 32])],
            [
                numpy_helper.from_array(np.zeros((1, 1, 16), np.uint8), "q"),
                numpy_helper.from_array(np.ones(1, np.float32), "s"),
            ],
        ),
        "constants",
    ),
}  # fmt: skip


def written(given: onnx.ModelProto | bytes | str, folder: Path) -> Path:
    if isinstance(given, str):
        path = folder / "m.onnxtxt"
        path.write_text(given)
        return path
    path = folder / "m.onnx"
    path.write_bytes(given if isinstance(given, bytes) else given.SerializeToString())
    return path


@pytest.mark.parametrize(("given", "limit"), DEMANDS.values(), ids=DEMANDS)
def test_demands_are_refused(
    given: onnx.ModelProto | bytes | str, limit: str, tmp_path: Path
) -> None:
    with pytest.raises(bridge.LimitError, match=rf'`limits={{"{limit}": \d+}}`') as refused:
        bridge.convert(written(given, tmp_path), tmp_path / "out.xml")
    assert len(str(refused.value)) < 2000
    assert [path.name for path in tmp_path.iterdir()] == [
        f"m{'.onnxtxt' * isinstance(given, str) or '.onnx'}"
    ]


def test_limits_can_be_raised_and_lowered(tmp_path: Path) -> None:
    source = written(calls(13), tmp_path)  # 8,192 calls of 28
    with pytest.raises(bridge.LimitError, match="more than 5000 nodes"):
        bridge.load(source, limits={"nodes": 5000})
    assert sum(found.op == "Relu" for found in bridge.load(source).graph.walk()) == 1 << 13
    big = written(sparse(1 << 20), tmp_path)
    with pytest.raises(bridge.LimitError, match="more than 1000000 bytes"):
        bridge.convert(big, tmp_path / "o.xml", limits={"constants": 1_000_000})
    bridge.convert(big, tmp_path / "o.xml", limits={"constants": 5_000_000})
    for wrong in ({"nods": 1}, {"nodes": 0}, {"nodes": "many"}, {"nodes": True}, 5):
        with pytest.raises(bridge.UsageError, match="limit"):
            bridge.load(source, limits=wrong)  # type: ignore[arg-type]


def test_what_multiplies_nodes_counts_them() -> None:
    x = Value()
    node = Node("Relu", [x], [Value()])
    with limited(Limits(nodes=1)) as spent:
        Node("Relu", [x], [Value()])
        assert spent.nodes == 0
        clone_node(node, {})
        for make in (lambda: clone_node(node, {}), lambda: Builder([]).op("Relu", x)):
            with pytest.raises(bridge.LimitError, match="more than 1 nodes"):
                make()


def test_a_thousand_ifs_go_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Verifying each rule takes time that grows with the square of the depth.
    monkeypatch.setattr(bridge.library.api, "DEBUG", False)
    (tmp_path / "a.onnx").write_bytes(nested_ifs(1000))
    for source, target in pairwise(["a.onnx", "b.xml", "c.onnx"]):
        bridge.convert(tmp_path / source, tmp_path / target)
    last = bridge.load(tmp_path / "c.onnx").graph
    assert sum(found.op == "If" for found in last.walk()) == 1000
    # each If takes as much space as the others
    assert (tmp_path / "b.xml").stat().st_size < 30_000_000


def ir(folder: Path, text: str) -> Path:
    (folder / "m.xml").write_text(text)
    (folder / "m.bin").write_bytes(bytes(64))
    return folder / "m.xml"


def with_record(key: str, text: str) -> str:
    entry = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    info = f'<rt_info><bridge><metadata><info name="{key}" value="{entry}"/></metadata></bridge>'
    return NET.replace("</net>", f"{info}</rt_info></net>")


PORT = '{"inputs": {"p": {"kind": %s, "element": %s, "shape": %s, "count": %s, "optional": true}}, '
PORT += '"outputs": {}, "input_order": ["p"]}'

# A file, and the message about it.
LIES: dict[str, tuple[str, str]] = {
    "a document type": (NET.replace("<net", '<!DOCTYPE net [<!ENTITY a "b">]><net', 1), "type"),
    "an entity of a file": (
        NET.replace("<net", '<!DOCTYPE net [<!ENTITY e SYSTEM "file:///etc/passwd">]><net', 1),
        "document type",
    ),
    "an entity that is none": (with_record("x", "").replace('value=""', 'value="&e;"'), "entity"),
    "elements that no IR has": (NET.replace("<layers>", "<a/>" * 2000 + "<layers>"), "like <a>"),
    "a broken line": (NET.replace("<edges>", "<edges"), "line 17"),
    "a record nested deep": (with_record("boundary", "[" * 100_000), "nested too deep"),
    "a record that is none": (with_record("boundary", "[]"), "is no object"),
    "a port of another kind": (
        with_record("boundary", PORT % ('"x"', '"f32"', "[2]", "0")),
        "at inputs / p / kind",
    ),
    "elements in an input": (
        with_record("boundary", PORT % ('"elements"', '"f32"', "[2]", "2")),
        "at inputs / p: .* is no kind of input",
    ),
    "an element type that is none": (
        with_record("boundary", PORT % ('"tensor"', '"f31"', "[2]", "0")),
        "at inputs / p / element",
    ),
    "a shape that is none": (
        with_record("boundary", PORT % ('"tensor"', '"f32"', "[-1]", "0")),
        "at inputs / p / shape / 0",
    ),
    "elements of another type": (
        with_record(
            "boundary",
            '{"inputs": {}, "outputs": {"y": {"kind": "tensor", "element": "i64", "shape": [2]}}, '
            '"input_order": ["p"]}',
        ),
        'says that "y" holds i64; "y" is f32',
    ),
    "a count without end": (
        with_record("boundary", PORT % ('"tensor"', '"f32"', "[2]", str(1 << 40))),
        "at inputs / p / count",
    ),
    "variables that are none": (with_record("state", '{"a": 1}'), "record of its variables"),
}


@pytest.mark.parametrize(("text", "says"), LIES.values(), ids=LIES)
def test_lies_of_an_ir(text: str, says: str, tmp_path: Path) -> None:
    target = "o.xml" if '"state"' in text else "o.onnx"
    source = written_back(text, tmp_path) if '"state"' in text else ir(tmp_path, text)
    with pytest.raises(bridge.InvalidModelError, match=says):
        bridge.convert(source, tmp_path / target)


# A model, the text to replace in its IR with the new text, and the message.
CHANGED: dict[str, tuple[str, str, str, str]] = {
    "a state of other elements": (
        "tensor_iterator_part_size.xml",
        'shape="2,3" element_type="f32"',
        'shape="2,3" element_type="u8"',
        'Parameter "state": is f32, and is given u8',
    ),
    "an integer that says whether an optional is there": (
        "optional_output.onnxtxt",
        'type="NotEqual" version="opset1"',
        'type="Bucketize" version="opset3"',
        'tells whether "maybe" is there; it is i64',
    ),
    "axes that are no integers": (
        "scan_axis_1.onnxtxt",
        '<data element_type="i64" shape="1"',
        '<data element_type="f16" shape="1"',
        "its axes are f16",
    ),
    "pads that are no vector": (
        "pad_modes.onnxtxt",
        'element_type="i64" shape="2"',
        'element_type="i64" shape=""',
        "is [], not of rank 1",
    ),
}


@pytest.mark.parametrize("what", CHANGED)
def test_an_ir_that_is_changed(what: str, tmp_path: Path) -> None:
    name, old, new, says = CHANGED[what]
    bridge.convert(MODELS / name, tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text()
    assert old in text
    (tmp_path / "m.xml").write_text(text.replace(old, new, 1))
    with pytest.raises(bridge.BridgeError, match=re.escape(says)):
        bridge.convert(tmp_path / "m.xml", tmp_path / "o.onnx")


# The message about a node, and the node with inputs or attributes that it cannot have.
NO_PLACE = {
    "elements of rank 2 cannot be joined along axis 5": "s = SequenceConstruct (x, x) "
    "y = ConcatFromSequence <axis = 5> (s)",
    "give the shape of the graph.s input": "z = ReduceSum <keepdims = 0> (x) y = DFT (z)",
    r"ngram_counts \[0, 1\] do not divide a pool of 4": "i = Cast <to = 7> (x) "
    'y = TfIdfVectorizer <mode = "TF", ngram_counts = [0, 1], ngram_indexes = [0, 1, 2], '
    "min_gram_length = 1, max_gram_length = 2, max_skip_count = 0, pool_int64s = [2, 1, 2, 3]> (i)",
    "ngram_indexes must be 2 numbers from 0 on": "i = Cast <to = 7> (x) "
    'y = TfIdfVectorizer <mode = "TF", ngram_counts = [0], ngram_indexes = [0, -1], '
    "min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, pool_int64s = [2, 1]> (i)",
    "weights must be 2 numbers": "i = Cast <to = 7> (x) y = TfIdfVectorizer <weights = [0.5], "
    'mode = "TFIDF", ngram_counts = [0], ngram_indexes = [0, 1], '
    "min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, pool_int64s = [2, 1]> (i)",
    "max_skip_count must be 0 to 1000": "r = ReduceSum <keepdims = 0> (x) i = Cast <to = 7> (r) "
    'y = TfIdfVectorizer <mode = "TF", ngram_counts = [0], ngram_indexes = [0, 1], '
    "min_gram_length = 1, max_gram_length = 1, max_skip_count = 4611686018427387904, "
    "pool_int64s = [2, 1]> (i)",
    "its epsilon is -1.5, but OpenVINO accepts no negative one": "v = Constant "
    "<value_floats = [1.0, 1.0]> () y = BatchNormalization <epsilon = -1.5> (x, v, v, v, v)",
    r"is \[2,2\], not of rank 3": 'y = GridSample <mode = "nearest"> (x, x)',
}


@pytest.mark.parametrize("says", NO_PLACE)
def test_what_has_no_such_axis(says: str, tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[2,2] x) => (float y) {'
    (tmp_path / "m.onnxtxt").write_text(f"{text} {NO_PLACE[says]} }}")
    with pytest.raises(bridge.BridgeError, match=says) as refused:
        bridge.convert(tmp_path / "m.onnxtxt", tmp_path / "m.xml")
    assert "did not foresee" not in str(refused.value)


def test_nobody_is_warned_of_numbers_that_overflow(tmp_path: Path) -> None:
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] y) <float s = {3e38}, uint8 z = {0}> {
          q = QuantizeLinear (x, s, z)
          y = DequantizeLinear (q, s, z)
        }""")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bridge.convert(source, tmp_path / "m.xml")


def test_a_shape_that_is_changed_by_hand(tmp_path: Path) -> None:
    """OpenVINO infers all layers anew from the shapes of Parameters. Ports and records hold old
    shapes."""
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,3] x, bool c) => (float[1,3] y) {
          v = If (c) <then_branch = t () => (float[1,3] a) { a = Neg (x) },
                      else_branch = e () => (float[1,3] b) { b = Abs (x) }>
          y = Relu (v)
        }""")
    bridge.convert(source, tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text()
    (tmp_path / "m.xml").write_text(text.replace('shape="1,3"', 'shape="?,3"', 1))
    graph = bridge.to_onnx(tmp_path / "m.xml").graph
    bodies = (attribute.g for attribute in graph.node[0].attribute)
    values = [*graph.input[:1], *graph.output, *(value for body in bodies for value in body.output)]
    for value in values:
        first, last = value.type.tensor_type.shape.dim
        assert not first.HasField("dim_value") and last.dim_value == 3


def test_a_size_of_an_if_that_is_changed_by_hand(tmp_path: Path) -> None:
    """OpenVINO infers it from the branches. A record holds their old sizes."""
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,M] x, bool c) => (float[N,M] y) {
          v = If (c) <then_branch = t () => (float[N,5] a) { a = Neg (x) },
                      else_branch = e () => (float[N,5] b) { b = Abs (x) }>
          y = Relu (v)
        }""")
    bridge.convert(source, tmp_path / "m.xml", device="ANY")
    text = (tmp_path / "m.xml").read_text()
    head, tail = text.split('names="v"')
    assert "<dim>-1</dim>" in tail[:200]
    (tmp_path / "m.xml").write_text(head + 'names="v"' + tail.replace("-1", "0", 2))
    model = bridge.to_onnx(tmp_path / "m.xml")
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["If", "Relu"]


def test_a_record_of_a_rank_that_is_another(tmp_path: Path) -> None:
    """The computed rank counts rather than the rank in the record."""
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N] x) => (float[N] data, int64[1] length) {
          data = Relu (x)
          length = Shape (x)
        }""")
    bridge.convert(source, tmp_path / "m.xml")
    port = '{"kind": "open", "element": "f32", "shape": [2, 3]}'
    record = f'{{"inputs": {{}}, "outputs": {{"y": {port}}}, "input_order": ["x"]}}'
    entry = record.replace('"', "&quot;")
    text = (tmp_path / "m.xml").read_text()
    for old, new in (("data", "y.data"), ("length", "y.shape")):
        text = text.replace(f'names="{old}"', f'names="{new}"')
    assert "<metadata>" in text
    text = text.replace("<metadata>", f'<metadata><info name="boundary" value="{entry}"/>')
    (tmp_path / "m.xml").write_text(text)
    model = bridge.to_onnx(tmp_path / "m.xml")
    assert [value.name for value in model.graph.output] == ["y"]
    onnx.checker.check_model(model, full_check=True)


def written_back(text: str, folder: Path) -> Path:
    """The file as ONNX. Its records restore the ONNX form."""
    bridge.convert(ir(folder, text), folder / "m.onnx")
    return folder / "m.onnx"


def test_an_ir_of_many_elements(tmp_path: Path) -> None:
    many = NET.replace("<layers>", "<layers>" + "<layer/>" * 300)
    with pytest.raises(bridge.LimitError, match="more than 200 elements"):
        bridge.load(ir(tmp_path, many), limits={"elements": 200})


@pytest.mark.parametrize("numbers", [range(40_000), [1.5] * 40_000, [b"a"] * 40_000])
def test_numbers_of_an_attribute_are_no_fields(numbers: Sequence[Any], tmp_path: Path) -> None:
    kind = {int: "value_ints", float: "value_floats", bytes: "value_strings"}[type(numbers[0])]
    node = helper.make_node("Constant", [], ["y"], **{kind: numbers})
    y = helper.make_value_info("y", helper.make_tensor_type_proto(1, [40_000]))
    graph = helper.make_graph([node], "g", [], [y])
    onnx.save(helper.make_model(graph, ir_version=8), tmp_path / "m.onnx")
    refused = nullcontext() if numbers[0] != b"a" else pytest.raises(bridge.LimitError)
    with refused:
        bridge.load(tmp_path / "m.onnx", limits={"elements": 200})


def test_boxes_of_a_dense_grid_are_refused(tmp_path: Path) -> None:
    sizes = 'element_type="i64" shape="2"'
    grid = (
        'density="2147483648" fixed_ratio="" fixed_size="4" clip="false" flip="false" step="0" '
        'offset="0" variance="" scale_all_sizes="true" min_size="" max_size="" aspect_ratio=""'
    )
    layers = [
        hand.layer(0, "Parameter", (), ["I64 2"], sizes),
        hand.layer(1, "Parameter", (), ["I64 2"], sizes),
        hand.layer(2, "PriorBox", ["I64 2", "I64 2"], ["FP32 2 -1"], grid, version="opset8"),
        hand.layer(3, "Result", ["FP32 2 -1"], ()),
    ]
    path = hand.put(hand.net(layers, "0:0>2:0 1:0>2:1 2:2>3:0"), tmp_path)
    with pytest.raises(bridge.LimitError, match="the boxes of a PriorBox"):
        bridge.convert(path, tmp_path / "o.onnx")


def test_rt_info_of_any_depth_stays(tmp_path: Path) -> None:
    deep = "<a>" * 50_000 + "&lt;x&gt;" + "</a>" * 50_000
    text = NET.replace("</net>", f"<rt_info>{deep}</rt_info></net>")
    bridge.convert(ir(tmp_path, text), tmp_path / "o.xml")
    assert deep in (tmp_path / "o.xml").read_text()


def test_zeros_are_no_model(tmp_path: Path) -> None:
    for name in ("z.onnx", "z.xml", "z.onnxtxt"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1 << 31)  # a hole, which takes no space on the disk
        with pytest.raises(bridge.InvalidModelError):
            bridge.load(tmp_path / name)


def linked(folder: Path, target: Path, location: str = "w") -> Path:
    """A model whose tensor is in the external file `location`, a link to `target`."""
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    (folder / location).symlink_to(target)
    return written(model([node("Add", "x w")], tensors=[tensor]), folder)


def test_external_data_behind_links(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir(), other.mkdir()
    secret = other / "secret"
    secret.write_bytes(np.array([1, 2], np.float32).tobytes())
    (home / "sub").symlink_to(other)
    for folder, target in ((home, secret), (home, Path("sub/secret"))):
        with pytest.raises(bridge.InvalidModelError, match=r"is a link to .*, outside"):
            bridge.load(linked(folder, target))
        (home / "w").unlink()
    (home / "inside").write_bytes(secret.read_bytes())
    bridge.load(linked(home, home / "inside"))
    # A store that keeps files under other names and links to them, as in Hugging Face's cache.
    (home / "m.onnx").rename(other / "blob")
    (home / "m.onnx").symlink_to(other / "blob")
    (home / "w").unlink()
    (home / "w").symlink_to(secret)
    bridge.load(home / "m.onnx")


def test_external_data_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(bridge.InvalidModelError, match="no regular file"):
        bridge.load(linked(tmp_path, tmp_path / "pipe"))


def test_names_that_are_no_text(tmp_path: Path) -> None:
    steps = [node("Relu", "x", "QQQQ"), node("Neg", "QQQQ")]
    given = model(steps)
    broken = onnx.ModelProto.FromString(
        given.SerializeToString().replace(b"QQQQ", b"\xff\xfe\xfd\xfc")
    )
    before = broken.SerializeToString()
    bridge.convert(broken, tmp_path / "o.xml")
    assert broken.SerializeToString() == before
    bridge.convert(tmp_path / "o.xml", tmp_path / "o.onnx")
    assert onnx.load(tmp_path / "o.onnx").graph.node[1].input[0] == r"\xff\xfe\xfd\xfc"
    unknown = model([node("RELU", "x")]).SerializeToString().replace(b"RELU", b"\xff\xfe\xfd\xfc")
    with pytest.raises(bridge.UnsupportedError, match=r"\\xff\\xfe\\xfd\\xfc"):
        bridge.convert(unknown, tmp_path / "o.xml")


def test_messages_have_a_readable_length(tmp_path: Path) -> None:
    with pytest.raises(bridge.InvalidModelError) as refused:
        bridge.load(model([node("Add", f"x {'n' * 100_000}")]))
    assert 100 < len(str(refused.value)) < 1000
    (tmp_path / "m.onnxtxt").write_text("x" * 100_000)
    with pytest.raises(bridge.InvalidModelError) as refused:
        bridge.load(tmp_path / "m.onnxtxt")
    assert len(str(refused.value)) < 1000 and "b'" not in str(refused.value)


@pytest.mark.parametrize("error", [MemoryError("all gone"), RecursionError("too deep")])
def test_what_is_not_the_model_s_fault(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise error

    invalid = written(model([node("Add", "x")]), tmp_path)
    monkeypatch.setattr(bridge.library.api, "_read", fail)
    with pytest.raises(type(error)):
        bridge.load(invalid)


def test_what_nobody_foresaw_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(bridge.library.api, "_read", fail)
    with pytest.raises(
        bridge.InvalidModelError, match=r"not valid ONNX(.|\n)*KeyError: 'surprise'"
    ):
        bridge.load(written(model([node("Add", "x")]), tmp_path))
    with pytest.raises(KeyError):
        bridge.load(MODELS / "if_nested.xml")


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_standard_streams_that_are_closed(closed: str, tmp_path: Path) -> None:
    source = MODELS / "if_nested.xml"
    bridge.convert(source, tmp_path / "a.onnx", external_data=True)
    (tmp_path / "closed").mkdir()
    command = f'"{sys.executable}" -m bridge convert {source} a.onnx --external-data {closed}'
    finished = subprocess.run(command, shell=True, cwd=tmp_path / "closed", check=False)
    assert finished.returncode == 0
    assert (tmp_path / "closed" / "a.onnx").read_bytes() == (tmp_path / "a.onnx").read_bytes()


NO_SUCH: dict[str, Callable[[], onnx.ModelProto]] = {
    "is none of nearest": lambda: model(
        [node("Resize", "x--s", mode="x")], tensors=[helper.make_tensor("s", 1, [1], [2.0])]
    ),
    "is none of forward": lambda: model(
        [node("RNN", "x w r", "z y", hidden_size=1, direction="back")],
        [value("x", [1, 1, 1]), value("w", [1, 1, 1]), value("r", [1, 1, 1])],
    ),
    "keepdims is 7, which is no bool": lambda: model(
        [node("ReduceSum", "x", keepdims=7)], [value("x", [2])]
    ),
    "1 outputs for 2 states": lambda: model(
        [node("Loop", "--x-x", body=LOOP)], [value("x")]
    ),
}  # fmt: skip


@pytest.mark.parametrize("says", NO_SUCH)
def test_attributes_and_ports_that_are_none(says: str, tmp_path: Path) -> None:
    with pytest.raises(bridge.InvalidModelError, match=says):
        bridge.load(NO_SUCH[says]())


def test_the_shape_of_an_optional_that_is_changed_by_hand(tmp_path: Path) -> None:
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2] x, optional(float[2]) o) => (float[2] y) {
          there = OptionalHasElement (o)
          y = If (there) <
            then_branch = t () => (float[2] a) { e = OptionalGetElement (o) a = Add (e, x) },
            else_branch = e () => (float[2] b) { b = Neg (x) }>
        }""")
    bridge.convert(source, tmp_path / "m.xml")
    name = '<layer id="2" name="o" type="Parameter"'
    before, after = (tmp_path / "m.xml").read_text().split(name)
    changed = before + name + after.replace('shape="2"', 'shape="6,2"', 1)
    (tmp_path / "m.xml").write_text(changed)
    back = bridge.to_onnx(tmp_path / "m.xml")
    onnx.checker.check_model(back, full_check=True)
    assert len(back.graph.input[1].type.optional_type.elem_type.tensor_type.shape.dim) == 2
