"""Convolution, pooling, normalisation, quantisation and detection of IR, written as ONNX. OpenVINO
writes the files; onnxruntime computes the same numbers from the converted ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset1

import bridge
from tests.support.ir_operators import Constant, engines, of, run_onnx
from tests.support.sample import thinned

F32, I64 = np.float32, np.int64
_RNG = np.random.default_rng(7)


def random(*shape: int, type: Any = F32) -> np.ndarray:
    return _RNG.normal(size=shape).astype(type)


def positive(*shape: int) -> np.ndarray:
    return _RNG.uniform(0.5, 2, size=shape).astype(F32)


Case = tuple[Callable[..., Any], tuple[Any, ...]]
CASES: dict[str, Case] = {}
STATIC: set[str] = set()
"""Cases that need static shapes."""
SINCE: dict[str, int] = {}
"""The first operator set of ONNX that can express the case."""


def case(name: str, build: Callable[..., Any], *arguments: Any, static: bool = False) -> None:
    assert name not in CASES
    CASES[name] = build, arguments
    if static:
        STATIC.add(name)


def spatial(rank: int, stride: int = 1, pad: int = 0, dilation: int = 1, **more: Any) -> Any:
    return {
        "strides": [stride] * rank, "dilations": [dilation] * rank, "pads_begin": [pad] * rank,
        "pads_end": [pad] * rank, **more,
    }  # fmt: skip


def first_of(build: Callable[..., Any]) -> Callable[..., Any]:
    """The first output of an operator alone."""
    return lambda *inputs: build(*inputs).output(0)


# Convolution
IMAGE, ODD = random(2, 4, 7, 8), np.random.default_rng(3).normal(size=(2, 4, 9, 8)).astype(F32)
for rank in (1, 2, 3):
    x, w = random(1, 4, *(6, 7, 5)[:rank]), random(6, 4, *(3,) * rank)
    case(f"convolution {rank}-D", of(1, "Convolution", **spatial(rank, 2, 1)), x, Constant(w))
    g = random(2, 3, 2, *(3,) * rank)
    case(f"groups {rank}-D", of(1, "GroupConvolution", **spatial(rank, 1, 1)), x, Constant(g))
    t = random(4, 3, *(3,) * rank)
    case(
        f"transposed {rank}-D",
        of(1, "ConvolutionBackpropData", **spatial(rank, 2, 1)),
        x,
        Constant(t),
    )
    tg = random(2, 2, 3, *(3,) * rank)
    case(
        f"transposed groups {rank}-D",
        of(1, "GroupConvolutionBackpropData", **spatial(rank, 2)), x, Constant(tg),
    )  # fmt: skip
for pad in ("same_upper", "same_lower", "valid"):
    for stride in (1, 2):
        case(
            f"convolution {pad} {stride}", of(1, "Convolution", **spatial(2, stride, auto_pad=pad)),
            IMAGE, random(3, 4, 4, 3),
        )  # fmt: skip
        for output in ((7 * stride, 8 * stride), (7 * stride + 1, 8 * stride + 1)):
            case(
                f"transposed {pad} {stride} {output}",
                of(1, "ConvolutionBackpropData", **spatial(2, stride, auto_pad=pad)),
                IMAGE, Constant(random(4, 3, 4, 3)), Constant(output, I64),
            )  # fmt: skip
    case(
        f"transposed {pad}", of(1, "ConvolutionBackpropData", **spatial(2, 2, auto_pad=pad)),
        IMAGE, Constant(random(4, 3, 4, 3)),
    )  # fmt: skip
for size in (12, 13, 14, 15):
    case(
        f"transposed to {size}", of(1, "ConvolutionBackpropData", **spatial(1, 2, 1)),
        random(1, 2, 7), Constant(random(2, 3, 3)), Constant([size], I64),
    )  # fmt: skip
for end, extra in ((0, 1), (1, 1), (1, 2)):
    case(
        f"transposed longer by {extra} of {end}",
        of(
            1, "ConvolutionBackpropData", strides=[1], dilations=[2], pads_begin=[0],
            pads_end=[end], auto_pad="explicit", output_padding=[extra],
        ),
        random(1, 4, 5), Constant(random(4, 3, 2)),
    )  # fmt: skip
case(
    "transposed output_padding",
    of(1, "ConvolutionBackpropData", **spatial(2, 2, 1, output_padding=[1, 0])),
    IMAGE, Constant(random(4, 3, 3, 3)),
)  # fmt: skip
case(
    "convolution f16",
    of(1, "Convolution", **spatial(2)),
    IMAGE.astype(np.float16),
    Constant(random(3, 4, 3, 3, type=np.float16)),
)
case("filters as an input", of(1, "GroupConvolution", **spatial(2)), IMAGE, random(4, 1, 1, 3, 3))
for flag in (False, True):
    for groups in (1, 2):
        name = f"deformable {flag} {groups}"
        SINCE[name] = 19
        case(
            name,
            of(
                8,
                "DeformableConvolution",
                **spatial(
                    2, 1, 1, group=groups, deformable_group=2, bilinear_interpolation_pad=flag
                ),
            ),
            random(1, 4, 6, 7),
            random(1, 36, 6, 7),
            Constant(random(6, 4 // groups, 3, 3)),
            positive(1, 18, 6, 7),
        )
SINCE["deformable-1"] = 19
case(
    "deformable-1", of(1, "DeformableConvolution", **spatial(2, 2, 1, group=1, deformable_group=1)),
    random(1, 4, 6, 7), random(1, 18, 3, 4), Constant(random(6, 4, 3, 3)),
)  # fmt: skip

# The number of channels is a multiple of 8; otherwise OpenVINO reads the bits of neighbours.
BITS = _RNG.integers(0, 2, (3, 16, 3, 2))


def binary(**attributes: Any) -> Callable[..., Any]:
    """BinaryConvolution with its filters packed as OpenVINO runs them."""
    packed = np.unpackbits(np.packbits(BITS.reshape(-1), bitorder="little"))
    filters = ov.op.Constant(ov.Type.u1, ov.Shape(BITS.shape), packed.tolist())
    build = of(1, "BinaryConvolution", mode="xnor-popcount", **attributes)
    return lambda data: build(data, filters)


for fill in (0.0, 1.0, -1.0):
    for name, attributes in (
        ("", spatial(2, 1, 1)), ("of strides", spatial(2, 2, 1)), ("dilated", spatial(2, 1, 2, 2)),
        ("same", spatial(2, auto_pad="same_upper")), ("valid", spatial(2, 1, 1, auto_pad="valid")),
    ):  # fmt: skip
        case(
            f"binary convolution {fill} {name}", binary(pad_value=fill, **attributes),
            _RNG.integers(0, 2, (2, 16, 7, 6)).astype(F32), static=True,
        )  # fmt: skip
    signs = np.random.default_rng(4).integers(0, 2, (2, 16, 7, 6)).astype(F32) * 2 - 1
    for name, numbers in (("signs", signs), ("any numbers", 0.3 * signs + (signs > 0))):
        case(
            f"binary convolution {fill} of {name}", binary(pad_value=fill, **spatial(2, 1, 1)),
            numbers, static=True,
        )  # fmt: skip

# For integers OpenVINO computes in f32 and rounds the result.
for type in (np.uint8, np.int8, np.int32):
    x = np.random.default_rng(9).integers(0, 200, (2, 4, 7, 6)).astype(type)
    window = {"kernel": [2, 3], **spatial(2, 2, 1)}
    del window["dilations"]
    for exclude in (False, True):
        build = of(1, "AvgPool", **window, **{"exclude-pad": exclude})
        case(f"average {type.__name__} {exclude}", build, x, static=True)
    case(f"adaptive average {type.__name__}", of(8, "AdaptiveAvgPool"), x, Constant([7, 3], I64))
    mvn = {"eps": 1e-6, "normalize_variance": True, "eps_mode": "inside_sqrt"}
    case(f"mvn {type.__name__}", of(6, "MVN", **mvn), x, Constant([2, 3], I64), static=True)

# Pooling
for kernel, stride, pad in ((2, 2, 0), (3, 2, 1), (3, 3, 1), (2, 1, 1), (2, 3, 1)):
    for rounding in ("floor", "ceil", "ceil_torch"):
        window = {"kernel": [kernel] * 2, **spatial(2, stride, pad, rounding_type=rounding)}
        indexed = {**window, "axis": 2, "index_element_type": "i32"}
        if rounding != "ceil" or stride + pad <= kernel:
            case(
                f"max {kernel} {stride} {pad} {rounding}",
                of(14, "MaxPool", **indexed),
                IMAGE,
                static=True,
            )
        del window["dilations"]
        for exclude in (False, True):
            if exclude and rounding == "ceil" and stride + pad > kernel:
                continue
            case(
                f"average {kernel} {stride} {pad} {rounding} {exclude}",
                of(14, "AvgPool", **window, **{"exclude-pad": exclude}), IMAGE, static=True,
            )  # fmt: skip
        if rounding != "ceil_torch":
            case(
                f"max-1 {kernel} {stride} {pad} {rounding}",
                of(1, "MaxPool", **window),
                IMAGE,
                static=True,
            )
for pad in ("same_upper", "same_lower", "valid"):
    window = {"kernel": [3, 2], **spatial(2, 2, auto_pad=pad, rounding_type="ceil")}
    case(f"max {pad}", of(8, "MaxPool", **window), IMAGE, static=True)
    del window["dilations"]
    for exclude in (False, True):
        case(
            f"average {pad} {exclude}",
            of(1, "AvgPool", **window, **{"exclude-pad": exclude}),
            IMAGE,
        )
for pad in ("same_upper", "same_lower", "valid"):
    for kernel, stride, dilation in ((2, 3, 1), (2, 2, 3), (3, 1, 2)):
        name = f"{pad} {kernel} {stride} {dilation}"
        w = Constant(random(3, 4, kernel, kernel))
        window = {"kernel": [kernel] * 2, **spatial(2, stride, 0, dilation, auto_pad=pad)}
        moving = pad != "valid" and stride > 1
        # OpenVINO pads wrongly with auto_pad, dilations and an input of unknown size.
        case(f"max {name}", first_of(of(8, "MaxPool", **window)), ODD, static=pad != "valid")
        if dilation < 3:
            case(f"max indexed {name}", of(8, "MaxPool", **window), ODD, static=pad != "valid")
        case(
            f"convolution {name}",
            of(1, "Convolution", **spatial(2, stride, 0, dilation, auto_pad=pad)),
            ODD, w, static=moving,
        )  # fmt: skip
        for rounding in ("ceil", "ceil_torch"):
            if rounding == "ceil" and kernel < stride:
                continue  # It may leave a window without any element.
            more = {"rounding_type": rounding}
            case(
                f"max {name} {rounding}",
                first_of(of(14, "MaxPool", **window, **more)),
                ODD,
                static=pad != "valid",
            )
            rounded = {k: v for k, v in window.items() if k != "dilations"} | more
            for exclude in (False, True):
                case(
                    f"average {name} {rounding} {exclude}",
                    of(14, "AvgPool", **rounded, **{"exclude-pad": exclude}), ODD, static=moving,
                )  # fmt: skip
case(
    "groups same_upper dilated",
    of(1, "GroupConvolution", **spatial(2, 1, 0, 2, auto_pad="same_upper")),
    ODD, Constant(random(2, 3, 2, 3, 3)),
)  # fmt: skip
case(
    "average 1-D",
    of(
        1,
        "AvgPool",
        **{"kernel": [3], "strides": [1], "pads_begin": [1], "pads_end": [1], "exclude-pad": True},
    ),
    random(2, 3, 9),
)
case(
    "max 3-D dilated",
    of(8, "MaxPool", kernel=[2] * 3, **spatial(3, 1, 1, 2)),
    random(1, 2, 6, 7, 5),
)
wide_pads = {"kernel": [2, 2], **spatial(2, 1, 2, 3)}
case("max with pads as wide as its kernel", first_of(of(8, "MaxPool", **wide_pads)), ODD)
SINCE["average dilated"] = 19
case(
    "average dilated",
    of(16, "AvgPool", kernel=[2, 3], **spatial(2, 1, 1, 2), **{"exclude-pad": True}),
    IMAGE,
)
for output in ((1, 1), (7, 4), (3, 5), (9, 2)):
    shape = Constant(output, I64)
    case(f"adaptive average {output}", of(8, "AdaptiveAvgPool"), IMAGE, shape)
    case(f"adaptive max {output}", of(8, "AdaptiveMaxPool", index_element_type="i32"), IMAGE, shape)

# Colours
for to, type in product(("RGB", "BGR"), (np.uint8, F32, np.float16)):
    luma, first, second, third = (
        _RNG.integers(0, 256, shape).astype(type)
        for shape in ((2, 4, 6, 1), (2, 2, 3, 1), (2, 2, 3, 1), (2, 6, 6, 1))
    )
    pair = np.concatenate([first, second], -1)
    for kind, parts in (("NV12", (luma, pair)), ("I420", (luma, first, second))):
        case(f"{kind} to {to} {type.__name__}", of(8, f"{kind}to{to}"), third)
        case(f"{kind} parts to {to} {type.__name__}", of(8, f"{kind}to{to}"), *parts)

# Normalisation
PARAMETERS = random(4), random(4), random(4), positive(4)
case("batch", of(5, "BatchNormInference", epsilon=1e-3), IMAGE, *map(Constant, PARAMETERS))
for version in (1, 5):
    inputs = (IMAGE, *PARAMETERS) if version == 5 else (*PARAMETERS[:2], IMAGE, *PARAMETERS[2:])
    case(f"batch-{version}", of(version, "BatchNormInference", epsilon=1e-3), *inputs)
for axes in ([1, 2, 3], [2, 3], [-1], [1]):
    for mode in ("INSIDE_SQRT", "OUTSIDE_SQRT"):
        for variance in (False, True):
            case(
                f"mvn {axes} {mode} {variance}",
                of(6, "MVN", eps=0.1, eps_mode=mode, normalize_variance=variance),
                IMAGE, Constant(axes, I64),
            )  # fmt: skip
for across in (False, True):
    case(
        f"mvn-2 {across}",
        of(2, "MVN", across_channels=across, normalize_variance=True, eps=0.1),
        IMAGE,
    )
for axes, size in product(([1], [2, 3], [1, 2, 3]), (2, 3, 4)):
    case(
        f"lrn {axes} {size}",
        of(1, "LRN", alpha=0.1, beta=0.75, bias=2.0, size=size),
        IMAGE,
        Constant(axes, I64),
    )
case(
    "lrn of rows", of(1, "LRN", alpha=0.5, beta=0.75, bias=2.0, size=3), random(2, 6, 5),
    Constant([1], I64),
)  # fmt: skip
for axes in ([1], [1, 2, 3], [-1], []):
    for mode in ("add", "max"):
        case(
            f"l2 {axes} {mode}",
            of(1, "NormalizeL2", eps=0.5, eps_mode=mode),
            IMAGE,
            Constant(axes, I64),
        )
case("grn", of(1, "GRN", bias=0.3), IMAGE)
case("group", of(12, "GroupNormalization", num_groups=2, epsilon=0.1), IMAGE, random(4), random(4))

# Quantisation
STEPS = np.array([0.01, 0.02, 0.005, 0.03], F32).reshape(1, 4, 1, 1)
RANGES: dict[str, tuple[Any, ...]] = {
    "scalar": (-1.5, 1.7, -1.5, 1.7), "other range": (0.0, 2.0, -1.0, 3.0),
    "channels": (random(1, 4, 1, 1) - 3, positive(1, 4, 1, 1), -1.0, 2.0),
    "with 0": (-1.28, 1.27, -1.28, 1.27), "unsigned": (0.0, 2.55, 0.0, 2.55),
    "channels with 0": (STEPS * -100, STEPS * 155, STEPS * -100, STEPS * 155),
    "two channels": (-2.0, positive(1, 4, 1, 1), -positive(1, 4, 1, 1), positive(1, 4, 1, 1)),
}  # fmt: skip
for name, limits in RANGES.items():
    for levels in (2, 16, 256):
        case(
            f"fake {name} {levels}",
            of(1, "FakeQuantize", levels=levels),
            IMAGE,
            *(Constant(v, F32) for v in limits),
        )
case(
    "fake of inputs",
    of(1, "FakeQuantize", levels=256),
    IMAGE,
    *(np.array([v], F32) for v in (-1.0, 1.0, -2.0, 2.0)),
)
# Limits are inputs: with equal constant limits the CPU plugin gives NaN.
ROUND = np.round(IMAGE * 4) / 4
CENTRES = np.array([0, 0.25, -0.5, 1], F32).reshape(1, 4, 1, 1)
for levels in (2, 4, 256):
    case(
        f"fake of thresholds and ranges {levels}", of(1, "FakeQuantize", levels=levels), ROUND,
        CENTRES, CENTRES + np.maximum(CENTRES, 0), np.array([-1.0], F32), np.array([2.0], F32),
    )  # fmt: skip
    case(
        f"fake of limits in the other order {levels}", of(1, "FakeQuantize", levels=levels), ROUND,
        *(np.array([v], F32) for v in (1.1, -0.9, -2.0, 2.0)),
    )  # fmt: skip
for kind in ("f8e4m3", "f8e5m2"):
    SINCE[f"fake {kind}"] = 19
    case(
        f"fake {kind}",
        of(13, "FakeConvert", destination_type=kind),
        IMAGE,
        Constant(2.0, F32),
        Constant(0.25, F32),
    )


def scaled(type: str, f16: bool, blocks: bool, zero: float | None) -> Callable[..., Any]:
    """A product with weights of few bits, as NNCF leaves them: converted, shifted, scaled."""

    def build(x: Any) -> Any:
        high = 15 if type[1:] == "4" else 200
        values = np.random.default_rng(5).integers(0, high, (6, 2, 16) if blocks else (6, 32))
        if type[1:] == "4":
            flat = values.reshape(-1, 2).astype(np.uint8)
            packed = (flat[:, 0] | flat[:, 1] << 4).reshape(*values.shape[:-1], -1)
        else:
            packed = values.astype(np.uint8).view(np.int8 if type == "i8" else np.uint8)
        weights = ov.op.Constant(ov.Tensor(packed, list(values.shape), getattr(ov.Type, type)))
        wide = np.float16 if f16 else F32
        per = (6, 2, 1) if blocks else (6, 1)
        y = opset1.convert(weights, "f16" if f16 else "f32")
        if zero is not None:
            y = opset1.subtract(y, opset1.constant(np.full(per, zero, wide)))
        y = opset1.multiply(y, opset1.constant(positive(*per).astype(wide)))
        if blocks:
            y = opset1.reshape(y, opset1.constant(np.array([6, 32], I64)), False)
        return opset1.matmul(x, opset1.convert(y, "f32") if f16 else y, False, True)

    return build


for type, f16, blocks in product(("u8", "i8", "u4", "i4"), (False, True), (False, True)):
    name = f"weights {type} {f16} {blocks}"
    if type[1:] == "4":
        SINCE[name] = 21
    case(name, scaled(type, f16, blocks, 3.0 if type[0] == "u" else None), random(3, 32))

# Detection
BOXES, SCORES = _RNG.uniform(0, 9, (2, 12, 4)).astype(F32), random(2, 3, 12)
for sort in (False, True):
    for encoding in ("corner", "center"):
        for version in (1, 3, 4, 5, 9):
            more: Any = {} if version == 1 else {"output_type": "i32"}
            case(
                f"nms-{version} {sort} {encoding}",
                of(
                    version,
                    "NonMaxSuppression",
                    box_encoding=encoding,
                    sort_result_descending=sort,
                    **more,
                ),
                BOXES,
                SCORES,
                Constant(3, I64),
                Constant(0.3, F32),
                Constant(-0.2, F32),
            )
for overlap in (0.0, 0.5, 1.0):
    case(
        f"nms overlap {overlap}",
        of(9, "NonMaxSuppression"),
        np.array([[[0, 0, 1, 1], [0, 0, 0.5, 1], [5, 5, 6, 6], [5, 5, 5.5, 6]]], F32),
        np.array([[[0.9, 0.8, 0.5, 0.4]]], F32),
        Constant(9, I64),
        Constant(overlap, F32),
        Constant(0.1, F32),
    )
# Scores below 0 rise as they are scaled down.
for sort, encoding, sigma in product((False, True), ("corner", "center"), (0.1, 2.0)):
    case(
        f"soft nms {sort} {encoding} {sigma}",
        of(9, "NonMaxSuppression", box_encoding=encoding, sort_result_descending=sort),
        BOXES, SCORES, Constant(8, I64), Constant(0.3, F32), Constant(-0.8, F32),
        Constant(sigma, F32),
    )  # fmt: skip
for name, limit, least in (("few", [1], 0.0), ("nothing", [5], 9.0)):
    case(
        f"soft nms of {name}", of(5, "NonMaxSuppression", output_type="i32"), BOXES, SCORES,
        Constant(limit, I64), Constant([0.0], F32), Constant([least], F32), Constant([0.5], F32),
    )  # fmt: skip
ROIS = np.array([[0, 0, 5, 5], [2, 3, 6, 7], [1.3, 2.2, 3.1, 3.3], [-2, -1, 3, 20]], F32)
BATCHES = Constant([0, 1, 1, 0], I64)
for aligned in ("asymmetric", "half_pixel_for_nn", "half_pixel"):
    for mode in ("avg", "max"):
        for samples in (0, 2):
            if mode == "avg" or samples:
                case(
                    f"roi {aligned} {mode} {samples}",
                    of(
                        9,
                        "ROIAlign",
                        pooled_h=3,
                        pooled_w=2,
                        sampling_ratio=samples,
                        spatial_scale=0.7,
                        mode=mode,
                        aligned_mode=aligned,
                    ),
                    IMAGE,
                    ROIS,
                    BATCHES,
                )
        SINCE[f"roi {aligned} {mode} 0"] = SINCE[f"roi {aligned} {mode} 2"] = 16
case(
    "roi-3",
    of(3, "ROIAlign", pooled_h=3, pooled_w=2, sampling_ratio=2, spatial_scale=1.0, mode="avg"),
    IMAGE,
    ROIS,
    BATCHES,
)
SINCE["roi-3"] = 16
NUMBERED = np.concatenate([[[0], [1], [1], [0]], np.maximum(ROIS, 0)], axis=1).astype(F32)
case(
    "roi pooling",
    of(2, "ROIPooling", output_roi=[2, 3], pooled_h=2, pooled_w=3, spatial_scale=0.5, method="max"),
    IMAGE,
    NUMBERED,
)
FRACTIONS = np.array(
    [[0, 0, 0, 1, 1], [1, 0.2, 0.3, 0.8, 0.7], [0, 0.1, 0.5, 0.1, 0.9], [1, -0.3, 0.2, 1.2, 0.6]],
    F32,
)
for size in ((3, 2), (1, 4)):
    name = f"roi pooling bilinear {size}"
    SINCE[name] = 16
    case(
        name,
        of(
            2,
            "ROIPooling",
            output_roi=list(size),
            pooled_h=size[0],
            pooled_w=size[1],
            spatial_scale=1.0,
            method="bilinear",
        ),
        IMAGE,
        FRACTIONS,
    )
# One region has no size, one lies outside, and one is half a pixel wide; -1 ends the list.
SPOTS = np.array(
    [[0, 1, 2, 5, 6], [1, 2.5, 0.5, 2.5, 0.5], [1, 20, 20, 30, 30], [0, -3, -2.5, 9, 4.5],
     [1, 3, 1, 3.5, 1.5], [-1, 0, 0, 0, 0], [0, 1, 1, 5, 5]], F32,
)  # fmt: skip
POSITIONS: dict[str, tuple[str, dict[str, Any], int]] = {
    "average": ("PSROIPooling", {"mode": "average", "group_size": 2}, 12),
    "average of one": ("PSROIPooling", {"mode": "average", "group_size": 1}, 3),
    "bilinear": (
        "PSROIPooling",
        {"mode": "bilinear", "group_size": 3, "spatial_bins_x": 2, "spatial_bins_y": 1}, 6,
    ),
    "bilinear of one": (
        "PSROIPooling",
        {"mode": "bilinear", "group_size": 1, "spatial_bins_x": 1, "spatial_bins_y": 3}, 9,
    ),
    "deformable": (
        "DeformablePSROIPooling", {"group_size": 2, "spatial_bins_x": 2, "spatial_bins_y": 3}, 12,
    ),
}  # fmt: skip
for scale, (name, (kind, attributes, channels)) in product((1.0, 0.5), POSITIONS.items()):
    spots = SPOTS.copy()
    if "bilinear" in name:
        spots[:, 1:] /= 8 * scale
    full = {"output_dim": 3, "spatial_scale": scale, **attributes}
    case(
        f"{name} of positions {scale}", of(1, kind, **full), random(2, channels, 7, 8), spots,
        static=True,
    )  # fmt: skip
for part, classes in product((2, 3), (1, 3)):
    full = {"group_size": 2, "spatial_bins_x": 2, "spatial_bins_y": 2, "part_size": part}
    case(
        f"deformable offsets {part} {classes}",
        of(1, "DeformablePSROIPooling", output_dim=3, spatial_scale=0.5, trans_std=0.2, **full),
        random(2, 12, 7, 8), SPOTS, random(7, 2 * classes, part, part), static=True,
    )  # fmt: skip
TURNED = np.array(
    [[3, 4, 5, 3, 0.5], [2, 2, 0, 0, 1], [0, 0, 9, 7, -2.5], [7, 6, 4, 0.5, 0], [40, 40, 3, 3, 1]],
    F32,
)
for clockwise, samples in product((False, True), (0, 1, 2)):
    for scale in (1.0, 0.5):
        full = {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": samples, "spatial_scale": scale}
        case(
            f"roi rotated {clockwise} {samples} {scale}",
            of(15, "ROIAlignRotated", clockwise_mode=clockwise, **full), IMAGE, TURNED,
            np.array([0, 1, 1, 0, 1], np.int32),
        )  # fmt: skip
YOLO = {"classes": 3, "coords": 4, "num": 3, "mask": [0, 1], "axis": 1, "end_axis": 3}
case("yolo softmax", of(1, "RegionYolo", do_softmax=True, **YOLO), random(2, 24, 4, 5))
case("yolo sigmoid", of(1, "RegionYolo", do_softmax=False, **YOLO), random(2, 16, 4, 5))
GRID, PICTURE = Constant([3, 4], I64), Constant([60, 100], I64)
PRIORS: dict[str, dict[str, Any]] = {
    "plain": {"min_size": [10.0], "max_size": [20.0], "aspect_ratio": [2.0, 3.0], "flip": True},
    "order": {
        "min_size": [10.0, 30.0],
        "max_size": [20.0],
        "aspect_ratio": [2.0],
        "min_max_aspect_ratios_order": False,
    },
    "step": {"min_size": [10.0], "step": 16.0, "clip": True},
    "unscaled": {
        "min_size": [0.1, 0.2],
        "aspect_ratio": [1.0, 2.0, 0.5],
        "scale_all_sizes": False,
        "step": -1.0,
    },
    "dense": {"fixed_size": [12.0, 24.0], "density": [2.0, 1.0], "aspect_ratio": [2.0]},
    "fixed": {"fixed_size": [12.0], "fixed_ratio": [0.5], "density": [3.0], "min_size": []},
    "one variance": {"min_size": [10.0], "variance": [0.3]},
}
for name, attributes in PRIORS.items():
    full = {"offset": 0.5, "variance": [0.1, 0.1, 0.2, 0.2], "min_size": [], **attributes}
    case(f"prior {name}", of(8, "PriorBox", **full), GRID, PICTURE)
for name, attributes in (
    ("", {"min_size": [9.0]}),
    ("unscaled", {"min_size": [0.2], "scale_all_sizes": False}),
    ("dense", {"fixed_size": [9.5], "density": [2.0], "aspect_ratio": [2.0]}),
    ("dense, unscaled", {"fixed_size": [8.0], "density": [3.0], "scale_all_sizes": False}),
):
    full = {"offset": 0.5, "variance": [], "min_size": [], **attributes}
    case(f"prior of inputs {name}", of(8, "PriorBox", **full), GRID.value, PICTURE.value)
CLUSTERED = {
    "width": [10.0, 20.0],
    "height": [5.0, 30.0],
    "offset": 0.5,
    "variance": [0.1, 0.1, 0.2, 0.2],
}
for clip in (False, True):
    case(f"clustered {clip}", of(1, "PriorBoxClustered", clip=clip, **CLUSTERED), GRID, PICTURE)
case(
    "clustered step",
    of(1, "PriorBoxClustered", step_w=16.0, step_h=8.0, **CLUSTERED),
    GRID,
    PICTURE,
)


CORNERS = np.concatenate([_RNG.uniform(0, 0.6, (1, 30, 2)), _RNG.uniform(0.5, 1, (1, 30, 2))], -1)
VARIANCES = np.broadcast_to(np.array([0.1, 0.1, 0.2, 0.2]), CORNERS.shape)
STAGES = np.stack([CORNERS.reshape(1, -1), VARIANCES.reshape(1, -1)], 1).astype(F32)
FIVE = np.concatenate([np.zeros((1, 30, 1)), CORNERS * [90, 70, 90, 70]], -1).reshape(1, 1, -1)
WIDE = np.concatenate([FIVE, np.resize([0.1, 0.1, 0.2, 0.2], FIVE.shape)], 1).astype(F32)
DETECTION: dict[str, dict[str, Any]] = {
    "plain": {},
    "few": {"keep_top_k": [7], "top_k": 9},
    "corner": {"code_type": "caffe.PriorBoxParameter.CORNER"},
    "clipped before": {"clip_before_nms": True},
    "clipped after": {"clip_after_nms": True},
    "no background": {"background_label_id": -1},
    "nothing": {"confidence_threshold": 2.0},
    "encoded": {"variance_encoded_in_target": True},
    "unnormalised": {"normalized": False, "input_width": 90, "input_height": 70},
    "all": {"keep_top_k": [-1]},
    "all of the best": {"keep_top_k": [-1], "top_k": 9},
}
SECOND: dict[str, dict[str, Any]] = {
    "second stage": {"objectness_score": 0.4},
    "second stage, clipped": {"clip_before_nms": True, "background_label_id": -1},
    "boxes of classes": {"share_location": False},
    "boxes of classes, second stage": {"share_location": False, "objectness_score": 0.4},
    "best class": {"decrease_label_id": True, "top_k": 20},
    "best class, second stage": {"decrease_label_id": True, "keep_top_k": [7]},
    "boxes of classes, unnormalised": {**DETECTION["unnormalised"], "share_location": False},
}
for name, attributes in {**DETECTION, **SECOND}.items():
    full = {
        "background_label_id": 0,
        "keep_top_k": [60],
        "nms_threshold": 0.45,
        "normalized": True,
        "confidence_threshold": 0.3,
        "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
        **attributes,
    }
    stages = WIDE if "unnormalised" in name else STAGES[:, :1] if name == "encoded" else STAGES
    moves = random(2, 360 if "classes" in name else 120) / 2
    rated = _RNG.uniform(0, 1, (2, 90)).astype(F32)
    before = [rated[:, :60], moves[:, ::-1]] if "second" in name else []
    case(
        f"detections {name}", of(8, "DetectionOutput", **full), moves, rated, stages, *before
    )  # fmt: skip
CLASSES = _RNG.uniform(0, 1, (1, 3, 30)).astype(F32)
LIMITS = {"iou_threshold": 0.4, "score_threshold": 0.2, "output_type": "i32"}
for kind, across in product(("none", "classid", "score"), (False, True)):
    case(
        f"multiclass {kind} {across}",
        of(
            9,
            "MulticlassNms",
            sort_result_type=kind,
            sort_result_across_batch=across,
            iou_threshold=0.4,
            score_threshold=0.2,
        ),
        np.concatenate([CORNERS, CORNERS[:, ::-1] * 0.9]).astype(F32),
        np.concatenate([CLASSES, CLASSES[:, :, ::-1] / 1.1]),
        static=True,
    )
for name, more in (
    ("keep", {"keep_top_k": 4}),
    ("best", {"nms_top_k": 5}),
    ("background", {"background_class": 1}),
    ("pixels", {"normalized": False, "iou_threshold": 0.7}),
    ("one", {"iou_threshold": 0.0}),
    ("adaptive", {"nms_eta": 0.8, "iou_threshold": 0.8}),
    ("adaptive pixels", {"nms_eta": 0.7, "iou_threshold": 0.95, "normalized": False}),
    ("adaptive best", {"nms_eta": 0.9, "iou_threshold": 0.9, "nms_top_k": 5}),
):
    case(
        f"multiclass {name}",
        of(8, "MulticlassNms", **{**LIMITS, **more}),
        CORNERS.astype(F32),
        CLASSES,
        static=True,
    )
# The first two overlap by the threshold, one score equals its own; the best two are two of three.
case(
    "multiclass at the thresholds",
    of(8, "MulticlassNms", iou_threshold=0.5, score_threshold=0.25, nms_top_k=5),
    np.array([[[0, 0, 1, 1], [0, 0, 0.5, 1], *([i, 5, i + 1, 6] for i in range(5))]], F32),
    np.array([[[0.9, 0.8, 0.5, 0.25, 0.25, 0.25, 0.1]]], F32), static=True,
)  # fmt: skip
OF_CLASSES = np.concatenate([CORNERS, CORNERS[:, ::-1] * 0.9, CORNERS * 0.8]).astype(F32)
for name, counts, more in (
    ("", [12, 18], {}),
    ("nothing in one", [5, 0, 25], {"keep_top_k": 3, "sort_result_across_batch": True}),
    ("pixels", [10, 20], {"normalized": False, "iou_threshold": 0.7, "background_class": 1}),
    ("best", [30], {"nms_top_k": 3, "sort_result_type": "classid"}),
    ("adaptive", [12, 18], {"nms_eta": 0.7, "iou_threshold": 0.9, "score_threshold": 0.0}),
):
    full = {**LIMITS, "sort_result_type": "score", **more}
    case(
        f"multiclass of classes {name}", of(9, "MulticlassNms", **full), OF_CLASSES, CLASSES[0],
        np.array(counts, np.int32), static=True,
    )  # fmt: skip
# Boxes less than a pixel wide that lie apart do not overlap.
corner = _RNG.uniform(0, 6, (4, 5, 3, 2))
full = {"min_size": 0.0, "nms_threshold": 0.3, "pre_nms_count": 60, "post_nms_count": 60}
case(
    "generated proposals of narrow anchors", of(9, "GenerateProposals", normalized=False, **full),
    np.array([[70, 90, 1]], F32),
    np.concatenate([corner, corner + _RNG.uniform(0, 0.3, corner.shape)], 3).astype(F32),
    np.zeros((1, 12, 4, 5), F32), random(1, 3, 4, 5), static=True,
)  # fmt: skip
MATRIX: dict[str, dict[str, Any]] = {
    "plain": {},
    "gaussian": {"decay_function": "gaussian", "gaussian_sigma": 3.0},
    "pixels": {"normalized": False},
    "few": {"nms_top_k": 6, "keep_top_k": 5, "output_type": "i32"},
    "background": {"background_class": 1, "post_threshold": 0.3},
}
for name, attributes in MATRIX.items():
    for kind, across in product(("none", "classid", "score"), (False, True)):
        full = {
            "sort_result_type": kind, "sort_result_across_batch": across, "score_threshold": 0.2,
            **attributes,
        }  # fmt: skip
        # The second image has no score above the threshold. The third has two boxes without area
        # and two equal ones.
        scores = np.concatenate([CLASSES, CLASSES * 0.1, CLASSES[:, :, ::-1] / 1.1])
        boxes = np.concatenate([CORNERS, CORNERS, CORNERS[:, ::-1] * 0.9]).astype(F32)
        boxes[2, :2] = 0.3
        boxes[2, 2] = boxes[2, 3]
        case(
            f"matrix nms {name} {kind} {across}", of(8, "MatrixNms", **full), boxes, scores,
            static=True,
        )  # fmt: skip
# The second image has upright boxes alone; some are equal, some have no area.
LEANING = np.concatenate(
    [
        _RNG.uniform(0, 12, (2, 14, 2)),
        _RNG.uniform(1, 8, (2, 14, 2)),
        _RNG.uniform(-4, 4, (2, 14, 1)),
    ],
    2,
).astype(F32)
LEANING[1, :, 4], LEANING[1, 3], LEANING[1, 5:7, 2] = 0, LEANING[1, 2], 0
TRUST = _RNG.uniform(0, 1, (2, 3, 14)).round(1).astype(F32)
for clockwise, descending in product((False, True), (False, True)):
    build = of(13, "NMSRotated", clockwise=clockwise, sort_result_descending=descending)
    for overlap in (0.0, 0.3):
        case(
            f"rotated nms {clockwise} {descending} {overlap}", build, LEANING, TRUST,
            Constant(9, I64), Constant(overlap, F32), Constant(0.2, F32), static=True,
        )  # fmt: skip
for name, limit, least in (("few", 2, 0.0), ("none", 9, 2.0)):
    case(
        f"rotated nms of {name}", of(13, "NMSRotated", output_type="i32"), LEANING, TRUST,
        Constant(limit, np.int32), Constant([0.1], F32), Constant([least], F32), static=True,
    )  # fmt: skip
START = _RNG.uniform(0, 50, (20, 2))
REGIONS = np.concatenate([START, START + _RNG.uniform(-1, 30, (20, 2))], 1).astype(F32)
MOVES, CHANCES = random(20, 12) / 3, _RNG.uniform(0, 1, (20, 3)).astype(F32)
case(
    "detectron top",
    of(6, "ExperimentalDetectronTopKROIs", max_rois=7),
    REGIONS,
    CHANCES[:, 0].copy(),
)
for flatten, stride in ((True, 0.0), (False, 4.0)):
    case(
        f"detectron priors {stride}",
        of(
            6,
            "ExperimentalDetectronPriorGridGenerator",
            flatten=flatten,
            h=0,
            w=0,
            stride_x=stride,
            stride_y=stride,
        ),
        random(3, 4),
        IMAGE,
        random(2, 3, 60, 50),
        static=True,
    )
for aligned in (False, True):
    name = f"detectron features {aligned}"
    SINCE[name] = 16 if aligned else 0
    case(
        name,
        of(
            6,
            "ExperimentalDetectronROIFeatureExtractor",
            output_size=3,
            sampling_ratio=2,
            pyramid_scales=[16, 32],
            aligned=aligned,
        ),
        np.concatenate([START[:6], START[:6] + _RNG.uniform(40, 900, (6, 2))], 1).astype(F32),
        random(1, 4, 16, 16),
        random(1, 4, 8, 8),
    )
for count in (5, 30):
    limits = {"post_nms_count": count, "nms_threshold": 0.4}
    case(
        f"detectron proposals {count}",
        of(
            6,
            "ExperimentalDetectronGenerateProposalsSingleImage",
            min_size=3.0,
            pre_nms_count=25,
            **limits,
        ),
        np.array([60, 50, 1], F32),
        np.resize(REGIONS, (48, 4)) + random(48, 4),
        random(12, 4, 4) / 3,
        _RNG.uniform(0, 1, (3, 4, 4)).astype(F32),
    )
    # Many of the small regions are narrower than a pixel and lie less than a pixel apart.
    for name, regions in (("", REGIONS), (" of small regions", REGIONS / 30)):
        case(
            f"detectron detections {count}{name}",
            of(
                6,
                "ExperimentalDetectronDetectionOutput",
                score_threshold=0.3,
                num_classes=3,
                max_detections_per_image=count,
                max_delta_log_wh=2.0,
                class_agnostic_box_regression=False,
                deltas_weights=[10.0, 10.0, 5.0, 5.0],
                **limits,
            ),
            regions,
            MOVES,
            CHANCES,
            np.array([[60, 60, 1]], F32),
        )
ANCHORS = {"base_size": 16, "feat_stride": 16, "ratio": [0.5, 1.0, 2.0], "scale": [1.0, 2.0]}
PROPOSALS: dict[str, dict[str, Any]] = {
    "plain": {},
    "clipped after": {"clip_after_nms": True, "clip_before_nms": False},
    "normalised": {"normalize": True, "pre_nms_topn": 15},
    "scaled": {"min_size": 20, "box_coordinate_scale": 10.0, "box_size_scale": 5.0},
    "narrow": {
        "base_size": 2, "feat_stride": 2, "scale": [0.3, 0.6], "min_size": 0, "nms_thresh": 0.3,
        "pre_nms_topn": 120, "post_nms_topn": 30,
    },
}  # fmt: skip
for framework, version in product(("", "tensorflow"), (1, 4)):
    for name, attributes in PROPOSALS.items():
        full = {
            "pre_nms_topn": 60, "post_nms_topn": 12, "nms_thresh": 0.5, "min_size": 3,
            "framework": framework, **ANCHORS, **attributes,
        }  # fmt: skip
        case(
            f"proposals-{version} {framework} {name}", of(version, "Proposal", **full),
            _RNG.uniform(0, 1, (1, 12, 4, 5)).astype(F32), random(1, 24, 4, 5) / 3,
            np.array([70, 90, 1], F32), static=True,
        )  # fmt: skip
GENERATED: dict[str, dict[str, Any]] = {
    "plain": {},
    "pixels": {"normalized": False},
    "few": {"pre_nms_count": 20, "post_nms_count": 4, "roi_num_type": "i32"},
    "large": {"min_size": 30.0},
    "none": {"min_size": 1000.0},
    "all": {"nms_threshold": 1.0, "post_nms_count": 500},
    "disjoint": {"nms_threshold": 0.0},
}
for columns, (name, attributes) in product((3, 4), GENERATED.items()):
    full = {
        "min_size": 8.0, "nms_threshold": 0.5, "pre_nms_count": 60, "post_nms_count": 30,
        **attributes,
    }  # fmt: skip
    corner = _RNG.uniform(-10, 70, (4, 5, 3, 2))
    case(
        f"generated proposals {columns} {name}", of(9, "GenerateProposals", **full),
        np.array([[70, 90, 1, 1.5], [60, 50, 0.5, 2]], F32)[:, :columns].copy(),
        np.concatenate([corner, corner + _RNG.uniform(5, 40, corner.shape)], 3).astype(F32),
        random(2, 12, 4, 5) / 2, random(2, 3, 4, 5), static=True,
    )  # fmt: skip
LETTERS = _RNG.permuted(np.tile(np.array([9, 0, 0, 0], F32), (3, 8, 1)), axis=-1)
for merge in (False, True):
    mask = np.array([[1] * 8, [1] * 5 + [0] * 3, [1] * 2 + [0] * 6], F32).T
    case(
        f"ctc {merge}", of(1, "CTCGreedyDecoder", ctc_merge_repeated=merge),
        LETTERS.transpose(1, 0, 2).copy(), np.ascontiguousarray(mask),
    )  # fmt: skip
    for blank in ([], [Constant(1, np.int32)]):
        case(
            f"ctc lengths {merge} {len(blank)}",
            of(
                6,
                "CTCGreedyDecoderSeqLen",
                merge_repeated=merge,
                classes_index_type="i64",
                sequence_length_type="i32",
            ),
            LETTERS,
            np.array([8, 5, 0], np.int32),
            *blank,
        )

# The fourth has no path if equal labels in a row become one.
SPOKEN, STEPS = 2 * random(4, 7, 5), np.array([7, 5, 3, 4], np.int32)
LABELS = np.array(
    [[1, 1, 2, 3, 3, 1, 0], [2, 2, 1, 2, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0]],
    np.int32,
)
LENGTHS = np.array([4, 3, 1, 4], np.int32)
for merge, collapse, unique in product((False, True), repeat=3):
    build = of(
        4, "CTCLoss", ctc_merge_repeated=merge, preprocess_collapse_repeated=collapse, unique=unique
    )
    case(f"ctc loss {merge} {collapse} {unique}", build, SPOKEN, STEPS, LABELS, LENGTHS)
for name, blank in (("input", np.array(0, I64)), ("constant", Constant(0, I64))):
    wide = [v.astype(I64) for v in (STEPS, LABELS, LENGTHS)]
    case(f"ctc loss, blank is {name}", of(4, "CTCLoss"), SPOKEN, *wide, blank)


def no_elements(value: np.ndarray) -> Any:
    return ov.op.Constant(ov.Type(value.dtype), ov.Shape(value.shape), [])


def narrowed(argument: Any) -> Any:
    """The argument in f16, if it is in f32."""
    if isinstance(argument, Constant):
        return Constant(narrowed(argument.value))
    return argument.astype(np.float16) if argument.dtype == F32 else argument


TWO_TYPES: dict[str, tuple[int, ...]] = {
    "detections corner": (0, 1),
    "detections clipped before": (2,),
    "multiclass classid True": (0, 1),
    "proposals-1  scaled": (0, 2),
    "rotated nms False False 0.3": (1,),
    "nms-5 False corner": (1, 3),
    "deformable True 2": (0, 1, 2),
    "group": (0,),
    "detectron priors 4.0": (0, 1, 2),
    "detectron features True": (0, 1, 2),
    "detectron proposals 5": (0, 1, 2, 3),
    "detectron detections 5": (0, 1, 2, 3),
}
"""Cases with these inputs in f16, as in models of which OpenVINO's tools kept some parts in f32."""


@pytest.mark.parametrize("name", TWO_TYPES)
def test_inputs_of_two_float_types(name: str, tmp_path: Path) -> None:
    build, arguments = CASES[name]
    places = TWO_TYPES[name]
    same = [narrowed(x) if i in places else x for i, x in enumerate(arguments)]
    compare(build, same, tmp_path, False, (21,))


@pytest.mark.parametrize("name", thinned(CASES, 2))
def test_same_numbers(name: str, tmp_path: Path) -> None:
    build, arguments = CASES[name]
    opens = name not in STATIC and getattr(arguments[0], "ndim", 0) > 3
    for dynamic in (False, True) if opens else (False,):
        opsets = [n for n in ((21,) if dynamic else (13, 21)) if n >= SINCE.get(name, 0)]
        compare(build, arguments, tmp_path, dynamic, opsets)


def compare(
    build: Callable[..., Any],
    arguments: Sequence[Any],
    folder: Path,
    dynamic: bool,
    opsets: Iterable[int],
) -> None:
    """OpenVINO with an operator, and onnxruntime with the ONNX that it becomes. The first input of
    a `dynamic` model has open sizes."""
    feeds = {f"in{i}": a for i, a in enumerate(arguments) if not isinstance(a, Constant)}
    parameters, inputs = [], []
    for i, argument in enumerate(arguments):
        if isinstance(argument, Constant):
            filled = opset1.constant if argument.value.size else no_elements
            inputs.append(filled(argument.value))
            continue
        shape = list(argument.shape)
        if dynamic and i == 0:
            shape = [-1, shape[1], *(-1,) * (argument.ndim - 2)]
        parameter = opset1.parameter(shape, ov.Type(argument.dtype))
        parameter.output(0).tensor.set_names({f"in{i}"})
        parameters.append(parameter)
        inputs.append(parameter)
    built = build(*inputs)
    outputs = built.outputs() if isinstance(built, ov.Node) else [built]
    ov.save_model(ov.Model(outputs, parameters), folder / "a.xml", False)
    expected = engines()[0].load(folder / "a.xml").run(feeds)
    for opset in opsets:
        bridge.convert(folder / "a.xml", folder / "a.onnx", opset=opset)
        actual = run_onnx(folder / "a.onnx", feeds)
        assert len(actual) == len(expected)
        for one, other in zip(expected.values(), actual, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            tolerance = 2e-3 if one.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_matrix_nms_of_nothing(tmp_path: Path) -> None:
    """OpenVINO leaves old memory in `selected_num`, or fails; its specification says zeros."""
    parameters = [opset1.parameter(shape, ov.Type.f32) for shape in ([2, 5, 4], [2, 3, 5])]
    for name, parameter in zip("xs", parameters, strict=True):
        parameter.output(0).tensor.set_names({name})
    built = of(8, "MatrixNms", score_threshold=0.5)(*parameters)
    ov.save_model(ov.Model(built.outputs(), parameters), tmp_path / "a.xml", False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx", opset=21)
    feeds = {"x": np.zeros((2, 5, 4), F32), "s": np.full((2, 3, 5), 0.5, F32)}
    rows, places, counts = run_onnx(tmp_path / "a.onnx", feeds)
    assert rows.shape == (0, 6) and places.shape == (0, 1) and counts.tolist() == [0, 0]


WINDOWS: dict[str, tuple[int, list[np.ndarray], dict[str, Any]]] = {
    "Convolution": (1, [random(1, 4, 7, 6), random(3, 4, 3, 2)], {}),
    "GroupConvolution": (1, [random(1, 4, 7, 6), random(2, 3, 2, 3, 2)], {}),
    "ConvolutionBackpropData": (
        1, [random(1, 4, 7, 6), random(4, 3, 3, 2)], {"output_padding": [0, 0]},
    ),
    "GroupConvolutionBackpropData": (
        1, [random(1, 4, 7, 6), random(2, 2, 3, 3, 2)], {"output_padding": [0, 0]},
    ),
    "DeformableConvolution": (
        8, [random(1, 4, 7, 6), random(1, 12, 6, 6), random(3, 4, 3, 2)],
        {"bilinear_interpolation_pad": True, "group": 1, "deformable_group": 1},
    ),
    "MaxPool": (8, [random(1, 4, 7, 6)], {"kernel": [3, 2]}),
    "AvgPool": (1, [random(1, 4, 7, 6)], {"kernel": [3, 2], "exclude-pad": False}),
}  # fmt: skip
MAY_BE_EMPTY = [
    (name, attribute)
    for name in WINDOWS
    for attribute in ("strides", "dilations", "pads_begin", "output_padding")
    if (attribute != "strides" or "Pool" not in name)
    and (attribute != "dilations" or name != "AvgPool")
    and (attribute != "output_padding" or "Backprop" in name)
]


def window(name: str, folder: Path, **written: str) -> Path:
    """A model with one window along two axes without padding before them. `written` gives
    attributes that replace those in OpenVINO's file."""
    version, (x, *rest), attributes = WINDOWS[name]
    parameter = opset1.parameter(list(x.shape), ov.Type(x.dtype))
    parameter.output(0).tensor.set_names({"x"})
    build = of(version, name, **spatial(2, pads_end=[1, 1], **attributes))
    built = build(parameter, *map(opset1.constant, rest))
    ov.save_model(ov.Model([built.output(0)], [parameter]), folder / "a.xml", False)
    text = (folder / "a.xml").read_text()
    for key, value in written.items():
        text, count = re.subn(rf'\b{key}="[^"]*"', f'{key}="{value}"', text)
        assert count == 1
    (folder / "a.xml").write_text(text)
    return folder / "a.xml"


@pytest.mark.parametrize(("name", "attribute"), MAY_BE_EMPTY)
def test_an_empty_list_is_not_given(name: str, attribute: str, tmp_path: Path) -> None:
    source = window(name, tmp_path)
    feeds = {"x": WINDOWS[name][1][0]}
    expected = engines()[0].load(source).run(feeds)
    source = window(name, tmp_path, **{attribute: ""})
    assert_same(list(engines()[0].load(source).run(feeds).values()), list(expected.values()))
    bridge.convert(source, tmp_path / "a.onnx", opset=21)
    assert_same(run_onnx(tmp_path / "a.onnx", feeds), list(expected.values()))


def assert_same(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for one, other in zip(expected, actual, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_that_are_none(name: str, tmp_path: Path) -> None:
    for attribute, value, says in (
        ("strides", "1", r"\[1\] are not for 2 axes"),
        ("strides", "1, 0", "must be 1 or more"),
        ("pads_begin", "0, 0, 0", "are not for 2 axes"),
    ):
        with pytest.raises(bridge.InvalidModelError, match=says):
            bridge.load(window(name, tmp_path, **{attribute: value}))
    with pytest.raises(bridge.UnsupportedError, match="ONNX has none below 0"):
        bridge.convert(window(name, tmp_path, pads_end="-1, 0"), tmp_path / "a.onnx", opset=21)


def test_thresholds_of_constants(tmp_path: Path) -> None:
    """Constant limits in ONNX give the same as the same limits as inputs."""
    limits = CENTRES, CENTRES + np.maximum(CENTRES, 0), np.array([-1.0], F32), np.array([2.0], F32)
    outputs = []
    for constant in (False, True):
        x = opset1.parameter(list(ROUND.shape), ov.Type.f32)
        given = [
            opset1.constant(v) if constant else opset1.parameter(list(v.shape), ov.Type.f32)
            for v in limits
        ]
        inputs = [x, *(() if constant else given)]
        for index, parameter in enumerate(inputs):
            parameter.output(0).tensor.set_names({f"in{index}"})
        built = of(1, "FakeQuantize", levels=4)(x, *given)
        ov.save_model(ov.Model([built.output(0)], inputs), tmp_path / "a.xml", False)
        bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx")
        feeds = dict(zip((f"in{i}" for i in range(5)), (ROUND, *limits), strict=True))
        outputs += run_onnx(
            tmp_path / "a.onnx", {f"in{i}": feeds[f"in{i}"] for i in range(len(inputs))}
        )
    assert np.isfinite(outputs[1]).all()
    np.testing.assert_array_equal(*outputs)
