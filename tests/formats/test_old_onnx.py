"""Old versions of ONNX's elementwise operators, activations and reductions keep their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bridge
from bridge.check.engines import OnnxRuntime, OpenVino

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11
ROW = np.array([1, -2, 3, 4], np.float32)
COLUMN = np.array([1, 2, 3], np.float32)
IMAGES = np.random.default_rng(1).standard_normal((2, 3, 4, 5)).astype(np.float32)
INT = A[1].astype(np.int32)


def softmax(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def hardmax(x: np.ndarray) -> np.ndarray:
    return np.eye(x.shape[-1], dtype=x.dtype)[x.argmax(-1)]


def normalized(x: np.ndarray, *axes: int) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True)


BEST = np.sort(A, -1)[..., ::-1][..., :2]
PLACES = np.argsort(-A, -1, kind="stable")[..., :2]

# Operator, operator set, attributes, inputs, expected outputs.
CASES: list[tuple[str, int, dict[str, Any], Sequence[np.ndarray], Sequence[np.ndarray]]] = [
    ("Add", 6, {"broadcast": 1}, (A, ROW), (A + ROW,)),
    ("Add", 6, {"broadcast": 1, "axis": 1}, (A, COLUMN), (A + COLUMN[:, None],)),
    ("Sub", 1, {"broadcast": 1, "axis": -2}, (A, COLUMN), (A - COLUMN[:, None],)),
    ("Mul", 6, {}, (A, A), (A * A,)),
    ("Div", 6, {"broadcast": 1, "axis": 0}, (A, COLUMN[:2]), (A / COLUMN[:2, None, None],)),
    ("Pow", 1, {"broadcast": 1}, (np.abs(A), ROW), (np.abs(A) ** ROW,)),
    ("Greater", 1, {"broadcast": 1, "axis": 1}, (A, COLUMN), (np.greater(A, COLUMN[:, None]),)),
    ("And", 1, {"broadcast": 1}, (A > 0, ROW > 0), ((A > 0) & (ROW > 0),)),
    ("Max", 6, {}, (A, -A, A * 0 + 3), (np.maximum(np.maximum(A, -A), 3),)),
    ("Sum", 6, {}, (A,), (A,)),
    ("Mean", 6, {}, (A, A + 3), (A + 1.5,)),
    ("Abs", 1, {"consumed_inputs": [0]}, (A,), (np.abs(A),)),
    ("Cast", 1, {"to": "INT32"}, (A,), (A.astype(np.int32),)),
    ("Cast", 6, {"to": TensorProto.DOUBLE}, (A,), (A.astype(np.float64),)),
    ("Tile", 1, {}, (A, np.array(3, "f4"), np.array(1, "f4")), (np.tile(A, (1, 3, 1)),)),
    ("Clip", 1, {"max": 2.5}, (A,), (np.minimum(A, np.float32(2.5)),)),
    ("Clip", 6, {"min": -1.0, "max": 2.5}, (A,), (A.clip(-1, 2.5),)),
    ("Clip", 6, {}, (A,), (A,)),
    ("Clip", 10, {"min": -1.0}, (A.astype(np.float16),), (A.astype(np.float16).clip(-1),)),
    ("PRelu", 6, {}, (A, COLUMN), (np.where(A < 0, A * COLUMN[:, None], A),)),
    ("PRelu", 6, {}, (A, COLUMN[1:2]), (np.where(A < 0, A * 2, A),)),
    ("PRelu", 7, {}, (A, ROW), (np.where(A < 0, A * ROW, A),)),
    ("Selu", 1, {}, (A,), (1.0507 * np.where(A > 0, A, 1.6732 * (np.exp(A) - 1)),)),
    ("Selu", 6, {"alpha": 2.0, "gamma": 3.0}, (A,), (3 * np.where(A > 0, A, 2 * np.expm1(A)),)),
    ("HardSigmoid", 1, {}, (A,), ((0.2 * A + 0.5).clip(0, 1).astype(np.float32),)),
    ("Softmax", 1, {}, (A,), (softmax(A, (1, 2)),)),
    ("Softmax", 11, {"axis": 2}, (A,), (softmax(A, 2),)),
    ("Softmax", 11, {"axis": -3}, (A,), (softmax(A, (0, 1, 2)),)),
    ("Softmax", 13, {"axis": 1}, (A,), (softmax(A, 1),)),
    ("LogSoftmax", 11, {}, (A,), (np.log(softmax(A, (1, 2))),)),
    ("Hardmax", 11, {}, (A,), (hardmax(A.reshape(2, 12)).reshape(A.shape),)),
    ("Hardmax", 13, {"axis": 1}, (A,), (hardmax(A.swapaxes(1, 2)).swapaxes(1, 2),)),
    ("ArgMax", 1, {"axis": 1, "keepdims": 0}, (A,), (A.argmax(1),)),
    ("ArgMin", 12, {"select_last_index": 1}, (A * 0,), (np.ones((1, 3, 4), np.int64),)),
    ("TopK", 1, {"k": 2}, (A,), (BEST, PLACES)),
    ("TopK", 10, {}, (A, np.array([2])), (BEST, PLACES)),
    ("ReduceSum", 11, {"axes": [-1], "keepdims": 0}, (A,), (A.sum(-1),)),
    ("ReduceMean", 1, {"axes": [0, 2]}, (A,), (A.mean((0, 2), keepdims=True),)),
    ("ReduceLogSumExp", 13, {}, (A,), (np.log(np.exp(A).sum(keepdims=True)),)),
    ("ReduceL1", 13, {"axes": [1]}, (A,), (np.abs(A).sum(1, keepdims=True),)),
    ("ReduceSumSquare", 13, {"axes": [1], "keepdims": 0}, (A,), ((A * A).sum(1),)),
    ("CumSum", 11, {"reverse": 1}, (A, np.array(1)), (A[:, ::-1].cumsum(1)[:, ::-1],)),
    ("Mod", 10, {"fmod": 1}, (A, ROW), (np.fmod(A, ROW),)),
    ("Mod", 10, {}, (A.astype(np.int32), ROW.astype(np.int32)), (np.mod(A, ROW).astype("i4"),)),
    ("Pow", 12, {}, (A, ROW[:1].astype(np.int64) + 2), (A**3,)),
    ("Pow", 12, {}, (INT, np.array(0.5, np.float32)), ((INT**0.5).astype("i4"),)),
    ("BitShift", 11, {"direction": "RIGHT"}, (np.array([16, 9], "u1"), np.array([2, 1], "u1")),
     (np.array([4, 4], "u1"),)),
    ("Sub", 14, {}, (np.array([3], "u1"), np.array([5], "u1")), (np.array([254], "u1"),)),
    ("Add", 14, {}, (np.array([100], "i1"), np.array([100], "i1")), (np.array([-56], "i1"),)),
    ("Div", 14, {}, (INT - 5, np.array([-2], "i4")), (np.trunc((INT - 5) / -2).astype("i4"),)),
    ("CumProd", 26, {}, (A, np.array(2)), (A.cumprod(2),)),
    ("CumProd", 26, {"exclusive": 1}, (ROW, np.array(0)), (np.array([1, 1, -2, -6], "f4"),)),
    ("Swish", 24, {"alpha": 2.0}, (A,), (A / (1 + np.exp(-2 * A)),)),
    ("Affine", 1, {"alpha": 2.0, "beta": 0.5}, (A,), (2 * A + 0.5,)),
    ("Affine", 9, {}, (A,), (A,)),
    ("Scale", 8, {"scale": 3.0}, (A,), (3 * A,)),
    ("ImageScaler", 6, {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}, (IMAGES,),
     (2 * IMAGES + COLUMN[:, None, None],)),
    ("ScaledTanh", 6, {"alpha": 2.0, "beta": 0.5}, (A,), (2 * np.tanh(A / 2),)),
    ("ParametricSoftplus", 6, {"alpha": 2.0, "beta": 0.5}, (A,), (2 * np.logaddexp(0, A / 2),)),
    ("ThresholdedRelu", 8, {"alpha": 2.0}, (A,), (np.where(A > 2, A, 0),)),
    ("ThresholdedRelu", 1, {}, (A,), (np.where(A > 1, A, 0),)),
    ("Crop", 6, {"border": [1, 0, 2, 1]}, (IMAGES,), (IMAGES[:, :, :-1, 1:-2],)),
    ("Crop", 6, {"border": [1, 2, 0, 0], "scale": [2, 3]}, (IMAGES,), (IMAGES[:, :, 2:, 1:4],)),
    ("DynamicSlice", 8, {}, (IMAGES, np.array([1, -3]), np.array([2, -1]), np.array([1, 3])),
     (IMAGES[:, 1:2, :, -3:-1],)),
    ("MeanVarianceNormalization", 8, {}, (IMAGES,), (normalized(IMAGES, 0, 2, 3),)),
    ("MeanVarianceNormalization", 8, {"across_channels": 1, "normalize_variance": 0}, (IMAGES,),
     (IMAGES - IMAGES.mean(),)),
    ("ReduceMax", 20, {"keepdims": 0}, (A > 0, np.array([0])), ((A > 0).any(0),)),
]  # fmt: skip


def model_of(op: str, opset: int, attributes: dict[str, Any], arrays: Sequence[np.ndarray],
             outputs: Sequence[np.ndarray]) -> onnx.ModelProto:  # fmt: skip
    """A model of one node. Vectors of integers, and scalars, become constants, as most axes and
    counts are."""
    names = [f"in{i}" for i in range(len(arrays))]
    constants = [i for i, a in enumerate(arrays) if i and (a.dtype == np.int64 or not a.ndim)]
    graph = helper.make_graph(
        [helper.make_node(op, names, [f"out{i}" for i in range(len(outputs))], **attributes)],
        "old",
        [_info(names[i], a) for i, a in enumerate(arrays) if i not in constants],
        [_info(f"out{i}", a) for i, a in enumerate(outputs)],
        [onnx.numpy_helper.from_array(arrays[i], names[i]) for i in constants],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _info(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]} {case[2]}")
def test_old_versions(case: Any, tmp_path: Path) -> None:
    op, opset, attributes, arrays, expected = case
    model = model_of(op, opset, attributes, arrays, expected)
    feeds = {name.name: arrays[int(name.name[2:])] for name in model.graph.input}
    for path, engine in (
        (tmp_path / "a.xml", OpenVino(threads=1)),
        (tmp_path / "a.onnx", OnnxRuntime(threads=1)),
    ):
        bridge.convert(model, path, **({"opset": 21} if path.suffix == ".onnx" else {}))
        found = engine.load(path).run(feeds)
        for one, other in zip(expected, found.values(), strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(other, one, rtol=2e-5, atol=1e-5)
