"""The names of dimensions in ONNX: Bridge makes up those on an IR's inputs; all others follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import openvino as ov
import pytest
from onnx import parser
from openvino import opset13 as ops

import bridge

Dims = list[int | str | None]


def in_branch(x: ov.Node, y: ov.Node) -> ov.Node:
    inner = ops.parameter([-1, -1], np.float32)
    then = ov.Model([ops.result(ops.concat([ops.abs(inner), inner], 0))], [inner], "then")
    other = ops.parameter([-1, -1], np.float32)
    otherwise = ov.Model([ops.result(ops.concat([other, other], 0))], [other], "else")
    few = ops.less(ops.gather(ops.shape_of(x), ops.constant(0), ops.constant(0)), ops.constant(3))
    node = ops.if_op(few.output(0))
    node.set_then_body(then)
    node.set_else_body(otherwise)
    node.set_input(x.output(0), inner, other)
    return node.set_output(then.results[0], otherwise.results[0]).get_node()


CASES: dict[str, tuple[Callable[[ov.Node, ov.Node], ov.Node], list[Dims]]] = {
    "equal in a product of matrices": (
        lambda x, y: ops.abs(ops.matmul(x, y, False, False)),
        [["x_dim_0", "x_dim_1"], ["x_dim_1", "y_dim_1"], ["x_dim_0", "y_dim_1"]],
    ),
    "not known to be equal": (
        lambda x, y: ops.abs(ops.add(x, y)),
        [["x_dim_0", "x_dim_1"], ["y_dim_0", "y_dim_1"], [None, None]],
    ),
    "a sum": (
        lambda x, y: ops.abs(ops.concat([x, y, x], 0)),
        [["x_dim_0", "x_dim_1"], ["y_dim_0", "x_dim_1"], ["2*x_dim_0 + y_dim_0", "x_dim_1"]],
    ),
    "a product": (
        lambda x, y: ops.tile(ops.concat([x, y], 1), ops.constant(np.array([3, 1]))),
        [["x_dim_0", "x_dim_1"], ["x_dim_0", "y_dim_1"], ["3*x_dim_0", "x_dim_1 + y_dim_1"]],
    ),
    "a quotient": (
        lambda x, y: ops.reshape(ops.matmul(x, y, False, False), np.array([-1, 4]), False),
        [["x_dim_0", "x_dim_1"], ["x_dim_1", "y_dim_1"], ["x_dim_0*y_dim_1/4", 4]],
    ),
    "in a branch": (
        lambda x, y: ops.concat([in_branch(x, y), y], 0),
        [["x_dim_0", "x_dim_1"], ["y_dim_0", "x_dim_1"], [None, "x_dim_1"]],
    ),
}


def dims_of(info: onnx.ValueInfoProto) -> Dims:
    shape = info.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in shape]


@pytest.mark.parametrize("case", CASES)
def test_of_ir(case: str, tmp_path: Path) -> None:
    build, expected = CASES[case]
    x, y = (ops.parameter([-1, -1], np.float32, name) for name in "xy")
    for node, name in ((x, "x"), (y, "y")):
        node.output(0).set_names({name})
    ov.save_model(ov.Model([build(x, y)], [x, y], "m"), tmp_path / "a.xml", False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx")
    model = onnx.load(tmp_path / "a.onnx")
    onnx.checker.check_model(model, full_check=True)
    onnxruntime.InferenceSession(model.SerializeToString())
    graph = model.graph
    assert [dims_of(info) for info in (*graph.input, *graph.output)] == expected
    inner = {name for node in graph.node for name in node.output} - {v.name for v in graph.output}
    assert {info.name for info in graph.value_info} == inner
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml")
    bridge.convert(tmp_path / "b.xml", tmp_path / "b.onnx")
    back = onnx.load(tmp_path / "b.onnx").graph
    assert [dims_of(info) for info in (*back.input, *back.output)] == expected


def test_names_within_a_branch(tmp_path: Path) -> None:
    x, y = (ops.parameter([-1, 4], np.float32, name) for name in "xy")
    x.output(0).set_names({"x"})
    ov.save_model(ov.Model([in_branch(x, y)], [x, y], "m"), tmp_path / "a.xml", False)
    (node,) = (n for n in bridge.to_onnx(tmp_path / "a.xml").graph.node if n.op_type == "If")
    bodies = {attribute.name: attribute.g for attribute in node.attribute}
    (absolute,) = bodies["then_branch"].value_info
    assert dims_of(absolute) == ["x_dim_0", 4]
    assert dims_of(bodies["then_branch"].output[0]) == ["2*x_dim_0", 4]


def test_of_onnx(tmp_path: Path) -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[b, past] x, float[b, seq] new) => (float[c, d] y) {
          all = Concat <axis = 1> (new, x) y = Abs (all) }""")
    for dim in model.graph.output[0].type.tensor_type.shape.dim:
        dim.Clear()
    bridge.convert(model, tmp_path / "a.xml")
    for again in (bridge.to_onnx(model), bridge.to_onnx(tmp_path / "a.xml")):
        assert dims_of(again.graph.output[0]) == ["b", "past + seq"]
        assert not again.graph.value_info
