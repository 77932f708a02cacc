"""Models of few bits, small and with random weights, as onnxruntime's tools write them.

python -m tests.models.few_bits FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_HEAD = '<ir_version: 10, opset_import: ["": 21]> m '
SOURCES = {
    "perceptron": """(float[B,32] x) => (float[B,16] y) <float[32,64] w1 = {}, float[64] w2 = {},
        float[64,64] w3 = {}, float[64,16] w4 = {}> { a = MatMul (x, w1) b = Add (a, w2)
        c = Relu (b) d = MatMul (c, w3) e = Tanh (d) y = MatMul (e, w4) }""",
    "convolutions": """(float[1,3,16,16] x) => (float[1,8] y) <float[8,3,3,3] w1 = {},
        float[8] w2 = {}, float[8,1,3,3] w3 = {}, float[8,8] w4 = {}> {
        a = Conv <pads = [1, 1, 1, 1]> (x, w1, w2) b = Relu (a)
        c = Conv <pads = [1, 1, 1, 1], group = 8> (b, w3) d = Relu (c) e = GlobalAveragePool (d)
        f = Flatten (e) y = MatMul (f, w4) }""",
    "attention": """(float[B,T,32] x) => (float[B,T,32] y) <float[32,32] w1 = {},
        float[32,32] w2 = {}, float[32,32] w3 = {}, float[32] w4 = {}, float[32] w5 = {}> {
        q = MatMul (x, w1) k = MatMul (x, w2) v = MatMul (x, w3)
        t = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, t) p = Softmax (s) o = MatMul (p, v)
        r = Add (o, x) y = LayerNormalization (r, w4, w5) }""",
    "lstm": """(float[T,2,16] x) => (float[T,1,2,16] y) <float[1,64,16] w1 = {},
        float[1,64,16] w2 = {}, float[1,128] w3 = {}> {
        y, h, c = LSTM <hidden_size = 16> (x, w1, w2, w3) }""",
    "embedding": """(int64[B,T] ids) => (float[B,T,16] y) <float[64,32] w1 = {},
        float[32,16] w2 = {}> { e = Gather (w1, ids) y = MatMul (e, w2) }""",
}


def source(name: str, folder: Path) -> Path:
    """One of the models in f32."""
    model = onnx.parser.parse_model(_HEAD + SOURCES[name])
    rng = np.random.default_rng(3)
    for tensor in model.graph.initializer:
        drawn = rng.normal(size=tuple(tensor.dims)) * 0.3
        tensor.CopyFrom(numpy_helper.from_array(drawn.astype(np.float32), tensor.name))
    onnx.save(model, folder / "f32.onnx")
    return folder / "f32.onnx"


class _Reader:
    """Inputs for the calibration, of 2 rows or steps where a size is open."""

    def __init__(self, path: Path) -> None:
        rng, inputs = np.random.default_rng(1), onnx.load(path).graph.input
        self.feeds = iter([
            {value.name: _drawn(value, rng) for value in inputs} for _ in range(8)
        ])  # fmt: skip

    def get_next(self) -> Any:
        return next(self.feeds, None)


def _drawn(value: onnx.ValueInfoProto, rng: np.random.Generator) -> np.ndarray:
    type = value.type.tensor_type
    shape = [dim.dim_value or 2 for dim in type.shape.dim]
    if type.elem_type == TensorProto.INT64:
        return rng.integers(0, 64, shape)
    return rng.normal(size=shape).astype(np.float32)


def static(name: str, options: dict[str, Any], folder: Path) -> Path:
    """Data and weights of 8 bits, their ranges measured before."""
    from onnxruntime.quantization import quantize_static

    path = source(name, folder)
    quantize_static(path, folder / "changed.onnx", _Reader(path), **options)
    return folder / "changed.onnx"


def dynamic(name: str, options: dict[str, Any], folder: Path) -> Path:
    """Weights of 8 bits; data are quantised at run time."""
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(source(name, folder), folder / "changed.onnx", **options)
    return folder / "changed.onnx"


def blocks(name: str, options: dict[str, Any], folder: Path) -> Path:
    """MatMulNBits, or DequantizeLinear by blocks."""
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    model = onnx.load(source(name, folder))
    chosen = {**options}
    if chosen.pop("qdq", False):
        chosen["quant_format"] = QuantFormat.QDQ
    quantizer = MatMulNBitsQuantizer(model, **chosen)
    quantizer.process()
    onnx.save(quantizer.model.model, folder / "changed.onnx")
    return folder / "changed.onnx"


def halves(name: str, options: dict[str, Any], folder: Path) -> Path:
    """In float16."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = convert_float_to_float16(onnx.load(source(name, folder)), **options)
    onnx.save(model, folder / "changed.onnx")
    return folder / "changed.onnx"


def bfloat16(name: str, options: dict[str, Any], folder: Path) -> Path:
    """Weights in bfloat16, cast where they are read."""
    model = onnx.load(source(name, folder))
    casts = []
    for tensor in model.graph.initializer:
        wide = numpy_helper.to_array(tensor)
        narrow = wide.astype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
        tensor.CopyFrom(numpy_helper.from_array(narrow, f"{tensor.name}_narrow"))
        casts.append(helper.make_node("Cast", [tensor.name], [tensor.name[:-7]], to=1))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, folder / "changed.onnx")
    return folder / "changed.onnx"


def _formats() -> dict[str, tuple[Any, dict[str, Any]]]:
    from onnxruntime.quantization import QuantFormat, QuantType

    operators = {"quant_format": QuantFormat.QOperator}
    signed = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8}
    return {
        "static, QDQ": (static, {"quant_format": QuantFormat.QDQ}),
        "static, QDQ, by channel": (static, {"per_channel": True, **signed}),
        "static, QDQ, 16 bits": (static, {"activation_type": QuantType.QUInt16}),
        "static, operators": (static, operators),
        "dynamic": (dynamic, {}),
        "dynamic, by channel": (dynamic, {"per_channel": True}),
        "blocks of 4 bits": (blocks, {"block_size": 16, "is_symmetric": True}),
        "blocks of 4 bits, zero points": (blocks, {"block_size": 16, "is_symmetric": False}),
        "blocks of 4 bits, rounded data": (
            blocks, {"block_size": 16, "is_symmetric": True, "accuracy_level": 4},
        ),
        "blocks of 4 bits, QDQ": (blocks, {"block_size": 16, "is_symmetric": True, "qdq": True}),
        "float16": (halves, {}),
        "float16, inputs of float": (halves, {"keep_io_types": True}),
        "bfloat16": (bfloat16, {}),
    }  # fmt: skip


KINDS: dict[str, Callable[[Path], Path]] = {
    f"{name}, {form}": partial(make, name, options)
    for name in SOURCES
    for form, (make, options) in _formats().items()
}
"""The functions that write a model into a folder, by name."""


def main(root: Path) -> None:
    """Writes all models, each into a folder of its name."""
    for name, make in KINDS.items():
        folder = root / name.replace(", ", "-").replace(" ", "_")
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "changed.onnx").exists():
            try:
                print(make(folder), flush=True)
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
