"""Nodes of onnxruntime's own operators, for `test_microsoft.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

_RNG = np.random.default_rng(17)


@dataclass(frozen=True)
class Case:
    """One node. The inputs at `data` are the model's inputs, the others constants; an output
    without a name is absent."""

    op: str
    inputs: list[np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    data: tuple[int, ...] = (0,)
    outputs: tuple[str, ...] = ("y",)
    domain: str = "com.microsoft"


def whole(*shape: int, type: Any = np.uint8, low: int = 0, high: int = 255) -> np.ndarray:
    return _RNG.integers(low, high, shape).astype(type)


def f32(value: Any) -> np.ndarray:
    return np.asarray(value, np.float32)


def f16(value: Any) -> np.ndarray:
    return np.asarray(value, np.float16)


def i32(value: Any) -> np.ndarray:
    return np.asarray(value, np.int32)


def i64(value: Any) -> np.ndarray:
    return np.asarray(value, np.int64)


def random(*shape: int) -> np.ndarray:
    return f32(_RNG.normal(size=shape))


def u8(value: int) -> np.ndarray:
    return np.array(value, np.uint8)


# Quantised --------------------------------------------------------------------------------------

IMAGE, OTHER = whole(1, 3, 6, 8), whole(1, 3, 6, 8)
X = (f32(0.02), u8(120))
Y = (f32(0.05), u8(100))
QUANTIZED: dict[str, Case] = {
    "add": Case("QLinearAdd", [IMAGE, *X, OTHER, *Y, f32(0.06), u8(110)], {}),
    "multiply": Case("QLinearMul", [IMAGE, *X, OTHER, *Y, f32(0.1), u8(130)], {}),
    "concat": Case(
        "QLinearConcat", [f32(0.06), u8(110), IMAGE, *X, OTHER, *Y], {"axis": 1}, data=(2,)
    ),
    "sigmoid": Case("QLinearSigmoid", [IMAGE, *X, f32(1 / 256), u8(0)], {}),
    "leaky": Case("QLinearLeakyRelu", [IMAGE, *X, *Y], {"alpha": 0.2}),
    "softmax": Case("QLinearSoftmax", [IMAGE, *X, f32(1 / 256), u8(0)], {"axis": -1, "opset": 13}),
    "mean": Case("QLinearGlobalAveragePool", [IMAGE, *X, f32(0.011), u8(128)], {}),
    "average": Case(
        "QLinearAveragePool",
        [IMAGE, *X, f32(0.017), u8(128)],
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]},
    ),
    "gemm": Case(
        "QGemm",
        [whole(4, 6), *X, whole(6, 5, high=20), *Y, whole(5, type=np.int32), f32(1.1), u8(128)],
        {},
    ),
    "integers to float": Case(
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
    "dynamic": Case(
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
    "quantise": Case("QuantizeLinear", [random(3, 4), f32(0.1), np.array(50, np.uint16)], {}),
    "dequantise": Case(
        "DequantizeLinear",
        [whole(3, 4, type=np.uint16), f32(0.1), np.array(50, np.uint16)],
        {},
    ),
    "4 bits": Case(
        "MatMulNBits",
        [random(3, 64), whole(5, 2, 16), random(5, 2)],
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
    ),
    "4 bits, zero points": Case(
        "MatMulNBits",
        [random(2, 3, 80), whole(5, 3, 16), random(15), whole(10)],
        {"K": 80, "N": 5, "bits": 4, "block_size": 32},
    ),
    "4 bits, bias": Case(
        "MatMulNBits",
        [random(3, 64), whole(5, 2, 16), random(5, 2), None, None, random(5)],
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
    ),
    "8 bits": Case(
        "MatMulNBits",
        [random(3, 64), whole(5, 2, 32), random(5, 2)],
        {"K": 64, "N": 5, "bits": 8, "block_size": 32},
    ),
}

# Normalisation ----------------------------------------------------------------------------------

X3 = random(2, 5, 8)
NORMALIZED: dict[str, Case] = {
    "layer": Case("LayerNormalization", [X3, random(8), random(8)], {"axis": -1}, domain=""),
    "layer, statistics": Case(
        "LayerNormalization", [X3, random(8)], outputs=("y", "mean", "deviation"), domain=""
    ),
    "simplified": Case("SimplifiedLayerNormalization", [X3, random(8)], domain=""),
    "simplified, f16": Case("SimplifiedLayerNormalization", [f16(X3), f16(random(8))], domain=""),
    "simplified, statistics": Case(
        "SimplifiedLayerNormalization",
        [X3, random(5, 8)],
        {"axis": 1, "epsilon": 1e-3},
        outputs=("y", "deviation"),
        domain="",
    ),
    "skip": Case("SkipLayerNormalization", [X3, random(2, 5, 8), random(8)], data=(0, 1)),
    "skip, sum": Case(
        "SkipLayerNormalization",
        [X3, random(2, 5, 8), random(8), random(8), random(8)],
        {"epsilon": 1e-5},
        data=(0, 1),
        outputs=("y", "", "", "sum"),
    ),
    "skip of fewer axes": Case("SkipLayerNormalization", [X3, random(5, 8), random(8), random(8)]),
    "skip, f16": Case(
        "SkipLayerNormalization",
        [f16(X3), f16(random(2, 5, 8)), f16(random(8)), f16(random(8))],
        data=(0, 1),
        outputs=("y", "", "", "sum"),
    ),
    "skip, simplified": Case(
        "SkipSimplifiedLayerNormalization",
        [X3, random(2, 5, 8), random(8), random(8)],
        data=(0, 1),
        outputs=("y", "", "", "sum"),
    ),
    "skip, simplified, f16": Case(
        "SkipSimplifiedLayerNormalization",
        [f16(X3), f16(random(2, 5, 8)), f16(random(8))],
        data=(0, 1),
        outputs=("y", "", "", "sum"),
    ),
    "embedding": Case(
        "EmbedLayerNormalization",
        [
            whole(2, 5, type=np.int32, high=9),
            whole(2, 5, type=np.int32, high=2),
            random(9, 8),
            random(7, 8),
            random(2, 8),
            random(8),
            random(8),
            i32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]),
        ],
        data=(0, 1, 7),
        outputs=("y", "index", "sum"),
    ),
    "embedding without segments": Case(
        "EmbedLayerNormalization",
        [
            whole(2, 5, type=np.int32, high=9),
            None,
            random(9, 8),
            random(7, 8),
            None,
            random(8),
            random(8),
            None,
            i32([[1, 2, 3, 4, 5]]),
        ],
        {"epsilon": 1e-6},
        data=(0, 8),
        outputs=("y", "index"),
    ),
}

# Fused ------------------------------------------------------------------------------------------

PICTURE = random(2, 4, 7, 9)
FUSED: dict[str, Case] = {
    "gelu": Case("Gelu", [X3]),
    "gelu of a sum": Case("BiasGelu", [X3, random(8)]),
    "fast gelu": Case("FastGelu", [X3]),
    "fast gelu of a sum": Case("FastGelu", [X3, random(8)]),
    "quick gelu": Case("QuickGelu", [X3]),
    "quick gelu, alpha": Case("QuickGelu", [X3], {"alpha": 1.0}),
    "matmul": Case("FusedMatMul", [X3, random(8, 6)], {"alpha": 0.5}),
    "matmul, transposed": Case(
        "FusedMatMul",
        [random(2, 3, 8, 5), random(2, 3, 6, 8)],
        {"transA": 1, "transB": 1, "alpha": 0.125},
        data=(0, 1),
    ),
    "matmul, batch of the left": Case(
        "FusedMatMul", [random(5, 2, 3, 8), random(2, 3, 8, 6)], {"transBatchA": 1}, data=(0, 1)
    ),
    "matmul, batch of the right": Case(
        "FusedMatMul", [random(2, 5, 8), random(8, 2, 6)], {"transBatchB": 1}, data=(0, 1)
    ),
    "matmul, both batches": Case(
        "FusedMatMul",
        [random(8, 2, 5), random(6, 2, 8)],
        {"transBatchA": 1, "transBatchB": 1, "transA": 1, "transB": 1},
        data=(0, 1),
    ),
    "matmul of vectors": Case("FusedMatMul", [random(8), random(8, 3)], {"alpha": 2.0}),
    "older matmul": Case("TransposeMatMul", [X3, random(6, 8)], {"transB": 1}),
    "gemm": Case(
        "FusedGemm",
        [random(4, 6), random(5, 6), random(5)],
        {"transB": 1, "alpha": 0.5, "beta": 2.0, "activation": "Relu"},
    ),
    "gemm, leaky": Case(
        "FusedGemm",
        [random(4, 6), random(6, 5)],
        {"activation": "LeakyRelu", "activation_alpha": 0.3},
    ),
    "gemm, hard": Case(
        "FusedGemm",
        [random(4, 6), random(6, 5), random(4, 1)],
        {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
    ),
    "conv": Case(
        "FusedConv",
        [PICTURE, random(6, 2, 3, 3), random(6)],
        {"group": 2, "pads": [1, 1, 1, 1], "strides": [2, 1], "activation": "Relu"},
    ),
    "conv and a sum": Case(
        "FusedConv",
        [PICTURE, random(6, 4, 1, 1), random(6), random(2, 6, 7, 9)],
        {"activation": "Relu"},
        data=(0, 3),
    ),
    **{
        f"conv, {name}": Case(
            "FusedConv",
            [PICTURE, random(6, 4, 3, 3)],
            {"activation": name, **({"activation_params": values} if values else {})},
        )
        for name, values in (
            ("Tanh", []),
            ("Sigmoid", []),
            ("LeakyRelu", [0.2]),
            ("Clip", [-0.5, 2.0]),
            ("HardSigmoid", [0.2, 0.5]),
        )
    },
}

# Standard ---------------------------------------------------------------------------------------

STANDARD: dict[str, Case] = {
    "triangle": Case("Trilu", [random(2, 4, 5), i64(1)], {"upper": 0}),
    "range": Case("Range", [f32(1), f32([7]), f32(1.5)], data=(0, 1, 2)),
    "range of ones": Case("Range", [i64([2]), i64([9])], data=(0, 1)),
    "unique": Case("Unique", [f32([2, 1, 1, 3, 4, 3])], outputs=("y", "index", "count")),
    "new axis": Case("ExpandDims", [X3, i32(-2)]),
    "pad": Case("Pad", [X3, i64([0, 1, 2, 0, 0, 1]), f32([4])]),
    "reflected pad": Case("Pad", [X3, i64([[0, 1, 2, 0, 0, 1]])], {"mode": "reflect"}),
    "inverse": Case("Inverse", [random(3, 4, 4) + 4 * f32(np.eye(4))]),
    "gather": Case("GatherND", [X3, i32([[0, 1], [1, 4]])]),
    "samples": Case(
        "GridSample",
        [random(2, 3, 6, 7), f32(_RNG.uniform(-1.1, 1.1, (2, 4, 5, 2)))],
        {"padding_mode": "border"},
        data=(0, 1),
    ),
    "cubic samples": Case(
        "GridSample",
        [random(2, 3, 6, 7), f32(_RNG.uniform(-0.9, 0.9, (2, 4, 5, 2)))],
        {"mode": "bicubic", "align_corners": 1},
        data=(0, 1),
    ),
    "distances": Case("CDist", [random(4, 3), random(5, 3)], {"metric": "euclidean"}),
    "squares of distances": Case("CDist", [random(4, 3), random(5, 3)], data=(0, 1)),
}


CASES = {**QUANTIZED, **NORMALIZED, **FUSED, **STANDARD}
