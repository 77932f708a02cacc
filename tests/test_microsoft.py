"""Operators of onnxruntime's own domain, written as IR: OpenVINO computes what onnxruntime does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from onnx import helper

import bridge

from .running import OnnxRuntime, assert_close

_RNG = np.random.default_rng(17)


def whole(*shape: int, type: Any = np.uint8, low: int = 0, high: int = 255) -> np.ndarray:
    return _RNG.integers(low, high, shape).astype(type)


def f32(value: Any) -> np.ndarray:
    return np.asarray(value, np.float32)


def random(*shape: int) -> np.ndarray:
    return f32(_RNG.normal(size=shape))


def u8(value: int) -> np.ndarray:
    return np.array(value, np.uint8)


IMAGE, OTHER = whole(1, 3, 6, 8), whole(1, 3, 6, 8)
X = (f32(0.02), u8(120))
Y = (f32(0.05), u8(100))
CASES: dict[str, tuple[str, list[np.ndarray | None], dict[str, Any]]] = {
    "add": ("QLinearAdd", [IMAGE, *X, OTHER, *Y, f32(0.06), u8(110)], {}),
    "multiply": ("QLinearMul", [IMAGE, *X, OTHER, *Y, f32(0.1), u8(130)], {}),
    "concat": ("QLinearConcat", [f32(0.06), u8(110), IMAGE, *X, OTHER, *Y], {"axis": 1}),
    "sigmoid": ("QLinearSigmoid", [IMAGE, *X, f32(1 / 256), u8(0)], {}),
    "leaky": ("QLinearLeakyRelu", [IMAGE, *X, *Y], {"alpha": 0.2}),
    "softmax": ("QLinearSoftmax", [IMAGE, *X, f32(1 / 256), u8(0)], {"axis": -1, "opset": 13}),
    "mean": ("QLinearGlobalAveragePool", [IMAGE, *X, f32(0.011), u8(128)], {}),
    "average": (
        "QLinearAveragePool",
        [IMAGE, *X, f32(0.017), u8(128)],
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]},
    ),
    "gemm": (
        "QGemm",
        [whole(4, 6), *X, whole(6, 5, high=20), *Y, whole(5, type=np.int32), f32(1.1), u8(128)],
        {},
    ),
    "integers to float": (
        "MatMulIntegerToFloat",
        [
            whole(2, 4, 6),
            whole(6, 5, type=np.int8, low=-100, high=100),
            f32(0.02),
            f32(0.03),
            u8(120),
            np.array(3, np.int8),
            random(5),
        ],
        {},
    ),
    "dynamic": (
        "DynamicQuantizeMatMul",
        [
            random(2, 4, 6),
            whole(6, 5, type=np.int8, low=-100, high=100),
            f32(0.03),
            np.array(3, np.int8),
            random(5),
        ],
        {},
    ),
    "quantise": ("QuantizeLinear", [random(3, 4), f32(0.1), np.array(50, np.uint16)], {}),
    "dequantise": (
        "DequantizeLinear",
        [whole(3, 4, type=np.uint16), f32(0.1), np.array(50, np.uint16)],
        {},
    ),
    "4 bits": (
        "MatMulNBits",
        [random(3, 64), whole(5, 2, 16), random(5, 2)],
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
    ),
    "4 bits, zero points": (
        "MatMulNBits",
        [random(2, 3, 80), whole(5, 3, 16), random(15), whole(10)],
        {"K": 80, "N": 5, "bits": 4, "block_size": 32},
    ),
    "4 bits, bias": (
        "MatMulNBits",
        [random(3, 64), whole(5, 2, 16), random(5, 2), None, None, random(5)],
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
    ),
    "8 bits": (
        "MatMulNBits",
        [random(3, 64), whole(5, 2, 32), random(5, 2)],
        {"K": 64, "N": 5, "bits": 8, "block_size": 32},
    ),
}
"""Operator, inputs and attributes. The data, which is the first input, of QLinearConcat the third,
is the model's input; the others are constants."""


@pytest.mark.parametrize("name", CASES)
def test_same_numbers(name: str, tmp_path: Path) -> None:
    op, arguments, attributes = CASES[name]
    given = 2 if op == "QLinearConcat" else 0
    inputs, constants, names = [], [], []
    for i, argument in enumerate(arguments):
        names.append("" if argument is None else f"i{i}")
        if argument is None:
            continue
        if i == given:
            element = helper.np_dtype_to_tensor_dtype(argument.dtype)
            inputs.append(helper.make_tensor_value_info(f"i{i}", element, argument.shape))
        else:
            constants.append(onnx.numpy_helper.from_array(argument, f"i{i}"))
    node = helper.make_node(op, names, ["y"], domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    data = arguments[given]
    assert data is not None
    bridge.convert(model, tmp_path / "a.xml")
    compiled = openvino.Core().compile_model(
        tmp_path / "a.xml", "CPU",
        {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0},
    )  # fmt: skip
    actual = list(compiled([data]).values())
    expected = OnnxRuntime(model).run({f"i{given}": data})
    if expected[0].dtype == np.uint8:
        # Where a result lies half way between two levels, either engine may take either.
        assert actual[0].dtype == np.uint8
        difference = abs(actual[0].astype(int) - expected[0])
        assert difference.max() <= 1 and (difference > 0).mean() < 0.05
    else:
        assert_close(actual, expected)


def test_import_of_the_domain_may_lack(tmp_path: Path) -> None:
    op, (x, *rest), attributes = CASES["sigmoid"]
    assert x is not None
    constants = [
        onnx.numpy_helper.from_array(a, f"i{i}") for i, a in enumerate(rest) if a is not None
    ]
    node = helper.make_node(
        op, ["x", *(c.name for c in constants)], ["y"], domain="com.microsoft", **attributes
    )
    info = helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, x.shape)
    graph = helper.make_graph([node], "g", [info], [onnx.ValueInfoProto(name="y")], constants)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    OnnxRuntime(model)
    bridge.convert(model, tmp_path / "a.xml")
