"""Operators of ONNX in the forms that runtimes have.

The standard allows more types and modes than onnxruntime has kernels for. So a model that comes
from IR gets other forms; they come before the rules of the operators. A model of ONNX keeps its
own operators.
"""

from collections.abc import Mapping

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node
from bridge.neutral.inference.known import known_of
from bridge.neutral.rewrite import Pattern, Rewriter
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import BOOL, F16, F32, F64, I32, I64, STRING
from bridge.operators import Refused, Result, Rule, attributes_beside, required
from bridge.operators.nn.conv import explicitly_padded, spatial_rank
from bridge.operators.nn.max_pool import poolable, with_lowest
from bridge.operators.nn.shapes import full_attributes
from bridge.operators.nn.windows import is_short, lean, window_of
from bridge.operators.spatial.interpolate import by_axes, padded
from bridge.passes import legalize as standard
from bridge.passes.applies import always, applies
from bridge.passes.context import Context
from bridge.targets import kernels


@applies(always)
def legalize(model: Model, context: Context) -> bool:
    """As `bridge.passes.legalize.legalize`; operators of IR get forms that runtimes have."""
    return standard.legalize(model, context, FORMS if model.format == "ir" else None)


def fill_empty_constants(model: Model, context: Context) -> bool:
    """Makes, in place, a ConstantOfShape of each constant without elements that has two axes or
    more. OpenVINO's reader of ONNX takes an input or a scalar for it."""

    def filled(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        tensor = node.attributes["value"]
        element = tensor.element
        narrow = element.bits < 8 or (element.is_float and element not in (F16, F32, F64))
        if tensor.size or len(tensor.shape) < 2 or narrow or element is STRING:
            return None
        zero = Tensor.of(np.zeros(1, element.dtype))
        return b.op("ConstantOfShape", b.constant(tensor.shape, I64), value=zero)

    if model.opset is not None:  # A record of ONNX has what the model had.
        return False
    return Rewriter(model.graph).run(Pattern(filled, frozenset({"Constant"}), context.target))


def _reduced_f16(b: Builder, node: Node) -> Result:
    """A scatter of f16 that reduces, in f32. onnxruntime does not reduce f16."""
    data, indices, updates = required(node, 0, 1, 2)
    if data.element is not F16 or node.attributes["reduction"] == "none":
        return None
    wide = [b.cast(data, F32), indices, b.cast(updates, F32), *node.inputs[3:]]
    return b.cast(b.op(node.op, *wide, **node.attributes), F16)


def _one_hot(b: Builder, node: Node) -> Result:
    """OneHot with values of a type that onnxruntime has: f32, i64 or strings."""
    indices, depth, on, off = required(node, 0, 1, 2, 3)
    element, attributes = on.element, node.attributes
    if element in (F16, F32, I64, STRING):
        return None
    if element is F64:
        hot = b.op(node.op, indices, depth, 1, 0, **attributes)
        return b.where(b.cast(hot, BOOL), b.scalar(on), b.scalar(off))
    wide = F32 if element is not None and element.is_float else I64
    values = [b.cast(b.scalar(value), wide) for value in (on, off)]
    return b.cast(b.op(node.op, indices, depth, *values, **attributes), element)


def _dilated_convolution(b: Builder, node: Node) -> Result:
    """Explicit pads in place of SAME, with dilations. onnxruntime refuses both together."""
    data, filters = required(node, 0, 1)
    attributes = full_attributes(node.attributes, spatial_rank(node, filters))
    if not _is_dilated(attributes):
        return None
    kernel = filters.shape[2:] if filters.shape else attributes.get("kernel_shape")
    explicit = explicitly_padded(data, kernel or (), attributes)
    return b.op("Conv", *node.inputs, **node.attributes | explicit)


def _dilated_pool(b: Builder, node: Node) -> Result:
    """Explicit pads in place of SAME, with dilations. onnxruntime ignores the dilations there."""
    data, attributes = node.operand(0), window_of(node)
    if not _is_dilated(attributes):
        return None
    explicit = explicitly_padded(data, attributes["kernel_shape"], attributes)
    if not is_short(attributes):
        explicit["rounding_type"] = "floor"  # The windows end at the end of the padding.
    return b.ops(node.op, len(node.outputs), *node.inputs, **node.attributes | explicit)


def _max_pool(b: Builder, node: Node) -> Result:
    """Elements in place of pads as large as the kernel, which onnxruntime refuses."""
    data, attributes = node.operand(0), window_of(node)
    if _is_dilated(attributes):
        return _dilated_pool(b, node)
    limits = zip(attributes["pads"], attributes["kernel_shape"] * 2, strict=True)
    fits = attributes["auto_pad"] != "NOTSET" or all(pad < size for pad, size in limits)
    if fits or node.attributes["rounding_type"] != "floor" or poolable(b, data)[0] is not data:
        return None
    if len(node.outputs) > 1:
        raise Refused("onnxruntime does not accept pads as large as the kernel")
    wide, plain = with_lowest(b, data, attributes, attributes["pads"])
    return b.op("MaxPool", wide, **node.attributes | plain)


def _is_dilated(attributes: Mapping[str, object]) -> bool:
    return str(attributes["auto_pad"]).startswith("SAME") and bool(
        lean({**attributes})["dilations"]
    )


def _power(b: Builder, node: Node) -> Result:
    """An exponent of whole numbers in the type of the base. onnxruntime has few pairs of types."""
    x, y = required(node, 0, 1)
    if x.element is None or y.element in (None, x.element, I32, I64) or not y.element.is_integer:
        return None
    return x ** b.cast(y, x.element)


def _normalized_image(b: Builder, node: Node) -> Result:
    """LRN over channels of an image. onnxruntime has no LRN of another rank."""
    data = node.operand(0)
    if node.input(1) is not None or data.rank in (None, 4):
        return None
    image = b.op("LRN", b.reshape(data, 0, 0, -1, 1), **node.attributes)
    return b.op("Reshape", image, b.op("Shape", data))


def _interpolated(b: Builder, node: Node) -> Result:
    """Explicit weights for the axes, if onnxruntime has no Resize for them."""
    x, axes, wanted = padded(b, node)
    by_scales = node.attributes["shape_calculation_mode"] == "scales"
    scales = known_of(wanted).array if by_scales else None
    out = None if by_scales else known_of(wanted).parts
    moving = [
        axis
        for index, axis in enumerate(axes)
        if not (
            (scales is not None and scales.reshape(-1)[index] == 1)
            or (out is not None and out[index] is not None and out[index] == x.dims[axis])
        )
    ]
    mode, rank = node.attributes["mode"], len(x.dims)
    if _has_resize(mode, rank, axes) or _has_resize(mode, rank, moving):
        return None
    return by_axes(b, node, x, axes, wanted)


def _has_resize(mode: str, rank: int, axes: list[int]) -> bool:
    """Whether onnxruntime resizes these axes: linear the last one to three axes, and cubic the last
    two axes of an image."""
    if mode == "nearest":
        return True
    last = sorted(axes) == list(range(rank - len(axes), rank))
    if mode == "cubic":
        return rank in (2, 4) and last and len(axes) == 2
    return last and (rank, len(axes)) in ((1, 1), (2, 2), (3, 1), (3, 3), (4, 2), (5, 3))


def _of_channels(b: Builder, node: Node) -> Result:
    """A quantisation with a scale for each channel between copies, a Max of one value. onnxruntime
    fuses operators in front and behind into integer kernels, which accept one scale alone."""
    x, scale, zero_point = required(node, 0, 1, 2)
    attributes = attributes_beside(node, "apart")
    if not node.attributes["apart"] or scale.rank == 0:
        return None
    return b.op("Max", b.op(node.op, b.op("Max", x), scale, zero_point, **attributes))


OWN: dict[str, Rule] = {
    "AvgPool": _dilated_pool,
    "Conv": _dilated_convolution,
    "Interpolate": _interpolated,
    "LRN": _normalized_image,
    "MaxPool": _max_pool,
    "Pow": _power,
    "QuantizeDequantize": _of_channels,
    "ScatterElements": _reduced_f16,
    "ScatterND": _reduced_f16,
    "ir::OneHot": _one_hot,
}
"""The forms by operator; None where the operator stays as it is."""


def _first(*forms: Rule) -> Rule:
    """The first form that a node gets."""
    return lambda b, node: next((y for form in forms if (y := form(b, node)) is not None), None)


_TABLES = kernels.FORMS, OWN
FORMS = {op: _first(*(table[op] for table in _TABLES if op in table)) for op in kernels.FORMS | OWN}
