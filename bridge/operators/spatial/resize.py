"""Resize and Upsample of ONNX."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import constraints as must, first, infers_shape, require
from bridge.neutral.inference.dims import with_dim
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, F32, I8, I32, I64, U8, Dim, Shape
from bridge.operators import Refused, legalizes, ranked, ranks, reads
from bridge.operators.spatial.resample import Axis, Method, resample

COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
"""The coordinate transformations in both Resize and Interpolate."""

NEAREST_IN_IR = (I8, U8, I32, I64)
"""The integer types that Interpolate accepts."""


@reads("Resize", format="onnx", since=10, until=10)
def read_resize_10(b: Builder, node: Node) -> Value:
    """Resize-10 has only the attribute `mode`, and it works as Upsample. If it shrinks an axis, it
    takes the next element, not the previous one (`simple` in IR)."""
    return _read_upsample(b, node, node.inputs[1], "simple")


@reads("Upsample", format="onnx", until=6)
def read_upsample_1(b: Builder, node: Node) -> Value:
    """Upsample-1 has two attributes for its scales."""
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


@legalizes("Upsample", target="ir")
@legalizes("Upsample", target="onnx")
def upsample(b: Builder, node: Node) -> Value | None:
    """Upsample (7 to 9), which IR and later operator sets lack, as an asymmetric Resize with
    scales."""
    return None if 0 < b.opset <= 9 else _read_upsample(b, node, node.inputs[1])


@legalizes("Resize", target="onnx")
def resize_for_onnx(b: Builder, node: Node) -> Value | None:
    """Resize (10 to 19). ONNX lacks the rounding `simple`. It has the newer modes only since
    operator sets 18 and 19."""
    return _simple(b, node) if node.attributes["nearest_mode"] == "simple" else _older(b, node)


def _simple(b: Builder, node: Node) -> Value | None:
    """The rounding `simple` rounds down on axes that grow, and up on axes that shrink."""
    attributes = dict(node.attributes)
    if attributes["mode"] != "nearest":
        return b.op("Resize", *node.inputs, **attributes | {"nearest_mode": "floor"})
    shrinks = _shrinking(node)
    if shrinks is None or len(set(shrinks)) > 1:
        return resize_by_axes(b, node, unless_empty(node, 2), unless_empty(node, 3))
    attributes["nearest_mode"] = "ceil" if shrinks[0] else "floor"
    return b.op("Resize", *node.inputs, **attributes)


def _older(b: Builder, node: Node) -> Value | None:
    """Resize for operator sets without newer features. Symmetric half pixels came with operator set
    19. Axes (also for the region of interest), antialiasing and the policy came with operator set
    18."""
    attributes = node.attributes
    symmetric = attributes["coordinate_transformation_mode"] == "half_pixel_symmetric"
    newer = symmetric and b.opset < 19
    if b.opset < 18:
        policy = attributes["keep_aspect_ratio_policy"] != "stretch"
        newer = newer or attributes["antialias"] or policy
        newer = newer or (attributes["axes"] is not None and unless_empty(node, 1) is not None)
    scales, sizes_ = unless_empty(node, 2), unless_empty(node, 3)
    if newer:
        return _widened(b, node) or resize_by_axes(b, node, scales, sizes_)
    if b.opset < 13 and None in node.inputs[1:3]:  # They may be empty there, but not absent.
        roi, scales = (x or b.filled(0, [0], F32) for x in node.inputs[1:3])
        return b.op("Resize", node.operand(0), roi, scales, node.input(3), **attributes)
    if b.opset >= 18 or attributes["axes"] is None:
        return None
    x = node.operand(0)
    axes = _axes(node, ranks(node, 0)[0])
    scales, sizes_ = _for_all_axes(b, x, axes, scales, sizes_)
    return b.op("Resize", x, None, scales, sizes_, **attributes | {"axes": None})


def _shrinking(node: Node) -> list[bool] | None:
    """Whether each axis shrinks; None if this is unknown."""
    x, scales = node.inputs[0], unless_empty(node, 2)
    if x is None or x.shape is None:
        return None
    if scales is not None:
        known = known_of(scales).array
        return None if known is None else [bool(scale < 1) for scale in known]
    out = known_of(node.input(3)).parts
    dims = [x.shape[axis] for axis in _axes(node, len(x.shape))]
    if out is None or not all(isinstance(d, int) for d in (*out, *dims)):
        return None
    return [o < d for o, d in zip(out, dims, strict=True)]  # type: ignore[operator]


def _axes(node: Node, rank: int) -> list[int]:
    return [axis % rank for axis in node.attributes["axes"] or range(rank)]


def unless_empty(node: Node, index: int) -> Value | None:
    """An optional input. In ONNX an empty tensor also means an absent input."""
    value = node.input(index)
    return None if known_of(value).length == 0 else value


@legalizes("Resize", target="ir")
def resize_for_ir(b: Builder, node: Node) -> Value:
    """Resize (10 to 19) as Interpolate-11 if it computes the same, otherwise with explicit
    weights."""
    x = node.operand(0)
    scales, sizes_ = unless_empty(node, 2), unless_empty(node, 3)
    if (widened := _widened(b, node)) is not None:
        return widened
    if not _native_in_ir(node, scales):
        return resize_by_axes(b, node, scales, sizes_)
    axes = node.attributes["axes"]
    if axes is not None and list(axes) != sorted({axis for axis in axes if axis >= 0}):
        return _in_order(b, node, scales, sizes_)
    mode, coordinates = node.attributes["mode"], node.attributes["coordinate_transformation_mode"]
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


def _in_order(b: Builder, node: Node, scales: Value | None, sizes_: Value | None) -> Value:
    """The same Resize with its axes from the first to the last, as Interpolate wants them."""
    x, rank = ranked(node)
    axes = _axes(node, rank)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    given = (None if v is None else b.op("Gather", v, order, 0) for v in (scales, sizes_))
    attributes = {**node.attributes, "axes": tuple(sorted(axes))}
    return b.op("Resize", x, None, *given, **attributes)


def _widened(b: Builder, node: Node) -> Value | None:
    """A Resize of integers, in a type that Interpolate accepts and that holds numbers between them;
    None if it has such a type. Of 16-bit and unsigned integers, Interpolate accepts only u8.

    The standard does not say how numbers between integers become integers. Its reference rounds and
    saturates, but onnxruntime truncates where it interpolates integers."""
    x, *rest = node.inputs
    attributes, element = node.attributes, node.operand(0).element
    nearest = attributes["mode"] == "nearest"
    if x is None or element is None or element.is_float or (nearest and element in NEAREST_IN_IR):
        return None
    y = b.op("Resize", b.cast(x, I64 if nearest else F32), *rest, **attributes)
    linear = attributes["mode"] == "linear" and not attributes["antialias"]
    if not nearest and not (linear and x.rank != 1 and element in (I8, U8, I32)):
        y = b.op("Round", y)
        y = b.op("Clip", y, *map(float, element.bounds)) if element.bits < I32.bits else y
    return b.cast(y, element)


def _native_in_ir(node: Node, scales: Value | None) -> bool:
    """Whether Interpolate computes the same as this Resize."""
    attributes = node.attributes
    coordinates = attributes["coordinate_transformation_mode"]
    linear_or_nearest = attributes["mode"] != "cubic"
    if attributes["antialias"] and attributes["mode"] != "nearest":
        return False
    if attributes["exclude_outside"] and not linear_or_nearest:
        return False
    if scales is None and attributes["keep_aspect_ratio_policy"] != "stretch":
        return False
    # With sizes the scales are exact, so that symmetric half pixels are equal to half pixels.
    if coordinates == "half_pixel_symmetric":
        return scales is None
    if coordinates not in (*COORDINATES, "tf_half_pixel_for_nn"):
        return False
    shape = first(node).shape
    return shape is None or not vanishing_scale(shape, _axes(node, len(shape)), scales)


def vanishing_scale(shape: Sequence[Dim], axes: Sequence[int], scales: Value | None) -> bool:
    """Whether one axis keeps its size with a scale other than 1, and another axis changes. IR does
    not change the first axis, because its scale is the ratio of the sizes (Interpolate-11)."""
    known = known_of(scales).array
    if known is None:
        return False
    dims = [shape[axis] for axis in axes]
    kept = [
        isinstance(dim, int) and math.floor(dim * float(scale)) == dim
        for dim, scale in zip(dims, known, strict=True)
    ]
    return not all(kept) and any(
        same and scale != 1 for same, scale in zip(kept, known, strict=True)
    )


def resize_by_axes(b: Builder, node: Node, scales: Value | None, sizes_: Value | None) -> Value:
    """Resize with explicit weights for every axis. An axis that keeps its size does not change."""
    (x, rank), roi = ranked(node), unless_empty(node, 1)
    axes = _axes(node, rank)
    attributes = node.attributes
    coordinates = attributes["coordinate_transformation_mode"]
    cropping = coordinates == "tf_crop_and_resize"
    if cropping and roi is None:
        raise Refused("tf_crop_and_resize needs the input roi")
    common = None
    if sizes_ is not None and attributes["keep_aspect_ratio_policy"] != "stretch":
        common = _common_scale(b, x, axes, sizes_, attributes["keep_aspect_ratio_policy"])
    known = known_of(scales).array
    todo = []
    for index, axis in enumerate(axes):
        if known is not None and known[index] == 1 and not cropping:
            continue
        count = b.size(x, axis)
        wide = b.cast(count, F32)
        region = [element_at(b, roi, i) for i in (index, index + len(axes))] if cropping else []
        if scales is not None:
            scale = element_at(b, scales, index)
            # The standard's text has the length of the region here; no implementation does.
            out = b.as_i64(b.op("Floor", wide * scale))
        elif common is not None:
            scale = common
            half = b.constant(0.5)
            out = b.as_i64(b.op("Floor", wide * scale + half))
        else:
            out = b.as_i64(element_at(b, sizes_, index))
            scale = b.cast(out, F32) / wide
        todo.append(Axis(axis, count, out, scale, *region))
    method = Method(
        attributes["mode"],
        coordinates,
        attributes["nearest_mode"],
        attributes["antialias"],
        attributes["exclude_outside"],
        attributes["cubic_coeff_a"],
        attributes["extrapolation_value"] if cropping else None,
    )
    return resample(b, x, todo, method)


def element_at(b: Builder, vector: Value | None, index: int) -> Value:
    """One element of a vector. A float becomes f32."""
    assert vector is not None
    item = vector[index]
    return b.cast(item, F32) if vector.known_element.is_float else item


def _common_scale(b: Builder, x: Value, axes: list[int], wanted: Value, policy: str) -> Value:
    """The common scale of all axes. With it, no axis is larger (or smaller) than wanted."""
    ratios = b.cast(wanted, F32) / b.cast(b.sizes(x, *axes), F32)
    reduce = "ReduceMin" if policy == "not_larger" else "ReduceMax"
    return b.scalar(b.op(reduce, ratios, b.constant([0]), keepdims=True))


def _for_all_axes(
    b: Builder, x: Value, axes: list[int], scales: Value | None, wanted: Value | None
) -> tuple[Value | None, Value | None]:
    """Scales or sizes of all axes, because Resize has no axes before operator set 18."""
    rank, place = len(x.dims), b.constant(axes)
    if scales is not None:
        ones = b.constant(np.ones(rank, np.float32))
        return b.op("ScatterElements", ones, place, scales, 0), None
    assert wanted is not None
    known = known_of(wanted).ints
    if known is not None:
        wanted_of = dict(zip(axes, known, strict=True))
        parts = (b.constant([wanted_of[i]]) if i in axes else b.sizes(x, i) for i in range(rank))
        return None, b.concat(0, *parts)
    return None, b.op("ScatterElements", b.op("Shape", x), place, b.as_i64(wanted), 0)


def scaled(dim: Dim, scale: float) -> Dim:
    """A dimension times a scale, rounded down."""
    if scale == 1:
        return dim
    return math.floor(dim * scale) if isinstance(dim, int) else ANY


def resized(
    dims: tuple[Dim, ...], axes: Iterable[int], scales: np.ndarray | None, sizes: Shape
) -> tuple[Dim, ...]:
    """Dimensions after the scales or sizes of `axes`. A dimension is unknown if neither its scale
    nor its size is known."""
    for index, axis in enumerate(axes):
        dim: Dim = ANY
        if scales is not None:
            dim = scaled(dims[axis], float(scales.flat[index]))
        elif sizes is not None:
            dim = sizes[index]
        dims = with_dim(dims, axis, dim)
    return dims


@infers_shape("Resize")
def shape_of_resized(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """Resize: the scales or sizes of `axes`. A size is unknown if the operator keeps the aspect
    ratio."""
    axes, by_scales = _axes(node, len(dims)), unless_empty(node, 2) is not None
    scales = known_of(node.input(2)).array if by_scales else None
    sizes = None if by_scales else known_of(node.input(3)).dims
    require(scales is None or len(scales) == len(axes))
    require(sizes is None or len(sizes) == len(axes))
    stretched = node.attributes["keep_aspect_ratio_policy"] == "stretch"
    return resized(dims, axes, scales, sizes if stretched else None)


@infers_shape("Upsample")
def shape_of_upsampled(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """Upsample (7 to 9): a scale for each axis, also of an element type that is not known."""
    scales = known_of(node.input(1)).array
    require(scales is None or len(scales) == len(dims))
    return resized(dims, list(range(len(dims))), scales, None)


# Constraints on the inputs ------------------------------------------------------------------------


def factors_for_axes(
    node: Node, axes: Sequence[int] | None, vectors: Sequence[int], scales: Value | None
) -> must.Constraints:
    """There is a positive factor, or a size, for each resized axis. `vectors` are the inputs with
    one element for each axis, unless they are empty."""
    x = must.Operand(node.input(0))
    count = x.rank if axes is None else len(axes)
    if axes and x.rank and len({axis % x.rank for axis in axes}) < len(axes):
        yield f"its axes {list(axes)} name one of {x} twice"
    for index in vectors:
        given = must.Operand(node.input(index))
        if given.shape != (0,) and count is not None:
            yield must.Same(given[0], count, f"its input {index} is {given}, for {count} axes")
    numbers = known_of(scales).array
    if numbers is not None and not ((numbers > 0) & np.isfinite(numbers)).all():
        yield f"its scales are {numbers.tolist()}"


def scales_or_sizes(node: Node) -> must.Constraints:
    """Resize: one factor or one size for each axis."""
    given = {index: must.Operand(node.input(index)) for index in (2, 3)}
    if all(x.value is None or x.shape == (0,) for x in given.values()):
        yield "it has neither scales nor sizes"
    axes = node.attributes.get("axes")
    lengths = (known_of(x.value).length for x in given.values())
    if axes is None and (length := next(filter(None, lengths), None)):
        yield must.Rank(must.Operand(node.input(0)), length)
    yield from factors_for_axes(node, axes, (2, 3), node.input(2))


must.hold(
    "Resize",
    must.axis_attribute("axes"),
    must.has_rank(1, 1, of=2),
    must.has_rank(1, 1, of=3),
    scales_or_sizes,
)
