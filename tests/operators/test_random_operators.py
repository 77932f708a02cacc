"""Random numbers, both ways: element types, shapes, ranges and means. The numbers themselves differ
between the engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bridge
from tests.operators.test_ir_matmul import Case, Constant, convert, of
from tests.support.running import OnnxRuntime, OpenVino

SHAPE = (40, 50)
LIKE = np.zeros(SHAPE, np.float32)
CHANCES = np.log(np.tile(np.array([[0.1, 0.2, 0.7]], np.float32), (20, 1)))
F32, F16, F64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE

# Operator, input, attributes, and the expected dtype, shape, minimum, maximum and mean.
ONNX: dict[str, tuple[Any, ...]] = {
    "uniform": ("RandomUniform", None, {"shape": SHAPE, "low": -2.0, "high": 4.0},
                np.float32, SHAPE, -2, 4, 1),
    "uniform f64": ("RandomUniform", None, {"shape": SHAPE, "dtype": F64, "seed": 3.0},
                    np.float64, SHAPE, 0, 1, 0.5),
    "uniform like": ("RandomUniformLike", LIKE, {"dtype": F16}, np.float16, SHAPE, 0, 1, 0.5),
    "normal": ("RandomNormal", None, {"shape": SHAPE, "mean": 3.0, "scale": 2.0},
               np.float32, SHAPE, -20, 20, 3),
    "normal like": ("RandomNormalLike", LIKE, {"seed": 1.0}, np.float32, SHAPE, -8, 8, 0),
    "bernoulli": ("Bernoulli", LIKE + np.float32(0.3), {}, np.float32, SHAPE, 0, 1, 0.3),
    "multinomial": ("Multinomial", CHANCES, {"sample_size": 60}, np.int32, (20, 60), 0, 2, 1.6),
}  # fmt: skip


@pytest.mark.parametrize("name", ONNX)
def test_from_onnx(name: str, tmp_path: Path) -> None:
    op, x, attributes, dtype, shape, least, most, mean = ONNX[name]
    inputs = [] if x is None else ["x"]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], **attributes)],
        "random",
        [helper.make_tensor_value_info("x", F32, ["n", x.shape[1]]) for _ in inputs],
        [helper.make_tensor_value_info("y", element, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    bridge.convert(model, tmp_path / "r.xml")
    bridge.convert(tmp_path / "r.xml", tmp_path / "r.onnx")
    arrays = [] if x is None else [x]
    results = [
        OpenVino(tmp_path / "r.xml").run(arrays)[0],
        OnnxRuntime(tmp_path / "r.onnx").run(dict(zip(inputs, arrays, strict=True)))[0],
    ]
    for y in results:
        _check(y, dtype, shape, least, most, mean)


def _check(
    y: np.ndarray, dtype: Any, shape: tuple[int, ...], least: float, most: float, mean: float
) -> None:
    assert y.dtype == dtype and y.shape == shape
    assert least <= y.min() and y.max() <= most and y.std() > 0
    assert abs(y.astype(np.float64).mean() - mean) < 0.05 * (most - least)


def uniform(dtype: Any, name: str, low: float, high: float, computed: bool) -> Case:
    shape = np.array(SHAPE, np.int64)
    build = of(8, "RandomUniform", output_type=name, global_seed=1, op_seed=2)
    bounds = (Constant(low, dtype), Constant(high, dtype))
    return build, (shape if computed else Constant(shape), *bounds)


def multinomial(dtype: str, logs: bool, again: bool) -> Case:
    attributes = {"convert_type": dtype, "log_probs": logs, "with_replacement": again}
    build = of(13, "Multinomial", global_seed=1, op_seed=2, **attributes)
    return build, (CHANCES if logs else np.exp(CHANCES), Constant(60 if again else 2, np.int64))


IR: dict[str, tuple[Case, Any, tuple[int, ...], float, float, float]] = {
    "uniform": (uniform(np.float32, "f32", -1, 3, False), np.float32, SHAPE, -1, 3, 1),
    "uniform computed": (uniform(np.float16, "f16", 0, 1, True), np.float16, SHAPE, 0, 1, 0.5),
    "uniform i32": (uniform(np.int32, "i32", -5, 6, False), np.int32, SHAPE, -5, 5, 0),
    "uniform i64": (uniform(np.int64, "i64", 0, 9, True), np.int64, SHAPE, 0, 8, 4),
    "multinomial": (multinomial("i64", False, True), np.int64, (20, 60), 0, 2, 1.6),
    "multinomial of logs": (multinomial("i32", True, True), np.int32, (20, 60), 0, 2, 1.6),
}


@pytest.mark.parametrize("name", IR)
def test_from_ir(name: str, tmp_path: Path) -> None:
    case, dtype, shape, least, most, mean = IR[name]
    _, target, arrays = convert(case, tmp_path)
    feed = {f"in{index}": array for index, array in enumerate(arrays)}
    _check(OnnxRuntime(target).run(feed)[0], dtype, shape, least, most, mean)


def test_without_replacement(tmp_path: Path) -> None:
    _, target, arrays = convert(multinomial("i64", False, False), tmp_path)
    (y,) = OnnxRuntime(target).run({"in0": arrays[0]})
    assert y.shape == (20, 2) and y.dtype == np.int64
    assert (y[:, 0] != y[:, 1]).all() and set(np.unique(y)) <= {0, 1, 2}
    onnx.checker.check_model(onnx.load(target), full_check=True)
