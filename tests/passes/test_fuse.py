"""Several operators of IR become one of ONNX, near misses do not, and the numbers stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from openvino import opset15 as ops

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

RNG = np.random.default_rng(5)
Case = tuple[str, Callable[..., Any], Sequence[np.ndarray], int]
CASES: dict[str, Case] = {}


def random(*shape: int, type: Any = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(type)


def case(
    name: str, expected: str, build: Callable[..., Any], *inputs: np.ndarray, opset: int = 21
) -> None:
    """A model that `build` makes of parameters like `inputs`, and the operators that it becomes,
    in order."""
    assert name not in CASES
    CASES[name] = expected, build, inputs, opset


def mvn(x: Any, *axes: int, eps: float = 1e-5, mode: str = "inside_sqrt", unit: bool = True) -> Any:
    return ops.mvn(x, np.array(axes, np.int64), unit, eps, mode)


# Normalisation
TOKENS, IMAGE = random(2, 3, 8), random(2, 4, 5, 6)
LAYER, INSTANCE = "LayerNormalization", "InstanceNormalization"
WRITTEN_OUT = "ReduceMean Sub Mul ReduceMean Add Sqrt Div"
S8, B8, C4 = random(8), random(1, 1, 8), random(1, 4, 1, 1)
case("layer", LAYER, lambda x: mvn(x, -1) * S8 + B8, TOKENS)
case("layer_turned", LAYER, lambda x: ops.add(B8, ops.multiply(S8, mvn(x, 2))), TOKENS)
case("layer_two_axes", LAYER, lambda x: mvn(x, 1, 2) * random(3, 8) + random(3, 8), TOKENS)
case("layer_scale_alone", LAYER, lambda x: mvn(x, 2) * S8, TOKENS)
case("layer_alone", LAYER, lambda x: mvn(x, 2), TOKENS)
case("layer_computed_scale", LAYER, lambda x, s: mvn(x, 2) * s, TOKENS, S8)
case("layer_scale_of_other_size", f"{LAYER} Mul", lambda x: mvn(x, 2) * random(1), TOKENS)
case("layer_scale_of_batch", f"{LAYER} Mul", lambda x: mvn(x, 2) * random(2, 1, 1), TOKENS)
case("layer_bias_by_row", f"{LAYER} Add", lambda x: mvn(x, 2) * S8 + random(3, 8), TOKENS)
case("layer_old", f"{WRITTEN_OUT} Mul Add", lambda x: mvn(x, 2) * S8 + B8, TOKENS, opset=16)
case(
    "layer_outside", f"{WRITTEN_OUT.replace('Add Sqrt', 'Sqrt Add')} Mul",
    lambda x: mvn(x, 2, mode="outside_sqrt") * S8, TOKENS,
)  # fmt: skip
case("layer_mean_alone", "ReduceMean Sub Mul", lambda x: mvn(x, 2, unit=False) * S8, TOKENS)
case("layer_middle_axis", f"{WRITTEN_OUT} Mul", lambda x: mvn(x, 1) * random(3, 1), TOKENS)
case(
    "layer_of_which_a_part_is_used_again", f"{LAYER} Mul Add",
    lambda x: (lambda y: y * S8 + y)(mvn(x, 2)), TOKENS,
)  # fmt: skip
case(
    "layer_half", LAYER,
    lambda x: ops.convert(mvn(ops.convert(x, "f32"), 2), "f16") * S8.astype(np.float16),
    TOKENS.astype(np.float16),
)  # fmt: skip
case("instance", INSTANCE, lambda x: mvn(x, 2, 3) * C4 + random(4, 1, 1), IMAGE)
case("instance_1d", INSTANCE, lambda x: mvn(x, 2) * random(3, 1) + random(1, 3, 1), TOKENS)
case("instance_scale_alone", INSTANCE, lambda x: mvn(x, 3, 2) * C4, IMAGE)
case("instance_alone", INSTANCE, lambda x: mvn(x, 2, 3), IMAGE)
case("instance_bias_alone", f"{INSTANCE} Add", lambda x: mvn(x, 2, 3) + C4, IMAGE)
case("instance_all_channels", LAYER, lambda x: mvn(x, 1, 2, 3), IMAGE)
case("instance_by_column", f"{LAYER} Mul", lambda x: mvn(x, 3) * C4, IMAGE)
case(
    "instance_scale_of_batch", f"{INSTANCE} Mul", lambda x: mvn(x, 2, 3) * random(2, 1, 1, 1), IMAGE
)


def rooted(x: Any, *axes: int, square: Any = None) -> Any:
    squares = x * x if square is None else square
    return ops.sqrt(ops.reduce_mean(squares, np.array(axes), True) + np.array(1e-5, np.float32))


RMS, ONE, TWO = "RMSNormalization", np.array(1, np.float32), np.array(2, np.float32)
PARTS = "Mul ReduceMean Add Sqrt Div Mul"
case("rms", RMS, lambda x: x / rooted(x, 2) * S8, TOKENS, opset=23)
case("rms_turned", RMS, lambda x: ops.multiply(B8, x / rooted(x, -1)), TOKENS, opset=23)
case("rms_inverse", RMS, lambda x: x * (ONE / rooted(x, -1)) * S8, TOKENS, opset=23)
case(
    "rms_power", RMS,
    lambda x: x / rooted(x, 2, square=ops.power(x, TWO)) * S8, TOKENS, opset=23,
)  # fmt: skip
case(
    "rms_inverse_power", RMS,
    lambda x: x * ops.power(rooted(x, 2), -ONE) * S8, TOKENS, opset=23,
)  # fmt: skip
case(
    "rms_square_inverse", "Mul ReduceMean Add Sqrt Pow Mul Mul",
    lambda x: x * ops.power(rooted(x, 2), -TWO) * S8, TOKENS, opset=23,
)  # fmt: skip
case("rms_two_axes", RMS, lambda x: x / rooted(x, 1, 2) * random(3, 8), TOKENS, opset=23)
case("rms_old", PARTS, lambda x: x / rooted(x, 2) * S8, TOKENS, opset=22)
case("rms_middle_axis", PARTS, lambda x: x / rooted(x, 1) * S8, TOKENS, opset=23)
case("rms_scale_by_row", PARTS, lambda x: x / rooted(x, 2) * random(3, 1), TOKENS, opset=23)
case("rms_of_another", PARTS, lambda x, y: y / rooted(x, 2) * S8, TOKENS, TOKENS + 1, opset=23)
case(
    "rms_of_cubes", "Pow ReduceMean Add Sqrt Div Mul",
    lambda x: x / rooted(x, 2, square=ops.power(x, np.array(3, np.float32))) * S8, abs(TOKENS),
    opset=23,
)  # fmt: skip

# The place of the greatest or least


def top(x: Any, axis: int, mode: str = "max", k: int = 1, type: str = "i64") -> Any:
    return ops.topk(x, np.array(k), axis, mode, "value", type)


case("argmax", "ArgMax", lambda x: ops.squeeze(top(x, 1).output(1), [1]), TOKENS)
case("argmin", "ArgMin", lambda x: ops.squeeze(top(x, -1, "min").output(1), [2]), TOKENS)
case(
    "argmax_i32", "ArgMax Cast", lambda x: ops.squeeze(top(x, 0, type="i32").output(1), [0]), TOKENS
)
case(
    "argmax_with_values", "TopK Squeeze Squeeze Cast Add",
    lambda x: (lambda t: ops.squeeze(t.output(0), [1]) + ops.convert(
        ops.squeeze(t.output(1), [1]), "f32"))(top(x, 1)),
    TOKENS,
)  # fmt: skip
case("argmax_values", "TopK Squeeze", lambda x: ops.squeeze(top(x, 1).output(0), [1]), TOKENS)
case(
    "argmax_other_axis", "TopK Squeeze", lambda x: ops.squeeze(top(x, 1).output(1), [0]), TOKENS[:1]
)

# Activations
LOW, HIGH, ROW = np.float32(-0.5), np.array(0.5, np.float32), random(8)
case("leaky_relu", "LeakyRelu", lambda x: ops.prelu(x, np.array([0.2], np.float32)), IMAGE)
case("leaky_relu_scalar", "LeakyRelu", lambda x: ops.prelu(x, np.array(0.2, np.float32)), random(3))
case("prelu_one_by_channel", "PRelu", lambda x: ops.prelu(x, random(1, 1, 1)), IMAGE)
case("prelu_by_channel", "PRelu", lambda x: ops.prelu(x, random(1, 4, 1, 1)), IMAGE)
case("prelu_computed", "PRelu", lambda x, s: ops.prelu(x, s), IMAGE, random(1))
case("clip", "Clip", lambda x, h: ops.minimum(ops.maximum(x, ops.constant(LOW)), h), TOKENS, HIGH)
case(
    "clip_turned", "Clip",
    lambda x, h: ops.minimum(h, ops.maximum(ops.constant(LOW), x)), TOKENS, HIGH,
)  # fmt: skip
case("clip_by_rows", "Max Min", lambda x, h: ops.minimum(ops.maximum(x, ROW), h), TOKENS, HIGH)
case(
    "clip_upper_first", "Min Max",
    lambda x, h: ops.maximum(ops.minimum(x, h), ops.constant(LOW)), TOKENS, HIGH,
)  # fmt: skip
case(
    "clip_used_between", "Max Min Add",
    lambda x, h: (lambda y: ops.minimum(y, h) + y)(ops.maximum(x, ops.constant(LOW))),
    TOKENS, HIGH,
)  # fmt: skip

# Products with something added
ROWS, WEIGHT = random(3, 5), random(5, 4)
ROW = random(1)


def product(x: Any, y: Any, a: bool = False, b: bool = False) -> Any:
    return ops.matmul(x, y, a, b)


case("gemm", "Gemm", lambda x: product(x, WEIGHT) + random(4), ROWS)
case("gemm_turned", "Gemm", lambda x: ops.add(random(1, 4), product(x, WEIGHT)), ROWS)
case("gemm_swapped", "Gemm", lambda x: product(x, random(3, 4), True) + random(4), ROWS)
case(
    "gemm_both_swapped", "Gemm", lambda x: product(x, random(4, 3), True, True) + random(5, 1), ROWS
)
case(
    "gemm_scaled", "Gemm", lambda x: product(x, WEIGHT) * np.array(3, np.float32) + random(4), ROWS
)
case("gemm_scalar", "Gemm", lambda x: product(x, WEIGHT) + np.array(2, np.float32), ROWS)
case("gemm_computed", "Gemm", lambda x, c: product(x, WEIGHT) + c, ROWS, random(3, 4))
case("gemm_grows", "MatMul Add", lambda x: product(x, WEIGHT) + random(2, 3, 4), ROWS)
case("gemm_row_grows", "MatMul Add", lambda x: product(x, WEIGHT) + random(3, 4), random(1, 5))
case("gemm_scaled_by_column", "MatMul Mul Add", lambda x: product(x, WEIGHT) * random(4) + C4, ROWS)
case("gemm_of_three_axes", "MatMul Add", lambda x: product(x, random(8, 4)) + random(4), TOKENS)
case("gemm_of_a_vector", "MatMul Add", lambda x: product(x, WEIGHT) + random(4), random(5))
case("gemm_of_integers", "MatMul Add", lambda x: product(x, x) + 3, np.arange(9).reshape(3, 3))
case(
    "gemm_used_again", "MatMul Add Mul",
    lambda x: (lambda y: (y + random(4)) * y)(product(x, WEIGHT)), ROWS,
)  # fmt: skip


def convolution(x: Any, filters: Any) -> Any:
    zeros, ones = [0, 0], [1, 1]
    build = ops.group_convolution if len(filters.shape) == 5 else ops.convolution
    return build(x, filters, ones, zeros, zeros, ones)


FILTERS = random(3, 4, 2, 2)
case("bias", "Conv", lambda x: convolution(x, FILTERS) + random(1, 3, 1, 1), IMAGE)
case("bias_turned", "Conv", lambda x: ops.add(random(3, 1, 1), convolution(x, FILTERS)), IMAGE)
case(
    "bias_groups", "Conv", lambda x: convolution(x, random(2, 3, 2, 2, 2)) + random(6, 1, 1), IMAGE
)
case("bias_one", "Conv Add", lambda x: convolution(x, FILTERS) + random(1), IMAGE)
case("bias_by_column", "Conv Add", lambda x: convolution(x, FILTERS) + random(5), IMAGE)
case("bias_computed", "Conv Add", lambda x, c: convolution(x, FILTERS) + c, IMAGE, random(3, 1, 1))
case(
    "bias_transposed", "ConvTranspose",
    lambda x: ops.convolution_backprop_data(x, random(4, 3, 2, 2), [2, 2]) + random(3, 1, 1), IMAGE,
)  # fmt: skip

case(
    "bias_reshaped", "Conv",
    lambda x, c: convolution(x, FILTERS) + ops.reshape(c, [1, 3, 1, 1], False), IMAGE, random(3),
)  # fmt: skip


# Quantisation


def quantized(x: Any, low: Any, high: Any, type: str = "u8", levels: int = 256) -> Any:
    ends = np.array(0 if type == "u8" else -128, np.float32)
    limits = [np.asarray(end, np.float32) for end in (low, high)]
    return ops.convert(ops.fake_quantize(x, *limits, ends, ends + levels - 1, levels), type)


def dequantized(q: Any, zero_point: Any, scale: Any) -> Any:
    shifted = ops.convert(q, "f32") - np.asarray(zero_point, np.float32)
    return shifted * np.asarray(scale, np.float32)


TENTH, BYTES = np.float32(0.1), RNG.integers(0, 256, (2, 4, 3)).astype(np.uint8)
SCALES = np.array([0.03, 0.1, 0.07, 0.2], np.float32).reshape(4, 1)
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
SPELLED = "Cast Sub Mul"
case("quantize", QUANTIZE, lambda x: quantized(x, -7 * TENTH, 248 * TENTH), TOKENS)
case("quantize_i8", QUANTIZE, lambda x: quantized(x, -128 * TENTH, 127 * TENTH, "i8"), TOKENS)
case(
    "quantize_by_channel", QUANTIZE,
    lambda x: quantized(x, -128 * SCALES, 127 * SCALES, "i8"), random(2, 4, 3),
)  # fmt: skip
case("dequantize", DEQUANTIZE, lambda x: dequantized(x, 3, TENTH), BYTES)
case("dequantize_by_channel", DEQUANTIZE, lambda x: dequantized(x, 3, SCALES), BYTES)
case(
    "dequantize_i32", DEQUANTIZE,
    lambda x: ops.convert(x, "f32") * np.array(TENTH), BYTES.astype(np.int32),
)  # fmt: skip
case("dequantize_between_levels", SPELLED, lambda x: dequantized(x, 3.5, TENTH), BYTES)
case("dequantize_beyond_levels", SPELLED, lambda x: dequantized(x, 256, TENTH), BYTES)
case("dequantize_i64", SPELLED, lambda x: dequantized(x, 3, TENTH), BYTES.astype(np.int64))
case("dequantize_two_axes", SPELLED, lambda x: dequantized(x, 3, random(4, 3)), BYTES)
case("dequantize_broadcast", SPELLED, lambda x: dequantized(x, 3, SCALES), BYTES[:, :1])
case(
    "dequantize_zero_points_of_another_axis", SPELLED,
    lambda x: dequantized(x, [1, 2, 3], SCALES), BYTES,
)  # fmt: skip


@pytest.mark.parametrize(
    "limits", [(0.3, 25.1), (-128.5, 126.5), (3.0, 258.0)], ids=["off", "between", "beyond"]
)
def test_limits_that_no_zero_point_gives_are_written_out(
    limits: tuple[float, float], tmp_path: Path
) -> None:
    x = ops.parameter([2, 3], np.float32)
    model = openvino.Model([quantized(x, *limits)], [x])
    openvino.save_model(model, tmp_path / "a.xml", compress_to_fp16=False)
    written = bridge.to_onnx(tmp_path / "a.xml")
    assert QUANTIZE not in {node.op_type for node in written.graph.node}


# What undoes one another
case("squeezed", "Relu", lambda x: ops.relu(ops.squeeze(ops.unsqueeze(x, [1]), [1])), TOKENS)
case(
    "squeezed_elsewhere", "Unsqueeze Squeeze",
    lambda x: ops.squeeze(ops.unsqueeze(x, [1]), [0]), random(1, 3),
)  # fmt: skip


def turned(x: Any, *order: int) -> Any:
    return ops.transpose(x, np.array(order, np.int64))


case("transposed_back", "Relu", lambda x: ops.relu(turned(turned(x, 1, 2, 0), 2, 0, 1)), TOKENS)
case("transposed_on", "Transpose", lambda x: turned(turned(x, 1, 2, 0), 1, 0, 2), TOKENS)
case(
    "reshaped_back", "Relu",
    lambda x: ops.relu(ops.reshape(ops.reshape(x, [6, 8], False), [2, 3, 8], False)), TOKENS,
)  # fmt: skip


# Resizing, of an image as a whole


def resized(x: Any, mode: str, wanted: Any, coordinates: str = "half_pixel") -> Any:
    wanted = np.asarray(wanted)
    axes, by = np.arange(len(wanted)), "sizes" if wanted.dtype.kind == "i" else "scales"
    return ops.interpolate(
        x, wanted.astype(np.int64 if by == "sizes" else np.float32), mode, by, [0], [0],
        coordinates, "floor", axes=axes,
    )  # fmt: skip


for mode in ("nearest", "linear_onnx", "cubic"):
    for coordinates in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
        for name, wanted in {"sizes": [2, 4, 8, 9], "scales": [1.0, 1.0, 2.0, 1.5]}.items():
            case(
                f"resize_{mode}_{coordinates}_{name}", "Resize",
                lambda x, m=mode, w=wanted, c=coordinates: resized(x, m, w, c), IMAGE,
            )  # fmt: skip
case("resize_no_axis", "Identity", lambda x: resized(x, "linear_onnx", [2, 4, 5, 6]), IMAGE)


def test_resized_channels_are_written_out(tmp_path: Path) -> None:
    x = ops.parameter(list(IMAGE.shape), np.float32)
    model = openvino.Model([resized(x, "linear_onnx", [2, 8, 8, 9])], [x])
    openvino.save_model(model, tmp_path / "a.xml", compress_to_fp16=False)
    written = bridge.to_onnx(tmp_path / "a.xml")
    assert "Resize" not in {node.op_type for node in written.graph.node}
    (name,) = (value.name for value in written.graph.input)
    assert_close(OnnxRuntime(written).run({name: IMAGE}), OpenVino(tmp_path / "a.xml").run([IMAGE]))


# Attention
QUERY, KEY, VALUE = random(2, 4, 3, 8), random(2, 4, 5, 8), random(2, 4, 5, 6)
attend = ops.scaled_dot_product_attention
UNMASKED = "Cast Sqrt Div Transpose MatMul Mul Softmax MatMul"


case("attention", "Attention", lambda q, k, v: attend(q, k, v), QUERY, KEY, VALUE, opset=23)
case(
    "attention_causal",
    "Attention",
    lambda q, k, v: attend(q, k, v, causal=True),
    QUERY,
    KEY,
    VALUE,
    opset=23,
)
case(
    "attention_scaled", "Attention",
    lambda q, k, v: attend(q, k, v, np.zeros((), np.float32), np.array(0.5, np.float32)),
    QUERY, KEY, VALUE, opset=23,
)  # fmt: skip
case(
    "attention_masked", UNMASKED.replace("Softmax", "Add Softmax"),
    lambda q, k, v, m: attend(q, k, v, m), QUERY, KEY, VALUE, random(3, 5), opset=23,
)  # fmt: skip
case(
    "attention_constant_mask", "Attention",
    lambda q, k, v: attend(q, k, v, np.array([[0, -np.inf, 1, 2, 3]] * 3, np.float32)),
    QUERY, KEY, VALUE, opset=23,
)  # fmt: skip
MASK = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 1, 0, 1]], bool)
BIAS = np.where(MASK, random(3, 5), -np.inf).astype(np.float32)
NOUGHT, MINUS_INFINITY = np.float32(0), np.float32(-np.inf)


def some(flags: Any, axis: int = -1) -> Any:
    return ops.convert(ops.reduce_max(ops.convert(flags, "i32"), [axis], True), "boolean")


def masked(q: Any, k: Any, v: Any, m: Any, least: Any = MINUS_INFINITY) -> Any:
    return attend(q, k, v, ops.select(m, NOUGHT, least))


def not_minus_infinity(bias: Any) -> Any:
    return ops.logical_not(ops.equal(bias, MINUS_INFINITY))


case(
    "attention_zero_where_masked", "Attention",
    lambda q, k, v, m: ops.select(some(m), masked(q, k, v, m), NOUGHT),
    QUERY, KEY, VALUE, MASK, opset=23,
)  # fmt: skip
case(
    "attention_zero_where_bias_masks", "Attention",
    lambda q, k, v, m: ops.select(some(not_minus_infinity(m)), attend(q, k, v, m), NOUGHT),
    QUERY, KEY, VALUE, BIAS, opset=23,
)  # fmt: skip
SOME, CHOSEN = "Cast ReduceMax Cast", "Where " + UNMASKED.replace("Softmax", "Add Softmax")
case(
    "attention_zero_where_masked_old", f"{SOME} {CHOSEN} Where",
    lambda q, k, v, m: ops.select(some(m), masked(q, k, v, m), NOUGHT),
    QUERY, KEY, VALUE, MASK, opset=22,
)  # fmt: skip
case(
    "attention_one_where_masked", f"{SOME} {CHOSEN} Where",
    lambda q, k, v, m: ops.select(some(m), masked(q, k, v, m), np.float32(1)),
    QUERY, KEY, VALUE, MASK, opset=23,
)  # fmt: skip
case(
    "attention_zero_by_another_mask", f"{SOME} {CHOSEN} Where",
    lambda q, k, v, m, n: ops.select(some(n), masked(q, k, v, m), NOUGHT),
    QUERY, KEY, VALUE, MASK[:1], MASK, opset=23,
)  # fmt: skip
case(
    "attention_finite_mask", f"{SOME} {CHOSEN} Where",
    lambda q, k, v, m: ops.select(some(m), masked(q, k, v, m, np.float32(-3)), NOUGHT),
    QUERY, KEY, VALUE, MASK, opset=23,
)  # fmt: skip
case(
    "attention_zero_by_another_axis", f"{SOME} {CHOSEN} Where",
    lambda q, k, v, m: ops.select(some(m, 0), masked(q, k, v, m), NOUGHT),
    random(2, 4, 5, 8), KEY, random(2, 4, 5, 5), random(5, 5) > -1, opset=23,
)  # fmt: skip


# Nothing added or taken away
def counted(number: Any) -> Any:
    return ops.bucketize(number, np.array([1], np.float32))


def drawn(most: float) -> Any:
    bounds = [np.array(bound, np.float32) for bound in (0, most)]
    return ops.random_uniform(np.array([1], np.int64), *bounds, "f32")


COUNT = np.array([3])
case("nothing", "Neg", lambda n: ops.negative(ops.add(n, counted(drawn(0.5)))), COUNT)
case(
    "in_its_shape", "Neg",
    lambda n: ops.negative(ops.broadcast(n, ops.shape_of(n) + counted(drawn(0.5)))), COUNT,
)  # fmt: skip
case(
    "in_another_shape", "Expand Neg",
    lambda n, m: ops.negative(ops.broadcast(n, ops.shape_of(m))), COUNT, np.array([3, 4]),
)  # fmt: skip
case(
    "something_at_times",
    "RandomUniform Unsqueeze Greater Cast ReduceSum Mul Sub Neg",
    lambda n: ops.negative(ops.subtract(n, counted(drawn(2)) * np.array([0]))), COUNT,
)  # fmt: skip


def places_reshaped(condition: Any) -> Any:
    places = ops.non_zero(condition, "i64")
    sizes = ops.add(ops.shape_of(places), counted(drawn(0.5)))
    return ops.negative(ops.reshape(places, sizes, special_zero=False))


case("reshaped as it is", "NonZero Neg", places_reshaped, np.array([True, False, True]))


def only_part(x: Any, more: Any) -> Any:
    lengths = ops.add(np.array([-1]), more)
    return ops.negative(ops.variadic_split(x, np.int64(0), lengths).output(0))


case("one part, as long as what is left", "Neg", lambda x: only_part(x, counted(drawn(0.5))), COUNT)
case(
    "one part, beside a remainder by 1", "Neg",
    lambda x, n: only_part(x, ops.floor_mod(n, np.array([1]))), COUNT, np.array([3]),
)  # fmt: skip
case(
    "remainders by 1 of several numbers", "Mod Add Neg",
    lambda x, n: ops.negative(ops.add(x, ops.floor_mod(n, np.array([1])))), COUNT, np.array([3, 4]),
)  # fmt: skip
case(
    "a remainder by 1 of a fraction", "Div Floor Mul Sub Add Neg",
    lambda x, n: ops.negative(ops.add(x, ops.floor_mod(n, np.float32([1])))), random(3), random(1),
)  # fmt: skip
case(
    "one part, beside a remainder by 2", "Mod Add Equal Where ReduceSum Sub Where Max Split Neg",
    lambda x, n: only_part(x, ops.floor_mod(n, np.array([2]))), COUNT, np.array([4]),
)  # fmt: skip


def row_of_stack(x: Any, axis: int) -> Any:
    row = counted(ops.squeeze(drawn(0.5), [0]))
    return ops.negative(ops.gather(ops.unsqueeze(x, [0]), row, np.int64(axis)))


case("row of a stack of one", "Neg", lambda x: row_of_stack(x, 0), random(2, 3))
case(
    "column of a stack of one",
    "Unsqueeze Gather Neg",
    lambda x: row_of_stack(x, 1), random(2, 3),
)  # fmt: skip


# Places of a condition
def where_holds(x: Any, condition: Any) -> Any:
    return ops.gather(x, ops.squeeze(ops.non_zero(condition, "i64"), [0]), np.int64(0))


PLACES = np.array([True, False, True])
case("compress", "Compress", where_holds, random(3, 4), PLACES)
for mask in np.float32([0.5, 0, np.nan]), np.int64([-1, 0, 256]):
    case(f"compress_{mask.dtype}", "Cast Compress", where_holds, random(3, 4), mask)
case("compress_shorter", "NonZero Squeeze Gather", where_holds, random(5, 4), PLACES)


# Nothing to do
case(
    "interpolated_to_the_same_size", "Neg Exp",
    lambda x: ops.exp(resized(ops.negative(x), "linear", np.array([1, 2, 4, 5]))),
    random(1, 2, 4, 5),
)  # fmt: skip
case(
    "interpolated_to_the_same_size_and_given", "Neg",
    lambda x: resized(ops.negative(x), "linear", np.array([1, 2, 4, 5])), random(1, 2, 4, 5),
)  # fmt: skip


# With an axis more
def widened(x: Any, before: int, after: int) -> Any:
    return ops.squeeze(ops.absolute(ops.unsqueeze(x, [before])), [after])


case("widened", "Abs", lambda x: widened(x, 0, 0), random(5))
LONG = np.array(5, np.int64)


def ranged(stop: Any, by: Any = ops.maximum, step: int = 1, kept: int = 2) -> Any:
    start = ops.constant(np.int64(2))
    limit = by(stop, start if kept == 2 else np.int64(kept))
    return ops.range(start, limit, np.int64(step), "i64")


case("range_up_to_start", "Range", ranged, LONG)
case("range_down_to_start", "Range", lambda n: ranged(n, ops.minimum, -1), LONG)
case("range_up_to_start_downwards", "Max Range", lambda n: ranged(n, step=-1), np.array(1))
case("range_up_to_another", "Max Range", lambda n: ranged(n, kept=4), LONG)
DIVISORS = np.array([2, 0, 3, 0])


def divided(x: Any, y: Any, guard: Any = ops.not_equal, by: Any = ops.divide) -> Any:
    return ops.select(guard(y, np.array(0)), by(x, y), np.array(-1))


case("guarded_division", "Equal Not Where Div Where", divided, DIVISORS + 7, DIVISORS)
case(
    "guarded_remainder", "Greater Where Mod Where",
    lambda x, y: divided(x, y, ops.greater, ops.mod), DIVISORS + 7, DIVISORS,
)  # fmt: skip
case(
    "division_guarded_by_another", "Equal Not Div Where",
    lambda x, y: divided(x, y, lambda y, zero: ops.not_equal(x, zero)), DIVISORS, DIVISORS + 1,
)  # fmt: skip
case("widened_and_narrowed_elsewhere", "Unsqueeze Abs Squeeze", lambda x: widened(x, 0, 1), ROW)


# What is known
def all_axes(x: Any) -> Any:
    zero, one = np.int64(0), np.int64(1)
    return ops.range(zero, ops.squeeze(ops.shape_of(ops.shape_of(x))), one, "i64")


case("axes_counted", "ReduceSum", lambda x: ops.reduce_sum(x, all_axes(x)), ROWS)


# Two parts of one
def parted(pads: Any, axis: int = 0) -> Any:
    return ops.concat(ops.split(pads, np.int64(0), 2).outputs(), axis)


case("parted", "Neg Neg", lambda x: ops.negative(parted(ops.negative(x))), random(4, 2))
case(
    "parted_otherwise", "Neg Split Concat",
    lambda x: parted(ops.negative(x), 1), random(4, 2),
)  # fmt: skip


# Stacks of Loops
def counted_up(count: Any) -> Any:
    """A stack of the numbers below a count, [count]."""
    number = ops.parameter([], np.int64)
    again = ops.constant(np.array(True))
    part = ops.unsqueeze(number, [0])
    loop = ops.loop(count, ops.constant(np.array(True)))
    loop.set_function(openvino.Model([again, part], [number]))
    loop.set_special_body_ports([0, 0])
    loop.get_iter_value(again.output(0), -1)
    return loop.get_concatenated_slices(part.output(0), 0, 1, 1, -1, 0)


def guarded(n: Any, asked: Any, *otherwise: int) -> Any:
    """The numbers below max(n, 0), or `otherwise` unless `asked` is positive."""
    count = ops.maximum(n, np.int64(0))
    inner = ops.parameter([], np.int64)
    runs = ops.greater(count if asked is n else asked, np.int64(0))
    choice = ops.if_op(runs)
    stack = ops.result(counted_up(inner))
    nothing = ops.result(ops.constant(np.array(otherwise, np.int64)))
    choice.set_then_body(openvino.Model([stack], [inner]))
    choice.set_else_body(openvino.Model([nothing], []))
    choice.set_argument(0, runs.output(0))
    choice.set_input(count.output(0), inner, None)
    return choice.set_output(stack, nothing)


SOME = np.array(3)
case("guarded_loop", "Max Loop", lambda n: guarded(n, n), SOME)
case("loop_guarded_by_another_number", "Greater Max Loop", guarded, SOME, np.array(0))
case("loop_or_one_number", "Max Greater If", lambda n: guarded(n, n, 7), SOME)


# Heads turned by their places
HEADS, ANGLES = random(2, 4, 3, 8), random(2, 3, 4)
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)
ROTARY, TURNED = "RotaryEmbedding", "Unsqueeze Split Mul Unsqueeze Mul Mul Add Mul Mul Add Concat"


times = ops.multiply


def turned_by(
    x: Any, cos: Any, sin: Any, sign: float = -1, half: int = 4, again: bool = False,
    other: Any = None,
) -> Any:  # fmt: skip
    first, second = ops.variadic_split(x, -1, [half, half]).outputs()
    cos, sin = (ops.unsqueeze(table, [1]) for table in (cos, sin))
    turned = times(cos, first) + times(times(sin, second), np.float32(sign))
    ahead = times(cos, second) + times(sin if other is None else other, first)
    return ops.concat([turned, ahead, *([turned] if again else [])], -1)


def turned_in_part(x: Any, cos: Any, sin: Any) -> Any:
    inner, rest = ops.variadic_split(x, -1, [4, 4]).outputs()
    return ops.concat([turned_by(inner, cos, sin, half=2), rest], 3)


def subtracted(x: Any, cos: Any, sin: Any) -> Any:
    first, second = ops.split(x, 3, 2).outputs()
    cos, sin = (ops.unsqueeze(table, [1]) for table in (cos, sin))
    return ops.concat(
        [times(cos, first) - times(sin, second), times(sin, first) + times(cos, second)], 3
    )


def by_place(x: Any, cos: Any, sin: Any, places: Any) -> Any:
    return turned_by(x, *(ops.gather(table, places, np.array(0)) for table in (cos, sin)))


case("rotary", ROTARY, turned_by, HEADS, COS, SIN, opset=23)
case("rotary_subtracted", ROTARY, subtracted, HEADS, COS, SIN, opset=23)
case("rotary_in_part", ROTARY, turned_in_part, HEADS, COS[..., :2], SIN[..., :2], opset=23)
case(
    "rotary_by_place", ROTARY, by_place, HEADS, random(9, 4), random(9, 4),
    np.array([[0, 1, 5], [2, 3, 8]]), opset=23,
)  # fmt: skip
case("rotary_old", TURNED, turned_by, HEADS, COS, SIN, opset=22)
case(
    "rotary_the_other_way", TURNED,
    lambda x, c, s: turned_by(x, c, s, sign=1), HEADS, COS, SIN, opset=23,
)  # fmt: skip
case(
    "rotary_tables_for_all", TURNED,
    turned_by, HEADS, COS[:1], SIN[:1], opset=23,
)  # fmt: skip
case(
    "rotary_three_parts", TURNED,
    lambda x, c, s: turned_by(x, c, s, again=True), HEADS, COS, SIN, opset=23,
)  # fmt: skip
case(
    "rotary_sine_and_cosine", TURNED,
    lambda x, c, s: turned_by(x, c, s, other=np.float32(3)), HEADS, COS, SIN, opset=23,
)  # fmt: skip


# Products of integers


def less(x: Any, zero: Any) -> Any:
    known = isinstance(zero, int | list)
    return ops.convert(x, "i32") - (
        ops.constant(np.array(zero, np.int32)) if known else ops.convert(zero, "i32")
    )


def scaled_to_bytes(x: Any, top: float = 255.0) -> Any:
    """The outputs of DynamicQuantizeLinear: the bytes, and the scale and the zero point as f32."""
    axes, zero, limit = np.arange(2), ops.constant(np.float32(0)), ops.constant(np.float32(top))
    low = ops.minimum(ops.reduce_min(x, axes), zero)
    high = ops.maximum(ops.reduce_max(x, axes), zero)
    scale = (high - low) / limit
    point = ops.round(ops.clamp(zero - low / scale, 0.0, 255.0), "half_to_even")
    point = ops.convert(point, "u8")
    rounded = ops.round(x / scale, "half_to_even") + ops.convert(point, "f32")
    return ops.convert(ops.clamp(rounded, 0.0, 255.0), "u8"), scale, point


def product_of_bytes(x: Any, w: Any, **numbers: float) -> Any:
    q, scale, point = scaled_to_bytes(x, **numbers)
    found = ops.matmul(less(q, point), less(w, 3), False, False)
    return ops.convert(found, "f32") * scale


# Weights of seven bits. A processor without VNNI adds pairs of products of u8 and i8 in 16 bits, so
# onnxruntime's MatMulInteger and ConvInteger saturate with more bits.
BYTE_FILTERS = RNG.integers(-64, 64, (3, 4, 2, 2)).astype(np.int8)
WEIGHTS, COLUMNS = RNG.integers(-64, 64, (4, 3)).astype(np.int8), [1, -2, 3, 4]
case(
    "matmul_integer", "MatMulInteger",
    lambda x: ops.matmul(less(x, 7), less(WEIGHTS.T.copy(), COLUMNS), False, False), BYTES,
)  # fmt: skip
case(
    "matmul_integer_without_zero_points", "MatMulInteger",
    lambda x: ops.matmul(ops.convert(x, "i32"), ops.convert(x, "i32"), False, False),
    BYTES[0, :3, :3],
)  # fmt: skip
case(
    "matmul_integer_zero_point_of_no_byte", "Cast Sub Cast Sub MatMul",
    lambda x: ops.matmul(less(x, 256), less(WEIGHTS.T.copy(), 0), False, False), BYTES,
)  # fmt: skip
case(
    "conv_integer", "ConvInteger",
    lambda x: ops.convert(convolution(
        ops.convert(x, "f32") - ops.constant(np.float32(9)),
        ops.convert(ops.constant(BYTE_FILTERS), "f32")), "i32"),
    RNG.integers(0, 256, (2, 4, 6, 7)).astype(np.uint8),
)  # fmt: skip
case("matmul_of_wider_integers", "MatMul", lambda x: ops.matmul(x, x, False, False),
     np.arange(9, dtype=np.int32).reshape(3, 3))  # fmt: skip
case(
    "dynamic_quantize_linear", "DynamicQuantizeLinear MatMulInteger Cast Mul",
    lambda x, w: product_of_bytes(x, w), random(5, 4), WEIGHTS,
)  # fmt: skip
case(
    "dynamic_quantize_to_seven_bits",
    "ReduceMax Max ReduceMin Min Sub Div Div Round Div Sub Clip Round Cast Cast Add Clip Cast "
    "MatMulInteger Cast Mul",
    lambda x, w: product_of_bytes(x, w, top=127.0), random(5, 4), WEIGHTS,
)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_recomposed(name: str, tmp_path: Path) -> None:
    expected, build, inputs, opset = CASES[name]
    parameters = [ops.parameter(x.shape, x.dtype, name=f"in{i}") for i, x in enumerate(inputs)]
    model = openvino.Model([build(*parameters)], parameters)
    openvino.save_model(model, tmp_path / "a.xml", compress_to_fp16=False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx", opset=opset, debug=True)
    written = onnx.load(tmp_path / "a.onnx")
    onnx.checker.check_model(written, full_check=True)
    assert " ".join(node.op_type for node in written.graph.node) == expected
    feed = {value.name: x for value, x in zip(written.graph.input, inputs, strict=True)}
    assert_close(OnnxRuntime(written).run(feed), OpenVino(tmp_path / "a.xml").run(inputs))
