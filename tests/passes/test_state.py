"""IR's variables as inputs and outputs of ONNX, and as variables again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset6, opset13

import bridge
from tests.support.running import OnnxRuntime


def stateful(start: str, name: str = "sum") -> ov.Model:
    """A sum over calls in a variable that starts with a constant, or with twice the input."""
    x = opset13.parameter([-1, 3], np.float32)
    x.output(0).tensor.set_names({"x"})
    initial = {
        "constant": lambda: opset13.constant(np.full((2, 3), 5, np.float32)),
        # As OpenVINO's low latency transformation writes it.
        "sized": lambda: opset13.broadcast(
            opset13.constant(np.full(1, 5, np.float32)),
            opset13.shape_of(opset13.reshape(x, opset13.constant([2, 3]), False)),
        ),
        "computed": lambda: opset13.multiply(x, opset13.constant(np.float32(2))),
    }[start]()
    before = opset6.read_value(initial, name, np.float32, ov.PartialShape([-1, 3]))
    after = opset13.add(before, x)
    after.output(0).tensor.set_names({"after"})
    result = opset13.result(opset13.multiply(after, opset13.constant(np.float32(3))))
    result.output(0).tensor.set_names({"y"})
    return ov.Model([result], [opset6.assign(after, name)], [x], "stateful")


@pytest.mark.parametrize(
    ("start", "name", "before"),
    [
        ("constant", "sum", "sum"),
        ("sized", "sum", "sum"),
        ("computed", "sum", "sum"),
        # optimum-intel's name of a variable of an encoder's states, which are an input too.
        ("constant", "x", "x.before"),
        ("computed", "x", "x.before"),
    ],
)
def test_calls_in_a_row(start: str, name: str, before: str, tmp_path: Path) -> None:
    ov.save_model(stateful(start, name), tmp_path / "a.xml", False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx", debug=True)
    bridge.convert(tmp_path / "b.onnx", tmp_path / "c.xml", debug=True)
    onnx.checker.check_model(onnx.load(tmp_path / "b.onnx"), full_check=True)
    has_if = any(node.op_type == "If" for node in onnx.load(tmp_path / "b.onnx").graph.node)
    assert has_if == (start == "computed")
    session = OnnxRuntime(tmp_path / "b.onnx")
    requests = [
        ov.Core().compile_model(tmp_path / name, "CPU").create_infer_request()
        for name in ("a.xml", "c.xml")
    ]
    state: dict[str, np.ndarray] = {}
    for call in range(3):
        x = np.arange(6, dtype=np.float32).reshape(2, 3) + call
        y, after = session.run({"x": x, **state})
        state = {before: after}
        for request in requests:
            request.infer({"x": x})
            np.testing.assert_allclose(y, request.get_output_tensor(0).data)
    (variable,) = requests[1].query_state()
    assert variable.name == name


def test_same_format_keeps_variables(tmp_path: Path) -> None:
    ov.save_model(stateful("constant"), tmp_path / "a.xml", False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.xml")
    model = ov.Core().read_model(tmp_path / "b.xml")
    assert [sink.get_variable_id() for sink in model.get_sinks()] == ["sum"]
