"""Convolution, pooling, normalisation, quantisation and detection of ONNX, written as IR: OpenVINO
computes the same as onnxruntime."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

_RNG = np.random.default_rng(11)


class Constant:
    """An argument as a constant of the model rather than an input."""

    def __init__(self, value: Any, type: Any = np.float32) -> None:
        self.value = np.asarray(value, type)


def random(*shape: int, type: Any = np.float32) -> np.ndarray:
    return _RNG.normal(size=shape).astype(type)


def positive(*shape: int) -> np.ndarray:
    return _RNG.uniform(0.5, 2, size=shape).astype(np.float32)


CASES: dict[str, tuple[str, tuple[Any, ...], int, int, dict[str, Any]]] = {}
STATIC: set[str] = set()
"""Cases that need static shapes."""


def case(
    name: str, op: str, *arguments: Any, opset: int = 21, outputs: int = 1, static: bool = False,
    **attributes: Any,
) -> None:  # fmt: skip
    name = f"{op} {name}"
    assert name not in CASES
    CASES[name] = op, arguments, opset, outputs, attributes
    if static:
        STATIC.add(name)


IMAGE = random(2, 4, 7, 8)
for group, given in ((1, {"auto_pad": "SAME_LOWER"}), (2, {"pads": [1, 0, 2, 1]})):
    case(
        f"{group}", "Conv", IMAGE, Constant(random(8, 4 // group, 3, 2)), Constant(random(8)),
        group=group, strides=[2, 1], **given,
    )  # fmt: skip
    case(
        f"{group}", "ConvTranspose", IMAGE, Constant(random(4, 2, 3, 4)),
        Constant(random(2 * group)), group=group, strides=[2, 3], **given,
    )  # fmt: skip
for pad, shape in product(
    ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), ([13, 23], [14, 24], [15, 25])
):
    case(
        f"{pad} to {shape}",
        "ConvTranspose",
        IMAGE,
        Constant(random(4, 2, 3, 4)),
        strides=[2, 3],
        auto_pad=pad,
        output_shape=shape,
    )
case("inputs", "Conv", IMAGE, random(6, 2, 3, 3), random(6), group=2, static=True)
for kernel, stride, pad, up in product((2, 3), (3,), (0, 1), (False, True)):
    window: Any = {
        "kernel_shape": [kernel] * 2,
        "strides": [stride] * 2,
        "pads": [pad] * 4,
        "ceil_mode": int(up),
    }
    label = f"{kernel} {stride} {pad} {up}"
    case(label, "MaxPool", IMAGE, **window)
    case(f"{label} indices", "MaxPool", IMAGE, outputs=2, **window)
    case(label, "LpPool", IMAGE, p=kernel, static=up and stride + pad > kernel, **window)
    for include in (0, 1):
        case(
            f"{label} {include}", "AveragePool", IMAGE, count_include_pad=include,
            static=bool(up and include and pad and stride + pad > kernel), **window,
        )  # fmt: skip
case(
    "asymmetric",
    "AveragePool",
    IMAGE,
    kernel_shape=[3, 3],
    strides=[2, 2],
    pads=[0, 0, 1, 1],
    ceil_mode=1,
    count_include_pad=1,
)
for pad, include in product((0, 1), (0, 1)):
    window = {"kernel_shape": [3, 9], "strides": [2, 9], "pads": [pad] * 4, "ceil_mode": 1}
    case(
        f"wider than the image {pad} {include}", "AveragePool", IMAGE, static=True,
        count_include_pad=include, **window,
    )  # fmt: skip
    label = f"wider than the image {pad} {include}"
    case(label, "MaxPool", IMAGE, static=True, outputs=1 + include, **window)
case(
    "columns 3-D",
    "MaxPool",
    random(1, 2, 4, 5, 6),
    outputs=2,
    kernel_shape=[2, 3, 2],
    strides=[2, 1, 1],
)
case("i8", "MaxPool", _RNG.integers(-9, 9, (1, 2, 6, 6)).astype(np.int8), kernel_shape=[2, 2])
CHANNELS = random(4), random(4), random(4), positive(4)
for opset in (7, 9, 14, 15):
    case(
        f"{opset}", "BatchNormalization", IMAGE, *map(Constant, CHANNELS), opset=opset, momentum=0.8
    )
case("inputs", "BatchNormalization", IMAGE, *CHANNELS)
case("training", "BatchNormalization", IMAGE, *CHANNELS, outputs=3, training_mode=1, momentum=0.8)
case("2-D", "BatchNormalization", random(5, 4), *map(Constant, CHANNELS))
for axis in (-1, 1, 2):
    shape = IMAGE.shape[axis:]
    case(
        f"{axis}",
        "LayerNormalization",
        IMAGE,
        random(*shape),
        random(*shape),
        axis=axis,
        static=True,
    )
    case(
        f"{axis} 3", "LayerNormalization", IMAGE, random(*shape), axis=axis, outputs=3, static=True
    )
for opset in (18, 21):
    each = 2 if opset == 18 else 4
    case(
        f"{opset}",
        "GroupNormalization",
        IMAGE,
        Constant(random(each)),
        random(each),
        opset=opset,
        num_groups=2,
    )
case("", "MeanVarianceNormalization", IMAGE)
for type, zero in ((np.int8, 3), (np.uint16, 900)):
    name = np.dtype(type).name
    case(name, "QuantizeLinear", IMAGE, Constant(0.0625), Constant(zero, type))
    case(
        f"{name} channels",
        "QuantizeLinear",
        IMAGE,
        Constant([0.25, 0.125, 1, 2]),
        Constant([zero] * 4, type),
        axis=1,
    )
    case(
        f"{name} inputs", "QuantizeLinear", IMAGE, np.array(0.25, np.float32), np.array(zero, type)
    )
    whole = _RNG.integers(0, 100, (4, 6)).astype(type)
    case(name, "DequantizeLinear", whole, Constant(0.3), Constant(zero, type))
    case(
        f"{name} last",
        "DequantizeLinear",
        whole,
        Constant(positive(6)),
        Constant([zero] * 6, type),
        axis=-1,
    )
    case(
        f"{name} blocks",
        "DequantizeLinear",
        whole,
        Constant(positive(4, 2)),
        Constant(np.full((4, 2), zero), type),
        axis=1,
        block_size=3,
        static=True,
    )
    case(
        f"{name} blocks",
        "QuantizeLinear",
        random(4, 6),
        Constant([[0.25, 0.5]] * 4),
        Constant(np.full((4, 2), zero), type),
        axis=1,
        block_size=3,
        static=True,
    )
case(
    "ties",
    "QuantizeLinear",
    np.arange(-6, 6, dtype=np.float32) / 4,
    Constant(0.5),
    Constant(0, np.int8),
)
case("i32", "DequantizeLinear", np.array([-70000, 3], np.int32), Constant(0.5))
BYTES = _RNG.integers(0, 255, (1, 2, 6, 6)).astype(np.uint8)
WEIGHTS = Constant(_RNG.integers(0, 255, (3, 2, 3, 3)), np.uint8)
case(
    "", "ConvInteger", BYTES, WEIGHTS, Constant(7, np.uint8), Constant(130, np.uint8), pads=[1] * 4
)
case(
    "",
    "QLinearConv",
    BYTES,
    Constant(0.02),
    Constant(120, np.uint8),
    WEIGHTS,
    Constant(positive(3)),
    Constant([100] * 3, np.uint8),
    Constant(13.7),
    Constant(110, np.uint8),
    Constant([70, -20, 5], np.int32),
)
BOXES, SCORES = _RNG.uniform(0, 9, (2, 12, 4)).astype(np.float32), random(2, 3, 12)
for centre, count, overlap, least in ((0, 3, 0.4, None), (1, 50, 0.0, -0.2), (0, 0, 0.4, -0.2)):
    more = [] if least is None else [Constant([least])]
    case(
        f"{centre} {count} {overlap} {least}",
        "NonMaxSuppression",
        BOXES,
        SCORES,
        Constant([count], np.int64),
        Constant([overlap]),
        *more,
        center_point_box=centre,
        static=True,
    )
case("defaults", "NonMaxSuppression", BOXES, SCORES, static=True)
case(
    "inputs", "NonMaxSuppression", BOXES, SCORES, np.array([2], np.int64),
    np.array([0.4], np.float32), np.array([0.1], np.float32), static=True,
)  # fmt: skip
ROIS = np.array([[0, 0, 5, 5], [2, 3, 6, 7], [1.3, 2.2, 3.1, 3.3]], np.float32)
for opset, samples in product((10, 16), (0, 2)):
    case(
        f"{opset} {samples}",
        "RoiAlign",
        IMAGE,
        Constant(ROIS),
        Constant([0, 1, 1], np.int64),
        opset=opset,
        output_height=3,
        output_width=2,
        sampling_ratio=samples,
        spatial_scale=0.7,
    )
case(
    "computed rois", "RoiAlign", IMAGE, ROIS, np.array([0, 1, 1]), opset=16, output_height=3,
    output_width=2, sampling_ratio=2,
)  # fmt: skip
for mode in ("half_pixel", "output_half_pixel"):
    case(
        f"max {mode}", "RoiAlign", IMAGE, Constant(ROIS), Constant([0, 1, 1], np.int64), mode="max",
        output_height=3, output_width=2, sampling_ratio=2, coordinate_transformation_mode=mode,
    )  # fmt: skip
case("", "MaxRoiPool", IMAGE, Constant([[0, 0, 0, 5, 5], [1, 2, 3, 6, 7]]), pooled_shape=[2, 3])


def model_of(name: str, dynamic: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model of a case and its inputs; `dynamic` leaves the sizes of images open."""
    op, arguments, opset, outputs, attributes = CASES[name]
    inputs, constants, values = [], [], {}
    for i, argument in enumerate(arguments):
        if isinstance(argument, Constant):
            constants.append(onnx.numpy_helper.from_array(argument.value, f"i{i}"))
            continue
        dims: list[Any] = list(argument.shape)
        if dynamic and argument.ndim >= 3:
            dims = ["n", dims[1], *(f"d{j}" for j in range(2, argument.ndim))]
        element = helper.np_dtype_to_tensor_dtype(argument.dtype)
        inputs.append(helper.make_tensor_value_info(f"i{i}", element, dims))
        values[f"i{i}"] = argument
    names = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(op, [f"i{i}" for i in range(len(arguments))], names, **attributes)
    graph = helper.make_graph(
        [node], "g", inputs, [onnx.ValueInfoProto(name=n) for n in names], constants
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), values


@pytest.mark.parametrize("name", CASES)
def test_same_numbers(name: str, tmp_path: Path) -> None:
    for dynamic in (False, True):
        if dynamic and name in STATIC:
            continue
        model, feed = model_of(name, dynamic)
        bridge.convert(model, tmp_path / "a.xml")
        computed = OpenVino(tmp_path / "a.xml").run(list(feed.values()))
        assert_close(computed, OnnxRuntime(model).run(feed))


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_weights_of_open_sizes_are_refused_with_advice(op: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[1,2,5,5] x, float[2,2,k,k] w) => (float[1,2,a,b] y) {{ y = {op} (x, w) }}""")
    with pytest.raises(bridge.UnsupportedError, match=r"weights f32\[2,2,k,k\] have open sizes"):
        bridge.convert(model, tmp_path / "m.xml")
    bridge.convert(model, tmp_path / "m.xml", input_shapes={"w": [2, 2, 3, 3]})
    OpenVino(tmp_path / "m.xml")


@pytest.mark.parametrize("size", [2, 4])
def test_even_window_of_lrn(size: int, tmp_path: Path) -> None:
    """onnxruntime accepts odd windows alone. The standard's evaluator counts as many channels as
    images."""
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[n,c,h,w] x) => (float[n,c,h,w] y) {{
            y = LRN <size = {size}, alpha = 0.5, bias = 2.0> (x)
        }}""")
    x = np.random.default_rng(size).normal(size=(7, 7, 3, 2)).astype(np.float32)
    bridge.convert(model, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    assert_close(OpenVino(tmp_path / "a.xml").run([x]), expected)
    assert_close(OnnxRuntime(tmp_path / "b.onnx").run({"x": x}), expected)
