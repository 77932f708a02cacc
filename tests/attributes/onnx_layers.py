"""ONNX's layers: pools, convolutions, resizes, normalisations, recurrent layers, losses,
regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.attributes.family import Call, Draw, call, family

PADS = ("none", "both", "end", "SAME_UPPER", "SAME_LOWER", "VALID")
SPATIAL = ((9,), (7, 8), (5, 6, 5))


def padded(pads: str, rank: int) -> dict[str, Any]:
    """The attributes of a way to pad."""
    if pads in ("none", "both", "end"):
        sides = {"none": (0, 0), "both": (1, 1), "end": (0, 1)}[pads]
        return {"pads": [side for side in sides for _ in range(rank)]}
    return {"auto_pad": pads}


@family(
    "onnx", op=("MaxPool", "AveragePool", "LpPool"), size=SPATIAL, kernel=(2, 3),
    stride=(1, 2, 3), dilation=(1, 2), pads=PADS, ceil=(0, 1), option=(0, 1),
)  # fmt: skip
def pools(
    d: Draw, op: str, size: tuple[int, ...], kernel: int, stride: int, dilation: int, pads: str,
    ceil: int, option: int,
) -> Call | None:  # fmt: skip
    rank = len(size)
    extra = {
        "MaxPool": {"storage_order": option if rank > 1 else 0},
        "AveragePool": {"count_include_pad": option},
        "LpPool": {"p": 1 + option},
    }[op]
    return call(
        op, 22, d.floats(1, 2, *size), outputs=2 if op == "MaxPool" and option else 1,
        kernel_shape=[kernel] * rank, strides=[stride] * rank, dilations=[dilation] * rank,
        ceil_mode=ceil, **padded(pads, rank), **extra,
    )  # fmt: skip


@family(
    "onnx", ("12", ""), size=SPATIAL, group=(1, 2), stride=(1, 2), dilation=(1, 2),
    kernel=(1, 2, 3), pads=PADS, bias=(0, 1),
)  # fmt: skip
def convolutions(
    d: Draw, size: tuple[int, ...], group: int, stride: int, dilation: int, kernel: int, pads: str,
    bias: int,
) -> Call | None:  # fmt: skip
    rank = len(size)
    inputs = [d.floats(2, 4, *size), d.floats(4, 4 // group, *[kernel] * rank)]
    return call(
        "Conv", 22, *inputs, d.floats(4) if bias else None, group=group, strides=[stride] * rank,
        dilations=[dilation] * rank, **padded(pads, rank),
    )  # fmt: skip


@family(
    "onnx", ("1",), size=((5,), (5, 4)), group=(1, 2), stride=(1, 2, 3), dilation=(1, 2),
    kernel=(2, 3), pads=(*PADS, "shape"), output_padding=(0, 1),
)  # fmt: skip
def transposed_convolutions(
    d: Draw, size: tuple[int, ...], group: int, stride: int, dilation: int, kernel: int, pads: str,
    output_padding: int,
) -> Call | None:  # fmt: skip
    rank = len(size)
    shape = {"output_shape": [side * stride + 1 for side in size]}
    return call(
        "ConvTranspose", 22, d.floats(1, 4, *size), d.floats(4, 2, *[kernel] * rank),
        group=group, strides=[stride] * rank, dilations=[dilation] * rank,
        output_padding=[output_padding] * rank, **shape if pads == "shape" else padded(pads, rank),
    )  # fmt: skip


@family(
    "onnx", ("123",), mode=("nearest", "linear", "cubic"),
    coordinates=("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                 "asymmetric", "tf_crop_and_resize"),
    rounding=("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    scale=((2, 2), (0.6, 0.6), (1.5, 0.5), (2.3, 1)), by=("scales", "sizes"),
    option=("", "antialias", "exclude_outside", "not_larger", "not_smaller"),
)  # fmt: skip
def resizes(
    d: Draw, mode: str, coordinates: str, rounding: str, scale: tuple[float, float], by: str,
    option: str,
) -> Call | None:  # fmt: skip
    if mode != "nearest" and rounding != "round_prefer_floor":
        return None
    if (mode == "nearest" and option == "antialias") or (
        mode != "cubic" and option == "exclude_outside"
    ):
        return None
    crop = coordinates == "tf_crop_and_resize"
    if crop and by == "scales" and scale != (2, 2):
        return None
    roi = np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.8], np.float32) if crop else None
    sizes = np.array([1, 1, int(5 * scale[0]), max(1, int(4 * scale[1]))])
    attributes: dict[str, Any] = {option: 1} if option in ("antialias", "exclude_outside") else {}
    if option.startswith("not_"):
        if by == "scales" or crop:
            return None
        attributes, sizes = {"keep_aspect_ratio_policy": option, "axes": [2, 3]}, sizes[2:]
    scales = np.array([1, 1, *scale], np.float32)
    return call(
        "Resize", 19, d.floats(1, 1, 5, 4), roi, scales if by == "scales" else None,
        sizes if by == "sizes" else None, mode=mode, coordinate_transformation_mode=coordinates,
        nearest_mode=rounding, **attributes,
    )  # fmt: skip


@family(
    "onnx", op=("Softmax", "LogSoftmax", "Hardmax"), axis=(0, 1, 2, -1, None), version=(8, 11, 13)
)
def softmaxes(d: Draw, op: str, axis: int | None, version: int) -> Call | None:
    return call(op, version, d.floats(2, 3, 4), axis=axis)


@family(
    "onnx", op=("LayerNormalization", "RMSNormalization"), axis=(0, 1, 2, -1, -2),
    outputs=(1, 3), bias=(0, 1),
)  # fmt: skip
def layer_normalizations(d: Draw, op: str, axis: int, outputs: int, bias: int) -> Call | None:
    if op == "RMSNormalization" and (outputs == 3 or bias):
        return None
    shape = (2, 3, 4)
    weights = [d.floats(*shape[axis:]) for _ in range(1 + bias)]
    return call(op, 23, d.floats(*shape), *weights, outputs=outputs, axis=axis, epsilon=0.1)


@family(
    "onnx", kind=("lp1", "lp2", "lrn1", "lrn2", "lrn3", "lrn5", "group1", "group2", "instance"),
    axis=(0, 1, -1), rank=(1, 2, 3),
)  # fmt: skip
def other_normalizations(d: Draw, kind: str, axis: int, rank: int) -> Call | None:
    x = d.floats(2, 6, *(3, 4, 2)[:rank])
    if kind.startswith("lp"):
        return call("LpNormalization", 22, x, p=int(kind[2:]), axis=axis)
    if axis:
        return None
    if kind.startswith("lrn"):
        return call("LRN", 13, x, size=int(kind[3:]), alpha=0.3, beta=0.6, bias=1.2)
    weights = d.floats(6), d.floats(6)
    if kind == "instance":
        return call("InstanceNormalization", 22, x, *weights, epsilon=0.1)
    return call("GroupNormalization", 21, x, *weights, num_groups=int(kind[5:]), epsilon=0.01)


@family(
    "onnx", ("1237",), op=("LSTM", "GRU", "RNN"), direction=("forward", "reverse", "bidirectional"),
    layout=(0, 1), bias=(0, 1), start=(0, 1), lengths=(None, (3, 1)), clip=(None, 0.3),
    option=("", "other", "activations"),
)  # fmt: skip
def recurrent(
    d: Draw, op: str, direction: str, layout: int, bias: int, start: int,
    lengths: tuple[int, ...] | None, clip: float | None, option: str,
) -> Call | None:  # fmt: skip
    ways, gates = 2 if direction == "bidirectional" else 1, {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    states = [d.floats(*(2, ways, 4) if layout else (ways, 2, 4)) if start else None]
    inputs: list[Any] = [
        d.floats(*(2, 3, 3) if layout else (3, 2, 3)),
        d.floats(ways, gates * 4, 3) * 0.5,
        d.floats(ways, gates * 4, 4) * 0.5,
        d.floats(ways, 2 * gates * 4) * 0.3 if bias else None,
        None if lengths is None else np.array(lengths, np.int32),
    ]
    attributes: dict[str, Any] = {}
    if op == "LSTM":
        states.append(states[0])
        if option == "other":
            states.append(d.floats(ways, 3 * 4))
        elif option:
            attributes["input_forget"] = 1
    elif option == "other":
        if op == "RNN":
            return None
        attributes["linear_before_reset"] = 1
    elif option:
        names = ["HardSigmoid", "Softsign"] if op == "GRU" else ["Relu"]
        attributes["activations"] = names * ways
    return call(
        op, 14, *inputs, *states, outputs=3 if op == "LSTM" else 2, hidden_size=4,
        direction=direction, layout=layout, clip=clip, **attributes,
    )  # fmt: skip


@family(
    "onnx", ("12",), op=("LSTM", "GRU", "RNN"),
    activation=("Relu", "Tanh", "Sigmoid", "HardSigmoid", "LeakyRelu", "Elu", "Softsign",
                "Softplus", "ThresholdedRelu", "ScaledTanh", "Affine"),
)  # fmt: skip
def activations(d: Draw, op: str, activation: str) -> Call | None:
    gates, count = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 1)}[op]
    names = ["Sigmoid", activation, "Tanh"][:count] if count > 1 else [activation]
    weights = d.floats(1, gates * 4, 3) * 0.4, d.floats(1, gates * 4, 4) * 0.4
    return call(
        op, 14, d.floats(3, 2, 3), *weights, hidden_size=4, activations=names,
        activation_alpha=[0.3] * count, activation_beta=[0.2] * count,
    )  # fmt: skip


@family(
    "onnx", mode=("linear", "nearest", "cubic"), padding=("zeros", "border", "reflection"),
    corners=(0, 1), volume=(0, 1),
)  # fmt: skip
def grid_samples(d: Draw, mode: str, padding: str, corners: int, volume: int) -> Call | None:
    if volume and mode == "cubic":
        return None
    x = d.floats(1, 2, 3, 4, 5) if volume else d.floats(1, 2, 4, 5)
    grid = d.floats(1, 2, 3, 3, 3) if volume else d.floats(1, 3, 3, 2)
    return call(
        "GridSample", 20, x, grid * np.float32(1.3), mode=mode, padding_mode=padding,
        align_corners=corners,
    )  # fmt: skip


@family(
    "onnx", mode=("avg", "max"), coordinates=("half_pixel", "output_half_pixel"), ratio=(0, 2),
    scale=(1.0, 0.5),
)  # fmt: skip
def regions(d: Draw, mode: str, coordinates: str, ratio: int, scale: float) -> Call | None:
    boxes = np.array([[0, 0, 4, 4], [1, 1, 5, 3], [-1, 2, 9, 9]], np.float32)
    return call(
        "RoiAlign", 16, d.floats(2, 2, 6, 6), boxes, np.array([0, 1, 0]), mode=mode,
        coordinate_transformation_mode=coordinates, sampling_ratio=ratio, spatial_scale=scale,
        output_height=2, output_width=3,
    )  # fmt: skip


@family(
    "onnx", ("234",), center=(0, 1), most=(1, 3, 100), overlap=(0.0, 0.5, 1.0), least=(0.0, 0.4)
)
def suppressions(d: Draw, center: int, most: int, overlap: float, least: float) -> Call | None:
    boxes = np.sort(d.rng.random((2, 6, 4)).astype(np.float32), -1)
    thresholds = np.array([overlap], np.float32), np.array([least], np.float32)
    scores = d.rng.random((2, 2, 6)).astype(np.float32)
    return call(
        "NonMaxSuppression", 11, boxes, scores, np.array([most]), *thresholds,
        center_point_box=center,
    )  # fmt: skip


@family(
    "onnx", op=("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
    reduction=("none", "mean", "sum"), ignored=(None, 1), weights=(0, 1), spatial=((), (2,)),
)  # fmt: skip
def losses(
    d: Draw, op: str, reduction: str, ignored: int | None, weights: int, spatial: tuple[int, ...]
) -> Call | None:
    weighing = np.abs(d.floats(4)) if weights else None
    labels = d.places(0, 4, 3, *spatial)
    return call(
        op, 13, d.floats(3, 4, *spatial), labels, weighing, reduction=reduction,
        ignore_index=ignored,
    )  # fmt: skip


@family(
    "onnx", ("12",), axis=(0, 1, 2, -1, -2), inverse=(0, 1), onesided=(0, 1), length=(None, 3, 6)
)
def transforms(d: Draw, axis: int, inverse: int, onesided: int, length: int | None) -> Call | None:
    if inverse and onesided:
        return None
    x, size = d.floats(2, 5, 4, 1 + inverse), None if length is None else np.array(length)
    return call("DFT", 20, x, size, np.array(axis), inverse=inverse, onesided=onesided)


@family("onnx", ("12",), padding=(0, 1), stride=((1, 1), (2, 2), (1, 2)), dilation=((1, 1), (2, 1)))
def columns(
    d: Draw, padding: int, stride: tuple[int, int], dilation: tuple[int, int]
) -> Call | None:
    image, kernel = (6, 7), (2, 3)
    steps = [
        (side + 2 * padding - wide * (k - 1) - 1) // step + 1
        for side, wide, k, step in zip(image, dilation, kernel, stride, strict=True)
    ]
    return call(
        "Col2Im", 18, d.floats(1, 12, steps[0] * steps[1]), np.array(image), np.array(kernel),
        strides=list(stride), dilations=list(dilation), pads=[padding] * 4,
    )  # fmt: skip
