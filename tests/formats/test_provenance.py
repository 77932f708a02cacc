"""Operators that IR expresses by others come back, unless the others have changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from lxml import etree
from openvino import opset15 as ops

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

X = "float[2,3,4,5] x"
IMAGE = f"({X}) => (float[2,3,1,1] y)"
SAME = f"({X}) => ({X.replace('x', 'y')})"
TABLE = "(float[4,6] x) => (float[4,6] y)"
SQUARES = f"({X}) => (float[2,3,1,1] y) <int64[2] axes = {{2, 3}}>"

GRAPHS: dict[str, tuple[str, str]] = {
    "global average": (IMAGE, "y = GlobalAveragePool (x)"),
    "mean of an image": (SQUARES, "y = ReduceMean (x, axes)"),
    "global maximum": (IMAGE, "y = GlobalMaxPool (x)"),
    "maximum of an image": (SQUARES, "y = ReduceMax (x, axes)"),
    "flatten": (f"({X}) => (float[2,60] y)", "y = Flatten (x)"),
    "flatten two": (f"({X}) => (float[6,20] y)", "y = Flatten <axis = 2> (x)"),
    "flatten open": ("(float[a,b,c] x) => (float[e,f] y)", "y = Flatten <axis = 2> (x)"),
    "reshape": (f"({X}) => (float[2,60] y) <int64[2] s = {{0, -1}}>", "y = Reshape (x, s)"),
    "reciprocal": (SAME, "y = Reciprocal (x)"),
    "inverse": (f"{SAME} <float one = {{1}}>", "y = Div (one, x)"),
    "clip": (f"{SAME} <float low = {{-0.5}}>", "y = Clip (x, low)"),
    "clip above": (f"{SAME} <float high = {{0.5}}>", 'y = Clip (x, "", high)'),
    "maximum": (f"{SAME} <float low = {{-0.5}}>", "y = Max (x, low)"),
    "sum": (SAME, "y = Sum (x, x, x)"),
    "sums": (SAME, "s = Add (x, x) y = Add (s, x)"),
    "greatest of three": (f"{SAME} <float low = {{0}}>", "n = Neg (x) y = Max (x, n, low)"),
    "mean of two": (SAME, "n = Exp (x) y = Mean (x, n)"),
    "argmax": ("(float[4,6] x) => (int64[4,1] y)", "y = ArgMax <axis = 1> (x)"),
    "argmin from the end": (
        "(float[4,6] x) => (int64[4] y)",
        "y = ArgMin <axis = 1, keepdims = 0, select_last_index = 1> (x)",
    ),
    "triangle": (f"{TABLE} <int64 k = {{1}}>", "y = Trilu <upper = 0> (x, k)"),
    "product": (
        "(float[4,6] x, float[5,6] w) => (float[4,5] y)", "y = Gemm <transB = 1> (x, w)"
    ),
    "log of sum": (SQUARES, "y = ReduceLogSumExp (x, axes)"),
    "sum of squares": (SQUARES, "y = ReduceSumSquare (x, axes)"),
    "unit": (TABLE, "y = LpNormalization <axis = 1> (x)"),
    "celu": (SAME, "y = Celu <alpha = 2.0> (x)"),
    "shrink": (SAME, "y = Shrink <lambd = 0.5, bias = 0.1> (x)"),
    "threshold": (SAME, "y = ThresholdedRelu <alpha = 0.5> (x)"),
    "hardmax": (TABLE, "y = Hardmax <axis = 1> (x)"),
    "norm of windows": (f"({X}) => (float[2,3,3,4] y)", "y = LpPool <kernel_shape = [2, 2]> (x)"),
    "filled": (
        "(float[n,4] x) => (float[a,b] y)",
        "s = Shape (x) y = ConstantOfShape <value = float[1] {2}> (s)",
    ),
    "count": ("(float[n,4] x) => (int64 y)", "y = Size (x)"),
    "part of a shape": ("(float[n,4,m] x) => (int64[2] y)", "y = Shape <start = 1> (x)"),
    "part of sizes": (
        "(float[n,4,m] x) => (int64[2] y) <int64[1] a = {1}, int64[1] e = {9}>",
        "s = Shape (x) y = Slice (s, a, e)",
    ),
    "unit matrix": ("(float[n,m] x) => (float[n,m] y)", "y = EyeLike <k = 1> (x)"),
    "cubic": (
        f"({X}) => (float[2,3,8,10] y) <float[4] s = {{1, 1, 2, 2}}>",
        'y = Resize <mode = "cubic", cubic_coeff_a = -0.5> (x, "", s)',
    ),
    "quantised product": (
        """(float[4,6] x) => (uint8[4,2] y)
        <float s = {0.05}, uint8 z = {128}, uint8[6,2] w = {1,2,3,4,5,6,7,8,9,10,11,12}>""",
        "q = QuantizeLinear (x, s, z) y = QLinearMatMul (q, s, z, w, s, z, s, z)",
    ),
    "in a branch": (
        f"({X}, bool c) => (float[2,3,1,1] y) <int64[2] axes = {{2, 3}}>",
        """y = If (c) <
          then_branch = yes () => (float[2,3,1,1] t) { t = GlobalAveragePool (x) },
          else_branch = no () => (float[2,3,1,1] e) { e = ReduceMean (x, axes) }
        >""",
    ),
    "range": (
        "(int64 n) => (int64[k] y) <int64 two = {2}, int64 one = {1}>",
        "m = Sub (two, n) y = Range (one, m, one)",
    ),
    "sum of bytes": ("(int8[3] x) => (int8[3] y)", "y = Add (x, x)"),
    "computed axes": ("(float[4,1] x, int64[1] k) => (float[4] y)", "y = Squeeze (x, k)"),
    "sum along computed axes": (
        "(float[4,5] x, int64[1] k) => (float[4] y)", "y = ReduceSum <keepdims = 0> (x, k)"
    ),
    "part along computed axes": (
        "(float[4,5] x, int64[1] k) => (float[4,c] y)", "y = Slice (x, k, k, k)"
    ),
    "of machine learning": (
        TABLE,
        "y = ai.onnx.ml.Binarizer <threshold = 0.25> (x)",
    ),
}  # fmt: skip


def model_of(name: str, opset: int = 18) -> onnx.ModelProto:
    head, body = GRAPHS[name]
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}, "ai.onnx.ml": 3]> g {head} {{ {body} }}'
    )


def feed_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Random floats, and ones."""
    rng = np.random.default_rng(3)
    feed: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        shape = [dim.dim_value or 3 for dim in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        made = rng.normal(size=shape) if dtype == np.float32 else np.ones(shape)
        feed[value.name] = made.astype(dtype)
    return feed


def nodes(graph: onnx.GraphProto) -> Iterator[tuple[Any, ...]]:
    """The nodes without the constants, in order, by operator and attributes."""
    for node in graph.node:
        if node.op_type not in ("Constant", "If"):
            yield node.op_type, node.domain
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes(attribute.g)


@pytest.mark.parametrize("name", GRAPHS)
def test_what_comes_back(name: str, tmp_path: Path) -> None:
    source, path = model_of(name), tmp_path / "a.xml"
    feed = feed_of(source)
    bridge.convert(source, path)
    back = bridge.to_onnx(path)
    assert list(nodes(back.graph)) == list(nodes(source.graph))
    expected = OnnxRuntime(source).run(feed)
    assert_close(OnnxRuntime(back).run(feed), expected)
    assert_close(OpenVino(path).run(list(feed.values())), expected)


def test_an_operator_that_the_operator_set_lacks(tmp_path: Path) -> None:
    source, path = model_of("triangle"), tmp_path / "a.xml"
    bridge.convert(source, path)
    back = bridge.to_onnx(path, opset=13)
    assert ("Trilu", "") not in nodes(back.graph)
    assert_close(OnnxRuntime(back).run(feed_of(source)), OnnxRuntime(source).run(feed_of(source)))


def test_openvino_keeps_the_record(tmp_path: Path) -> None:
    bridge.convert(model_of("global average"), tmp_path / "a.xml")
    core = openvino.Core()
    openvino.save_model(core.read_model(tmp_path / "a.xml"), tmp_path / "b.xml", False)
    assert list(nodes(bridge.to_onnx(tmp_path / "b.xml").graph)) == [("GlobalAveragePool", "")]


def select_others(model: openvino.Model) -> None:
    """Replaces the value for unselected elements with another number."""
    for op in model.get_ordered_ops():
        if op.get_type_name() == "Select":
            op.input(2).replace_source_output(ops.constant(np.float32(-9)).output(0))


def take_what_is_before(model: openvino.Model) -> None:
    """Removes a layer."""
    for op in model.get_ordered_ops():
        if op.get_type_name() == "Sqrt":
            op.output(0).replace(op.input_value(0))


EDITS: dict[str, tuple[str, Callable[[openvino.Model], None], str]] = {
    "another constant": ("triangle", select_others, "Where"),
    "a layer less": ("norm of windows", take_what_is_before, "AveragePool"),
}


@pytest.mark.parametrize("name", EDITS)
def test_layers_that_were_changed(name: str, tmp_path: Path) -> None:
    graph, change, op = EDITS[name]
    bridge.convert(model_of(graph), tmp_path / "a.xml")
    model = openvino.Core().read_model(tmp_path / "a.xml")
    change(model)
    openvino.save_model(model, tmp_path / "b.xml", False)
    is_what_openvino_runs(tmp_path / "b.xml", graph, op)


RECORDS: dict[str, Callable[[Any], Any]] = {
    "another operator": lambda said: ["GlobalMaxPool", *said[1:]],
    "an operator that there is not": lambda said: ["Average", *said[1:]],
    "another input": lambda said: [said[0], ["Const_1"]],
    "an input that there is not": lambda said: [said[0], ["nobody"]],
    "an output that there is not": lambda said: [said[0], [["x", 7]]],
    "no input": lambda said: [said[0], []],
    "an absent input": lambda said: [said[0], [None]],
    "another attribute": lambda said: [*said, {"axis": 1}],
    "no list of inputs": lambda said: [said[0], 3],
    "a tensor without bytes": lambda said: [said[0], [{"element": "f32", "shape": [2]}]],
    "a tensor of fewer": lambda said: [
        said[0], [{"element": "f32", "shape": [2], "bytes": "00"}]
    ],
    "a tensor of another type": lambda said: [
        said[0], [{"element": "f99", "shape": [], "bytes": ""}]
    ],
    "an object": lambda said: {"op": said[0]},
    "a number": lambda said: 5,
    "nothing": lambda said: None,
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDS)
def test_records_that_are_not_so(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    bridge.convert(model_of("global average"), path)
    xml = etree.parse(path)
    (info,) = (entry for entry in xml.iter("info") if entry.get("name") == "onnx")
    record = json.loads(info.attrib["value"])
    (layer,) = record["formers"]["0"]
    record["formers"]["0"][layer] = RECORDS[name](record["formers"]["0"][layer])
    info.set("value", json.dumps(record))
    xml.write(path)
    is_what_openvino_runs(path, "global average", "ReduceMean")


def is_what_openvino_runs(path: Path, name: str, op: str) -> None:
    """Whether the way back uses other operators, including this one."""
    source = model_of(name)
    feed, back = feed_of(source), bridge.to_onnx(path)
    assert op in [node.op_type for node in back.graph.node]
    assert source.graph.node[-1].op_type not in [node.op_type for node in back.graph.node]
    assert_close(OnnxRuntime(back).run(feed), OpenVino(path).run(list(feed.values())))
