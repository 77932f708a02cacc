"""Statements on numbers at which engines differ: ties of quantisation, NaN and infinities. Others
have empty tensors beside one number, or recurrent layers with quantised weights."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto

from tests.programs.blocks import Block, Var, has_elements, new_constant, reshape

OPERATORS = (
    ("Neg", None), ("Abs", None), ("Add", 1), ("Mul", 2), ("Max", 1), ("Min", 1), ("Sub", 3),
)  # fmt: skip
"""Operators on NaN and infinities, with a second operand."""

SCALES = (0.1, 0.3, 2 / 255, 1 / 3, 0.7, 0.25)

QUANTIZED = {
    "u8": (TensorProto.UINT8, 13, 0, 255),
    "i8": (TensorProto.INT8, 13, -128, 127),
    "u16": (TensorProto.UINT16, 21, 0, 65535),
    "i16": (TensorProto.INT16, 21, -32768, 32767),
    "u4": (TensorProto.UINT4, 21, 0, 15),
    "i4": (TensorProto.INT4, 21, -8, 7),
}
"""Types of quantised numbers: ONNX's type, the first operator set, the least and the largest."""


def odd_number(block: Block) -> None:
    """One of these statements, on a value of f32 whose shape is known."""
    var = block.pick(lambda x: x.element == "f32" and x.bits is not None and has_elements(x))
    if var is None:
        new_constant(block)
        return
    block.choose([_tie, _tie, _not_finite, _not_finite, _beside_nothing, _recurrent])(block, var)


def _tie(block: Block, var: Var) -> None:
    """Numbers times a scale, quantised with it, as integers."""
    names = [name for name, (_, since, *_) in QUANTIZED.items() if since <= block.opset]
    kind, _, low, high = QUANTIZED[block.choose(names)]
    channels = var.shape[1] if len(var.shape) == 2 and block.flip() else None
    rng = np.random.default_rng(block.draw(st.integers(0, 99)))
    size = () if channels is None else (channels,)
    scales = rng.choice(np.array(SCALES, np.float32), size)
    zeros = rng.integers(max(low, -9), min(high, 9) + 1, size)
    scale, point = block.literal(np.asarray(scales, np.float32)), block.fresh()
    wide = block.literal(np.asarray(zeros, np.int32))
    block.add("Cast", [wide], [point], to=kind)
    scaled, integers = block.fresh(), block.fresh()
    block.add("Mul", [var.name, scale], [scaled])
    block.add("QuantizeLinear", [scaled, scale, point], [integers], axis=1 if size else 0)
    result = replace(var, element="i32", bits=0, bound=var.bound + 9)
    block.emit("Cast", [integers], replace(result, fed=var.fed), to=TensorProto.INT32)


def _not_finite(block: Block, var: Var) -> None:
    """Numbers beside NaN or an infinity, and the results of comparing them."""
    number = block.choose([np.nan, np.inf, -np.inf])
    first = block.literal(np.asarray(number, np.float32))
    last = block.fresh()
    block.add(
        "Where", [block.emit("Less", [var, _zero(block)], _flag(var)).name, var.name, first], [last]
    )
    for _ in range(block.draw(st.integers(0, 2))):
        op, other = block.choose(
            [
                ("Neg", None),
                ("Abs", None),
                ("Add", 1),
                ("Mul", 2),
                ("Max", 1),
                ("Min", 1),
                ("Sub", 3),
            ]
        )
        operands = [last]
        if other is not None:
            operands.append(block.literal(np.asarray(other, np.float32)))
        last = block.fresh()
        block.add(op, operands, [last])
    asked = block.choose(["IsNaN", "IsInf", "Less", "Greater", "Equal", "Cast"])
    further = [_zero(block)] if asked in ("Less", "Greater", "Equal") else []
    attributes = {"to": TensorProto.BOOL} if asked == "Cast" else {}
    block.emit(asked, [last, *further], replace(_flag(var), fed=var.fed), **attributes)


def _zero(block: Block) -> str:
    return block.literal(np.asarray(0, np.float32))


def _flag(var: Var) -> Var:
    return replace(var, element="bool", bound=1, bits=0)


def _beside_nothing(block: Block, var: Var) -> None:
    """The size of an empty tensor combined with one number: zero."""
    one = reshape(block, var, (math.prod(d for d in var.shape if isinstance(d, int)),))
    axes, zero = block.literal(np.array([0], np.int64)), block.literal(np.array([0], np.int64))
    single, shape, none, empty, made = (block.fresh() for _ in range(5))
    block.add("Slice", [one.name, zero, block.literal(np.array([1], np.int64)), axes], [single])
    block.add("Shape", [single], [shape])
    block.add("Mul", [shape, zero], [none])
    number = block.literal(np.array([2], np.float32))
    block.add(block.choose(["Expand", "Tile"]), [number, none], [empty])
    operands = block.choose([[empty, single], [single, empty]])
    block.add(block.choose(["Add", "Sub", "Mul", "Div", "Max", "Pow"]), operands, [made])
    block.emit("Size", [made], Var("", "i64", (), 0, fed=var.fed))


def _recurrent(block: Block, var: Var) -> None:
    """A recurrent layer of quantised rows, with weights of 8 bits."""
    size = math.prod(d for d in var.shape if isinstance(d, int))
    x = reshape(block, var, (size, 1, 1))
    layer, gates = block.choose([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    rng = np.random.default_rng(block.draw(st.integers(0, 99)))
    scale, point = (block.literal(np.array(n, t)) for n, t in ((0.125, np.float32), (0, np.int8)))
    weights = []
    for columns in (1, 2):
        stored = block.literal(rng.integers(-9, 10, (1, 2 * gates, columns)).astype(np.int8))
        weights.append(block.fresh())
        block.add("DequantizeLinear", [stored, scale, point], [weights[-1]])
    integers, floats = block.fresh(), block.fresh()
    block.add("QuantizeLinear", [x.name, scale, point], [integers])
    block.add("DequantizeLinear", [integers, scale, point], [floats])
    result = Var("", "f32", (size, 1, 1, 2), 1, None, var.fed)
    y = block.emit(layer, [floats, *weights], result, hidden_size=2)
    reshape(block, y, (size, 2))


STATEMENTS = (odd_number,) * 3
"""The statements that programs draw."""
