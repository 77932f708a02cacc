"""Declared shapes of computed values do not count once an input was opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.shape_inference
import pytest
from onnx import TensorProto, helper

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

HEADER = '<ir_version: 8, opset_import: ["": 17]>'

# A graph with static inputs, the shapes to give them, and the shapes of inputs to run it with.
OPENED: dict[str, tuple[str, dict[str, Any], list[list[int]]]] = {
    "sizes go into a Resize": (
        """g (float[1,1,4,4] x) => (float[1,1,4,4] y) <int64[1] zero = {0}, int64[1] two = {2},
          int64[1] four = {4}, float[1,1,3,3] w = {1,1,1,1,1,1,1,1,1}> {
          t = Conv <strides = [2,2], pads = [1,1,1,1]> (x, w)
          s = Shape (x) hw = Slice (s, two, four, zero)
          c = Shape (t) nc = Slice (c, zero, two, zero)
          sizes = Concat <axis = 0> (nc, hw)
          y = Resize <mode = "nearest"> (t, , , sizes) }""",
        {"x": [1, 1, None, None]},
        [[1, 1, 8, 8]],
    ),
    "a size goes into a Reshape": (
        """g (float[1,2,3] x) => (float[1,6] y) <int64[1] zero = {0}, int64[1] rest = {-1}> {
          r = Relu (x) s = Shape (r) n = Gather (s, zero) shape = Concat <axis = 0> (n, rest)
          y = Reshape (r, shape) }""",
        {"x": ["n", 2, 3]},
        [[2, 2, 3]],
    ),
    "shapes that agreed by chance": (
        "g (float[3,4] x, float[3,4] z) => (float[3,4] y) { t = Relu (x) y = Add (t, z) }",
        {"x": ["n", 4], "z": [5, 4]},
        [[5, 4], [5, 4]],
    ),
    "branches": (
        """g (float[1,4] x, bool c) => (float[1,4] y) { y = If (c) <
          then_branch = t () => (float[1,4] a) { a = Relu (x) },
          else_branch = e () => (float[1,4] b) { b = Mul (x, x) }> }""",
        {"x": ["n", 4]},
        [[3, 4], []],
    ),
    "a state": (
        """g (float[1,4] x, int64 n) => (float[1,4] y) { y = Loop (n, "", x) <
          body = b (int64 i, bool c, float[1,4] s) => (bool d, float[1,4] t) {
            d = Identity (c) t = Add (s, s) }> }""",
        {"x": ["n", 4]},
        [[3, 4], []],
    ),
}


def inputs_of(model: onnx.ModelProto, shapes: list[list[int]]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    values = []
    for x, shape in zip(model.graph.input, shapes, strict=True):
        dtype = helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type)
        drawn = rng.normal(size=shape) if dtype == np.float32 else np.ones(shape)
        values.append(drawn.astype(dtype))
    return values


@pytest.mark.parametrize("name", OPENED)
def test_inputs_opened_by_option(name: str, tmp_path: Path) -> None:
    text, shapes, sizes = OPENED[name]
    model = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(f"{HEADER} {text}"))
    report = bridge.convert(model, tmp_path / "a.xml", input_shapes=shapes)
    assert not report.pruned
    values = inputs_of(model, sizes)
    # The original without its declared shapes.
    open_model = onnx.ModelProto()
    open_model.CopyFrom(model)
    del open_model.graph.value_info[:]
    bodies = [attribute.g for node in open_model.graph.node for attribute in node.attribute]
    for graph in (open_model.graph, *bodies):
        for item in (*graph.input, *graph.output, *graph.value_info):
            for dim in item.type.tensor_type.shape.dim:
                dim.Clear()
    feed = {x.name: value for x, value in zip(model.graph.input, values, strict=True)}
    expected = OnnxRuntime(open_model).run(feed)
    assert_close(OpenVino(tmp_path / "a.xml").run(values), expected)
    assert_close(OnnxRuntime(bridge.to_onnx(model, input_shapes=shapes)).run(feed), expected)
    assert_close(OnnxRuntime(bridge.to_onnx(tmp_path / "a.xml")).run(feed), expected)


@pytest.mark.parametrize(
    "zero",
    ["<int64 zero = {0}> {", "{ zero = Constant <value = int64 {0}> ()"],
    ids=["initializer", "node"],
)
def test_input_opened_in_the_file(zero: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""{HEADER}
      g (float[N,2] x) => (float z) {zero}
        y = Relu (x) s = Shape (y) b = Gather (s, zero) f = Cast <to = 1> (b)
        t = ReduceSum <keepdims = 0> (x) z = Div (t, f) }}""")
    model.graph.value_info.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2]))
    bridge.convert(model, tmp_path / "a.xml")
    assert_close(OpenVino(tmp_path / "a.xml").run([np.ones((4, 2), "f4")]), [np.array(2, "f4")])


@pytest.mark.parametrize("dim", ["?", "-1", "None", "*"])
def test_what_is_no_name_of_a_dimension(dim: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""{HEADER}
      g (float[H,W] x) => (int64 d) <int64 zero = {{0}}, int64 one = {{1}}> {{
        s = Shape (x) h = Gather (s, zero) w = Gather (s, one) d = Sub (h, w) }}""")
    for item in model.graph.input[0].type.tensor_type.shape.dim:
        item.dim_param = dim
    bridge.convert(model, tmp_path / "a.xml")
    assert_close(OpenVino(tmp_path / "a.xml").run([np.ones((5, 2), "f4")]), [np.array(3)])
