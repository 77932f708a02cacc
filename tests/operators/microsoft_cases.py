"""Nodes of onnxruntime's own operators, for `test_microsoft.py`."""

from __future__ import annotations

import math
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


def weights(*shape: int) -> np.ndarray:
    """Weights of i8 that use 7 bits. On a processor without VNNI the engines add products of u8 and
    i8 in pairs of 16 bits; larger weights overflow (`test_engine_faults.py`)."""
    return whole(*shape, type=np.int8, low=-64, high=65)


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
# With scales that are powers of two all engines compute the same; they agree on numbers halfway
# between two levels of 8 bits.
X = (f32(1 / 64), u8(120))
Y = (f32(1 / 16), u8(100))
QUANTIZED: dict[str, Case] = {
    "add": Case("QLinearAdd", [IMAGE, *X, OTHER, *Y, f32(1 / 16), u8(110)], {}),
    "multiply": Case("QLinearMul", [IMAGE, *X, OTHER, *Y, f32(1 / 8), u8(130)], {}),
    "concat": Case(
        "QLinearConcat", [f32(1 / 16), u8(110), IMAGE, *X, OTHER, *Y], {"axis": 1}, data=(2,)
    ),
    "sigmoid": Case("QLinearSigmoid", [IMAGE, *X, f32(1 / 256), u8(0)], {}),
    "leaky": Case("QLinearLeakyRelu", [IMAGE, *X, *Y], {"alpha": 0.25}),
    "softmax": Case("QLinearSoftmax", [IMAGE, *X, f32(1 / 256), u8(0)], {"axis": -1, "opset": 13}),
    "mean": Case("QLinearGlobalAveragePool", [IMAGE, *X, f32(0.011), u8(128)], {}),
    "average": Case(
        "QLinearAveragePool",
        [IMAGE, *X, f32(0.017), u8(128)],
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]},
    ),
    "gemm": Case(
        "QGemm",
        [whole(4, 6), *X, whole(6, 5, high=20), *Y, whole(5, type=np.int32), f32(1), u8(128)],
        {},
    ),
    "integers to float": Case(
        "MatMulIntegerToFloat",
        [
            whole(2, 4, 6),
            weights(6, 5),
            f32(0.02),
            f32(0.03),
            u8(120),
            np.array(3, np.int8),
            random(5),
        ],
        {},
    ),
    "dynamic lstm": Case(
        "DynamicQuantizeLSTM",
        [
            random(4, 2, 6),
            weights(1, 6, 20),
            weights(1, 5, 20),
            random(1, 40),
            None,
            None,
            None,
            None,
            f32([0.01]),
            np.array([3], np.int8),
            f32([0.02]),
            np.array([0], np.int8),
        ],
        {"hidden_size": 5},
        outputs=("y", "h", "c"),
    ),
    "dynamic lstm, large, two outputs": Case(
        "DynamicQuantizeLSTM",
        [
            random(4, 2, 64),
            weights(1, 64, 20),
            weights(1, 5, 20),
            *[None] * 5,
            f32([0.01]),
            np.array([3], np.int8),
            f32([0.02]),
            np.array([0], np.int8),
        ],
        {"hidden_size": 5},
        outputs=("y", "h"),
    ),
    "dynamic lstm, both ways": Case(
        "DynamicQuantizeLSTM",
        [
            random(4, 2, 6),
            weights(2, 6, 20),
            weights(2, 5, 20),
            None,
            None,
            random(2, 2, 5),
            random(2, 2, 5),
            random(2, 15),
            f32(_RNG.uniform(0.005, 0.01, (2, 20))),
            np.zeros((2, 20), np.int8),
            f32(_RNG.uniform(0.005, 0.01, (2, 20))),
            np.zeros((2, 20), np.int8),
        ],
        {"hidden_size": 5, "direction": "bidirectional", "input_forget": 0},
        data=(0, 5, 6),
        outputs=("y", "", "c"),
    ),
    "dynamic": Case(
        "DynamicQuantizeMatMul",
        [
            random(2, 4, 6),
            weights(6, 5),
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
    **{
        f"4 bits in a table, {kind}, {size}": Case(
            "MatMulBnb4",
            [random(3, size), whole(-(-5 * size // 2)), random(-(-5 * size // 16))],
            {"K": size, "N": 5, "block_size": 16, "quant_type": number},
        )
        for number, kind in enumerate(("FP4", "NF4"))
        for size in (32, 24, 33, 4096)
    },
    "where": Case(
        "QLinearWhere",
        [whole(3, 6, 8, high=2).astype(bool), IMAGE, *X, OTHER, *Y, f32(1 / 16), u8(110)],
        data=(0, 1, 4),
    ),
    "conv, channels last": Case(
        "QLinearConv",
        [
            whole(1, 6, 8, 3),
            *X,
            whole(4, 3, 3, 3, high=20),
            f32(1 / 64),
            u8(10),
            *Y,
            whole(4, type=np.int32),
        ],
        {"channels_last": 1, "pads": [1, 1, 1, 1]},
    ),
    "pool, channels last": Case(
        "NhwcMaxPool", [whole(1, 6, 8, 3)], {"kernel_shape": [2, 3], "pads": [0, 1, 0, 1]}
    ),
    "pool, channels last, rounded up": Case(
        "NhwcMaxPool",
        [whole(1, 6, 8, 3)],
        {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1},
    ),
    "rows of 4 bits": Case(
        "GatherBlockQuantized",
        [whole(9, 16), i64([[1, 7], [-1, 0]]), random(9, 2)],
        {"block_size": 16},
        data=(1,),
    ),
    "rows of 4 bits, zero points": Case(
        "GatherBlockQuantized",
        [whole(9, 16), i64([1, 7]), random(9, 2), whole(9, 1)],
        {"block_size": 16},
        data=(1,),
    ),
    "rows of 8 bits": Case(
        "GatherBlockQuantized",
        [whole(9, 32), i64([1, 7]), random(9, 2)],
        {"block_size": 16, "bits": 8, "quantize_axis": -1},
        data=(1,),
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
    "branches": Case("BranchwiseRMSNorm", [random(2, 3, 4), random(3, 4)]),
    "branches side by side": Case(
        "BranchwiseRMSNorm", [random(2, 5, 12), random(12)], {"num_branches": 3, "epsilon": 1e-3}
    ),
    "branches of one scale": Case(
        "BranchwiseRMSNorm", [random(2, 12), random(4)], {"num_branches": 3}
    ),
    "branches without a scale": Case("BranchwiseRMSNorm", [random(2, 3, 4)]),
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
    "embedding of bytes": Case(
        "QEmbedLayerNormalization",
        [
            whole(2, 5, type=np.int32, high=9),
            whole(2, 5, type=np.int32, high=2),
            *(whole(n, 8) for n in (9, 7, 2)),
            *(whole(8) for _ in range(2)),
            i32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]),
            *(f32(0.01 * n) for n in range(1, 6)),
            *(u8(100 + n) for n in range(5)),
        ],
        data=(0, 1, 7),
        outputs=("y", "index"),
    ),
    "gated": Case("GatedRMSNorm", [X3, random(4), random(2, 5, 8)], data=(0, 2)),
    "gated, of small numbers": Case(
        "GatedRMSNorm", [X3 * f32(1e-3), f32(range(8)), X3], data=(0, 2)
    ),
    "gated by sigmoid": Case(
        "GatedRMSNorm",
        [X3, random(8), random(2, 5, 8)],
        {"activation": "sigmoid", "epsilon": 1e-3},
        data=(0, 2),
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
    "scaled silu": Case("ScaledSiLU", [X3], {"alpha": 1.5}),
    "scaled silu, input": Case("ScaledSiLU", [X3, f32(0.5)]),
    "gated sum": Case("GatedAdd", [X3, random(2, 5, 8), random(2, 5, 1)], data=(0, 1, 2)),
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
    "linear attention": Case(
        "LinearAttention",
        [
            random(2, 3, 8),
            random(2, 3, 8),
            random(2, 3, 6),
            None,
            -abs(random(2, 3, 2)),
            abs(random(2, 3, 2)),
        ],
        {"q_num_heads": 2, "kv_num_heads": 2, "chunk_size": 2},
        data=(0, 1, 2, 4, 5),
        outputs=("y", "state"),
    ),
    "causal convolution": Case(
        "CausalConvWithState",
        [random(2, 3, 7), random(3, 1, 4), random(3), random(2, 3, 3)],
        {"activation": "silu"},
        data=(0, 3),
        outputs=("y", "state"),
    ),
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
    "sample": Case("SampleOp", [random(2, 3)]),
    "slices of the last axis": Case("UnfoldTensor", [random(2, 7)], {"size": 3, "step": 2}),
    "slices of rows": Case("UnfoldTensor", [random(2, 5, 3)], {"dim": 1, "size": 2}),
    "distances": Case("CDist", [random(4, 3), random(5, 3)], {"metric": "euclidean"}),
    "squares of distances": Case("CDist", [random(4, 3), random(5, 3)], data=(0, 1)),
}


# Attention --------------------------------------------------------------------------------------


def attention(*more: np.ndarray | None, data: tuple[int, ...] = (0,), **attributes: Any) -> Case:
    """Attention over 2 sequences of 5 with 2 heads of 4, with further inputs from the bias on."""
    outputs = ("y", "present") if len(more) > 2 and more[2] is not None else ("y",)
    inputs = [random(2, 5, 6), random(6, 24), *more]
    return Case("Attention", inputs, {"num_heads": 2, **attributes}, data, outputs)


def several(*inputs: np.ndarray | None, outputs: int = 1, **attributes: Any) -> Case:
    """MultiHeadAttention with 2 heads."""
    names = ("y", "key", "value", "scores")[:outputs]
    data = tuple(i for i in range(len(inputs)) if inputs[i] is not None and i != 3)
    return Case("MultiHeadAttention", list(inputs), {"num_heads": 2, **attributes}, data, names)


RAW_MASK = i32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
PAST = random(2, 2, 2, 3, 4)
Q, K, V = random(2, 3, 8), random(2, 5, 8), random(2, 5, 12)
PAST_K, PAST_V = random(2, 2, 3, 4), random(2, 2, 3, 4)
ATTENTION: dict[str, Case] = {
    "attention": attention(random(24)),
    "attention, scale": attention(random(24), scale=0.3),
    "attention, causal": attention(random(24), unidirectional=1),
    "attention, mask": attention(random(24), RAW_MASK, data=(0, 3)),
    "attention, all masked": attention(random(24), i32([[0] * 5, [1] * 5]), data=(0, 3)),
    "attention, mask of pairs": attention(
        random(24), whole(2, 5, 5, type=np.int32, high=2), data=(0, 3), unidirectional=1
    ),
    "attention, lengths": attention(random(24), i32([3, 5]), data=(0, 3)),
    "attention, ends": attention(random(24), i32([3, 5, 1, 2]), data=(0, 3), unidirectional=1),
    "attention, filter": attention(random(24), RAW_MASK, mask_filter_value=-3.0),
    "attention, past": attention(random(24), None, PAST, data=(0, 4), unidirectional=1),
    "attention, past and mask": attention(
        random(24), i32([[1] * 8, [0] + [1] * 7]), PAST, data=(0, 3, 4), unidirectional=1
    ),
    "attention, score bias": attention(random(24), None, None, random(1, 2, 5, 5), data=(0, 5)),
    "attention, wide values": Case(
        "Attention",
        [random(2, 5, 6), random(6, 28), random(28)],
        {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 12]},
    ),
    "heads": several(Q, K, V),
    "heads, bias": several(Q, K, V, random(28)),
    "heads, scale": several(Q, K, V, scale=0.2),
    "heads, mask": several(Q, K, V, None, RAW_MASK),
    "heads, lengths": several(Q, K, V, None, i32([3, 5])),
    "heads, mask of pairs": several(Q, K, V, None, whole(2, 3, 5, type=np.int32, high=2)),
    "heads, score bias": several(Q, K, V, None, None, random(2, 1, 3, 5)),
    "heads, mask and score bias": several(Q, K, V, random(28), RAW_MASK, random(1, 2, 3, 5)),
    "heads, causal": several(K, random(2, 5, 8), V, unidirectional=1),
    "heads, present": several(Q, K, V, outputs=3),
    "heads, past": several(Q, K, K, None, None, None, PAST_K, PAST_V, outputs=3),
    "heads, past, causal": several(
        Q,
        random(2, 3, 8),
        random(2, 3, 8),
        random(24),
        None,
        None,
        PAST_K,
        PAST_V,
        outputs=3,
        unidirectional=1,
    ),
    "heads, past and mask": several(
        Q, K, K, None, i32([[1] * 8, [0, 0] + [1] * 6]), None, PAST_K, PAST_V, outputs=3
    ),
    "heads, keys by heads": several(Q, random(2, 2, 5, 4), random(2, 2, 5, 4)),
    "heads, keys by heads, bias": several(Q, random(2, 2, 5, 4), random(2, 2, 5, 4), random(24)),
    "heads, scores": several(Q, K, V, outputs=4),
    "heads, scores, mask": several(Q, K, V, None, RAW_MASK, outputs=4),
    "quantised attention": Case(
        "QAttention",
        [
            whole(2, 5, 6),
            weights(6, 24),
            random(24),
            f32(0.02),
            f32(0.01),
            i32([3, 5]),
            u8(120),
            np.array(0, np.int8),
        ],
        {"num_heads": 2, "unidirectional": 1},
    ),
    "quantised attention by column": Case(
        "QAttention",
        [
            whole(2, 5, 6),
            weights(6, 24),
            random(24),
            f32(0.02),
            abs(random(24)) / 100,
            None,
            u8(120),
            whole(24, type=np.int8, high=3),
            PAST,
        ],
        {"num_heads": 2},
        data=(0, 8),
        outputs=("y", "present"),
    ),
}

# Attention with a cache -------------------------------------------------------------------------

ANGLES = random(12, 8)
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)


def grouped(
    new: int,
    totals: list[int],
    past: int | None = None,
    packed: bool = False,
    further: dict[int, np.ndarray] | None = None,
    type: Any = np.float32,
    **attributes: Any,
) -> Case:
    """GroupQueryAttention with 4 heads of 8 and 2 heads of keys.

    Each sequence gets `new` tokens and then has its number of `totals`. The cache has length
    `past`.
    """
    batch, width = len(totals), 16
    if packed:
        inputs: list[np.ndarray | None] = [random(batch, new, 8 * width), None, None]
    else:
        inputs = [random(batch, new, count * width) for count in (4, 2, 2)]
    caches: list[np.ndarray | None] = [None, None]
    if past is not None:
        # Random numbers also behind the used part: the operator puts zeros there.
        caches = [random(batch, 2, past, width) for _ in range(2)]
    inputs += [*caches, i32(totals) - 1, i32(max(totals))]
    if attributes.get("do_rotary"):
        inputs += [COS, SIN]
    for index, value in (further or {}).items():
        inputs += [None] * (index + 1 - len(inputs))
        inputs[index] = value
    inputs = [x if x is None or x.dtype != np.float32 else x.astype(type) for x in inputs]
    data = tuple(i for i in range(11) if i < len(inputs) and inputs[i] is not None)
    data = tuple(i for i in data if i not in (7, 8))
    attributes = {"num_heads": 4, "kv_num_heads": 2, **attributes}
    return Case("GroupQueryAttention", inputs, attributes, data, ("y", "key", "value"))


GROUPED: dict[str, Case] = {
    "groups, prompt": grouped(5, [5, 5]),
    "groups, prompt with an empty past": grouped(5, [5], past=0),
    "groups, token": grouped(1, [6, 6], past=5),
    "groups, tokens": grouped(3, [8], past=5),
    "groups, scale": grouped(1, [6], past=5, scale=0.2),
    "groups, f16": grouped(1, [6], past=5, type=np.float16),
    "groups, packed": grouped(1, [6, 6], past=5, packed=True),
    "groups, rotary": grouped(5, [5, 5], do_rotary=1),
    "groups, rotary token": grouped(1, [6, 6], past=5, do_rotary=1, packed=True),
    "groups, rotary interleaved": grouped(1, [6], past=5, do_rotary=1, rotary_interleaved=1),
    "groups, rotary at": grouped(1, [6], past=5, do_rotary=1, further={9: i64([[7]])}),
    "groups, window": grouped(5, [5, 5], local_window_size=2),
    "groups, window token": grouped(1, [6], past=5, local_window_size=3),
    "groups, softcap": grouped(3, [8], past=5, softcap=2.0),
    "groups, score bias": grouped(3, [8], past=5, further={10: random(1, 4, 3, 8)}),
    "groups, sink": grouped(3, [8], past=5, further={11: random(4)}),
    "groups, smooth": grouped(5, [5, 5], smooth_softmax=1),
    "groups, smooth, softcap": grouped(1, [6], past=5, smooth_softmax=1, softcap=3.0),
    "groups, not causal": grouped(5, [5, 5], causal=0),
    "groups, ragged": grouped(1, [4, 6], past=5, do_rotary=1),
    "groups, long cache": grouped(1, [6, 4], past=9, do_rotary=1),
    "groups, prompt in a long cache": grouped(3, [3], past=9, do_rotary=1),
}

# Rotary embeddings ------------------------------------------------------------------------------

PLACES = i64([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]])
ROTARY: dict[str, Case] = {
    "rotary": Case(
        "RotaryEmbedding", [random(2, 5, 24), PLACES, COS[:, :4], SIN[:, :4]], data=(0, 1)
    ),
    "rotary, f16": Case(
        "RotaryEmbedding",
        [f16(random(2, 5, 24)), PLACES, f16(COS[:, :4]), f16(SIN[:, :4])],
        data=(0, 1),
    ),
    "rotary from": Case(
        "RotaryEmbedding", [random(2, 5, 24), i64([3]), COS[:, :4], SIN[:, :4]], data=(0, 1)
    ),
    "rotary interleaved": Case(
        "RotaryEmbedding",
        [random(2, 5, 24), PLACES, COS[:, :4], SIN[:, :4]],
        {"interleaved": 1},
        data=(0, 1),
    ),
    "rotary by heads": Case(
        "RotaryEmbedding", [random(2, 3, 5, 8), PLACES, COS[:, :4], SIN[:, :4]]
    ),
    "rotary of a part": Case(
        "RotaryEmbedding",
        [random(2, 5, 30), PLACES, COS[:, :4], SIN[:, :4]],
        {"num_heads": 3, "rotary_embedding_dim": 8},
        data=(0, 1),
    ),
    "rotary with a scale": Case(
        "RotaryEmbedding", [random(2, 5, 24), PLACES, COS[:, :4], SIN[:, :4]], {"scale": 2.0}
    ),
}

# As onnxruntime's optimiser and quantisers write them -------------------------------------------

LEAST = -3.4028234663852886e38
PADDING = i32([[0] * 5, [1, 1, 1, 0, 0]])
"""One row is padding alone, one has some padding."""
WRITTEN: dict[str, Case] = {
    **{
        f"rows of 4 bits, {width} in blocks of 16": Case(
            "GatherBlockQuantized",
            [whole(9, width // 2), i64([1, 7]), random(9, blocks), whole(9, -(-blocks // 2))],
            {"block_size": 16},
            data=(1,),
        )
        for width, blocks in ((8, 1), (24, 2), (48, 3))
    },
    "4 bits, zero points between whole numbers": Case(
        "MatMulNBits",
        [random(2, 80), whole(5, 3, 16), random(15), f32(7.5 + random(15))],
        {"K": 80, "N": 5, "bits": 4, "block_size": 32},
    ),
    "attention, f16, filter": Case(
        "Attention",
        [f16(random(2, 5, 6)), f16(random(6, 24)), f16(random(24)), PADDING],
        {"num_heads": 2, "mask_filter_value": LEAST},
        data=(0, 3),
    ),
    "heads, f16, filter": several(
        f16(Q), f16(K), f16(V), None, PADDING, f16(random(1, 2, 3, 5)), outputs=3,
        mask_filter_value=LEAST,
    ),
    "dynamic lstm, lengths": Case(
        "DynamicQuantizeLSTM",
        [
            random(6, 3, 6),
            weights(2, 6, 20),
            weights(2, 5, 20),
            None,
            i32([5, 2, 4]),
            *[None] * 3,
            f32([0.01, 0.02]),
            np.array([3, 0], np.int8),
            f32([0.02, 0.02]),
            np.array([0, 1], np.int8),
        ],
        {"hidden_size": 5, "direction": "bidirectional"},
        data=(0, 4),
        outputs=("y", "h", "c"),
    ),
}  # fmt: skip

CASES = {
    **QUANTIZED, **NORMALIZED, **FUSED, **STANDARD, **ATTENTION, **GROUPED, **ROTARY, **WRITTEN
}  # fmt: skip

# Without a kernel on the CPU --------------------------------------------------------------------


def _gelu(x: np.ndarray) -> np.ndarray:
    return f32(x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2)


def _group_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """2 groups of channels, which come last, and SiLU."""
    groups = x.reshape(x.shape[0], -1, 2, x.shape[-1] // 2)
    centered = groups - groups.mean((1, 3), keepdims=True)
    y = centered / np.sqrt((centered**2).mean((1, 3), keepdims=True) + 1e-5)
    y = y.reshape(x.shape) * scale + shift
    return f32(y / (1 + np.exp(-y)))


def _t5_bias(table: np.ndarray, length: int, both: bool, most: int) -> np.ndarray:
    """T5's bias of [buckets, heads] by the distance between words."""
    found = np.zeros((1, table.shape[1], length, length), np.float32)
    count = len(table) // 2 if both else len(table)
    exact = count // 2
    for row, column in np.ndindex(length, length):
        ahead = column - row
        size = abs(ahead) if both else max(-ahead, 0)
        bucket = size
        if size >= exact:
            bucket = exact + int(math.log(size / exact) / math.log(most / exact) * (count - exact))
        found[0, :, row, column] = table[
            min(bucket, count - 1) + (count if both and ahead > 0 else 0)
        ]
    return found


B8, ADDED = random(8), random(2, 5, 8)
NHWC, CHANNELS = random(2, 3, 4, 6), (random(6), random(6))
SKIP, BIAS = random(2, 6), random(6)
POINTWISE, OFFSETS, SQUARE = random(5, 6, 1, 1), random(5), random(8, 8)
TABLE, WORDS = random(8, 2), i64([12])
STORED = f32(TABLE.T.reshape(8, 2))
"""The table as onnxruntime's optimiser stores it: the numbers of the transpose."""
WITHOUT_KERNEL: dict[str, tuple[Case, np.ndarray]] = {
    "bias": (Case("BiasAdd", [X3, B8, ADDED], data=(0, 2)), X3 + B8 + ADDED),
    "split gelu": (
        Case("BiasSplitGelu", [X3, B8]),
        (X3 + B8)[..., :4] * _gelu((X3 + B8)[..., 4:]),
    ),
    "softmax": (
        Case("BiasSoftmax", [X3, ADDED], {"axis": 2, "is_inner_broadcast": 0}),
        np.exp(X3 + ADDED) / np.exp(X3 + ADDED).sum(-1, keepdims=True),
    ),
    "group": (
        Case("GroupNorm", [NHWC, *CHANNELS], {"groups": 2, "activation": 1}),
        _group_norm(NHWC, *CHANNELS),
    ),
    "skip group": (
        Case("SkipGroupNorm", [NHWC, *CHANNELS, SKIP, BIAS], {"groups": 2, "activation": 1}),
        _group_norm(NHWC + SKIP[:, None, None] + BIAS, *CHANNELS),
    ),
    "conv": (
        Case("NhwcFusedConv", [NHWC, POINTWISE, None, None], {"activation": "Relu"}),
        np.maximum(NHWC @ POINTWISE[:, :, 0, 0].T, 0),
    ),
    "conv, weights with channels last": (
        Case("NhwcConv", [NHWC, f32(POINTWISE.transpose(0, 2, 3, 1)), OFFSETS]),
        NHWC @ POINTWISE[:, :, 0, 0].T + OFFSETS,
    ),
    "distances of both signs": (
        Case(
            "RelativePositionBias",
            [STORED, WORDS, WORDS],
            {"is_bidirectional": 1, "max_distance": 9},
            data=(1, 2),
        ),
        _t5_bias(TABLE, 12, True, 9),
    ),
    "distances behind": (
        Case("RelativePositionBias", [STORED, WORDS, WORDS], {"max_distance": 11}, data=(1, 2)),
        _t5_bias(TABLE, 12, False, 11),
    ),
    "matmul": (
        Case("FusedMatMulActivation", [X3, SQUARE], {"activation": "Relu", "alpha": 0.5}),
        np.maximum(X3 @ SQUARE / 2, 0),
    ),
}
"""Operators that onnxruntime computes on other devices alone, and their outputs by definition."""
