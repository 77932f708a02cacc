"""Elementwise operators, activations, reductions and TopK of IR, written as ONNX. OpenVINO writes
the files; onnxruntime computes the same numbers from the converted ones."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino.utils.node_factory import NodeFactory

import bridge
from tests.support.ir_operators import engines, run_onnx
from tests.support.sample import thinned

Build = Callable[..., Any]

OPSET = {i: importlib.import_module(f"openvino.opset{i}") for i in range(1, 17)}

X = np.array([[-2.5, -1.0, -0.4], [0.0, 0.7, 3.0]], np.float32)
Y = np.array([[0.5, 2.0, -1.5], [1.0, 0.7, 2.0]], np.float32)
UNIT = np.array([[-0.9, -0.5, -0.1], [0.0, 0.3, 0.8]], np.float32)
POSITIVE = np.array([[0.1, 0.5, 1.0], [1.5, 2.0, 30.0]], np.float32)
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], np.float32)
HALVES = np.array([-2.5, -1.5, -0.5, 0.49999997, 0.5, 1.5, 2.5, 3.7], np.float32)
INT = np.array([[-7, 8, 7], [0, 100, 5]], np.int32)
BY = np.array([[3, 3, 4], [2, 7, 1]], np.int32)
BOOL = np.array([[True, False, True], [False, False, True]])
OTHER = np.array([True, True, False])
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 7 - 3


def of(version: int, name: str, *arguments: Any, **keywords: Any) -> Build:
    """An operator with further arguments."""
    return lambda *inputs: getattr(OPSET[version], name)(*inputs, *arguments, **keywords)


def constant(value: Any, type: Any = np.float32) -> Any:
    return OPSET[1].constant(np.array(value, type))


def empty() -> Any:
    return ov.op.Constant(ov.Type.i64, ov.Shape([0]), [])


CASES: dict[str, tuple[Build, tuple[np.ndarray, ...]]] = {}

for name in ("add", "subtract", "multiply", "maximum", "minimum", "squared_difference"):
    for kind in (np.float32, np.float16, np.int32, np.int64, np.uint8, np.int16):
        if (name, kind) == ("squared_difference", np.uint8):
            continue  # OpenVINO computes it wrongly.
        big, small = np.abs(INT).clip(8, 12).astype(kind), BY.astype(kind)
        CASES[f"{name} {kind.__name__}"] = of(1, name), (big, small)
for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    CASES[name] = of(1, name), (X, Y)
    CASES[f"{name} with booleans"] = of(1, name), (BOOL, OTHER)
    CASES[f"{name} with i8"] = of(1, name), (INT.astype(np.int8), BY.astype(np.int8))
for name in ("logical_and", "logical_or", "logical_xor"):
    CASES[name] = of(1, name), (BOOL, OTHER)
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    CASES[name] = of(13, name), (INT, BY)
    CASES[f"{name} with booleans"] = of(13, name), (BOOL, OTHER)
for name in ("bitwise_left_shift", "bitwise_right_shift"):
    CASES[name] = of(15, name), (INT, BY)
    CASES[f"{name} u8"] = of(15, name), (np.abs(INT).astype(np.uint8), BY.astype(np.uint8))
CASES["logical_not"] = of(1, "logical_not"), (BOOL,)
SINCE_18 = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
"""Cases without an operator in ONNX before operator set 18."""
CASES["logical_not of numbers"] = of(1, "logical_not"), (HALVES,)
CASES["logical_not of integers"] = of(1, "logical_not"), (INT,)
CASES["bitwise_not"] = of(13, "bitwise_not"), (INT,)
CASES["bitwise_not with booleans"] = of(13, "bitwise_not"), (BOOL,)
CASES["divide"] = of(1, "divide"), (X, Y)
CASES["divide natural numbers"] = of(1, "divide"), (np.abs(INT), BY)
CASES["divide unsigned"] = of(1, "divide"), (np.abs(INT).astype(np.uint8), BY.astype(np.uint8))
for name in ("mod", "floor_mod"):
    CASES[name] = of(1, name), (X, Y)
    CASES[f"{name} of integers"] = of(1, name), (INT, BY)
CASES["power"] = of(1, "power"), (X, np.array([2, 3, 2], np.float32))
CASES["power of integers"] = of(1, "power"), (INT, np.array(2, np.int32))
CASES["power u8"] = of(1, "power"), (BY.astype(np.uint8), np.array(2, np.uint8))
CASES["select"] = of(1, "select"), (BOOL, X, Y)
CASES["select without broadcasting"] = of(1, "select", auto_broadcast="none"), (BOOL, X, Y)
CASES["add without broadcasting"] = of(1, "add", auto_broadcast="none"), (X, Y)
CASES["add from axis 0"] = of(1, "add", auto_broadcast="pdpd"), (CUBE, X[:, 0])
CASES["add scalars"] = of(1, "add"), (np.array(1, np.float32), np.array(2, np.float32))
CASES["add nothing"] = of(1, "add"), (np.zeros((0, 3), np.float32), X[:1])

for name in ("absolute", "ceiling", "cos", "erf", "exp", "floor", "negative", "sign", "sin",
             "sinh", "cosh", "tan", "tanh", "relu", "sigmoid"):  # fmt: skip
    CASES[name] = of(1, name), (X,)
    CASES[f"{name} f16"] = of(1, name), (X.astype(np.float16),)
for name in ("absolute", "ceiling", "floor", "negative", "sign", "relu"):
    CASES[f"{name} of integers"] = of(1, name), (INT,)
for name in ("sqrt", "exp", "log", "tanh", "erf"):
    CASES[f"{name} of integers"] = of(1, name), (np.array([1, 2, 3, 4], np.int32),)
for name in ("acos", "asin", "atan"):
    CASES[name] = of(1, name), (UNIT,)
CASES["acosh"] = of(4, "acosh"), (POSITIVE + 1,)
CASES["asinh"] = of(4, "asinh"), (X,)
CASES["atanh"] = of(4, "atanh"), (UNIT,)
CASES["log"] = of(1, "log"), (POSITIVE,)
CASES["sqrt"] = of(1, "sqrt"), (POSITIVE,)
CASES["round to even"] = of(5, "round", "half_to_even"), (HALVES,)
CASES["round away from zero"] = of(5, "round", "half_away_from_zero"), (HALVES[4:],)
CASES["round integers"] = of(5, "round", "half_away_from_zero"), (INT,)
for name in ("is_finite", "is_nan", "is_inf"):
    CASES[name] = of(10, name), (ODD,)
    CASES[f"{name} f16"] = of(10, name), (ODD.astype(np.float16),)
CASES["is_inf positive"] = of(10, "is_inf", {"detect_negative": False}), (ODD,)
CASES["clamp"] = of(1, "clamp", -1.5, 2.0), (X,)
CASES["clamp f16"] = of(1, "clamp", -1.5, 2.0), (X.astype(np.float16),)
CASES["clamp integers"] = of(1, "clamp", -1.5, 9.5), (INT,)
CASES["clamp u8"] = of(1, "clamp", -5.0, 900.0), (np.abs(INT).astype(np.uint8),)
for kind in ("i32", "u8", "f16", "boolean", "i64", "f64", "i16"):
    CASES[f"convert to {kind}"] = of(1, "convert", kind), (np.abs(X),)
CASES["convert_like"] = of(1, "convert_like"), (X, INT)
CASES["convert_promote_types"] = of(14, "convert_promote_types", True), (X, INT)
CASES["convert_promote_types of integers"] = (
    of(14, "convert_promote_types", True), (INT.astype(np.int8), BY.astype(np.uint8)),
)  # fmt: skip

for version, name in (
    (4, "hswish"), (5, "hsigmoid"), (4, "mish"), (4, "softplus"), (9, "softsign"), (4, "swish"),
    (2, "gelu"),
):  # fmt: skip
    CASES[name] = of(version, name), (X,)
    CASES[f"{name} f16"] = of(version, name), (X.astype(np.float16),)
CASES["hsigmoid i8"] = of(5, "hsigmoid"), (np.array([-9, -3, 0, 3, 9], np.int8),)
CASES["swish"] = of(4, "swish"), (X,)
CASES["swish f16"] = lambda x: OPSET[4].swish(x, constant(1.7, np.float16)), (X.astype("f2"),)
CASES["swish with beta"] = lambda x: OPSET[4].swish(x, constant(1.7)), (X,)
CASES["swish with computed beta"] = of(4, "swish"), (X, np.array(1.7, np.float32))
CASES["gelu erf"] = of(7, "gelu", "erf"), (X,)
CASES["gelu tanh"] = of(7, "gelu", "tanh"), (X,)
CASES["elu"] = of(1, "elu", 0.7), (X,)
CASES["selu"] = lambda x: OPSET[1].selu(x, constant(1.6), constant(1.1)), (X,)
CASES["hard_sigmoid"] = lambda x: OPSET[1].hard_sigmoid(x, constant(0.3), constant(0.4)), (X,)
CASES["softmax"] = of(1, "softmax", 1), (CUBE,)
CASES["softmax from the end"] = of(8, "softmax", -2), (CUBE,)
CASES["log_softmax"] = of(5, "log_softmax", -1), (CUBE,)
for shape in ((3,), (4,), (1,), (3, 1), (2, 3, 4), (1, 3, 4)):
    slope = np.linspace(0.1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    CASES[f"prelu {shape}"] = of(1, "prelu"), (CUBE, slope)
    CASES[f"prelu {shape} f32 of f16"] = of(1, "prelu"), (CUBE.astype("f2"), slope)
CASES["prelu of two axes"] = of(1, "prelu"), (X, np.array([0.1, 0.2, 0.3], np.float32))

for name in ("l1", "l2", "max", "mean", "min", "prod", "sum"):
    for axes, keep in (([1], True), ([-1, 0], False), (0, False)):
        CASES[f"reduce_{name} {axes} {keep}"] = of(4, f"reduce_{name}", axes, keep), (CUBE,)
    CASES[f"reduce_{name} of integers"] = of(4, f"reduce_{name}", [1], True), (INT,)
    CASES[f"reduce_{name} i8"] = of(4, f"reduce_{name}", [1], True), (BY.astype(np.int8),)
CASES["reduce_sum along computed axes"] = (
    lambda x, axes: OPSET[1].reduce_sum(x, axes, True), (CUBE, np.array([1])),
)  # fmt: skip
CASES["reduce_l2 along no axes"] = lambda x: OPSET[4].reduce_l2(x, empty(), True), (X,)
CASES["reduce_mean along no axes"] = lambda x: OPSET[1].reduce_mean(x, empty(), True), (X,)
for name in ("logical_and", "logical_or"):
    CASES[f"reduce_{name}"] = of(1, f"reduce_{name}", [1], True), (BOOL,)
    CASES[f"reduce_{name} of all"] = of(1, f"reduce_{name}", [0, 1], False), (BOOL,)
for exclusive in (False, True):
    for reverse in (False, True):
        CASES[f"cumsum {exclusive} {reverse}"] = (
            of(3, "cumsum", np.int64(1), exclusive, reverse), (CUBE,),
        )  # fmt: skip
CASES["cumsum of integers"] = of(3, "cumsum", np.int32(-1)), (INT,)

# OpenVINO computes less exactly nearer to 1.
FRACTIONS = np.array([-1, -0.99, -0.9, -1e-4, 0, 1e-7, 0.3, 0.98, 1], np.float32)
for type in (np.float32, np.float16):
    CASES[f"erf_inv {type.__name__}"] = (
        lambda x: NodeFactory("opset17").create("ErfInv", [x], {}),
        (FRACTIONS.astype(type),),
    )
CASES["erf_inv out of range"] = CASES["erf_inv float32"][0], (FRACTIONS + np.float32(1.5),)

RANKED = np.array([[3, 1, 4, 1.5], [9, 2, 6, 5]], np.float32)
for mode in ("max", "min"):
    for sort in ("value", "index"):
        for version in (1, 3, 11):
            CASES[f"topk-{version} {mode} {sort}"] = (
                of(version, "topk", 3, 1, mode, sort),
                (RANKED,),
            )
CASES["topk along axis 0"] = of(11, "topk", 1, -2, "max", "none", "i64"), (RANKED,)
CASES["topk stable"] = of(11, "topk", 3, 1, "max", "value", "i64", True), (CUBE[0],)
CASES["topk of a computed count"] = (
    lambda x, k: OPSET[3].topk(x, k, 1, "max", "value"), (RANKED, np.array(2)),
)  # fmt: skip
CASES["topk of integers"] = of(3, "topk", 2, 1, "max", "value"), (INT,)


@pytest.mark.parametrize("name", thinned(CASES, 2))
def test_same_numbers(name: str, tmp_path: Path) -> None:
    build, arrays = CASES[name]
    parameters = [OPSET[1].parameter(list(a.shape), ov.Type(a.dtype)) for a in arrays]
    for i, parameter in enumerate(parameters):
        parameter.output(0).tensor.set_names({f"in{i}"})
    model = ov.Model(build(*parameters).outputs(), parameters)
    ov.save_model(model, tmp_path / "a.xml", False)
    feeds = {f"in{i}": a for i, a in enumerate(arrays)}
    expected = engines()[0].load(tmp_path / "a.xml").run(feeds)
    for opset in (13, 21):
        if opset == 13 and name in SINCE_18:
            continue
        bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx", opset=opset)
        actual = run_onnx(tmp_path / "a.onnx", feeds)
        for one, other in zip(expected.values(), actual, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            tolerance = 2e-3 if one.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_inverse_error_function_near_its_poles(tmp_path: Path) -> None:
    x = OPSET[1].parameter([4], ov.Type.f32)
    y = NodeFactory("opset17").create("ErfInv", [x], {})
    ov.save_model(ov.Model(y.outputs(), [x]), tmp_path / "a.xml", False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx")
    values = np.array([-0.999999, 0.99, 0.9999, 0.99999994], np.float32)
    name = onnx.load(tmp_path / "a.onnx").graph.input[0].name
    (found,) = run_onnx(tmp_path / "a.onnx", {name: values})
    # 1 - |x| is exact, and erfc keeps its digits as erf gets near 1.
    beyond = [math.erfc(abs(value)) for value in found.astype(float)]
    np.testing.assert_allclose(beyond, 1 - np.abs(values.astype(float)), rtol=1e-4)
    np.testing.assert_array_equal(np.sign(found), np.sign(values))
