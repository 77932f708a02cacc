"""Resize, Upsample and Interpolate."""

from __future__ import annotations

import math

import numpy as np

from bridge.neutral.builder import Builder, integers, values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import content_of, known_axes, length_of
from bridge.neutral.types import F32, I8, I32, I64, U8, Element
from bridge.rules import Refused, expands, reads
from bridge.rules.idioms import as_i64, cast, concat, ranks, scalar, size, sizes
from bridge.rules.resample import Axis, Method, resample

BOTH_KNOW = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
"""Coordinate transformations that Resize and Interpolate have in common."""

NEAREST_IN_IR = (I8, U8, I32, I64)
"""Integer types that Interpolate takes."""


@reads("Resize", format="onnx", until=10)
def read_resize_10(b: Builder, node: Node) -> Value:
    """Resize-10 has no attribute but the mode; it works as Upsample does, and takes the next
    element, not the one before, where it shrinks an axis (`simple`, in IR's words)."""
    return _read_upsample(b, node, node.inputs[1], "simple")


@reads("Upsample", format="onnx", until=6)
def read_upsample_1(b: Builder, node: Node) -> Value:
    """Upsample-1 names its two scales."""
    scales = [1, 1, node.attributes["height_scale"], node.attributes["width_scale"]]
    return _read_upsample(b, node, b.constant(np.array(scales, np.float32)))


def _read_upsample(b: Builder, node: Node, scales: Value | None, nearest: str = "floor") -> Value:
    mode = node.attributes.get("mode", "nearest")
    return b.op(
        "Resize",
        node.inputs[0],
        None,
        scales,
        mode="linear" if mode == "bilinear" else mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode=nearest,
    )


@expands("Upsample", target="ir")
def upsample_for_ir(b: Builder, node: Node) -> Value:
    return _read_upsample(b, node, node.inputs[1])


@expands("Upsample", target="onnx")
def upsample_for_onnx(b: Builder, node: Node) -> Value | None:
    """Upsample ended with operator set 9."""
    assert b.target is not None
    return _read_upsample(b, node, node.inputs[1]) if b.target.opset > 9 else None


@expands("Resize", target="onnx")
def simple_for_onnx(b: Builder, node: Node) -> Value | None:
    """`simple` rounds down on axes that grow and up on axes that shrink: one Resize for each."""
    attributes = dict(node.attributes)
    if attributes["nearest_mode"] != "simple":
        return None
    if attributes["mode"] != "nearest":
        return b.op("Resize", *node.inputs, **attributes | {"nearest_mode": "floor"})
    x, roi, scales, sizes_ = (node.input(i) for i in range(4))
    shrinks = _shrinking(node)
    if shrinks is None:
        return _resize_by_axes(b, node, _given(scales), _given(sizes_))
    if len(set(shrinks)) == 1:
        attributes["nearest_mode"] = "ceil" if shrinks[0] else "floor"
        return b.op("Resize", *node.inputs, **attributes)
    assert x is not None and x.shape is not None
    axes = _axes(node, len(x.shape))
    for smaller in (True, False):
        kept = [shrink is not smaller for shrink in shrinks]
        if _given(scales) is not None:
            ones = values_of(scales)
            assert ones is not None
            part = [b.constant(np.where(kept, np.float32(1), ones))]
        else:
            same = sizes(b, x, *axes)
            part = [None, b.op("Where", b.constant(kept), same, as_i64(b, sizes_))]  # type: ignore
        rounding = {"nearest_mode": "ceil" if smaller else "floor"}
        x = b.op("Resize", x, roi, *part, **attributes | rounding)
    return x


@expands("Resize", target="onnx")
def older_resize(b: Builder, node: Node) -> Value | None:
    """Symmetric half pixels came with operator set 19; axes, antialiasing and the policy with 18,
    where the region of interest got the axes, too."""
    assert b.target is not None
    attributes = node.attributes
    symmetric = attributes["coordinate_transformation_mode"] == "half_pixel_symmetric"
    newer = symmetric and b.target.opset < 19
    if b.target.opset < 18:
        policy = attributes["keep_aspect_ratio_policy"] != "stretch"
        newer = newer or attributes["antialias"] or policy
        newer = newer or (attributes["axes"] is not None and _given(node.input(1)) is not None)
    scales, sizes_ = _given(node.input(2)), _given(node.input(3))
    if newer:
        return _resize_by_axes(b, node, scales, sizes_)
    if b.target.opset >= 18 or attributes["axes"] is None:
        return None
    x = node.inputs[0]
    assert x is not None
    axes = _axes(node, ranks(node, 0)[0])
    scales, sizes_ = _for_all_axes(b, x, axes, scales, sizes_)
    return b.op("Resize", x, None, scales, sizes_, **attributes | {"axes": None})


def _shrinking(node: Node) -> list[bool] | None:
    """Whether each axis gets smaller; None where that is not known."""
    x, scales = node.inputs[0], _given(node.input(2))
    if x is None or x.shape is None:
        return None
    if scales is not None:
        known = values_of(scales)
        return None if known is None else [bool(scale < 1) for scale in known]
    out = content_of(node.input(3))
    dims = [x.shape[axis] for axis in _axes(node, len(x.shape))]
    if out is None or not all(isinstance(d, int) for d in (*out, *dims)):
        return None
    return [o < d for o, d in zip(out, dims, strict=True)]  # type: ignore[operator]


def _axes(node: Node, rank: int) -> list[int]:
    return [axis % rank for axis in node.attributes["axes"] or range(rank)]


def _given(value: Value | None) -> Value | None:
    """An optional input; ONNX spells an absent one as an empty tensor, too."""
    return None if value is None or length_of(value) == 0 else value


@expands("Resize", target="ir")
def resize_for_ir(b: Builder, node: Node) -> Value:
    """Interpolate-11 where it computes the same, else the weights written out."""
    x = node.inputs[0]
    assert x is not None
    scales, sizes_ = _given(node.input(2)), _given(node.input(3))
    wide = _computed_in(x.element, node.attributes["mode"])
    if wide is not None and wide is not x.element:
        rest = node.inputs[1:]
        resized = b.op("Resize", cast(b, x, wide), *rest, **node.attributes)
        return cast(b, resized, x.element)
    if not _native_in_ir(node, scales):
        return _resize_by_axes(b, node, scales, sizes_)
    mode, coordinates = node.attributes["mode"], node.attributes["coordinate_transformation_mode"]
    axes = node.attributes["axes"]
    return b.op(
        "Interpolate",
        x,
        scales if scales is not None else sizes_,
        None if axes is None else b.constant(list(axes)),
        mode="linear_onnx" if mode == "linear" else mode,
        shape_calculation_mode="sizes" if scales is None else "scales",
        coordinate_transformation_mode="half_pixel"
        if coordinates == "half_pixel_symmetric"
        else coordinates,
        nearest_mode=node.attributes["nearest_mode"],
        cube_coeff=node.attributes["cubic_coeff_a"],
    )


def _computed_in(element: Element | None, mode: str) -> Element | None:
    """The element type in which OpenVINO can resize with ONNX's result: it has no 16-bit and no
    unsigned integers, and rounds interpolated integers, which onnxruntime cuts off."""
    if element is None or element.is_float or (mode == "nearest" and element in NEAREST_IN_IR):
        return element
    return I64 if mode == "nearest" else F32


def _native_in_ir(node: Node, scales: Value | None) -> bool:
    """Whether Interpolate computes what this Resize does."""
    attributes = node.attributes
    coordinates = attributes["coordinate_transformation_mode"]
    linear_or_nearest = attributes["mode"] != "cubic"
    if attributes["antialias"] and attributes["mode"] != "nearest":
        return False
    if attributes["exclude_outside"] and not linear_or_nearest:
        return False
    if scales is None and attributes["keep_aspect_ratio_policy"] != "stretch":
        return False
    if not _spatial(node, scales):
        return False
    # With sizes the scales are exact, and symmetric half pixels are half pixels.
    if coordinates == "half_pixel_symmetric":
        return scales is None
    if coordinates not in (*BOTH_KNOW, "tf_half_pixel_for_nn"):
        return False
    return not _vanishing_scale(node, scales)


def _spatial(node: Node, scales: Value | None) -> bool:
    """Whether OpenVINO's CPU can resize the axes: all up to rank 3, behind the channels up to
    rank 5, and those of an image with its channels last."""
    x = node.inputs[0]
    assert x is not None
    if x.shape is None or len(x.shape) <= 3:
        return True
    if len(x.shape) > 5:
        return False
    axes = _axes(node, len(x.shape))
    if scales is not None:
        known = values_of(scales)
        kept = [known is None or scale == 1 for scale in (axes if known is None else known)]
    else:
        sizes_ = content_of(node.input(3)) or (None,) * len(axes)
        kept = [s is None or s == x.shape[a] for a, s in zip(axes, sizes_, strict=True)]
    resized = {axis for axis, same in zip(axes, kept, strict=True) if not same}
    channels_last = len(x.shape) == 4 and node.attributes["mode"] != "cubic"
    return not resized & {0, 1} or (channels_last and resized <= {1, 2})


def _vanishing_scale(node: Node, scales: Value | None) -> bool:
    """Whether some axis keeps its size by a scale that is not 1, and others do not: OpenVINO
    leaves such an axis as it is."""
    x = node.inputs[0]
    known = values_of(scales)
    if scales is None or known is None or x is None or x.shape is None:
        return False
    axes = _axes(node, len(x.shape))
    kept = [
        isinstance(x.shape[axis], int) and math.floor(x.shape[axis] * float(scale)) == x.shape[axis]
        for axis, scale in zip(axes, known, strict=True)
    ]
    return not all(kept) and any(
        same and scale != 1 for same, scale in zip(kept, known, strict=True)
    )


def _resize_by_axes(b: Builder, node: Node, scales: Value | None, sizes_: Value | None) -> Value:
    """Resize with every axis written out; axes whose size stays are left alone."""
    x, roi = node.inputs[0], _given(node.input(1))
    assert x is not None
    (rank,) = ranks(node, 0)
    axes = _axes(node, rank)
    attributes = node.attributes
    coordinates = attributes["coordinate_transformation_mode"]
    cropping = coordinates == "tf_crop_and_resize"
    if cropping and roi is None:
        raise Refused("tf_crop_and_resize needs the input roi")
    common = None
    if sizes_ is not None and attributes["keep_aspect_ratio_policy"] != "stretch":
        common = _common_scale(b, x, axes, sizes_, attributes["keep_aspect_ratio_policy"])
    known = values_of(scales)
    todo = []
    for index, axis in enumerate(axes):
        if known is not None and known[index] == 1 and not cropping:
            continue
        count = size(b, x, axis)
        wide = cast(b, count, F32)
        start = _part(b, roi, index) if cropping else None
        end = _part(b, roi, index + len(axes)) if cropping else None
        if scales is not None:
            scale = _part(b, scales, index)
            whole = b.op("Mul", wide, scale)
            if cropping:
                whole = b.op("Mul", whole, b.op("Sub", end, start))
            out = as_i64(b, b.op("Floor", whole))
        elif common is not None:
            scale = common
            half = b.constant(0.5)
            out = as_i64(b, b.op("Floor", b.op("Add", b.op("Mul", wide, scale), half)))
        else:
            out = as_i64(b, _part(b, sizes_, index))
            scale = b.op("Div", cast(b, out, F32), wide)
        todo.append(Axis(axis, count, out, scale, start, end))
    return resample(
        b,
        x,
        todo,
        Method(
            attributes["mode"],
            coordinates,
            attributes["nearest_mode"],
            attributes["antialias"],
            attributes["exclude_outside"],
            attributes["cubic_coeff_a"],
            attributes["extrapolation_value"] if cropping else None,
        ),
    )


def _part(b: Builder, vector: Value | None, index: int) -> Value:
    """One element of a vector, f32 where it is a float."""
    assert vector is not None
    known = values_of(vector)
    if known is not None:
        item = b.constant(known.reshape(-1)[index])
    else:
        item = b.op("Gather", vector, b.constant(index), b.constant(0))
    return cast(b, item, F32) if vector.element.is_float else item


def _common_scale(b: Builder, x: Value, axes: list[int], wanted: Value, policy: str) -> Value:
    """The one scale of all axes with which none is larger (or smaller) than wanted."""
    ratios = b.op("Div", cast(b, wanted, F32), cast(b, sizes(b, x, *axes), F32))
    reduce = "ReduceMin" if policy == "not_larger" else "ReduceMax"
    return scalar(b, b.op(reduce, ratios, b.constant([0]), keepdims=True))


@reads("Interpolate", format="ir", until=3)
def read_interpolate_1(b: Builder, node: Node) -> Value:
    """Interpolate-1 has its axes as an attribute, and maps coordinates asymmetrically unless the
    corners are aligned."""
    data = node.attributes
    aligned = data.get("align_corners", "true").lower() in ("true", "1")
    return b.op(
        "Interpolate",
        node.inputs[0],
        node.inputs[1],
        b.constant([int(axis) for axis in data["axes"].split(",")]),
        mode={"linear": "linear_onnx"}.get(data["mode"], data["mode"]),
        shape_calculation_mode="sizes",
        coordinate_transformation_mode="align_corners" if aligned else "asymmetric",
        nearest_mode="simple",
        antialias=data.get("antialias", "true").lower() in ("true", "1"),
        **_pads(data),
    )


@reads("Interpolate", format="ir", since=4, until=10)
def read_interpolate_4(b: Builder, node: Node) -> Value:
    """Interpolate-4 has sizes and scales, of which its mode takes one."""
    data = node.attributes
    by_scales = data["shape_calculation_mode"] == "scales"
    return b.op(
        "Interpolate",
        node.inputs[0],
        node.inputs[2 if by_scales else 1],
        node.input(3),
        mode=data["mode"],
        shape_calculation_mode=data["shape_calculation_mode"],
        coordinate_transformation_mode=data.get("coordinate_transformation_mode", "half_pixel"),
        nearest_mode=data.get("nearest_mode", "round_prefer_floor"),
        antialias=data.get("antialias", "false").lower() in ("true", "1"),
        cube_coeff=float(data.get("cube_coeff", "-0.75")),
        **_pads(data),
    )


def _pads(data: dict[str, str]) -> dict[str, tuple[int, ...]]:
    names = ("pads_begin", "pads_end")
    return {name: tuple(int(p) for p in data.get(name, "0").split(",") if p) for name in names}


@expands("Interpolate", target="onnx")
def interpolate_for_onnx(b: Builder, node: Node) -> Value:
    """Interpolate-11: Resize where it computes the same, else the weights written out."""
    x, wanted = node.inputs[0], node.inputs[1]
    assert x is not None and wanted is not None and b.target is not None
    (rank,) = ranks(node, 0)
    axes = list(range(rank))
    if node.input(2) is not None:
        known = known_axes(node.inputs[2], rank)
        if known is None:
            raise Refused("its axes must be constants")
        axes = list(known)
    attributes = node.attributes
    begin, end = (_padded(attributes[name], rank) for name in ("pads_begin", "pads_end"))
    if any(begin + end):
        x = b.op("Pad", x, b.constant(begin + end))
    mode, coordinates, nearest = _in_onnx(attributes)
    by_scales = attributes["shape_calculation_mode"] == "scales"
    pillow = attributes["mode"].endswith("_pillow")
    if pillow or coordinates is None or not _onnx_takes(mode, rank, axes):
        return _interpolate_by_axes(b, node, x, axes, wanted)
    scales = cast(b, wanted, F32) if by_scales else None
    return b.op(
        "Resize",
        x,
        None,
        scales,
        None if by_scales else as_i64(b, wanted),
        axes=tuple(axes) if axes != list(range(rank)) else None,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=nearest,
        cubic_coeff_a=attributes["cube_coeff"],
    )


def _padded(pads: tuple[int, ...], rank: int) -> list[int]:
    return (list(pads) + [0] * rank)[:rank]


def _in_onnx(attributes: dict[str, str]) -> tuple[str, str | None, str]:
    """Mode, coordinates and rounding in ONNX's words (`simple` is yet to be resolved); None where
    it has no such coordinates."""
    mode = {"linear_onnx": "linear"}.get(attributes["mode"], attributes["mode"])
    coordinates: str | None = attributes["coordinate_transformation_mode"]
    nearest = attributes["nearest_mode"]
    if mode == "nearest" and coordinates == "tf_half_pixel_for_nn" and nearest == "floor":
        # floor((x + 0.5) / s) rounds (x + 0.5) / s - 0.5, halves upward.
        coordinates, nearest = "half_pixel", "round_prefer_ceil"
    if coordinates not in BOTH_KNOW:
        coordinates = None
    if mode != "nearest":
        nearest = "round_prefer_floor"
    return mode, coordinates, nearest


def _onnx_takes(mode: str, rank: int, axes: list[int]) -> bool:
    """Whether onnxruntime implements the mode: linear for the last one to three axes, cubic for
    the last two of an image."""
    if mode == "nearest":
        return True
    last = sorted(axes) == list(range(rank - len(axes), rank))
    if mode == "cubic":
        return rank in (2, 4) and last and len(axes) == 2
    return last and (rank, len(axes)) in ((1, 1), (2, 2), (3, 1), (3, 3), (4, 2), (5, 3))


def _for_all_axes(
    b: Builder, x: Value, axes: list[int], scales: Value | None, wanted: Value | None
) -> tuple[Value | None, Value | None]:
    """Scales or sizes of all axes: Resize has no axes before operator set 18."""
    assert x.rank is not None
    place = b.constant(axes)
    if scales is not None:
        ones = b.constant(np.ones(x.rank, np.float32))
        return b.op("ScatterElements", ones, place, scales, b.constant(0)), None
    assert wanted is not None
    known = integers(wanted)
    if known is not None:
        parts = [
            b.constant([known[axes.index(i)]]) if i in axes else sizes(b, x, i)
            for i in range(x.rank)
        ]
        return None, concat(b, 0, *parts)
    return None, b.op("ScatterElements", b.op("Shape", x), place, as_i64(b, wanted), b.constant(0))


def _interpolate_by_axes(b: Builder, node: Node, x: Value, axes: list[int], wanted: Value) -> Value:
    attributes = node.attributes
    mode = attributes["mode"]
    pillow = mode.endswith("_pillow")
    todo = []
    for index, axis in enumerate(axes):
        count = size(b, x, axis)
        wide = cast(b, count, F32)
        if attributes["shape_calculation_mode"] == "scales":
            scale = _part(b, wanted, index)
            out = as_i64(b, b.op("Floor", b.op("Mul", wide, scale)))
        else:
            out = as_i64(b, _part(b, wanted, index))
        if pillow or attributes["shape_calculation_mode"] != "scales":
            scale = b.op("Div", cast(b, out, F32), wide)
        todo.append(Axis(axis, count, out, scale))
    method = Method(
        {"linear_onnx": "linear", "bilinear_pillow": "linear", "bicubic_pillow": "cubic"}.get(
            mode, mode
        ),
        "half_pixel" if pillow else attributes["coordinate_transformation_mode"],
        attributes["nearest_mode"],
        antialias=pillow,
        exclude_outside=pillow,
        cubic=attributes["cube_coeff"],
    )
    return resample(b, x, todo, method)
