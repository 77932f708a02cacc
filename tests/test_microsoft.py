"""Operators of onnxruntime's own, written as IR: OpenVINO computes what onnxruntime does, and so
does onnxruntime with what the IR becomes in ONNX. None of these models imports the domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from onnx import helper

import bridge

from .microsoft_cases import CASES, Case
from .running import OnnxRuntime, assert_close


def model_of(case: Case, dynamic: bool = False) -> onnx.ModelProto:
    """The case as a model; a `dynamic` one knows of its inputs the last sizes, and of images the
    channels."""
    inputs, constants, names = [], [], []
    for i, argument in enumerate(case.inputs):
        names.append("" if argument is None else f"i{i}")
        if argument is None:
            continue
        if i in case.data:
            element = helper.np_dtype_to_tensor_dtype(argument.dtype)
            shape: list[int | str] = list(argument.shape)
            known = {len(shape) - 1, 1 if len(shape) == 4 else -1}
            if dynamic:
                shape = [d if j in known else f"i{i}_{j}" for j, d in enumerate(shape)]
            inputs.append(helper.make_tensor_value_info(f"i{i}", element, shape))
        else:
            constants.append(onnx.numpy_helper.from_array(argument, f"i{i}"))
    node = helper.make_node(case.op, names, case.outputs, domain=case.domain, **case.attributes)
    outputs = [onnx.ValueInfoProto(name=name) for name in case.outputs if name]
    for info in outputs:
        if info.name == "scores":  # onnxruntime does not infer it
            info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 16 if case.domain == "" else 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_same_numbers(name: str, dynamic: bool, tmp_path: Path) -> None:
    case = CASES[name]
    model = model_of(case, dynamic)
    feed = {f"i{i}": value for i in case.data if (value := case.inputs[i]) is not None}
    expected = OnnxRuntime(model).run(feed)
    bridge.convert(model, tmp_path / "a.xml")
    compiled = openvino.Core().compile_model(
        tmp_path / "a.xml", "CPU",
        {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0},
    )  # fmt: skip
    assert_near(list(compiled(list(feed.values())).values()), expected)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert_near(OnnxRuntime(tmp_path / "b.onnx").run(feed), expected)


def assert_near(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Equal within rounding. Where a result lies half way between two levels of 8 bits, either
    engine may take either."""
    if expected[0].dtype != np.uint8:
        assert_close(actual, expected)
        return
    assert actual[0].dtype == np.uint8
    difference = abs(actual[0].astype(int) - expected[0])
    assert difference.max() <= 1 and (difference > 0).mean() < 0.05
