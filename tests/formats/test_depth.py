"""Models nested deeper than protobuf's own limit of 100 messages (33 Ifs) convert both ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bridge
from tests.support.running import OpenVino


def nested_ifs(depth: int, local: bool = False) -> bytes:
    """`depth` Ifs, each in the then_branch of the one before: sin(x) if all conditions hold, else
    cos(x). With `local` they are in a function."""
    model = onnx.ModelProto(ir_version=8)
    model.opset_import.add(version=17)
    graph = model.graph
    graph.name = "deep"
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [4]))
    for level in range(depth):
        graph.input.append(helper.make_tensor_value_info(f"c{level}", TensorProto.BOOL, []))
    graph.output.append(helper.make_tensor_value_info("y0", TensorProto.FLOAT, [4]))
    if local:
        inputs = [info.name for info in graph.input]
        graph.node.add(op_type="F", domain="f", input=inputs, output=["y0"])
        model.opset_import.add(domain="f", version=1)
        graph = model.functions.add(domain="f", name="F", input=inputs, output=["y0"])
        graph.opset_import.add(version=17)
    for level in range(depth):
        node = graph.node.add(op_type="If", input=[f"c{level}"], output=[f"y{level}"])
        other = node.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH).g
        other.name = "other"
        other.node.add(op_type="Cos", input=["x"], output=[f"z{level}"])
        other.output.append(helper.make_tensor_value_info(f"z{level}", TensorProto.FLOAT, [4]))
        graph = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
        graph.name = "then"
        graph.output.append(helper.make_tensor_value_info(f"y{level + 1}", TensorProto.FLOAT, [4]))
    graph.node.add(op_type="Sin", input=["x"], output=[f"y{depth}"])
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("depth", "local"),
    [(depth, local) for depth in (1, 24, 25, 26, 60) for local in (False, True)] + [(130, False)],
)
def test_depth_survives_both_ways(depth: int, local: bool, tmp_path: Path) -> None:
    source = tmp_path / "a.onnx"
    source.write_bytes(nested_ifs(depth, local))
    steps = ["b.xml", "c.onnx", "d.xml", "e.onnx"]
    last = source
    for step in steps:
        bridge.convert(last, tmp_path / step)
        last = tmp_path / step
    ifs = [node for node in bridge.load(last).graph.walk() if node.op == "If"]
    assert len(ifs) == depth
    if not local:  # The path of its call is one more name of the function's value.
        assert (tmp_path / "b.xml").read_bytes() == (tmp_path / "d.xml").read_bytes()
    assert (tmp_path / "c.onnx").read_bytes() == (tmp_path / "e.onnx").read_bytes()


def test_deep_model_computes(tmp_path: Path) -> None:
    """Twelve levels: OpenVINO's time to compile doubles with each."""
    source, there = tmp_path / "a.onnx", tmp_path / "b.xml"
    source.write_bytes(nested_ifs(12))
    bridge.convert(source, there)
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    model = OpenVino(there)
    for last, expected in ((True, np.sin(x)), (False, np.cos(x))):
        conditions = [np.array(True)] * 11 + [np.array(last)]
        (result,) = model.run([x, *conditions])
        np.testing.assert_allclose(result, expected, rtol=1e-6)
